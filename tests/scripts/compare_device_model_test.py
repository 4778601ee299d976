"""scripts/compare_device_model: tells a result that holds from one that does not."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts/compare_device_model"

PUBLISHED = """
title = "a device"
tolerance_percent = { ns = 10, "GiB/s" = 15, ratio = 15 }
[[section]]
title = "Cells"
row = [
  { what = "read", unit = "ns", source = "F", case = "read/bytes={}", at = ["64", "256"], published = [300, nan] },
  { what = "load", unit = "GiB/s", source = "F", case = "load", published = [2.0] },
  { what = "ratio", unit = "ratio", source = "F", case = "load", field = "1/media.write_amplification", \
    published = [0.5] },
  { what = "remote", unit = "GiB/s", source = "F", published = [1.0], not_measured = "one node" },
]
"""


def case(name: str, value: float, unit: str, **more) -> dict:
    return {"name": name, "value": value, "unit": unit, "skipped": None, "scale": 1, **more}


def result(read: float = 305, load: float = 2.1, scale: float = 1) -> dict:
    return {
        "kind": "microbench",
        "machine": {"medium": "simulated:aep", "commit": "abc"},
        "options": {"suite": "paper"},
        "cases": [
            case("read/bytes=64", read * scale, "ns", **{"scale": scale}),
            case("load", load / scale, "GiB/s", media={"write_amplification": 2.0}, **{"scale": scale}),
        ],
    }


class CompareDeviceModel(unittest.TestCase):
    def run_script(self, content: dict | str, *options: str) -> subprocess.CompletedProcess:
        with tempfile.TemporaryDirectory() as folder:
            published = Path(folder, "published.toml")
            published.write_text(PUBLISHED)
            file = Path(folder, "result.json")
            file.write_text(content if isinstance(content, str) else json.dumps(content))
            command = [sys.executable, SCRIPT, file, "--published", published, *options]
            return subprocess.run(command, capture_output=True, text=True)

    def test_a_cell_may_be_a_ratio_of_two_cases(self):
        row = ('row = [ { what = "over", unit = "ratio", source = "X", case = "read/bytes=64", over = "OVER", '
               'published = [2.0] } ]')
        with tempfile.TemporaryDirectory() as folder:
            for over, expected in (("read/bytes=dram", "| over | ratio | X | 2.00 | 1.91 | -5 % | yes |"),
                                   ("read/bytes=none", "not in this result")):
                published, file = Path(folder, "cxl.toml"), Path(folder, "result.json")
                published.write_text(PUBLISHED.split("row = [")[0] + row.replace("OVER", over))
                content = result()
                content["cases"].append(case("read/bytes=dram", 160, "ns"))
                file.write_text(json.dumps(content))
                done = subprocess.run([sys.executable, SCRIPT, file, "--published", published], capture_output=True,
                                      text=True)
                self.assertIn(expected, done.stdout)
                self.assertIn("published/cxl.toml`", done.stdout)

    def test_every_cell_stands_beside_its_figure(self):
        done = self.run_script(result(), "--require", "100")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("3 of 3 cells hold", done.stdout)
        self.assertIn("| read, 64 | ns | F | 300 | 305 | +2 % | yes |", done.stdout)
        self.assertIn("| ratio | ratio | F | 0.50 | 0.50 | +0 % | yes |", done.stdout)
        self.assertIn("not modelled: one node", done.stdout)
        self.assertIn("`simulated:aep`", done.stdout)

    def test_a_latency_that_is_off_by_thirty_percent_is_reported(self):
        done = self.run_script(result(read=390), "--require", "100")
        self.assertEqual(done.returncode, 1)
        self.assertIn("| read, 64 | ns | F | 300 | 390 | +30 % | **no** |", done.stdout)
        self.assertIn("2 of 3 cells hold", done.stdout)

    def test_bandwidths_have_their_own_tolerance(self):
        self.assertIn("| 2.28 | +14 % | yes |", self.run_script(result(load=2.28)).stdout)
        self.assertIn("| 1.66 | -17 % | **no** |", self.run_script(result(load=1.66)).stdout)

    def test_an_emulations_scale_is_taken_off(self):
        self.assertIn("3 of 3 cells hold", self.run_script(result(scale=3)).stdout)

    def test_what_was_skipped_holds_nothing(self):
        content = result()
        content["cases"][0] |= {"skipped": "too large", "value": None}
        done = self.run_script(content)
        self.assertIn("too large", done.stdout)
        self.assertIn("2 of 2 cells hold", done.stdout)

    def test_what_is_no_result_is_refused(self):
        for content in ("{}", "no JSON"):
            done = self.run_script(content)
            self.assertEqual(done.returncode, 2)
            self.assertIn("pmlab microbench --json", done.stderr)


if __name__ == "__main__":
    unittest.main()
