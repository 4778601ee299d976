"""String keys in `pmlab bench`: every answer is checked, over every kind of words; invalid options are refused."""
import json
import os
import subprocess
import sys

from program import ProgramTest, main, pmlab

SMALL = ("--records", "5k", "--operations", "5k", "--quiet", "--verify")
REAL_KEYS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "real_keys")


class Strings(ProgramTest):
    def run_checked(self, index, *more):
        done = self.assert_works("bench", "--index", index, *SMALL, *more, "--json", self.file("r.json"))
        with open(self.file("r.json"), encoding="utf-8") as f:
            return done.stdout, json.load(f)

    def test_every_kind_of_key_is_answered_right(self):
        self.write("lines.txt", b"\n".join(b"usr/share/doc/lib%d/copyright" % i for i in range(700)))
        for keys in ("binary", "binary,bytes=8", "binary,bytes=200", "decimal", self.file("lines.txt")):
            with self.subTest(keys=keys):
                self.run_checked(",".join(f"strings({words},keys={keys})"
                                          for words in ("fast_fair", "cceh", "woart", "woart,form=trie")),
                                 "--threads", "2")

    def test_over_trees_lists_caches_and_hybrids_with_blobs_in_pools(self):
        index = ",".join(f"strings({words},values=blobs)"
                         for words in ("level_hashing", "fp_tree", "skip_list", "skip_list_pm", "cache(cceh)",
                                       "hybrid_index_plus", "woart"))
        output, results = self.run_checked(index, "--medium", "pmem:" + self.file("pool"), "--reopen",
                                           "--phases", "read,absent,update,insert,erase")
        self.assertIn("reopen", output)
        entries = {r["index"]: r["entries"] for r in results["results"] if r["phase"] == "load"}
        self.assertEqual(set(entries.values()), {5000}, entries)
        self.assertEqual(os.listdir(self.folder), ["r.json"])

    def test_workloads_on_an_emulated_device(self):
        done = pmlab("bench", "--index", "strings(fast_fair)", *SMALL, "--medium", "emulated:aep", "--workload",
                     "ycsb-e")
        # Every answer is right, also where a busy machine is too slow for the device.
        if done.returncode != 0:
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn("this machine could not emulate the device", done.stderr)

    def test_what_is_not_understood(self):
        bench = ("bench", "--quiet", "--index")
        for expected, index in ((["did you mean keys"], "strings(cceh,kees=binary)"),
                                (["keys=binary", "text file"], "strings(cceh,keys=numbers)"),
                                (["missing.txt"], f"strings(cceh,keys={self.file('missing.txt')})"),
                                (["blobs"], "strings(cceh,values=text)"),
                                (["65536"], "strings(cceh,bytes=100000)"),
                                (["keys=binary only"], "strings(cceh,keys=decimal,bytes=9)"),
                                (["form=trie"], "strings(woart,form=tree)"),
                                (["cceh has no order"], "strings(cceh,form=trie)"),
                                (["one index"], "strings(cceh,fast_fair)"),
                                (["tbb_hash"], "strings(tbb_hash)"),
                                (["null_index"], "strings(null_index)")):
            with self.subTest(index=index):
                self.assert_fails(2, expected, *bench, index)
        self.assert_fails(2, ["counted", "alone"], *bench, "strings(cceh)", "--medium", "counted:dram")

    def test_the_words_of_this_machine_are_sorted_and_each_once(self):
        done = subprocess.run([sys.executable, REAL_KEYS, "paths"], capture_output=True, check=True)
        keys = done.stdout.split(b"\n")[:-1]
        self.assertGreater(len(keys), 1000)
        decoded = [k.decode(errors="surrogateescape") for k in keys]
        self.assertEqual(decoded, sorted(set(decoded)))


if __name__ == "__main__":
    main()
