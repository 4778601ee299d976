"""`--rate`: latencies count from the intended beginnings, as a model computes them; JSON and .hgrm say the same.

The model knows when operations ended from the counts of `--interval`, and when each was to begin from the rate. So it
holds on a machine of any speed, and with other work."""
import json
import os
import re

from program import ProgramTest, main

OPERATIONS = 1_000_000
INTERVAL = 1e6  # ns


def ends_of(intervals):
    """When each operation ended, in nanoseconds: evenly within its interval."""
    return [(i + (k + 0.5) / count) * INTERVAL for i, count in enumerate(intervals) for k in range(count)]


class Rate(ProgramTest):
    def measured(self, *more):
        done = self.assert_works("bench", "--quiet", "--index", "cceh", "--records", "10k", "--phases", "read",
                                 "--json", "-", *more)
        return next(r for r in json.loads(done.stdout)["results"] if r["phase"] == "read")

    def histogram_of(self, folder):
        [name] = [n for n in os.listdir(folder) if ".read." in n]
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            text = f.read()
        rows = [tuple(map(float, row.split()[:3])) for row in text.splitlines()
                if re.fullmatch(r" *\d[\d. ]+(inf)?", row)]
        facts = {name: float(value) for name, value in re.findall(r"(\w+) *= *([\d.]+)", text)}
        return rows, facts

    def test_a_queue_that_grows_has_the_latencies_of_its_model(self):
        rate = 200e6  # more than any machine does here
        folder = self.file("h")
        found = self.measured("--operations", str(OPERATIONS), "--rate", f"{rate:.0f}", "--interval", "1ms",
                              "--histograms", folder)
        latency, ends = found["latency_ns"], ends_of(found["intervals"])
        self.assertEqual((latency["samples"], len(ends)), (OPERATIONS, OPERATIONS))
        modelled = sorted(end - i / rate * 1e9 for i, end in enumerate(ends))
        for name, value in (("mean", sum(modelled) / OPERATIONS), ("p50", modelled[OPERATIONS // 2]),
                            ("p99", modelled[OPERATIONS * 99 // 100]),
                            ("max", found["seconds"] * 1e9 - OPERATIONS / rate * 1e9)):
            self.assertAlmostEqual(latency[name], value, delta=2 * INTERVAL + 0.02 * value, msg=name)
        rows, facts = self.histogram_of(folder)
        self.assertEqual(rows[-1][2], OPERATIONS)
        for name, value in (("Mean", latency["mean"]), ("Max", latency["max"])):
            self.assertAlmostEqual(facts[name] / value, 1, delta=0.01, msg=name)
        median = next(value for value, percentile, _ in rows if percentile >= 0.5)
        self.assertAlmostEqual(median / latency["p50"], 1, delta=0.02)

    def test_the_mean_of_several_threads_is_that_of_all_ends(self):
        rate = 200e6
        found = self.measured("--operations", str(OPERATIONS), "--rate", f"{rate:.0f}", "--interval", "1ms",
                              "--threads", "2")
        ends = ends_of(found["intervals"])
        modelled = sum(ends) / len(ends) - (OPERATIONS - 1) / 2 / rate * 1e9
        self.assertAlmostEqual(found["latency_ns"]["mean"], modelled, delta=2 * INTERVAL + 0.05 * modelled)

    def test_no_operation_begins_before_its_time(self):
        for threads in (1, 2):
            found = self.measured("--operations", "1000", "--rate", "5k", "--threads", str(threads))
            # Threads wait by the CPU's counter, whose rate is measured: to 10 ppm, that of the clock of the phase.
            self.assertGreaterEqual(found["seconds"], (1 - 1e-5) * (1000 - threads) / 5000)


if __name__ == "__main__":
    main()
