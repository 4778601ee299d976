"""`pmlab bench --medium counted:...`: figures of the algorithm, the same in each run of one thread."""
import json

from program import INDEXES, ProgramTest, main

ALL = ",".join(INDEXES)


class Counted(ProgramTest):
    def counted(self, medium, indexes=ALL, *more):
        path = self.file("r.json")
        self.assert_works("bench", "--quiet", "--index", indexes, "--medium", medium, "--records", "20k",
                          "--operations", "10k", "--phases", "read,absent,update,insert,scan,erase", "--json", path,
                          *more)
        with open(path, encoding="utf-8") as f:
            return {(r["index"], r["phase"]): r["per_operation"] | {"media_bytes": r["media_bytes"]}
                    for r in json.load(f)["results"]}

    def assert_repeats(self, *arguments):
        first, second = self.counted(*arguments), self.counted(*arguments)
        self.assertEqual(first.keys(), second.keys())
        for key, figures in first.items():
            self.assertEqual(figures, second[key], key)
        return first

    def test_each_run_counts_the_same_in_dram(self):
        self.assertGreater(len(self.assert_repeats("counted:dram")), 6 * 5)

    def test_where_the_caches_are_saved_nothing_is_flushed_and_all_else_is_as_before(self):
        flushing = self.counted("counted:dram")
        for domain in ("eadr", "gpf"):
            leaving_out = self.counted("counted:dram", ALL, "--persistence", domain)
            for key, figures in leaving_out.items():
                self.assertEqual(figures["flushes"], 0, key)
                self.assertIsNone(figures["media_bytes"], "lines leave the caches unseen")
                for same in ("fences", "lines_copied", "publications", "pm_lines_read"):
                    self.assertEqual(figures[same], flushing[key][same], (key, same))
        self.assertEqual(self.counted("counted:dram", ALL, "--persistence", "gpf-may-fail"), flushing)

    def test_each_run_counts_the_same_in_a_pool(self):
        self.assert_repeats("counted:pmem:" + self.file("pool"))


if __name__ == "__main__":
    main()
