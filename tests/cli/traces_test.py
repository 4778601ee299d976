"""Traces that the official generators printed, run on real indexes with every answer checked."""
import json
import os

from program import DATA, ProgramTest, main


def data(name):
    return os.path.join(DATA, name)


class Traces(ProgramTest):
    def traced(self, *arguments):
        result = self.file("r.json")
        self.assert_works("bench", "--quiet", "--verify", "--json", result, *arguments)
        with open(result, encoding="utf-8") as f:
            return json.load(f)

    def test_official_ycsb_in_two_files(self):
        for threads in ("1", "2"):
            document = self.traced("--index", "cceh,fast_fair,std_map", "--threads", threads, "--trace",
                                   data("ycsb-a.load.txt"), "--trace", data("ycsb-a.run.txt"))
            self.assertEqual([r["phase"] for r in document["results"]], ["load"] * 3 + ["trace"] * 3)
            self.assertEqual({r["wrong_answers"] for r in document["results"]}, {0})
            self.assertGreater(document["results"][3]["operations"], 0)

    def test_gzip_scans_and_go_ycsb(self):
        for name in ("ycsb-f.txt.gz", "ycsb-e.txt", "go-ycsb-a.txt"):
            document = self.traced("--index", "fast_fair", "--trace", data(name))
            self.assertEqual({r["wrong_answers"] for r in document["results"]}, {0}, name)

    def test_a_hash_leaves_scans_out(self):
        document = self.traced("--index", "cceh,fast_fair", "--trace", data("ycsb-e.txt"))
        self.assertEqual([(s["index"], s["phase"]) for s in document["skipped"]], [("cceh", "trace")])

    def test_bad_traces(self):
        self.assert_fails(2, [self.file("missing")], "bench", "--index", "cceh", "--trace", self.file("missing"))
        broken = self.write("broken", b"INSERT usertable user1 [ ]\nREAD usertable usurper [ ]\n")
        self.assert_fails(2, [broken + ":2"], "bench", "--index", "cceh", "--trace", broken)
        empty = self.write("empty", b"")
        self.assert_fails(2, [empty], "bench", "--index", "cceh", "--trace", empty)


if __name__ == "__main__":
    main()
