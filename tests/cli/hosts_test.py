"""`pmlab bench --hosts`: several hosts on one simulated memory, their time, what they do for each other, bad input."""
import csv
import json
import os
import subprocess

from program import PMLAB, ProgramTest, main

POD = "simulated:cxl-pod"
SMALL = ("--records", "5k", "--operations", "5k")


class Hosts(ProgramTest):
    def results_of(self, *arguments, index="shared_tree", medium=POD):
        path = self.file("r.json")
        done = subprocess.run([os.path.abspath(PMLAB), "bench", "--index", index, "--medium", medium, "--json", path,
                               "--quiet", *arguments], capture_output=True, text=True, timeout=280, check=False)
        self.assertEqual(done.returncode, 0, f"{arguments}\n{done.stdout}\n{done.stderr}")
        self.shown = done.stdout
        with open(path, encoding="utf-8") as f:
            return json.load(f)

    def by_hosts(self, phase, *arguments, **more):
        return {r["hosts"]: r for r in self.results_of(*arguments, **more)["results"] if r["phase"] == phase}

    def test_the_same_seed_gives_the_same_figures_to_the_digit(self):
        same = [*SMALL, "--hosts", "1,3", "--threads", "2", "--coherence", "partial", "--workload", "ycsb-a"]
        self.assertEqual(*(json.dumps(self.results_of(*same)["results"]) for _ in range(2)))

    def test_one_host_is_a_machine_without_hosts(self):
        same = [*SMALL, "--phases", "read,update,insert,scan", "--threads", "2"]
        alone = self.results_of(*same)["results"]
        of_hosts = self.results_of(*same, "--hosts", "1,2")["results"]
        self.assertEqual(alone, [r for r in of_hosts if r["hosts"] == 1])
        self.assertEqual({r["coherence"] for r in alone}, {None})
        self.assertEqual({r["between_hosts"] for r in alone}, {None})

    def test_answers_are_right_whatever_is_coherent(self):
        for index, records in (("shared_tree", "3k"), ("shared_tree_refreshing", "3k"), ("shared_dash", "3k"),
                               ("shared_dash_refreshing", "3k"), ("shared_ring", "64")):
            for mode in ("full", "partial", "none"):
                with self.subTest(index=index, mode=mode):
                    document = self.results_of("--records", records, "--operations", "3k", "--hosts", "3",
                                               "--coherence", mode, "--workload", "read=.5,update=.5", "--verify",
                                               index=index)
                    self.assertEqual([r["wrong_answers"] for r in document["results"]], [0, 0])
                    self.assertEqual({(r["hosts"], r["threads"], r["coherence"]) for r in document["results"]},
                                     {(3, 1, mode)})
                    self.assertTrue(any("time alone is simulated" in r for r in document["remarks"]))

    def test_finds_scale(self):
        for mode in ("full", "partial"):
            rates = {h: r["throughput_ops_per_s"] for h, r in self.by_hosts(
                "read", "--records", "20k", "--operations", "40k", "--phases", "read", "--hosts", "1,8", "--coherence",
                mode).items()}
            self.assertGreater(rates[8], 4 * rates[1], mode)

    def test_updates_of_one_word_fall(self):
        """Two hosts that change one record in turns ask the device for each change; one has it in its caches."""
        update = ("--records", "1", "--operations", "2k", "--phases", "read", "--workload", "update=1")
        rates = {h: r["throughput_ops_per_s"] for h, r in self.by_hosts("update=1", *update, "--hosts", "1,2").items()}
        self.assertLess(rates[2], rates[1] / 2)

    def test_what_hosts_do_for_each_other(self):
        """A find by version refreshes little where nothing changes, and 8 lines a node where it remembers none. A
        change takes the lock and gives it back by the device."""
        def of(phase, **more):
            arguments = [*SMALL, "--phases", "read,update", "--hosts", "2", "--coherence", "partial"]
            return next(r["between_hosts"] for r in self.results_of(*arguments, **more)["results"]
                        if r["phase"] == phase)

        read, always = of("read"), of("read", index="shared_tree_refreshing")
        self.assertLess(read["refreshed"], 8)
        self.assertGreater(always["refreshed"], 3 * 8 - 1)
        self.assertEqual((read["published"], read["exchanges"]), (0, 0))
        self.assertGreater(always["fetched"], 2 * read["fetched"])
        update = of("update")
        self.assertAlmostEqual(update["exchanges"], 2, delta=.1)
        self.assertAlmostEqual(update["published"], 1, delta=.1)

    def test_the_table_of_results(self):
        path = self.file("r.csv")
        self.results_of(*SMALL, "--phases", "read", "--hosts", "1,2", "--coherence", "none", "--csv", path)
        for column in ("hosts", "refreshed", "published", "exchanges", "fetched"):
            self.assertIn(column, self.shown.split("\n")[2])
        with open(path, encoding="utf-8") as f:
            rows = [r for r in csv.DictReader(f) if r["phase"] == "read"]
        self.assertEqual([(r["hosts"], r["coherence"]) for r in rows], [("1", ""), ("2", "none")])
        self.assertEqual(rows[0]["lines_refreshed"], "")
        self.assertGreater(float(rows[1]["lines_refreshed"]), 0)

    def test_bad_input(self):
        def bad(parts, *arguments, index="shared_tree", medium=POD):
            self.assert_fails(2, parts, "bench", "--quiet", "--index", index, "--medium", medium, *arguments)

        bad(["cceh is not for several hosts", "shared_tree"], "--hosts", "2", index="cceh")
        bad(["cache(shared_tree) is not for several hosts"], "--hosts", "2", index="cache(shared_tree)")
        bad(["medium simulated:aep has one", "simulated:cxl-pod"], "--hosts", "1,2", medium="simulated:aep")
        bad(["shared_tree is for several hosts, and medium dram has one", "simulated:cxl-pod"], medium="dram")
        bad(["shared_tree is for several hosts, and medium dram has one"], index="cache(shared_tree)", medium="dram")
        bad(["9 hosts are more than device profile cxl-pod has", "give at most 8"], "--hosts", "9")
        bad(["8 hosts with 16 threads each", "give at most 127 in all"], "--hosts", "1,8", "--threads", "1,16")
        bad(["--coherence is about several hosts", "--hosts 2"], "--coherence", "none")
        bad(["--coherence is about several hosts"], "--coherence", "none", "--hosts", "1")
        bad(["--coherence 'some' is unknown", "give full, partial, none"], "--hosts", "2", "--coherence", "some")
        bad(["--hosts", "0"], "--hosts", "0")
        bad(["--hosts '3-2' ends before it begins"], "--hosts", "3-2")
        bad(["--hosts", "twice"], "--hosts", "2,2")
        bad(["persistence gpf leaves flushes out", "use adr"], "--hosts", "2", "--persistence", "gpf")
        bad(["none of the requested phases", "the other hosts have it open"], "--hosts", "2", "--phases", "reopen")


if __name__ == "__main__":
    main()
