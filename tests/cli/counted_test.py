"""`pmlab bench --medium counted:...`: figures of the algorithm, the same in each run of one thread."""
import json

from program import ProgramTest, main

INDEXES = "cceh,level_hashing,fast_fair,fp_tree,skip_list,skip_list_pm"


class Counted(ProgramTest):
    def counted(self, medium, indexes=INDEXES):
        path = self.file("r.json")
        self.assert_works("bench", "--quiet", "--index", indexes, "--medium", medium, "--records", "20k", "--operations",
                          "10k", "--phases", "read,absent,update,insert,scan,erase", "--json", path)
        with open(path, encoding="utf-8") as f:
            return {(r["index"], r["phase"]): r["per_operation"] for r in json.load(f)["results"]}

    def assert_repeats(self, *arguments):
        first, second = self.counted(*arguments), self.counted(*arguments)
        self.assertEqual(first.keys(), second.keys())
        for key, figures in first.items():
            self.assertEqual(figures, second[key], key)
        return first

    def test_each_run_counts_the_same_in_dram(self):
        self.assertGreater(len(self.assert_repeats("counted:dram")), 6 * 5)

    def test_each_run_counts_the_same_in_a_pool(self):
        self.assert_repeats("counted:pmem:" + self.file("pool"))


if __name__ == "__main__":
    main()
