"""The report of block devices: charts and tables of what `pmlab microbench --device` wrote."""

import re
import unittest

import sample_results
from report_test import ReportCase, names, setUpModule  # noqa: F401  (it is called)


def case(name, requests, **more):
    size = 1 << 20 if name.startswith("drive-") else 4096
    value = requests * size / 2**30
    return {"name": name, "claims": [], "medium": "", "skipped": None, "value": value, "unit": "GiB/s",
            "values": [value * 0.9, value],
            "repetitions": 2, "spread_percent": 10.0, "steady": True, "requests_per_s": requests,
            "latency_ns": {"p50": 1e9 / requests}, "fio": None, "write_amplification": None} | more


def drive(medium, requests, **more):
    cases = [case(f"drive-{what}", 2000) for what in ("read", "write")]
    cases += [case(f"random-{what}/bytes=4096/depth={depth}", requests * depth) for what in ("read", "write")
              for depth in (1, 32)]
    cases += [case(f"random-write/bytes=4096/depth=1/until={until}", 800) for until in ("flush", "durable")]
    return {"schema": 1, "kind": "drive", "machine": sample_results.MACHINE | {"medium": medium},
            "remarks": ["about all figures"],
            "cases": cases} | more


class ReportOfDrives(ReportCase):
    def test_charts_and_tables(self):
        on_file = drive("file:/somewhere/drive", 500)
        on_file["cases"][2]["fio"] = {"requests_per_s": 510.0, "ratio": 0.98}
        text = self.page({"drive-p4610": drive("simulated:p4610", 13_000), "drive-file": on_file})
        for name in ("random", "peaks", "durable"):
            self.assertIn(f'<figure id="drives-{name}">' if name != "random" else 'id="drives-random"', text)
        self.assertIn("Random writes are fastest on p4610, 395 thousand per second.", text)
        self.assertIn("this machine&#x27;s drive", text)
        self.assertNotIn("/somewhere", "".join(re.findall(r"<figure.*?</figure>", text, re.S)))
        self.assertIn("<h3>Beside fio</h3>", text)
        self.assertIn(">0.98<", text)
        self.assertIn("about all figures", text)

    def test_the_folder_of_a_drive_is_not_named(self):
        self.assertEqual(names.short_medium("file:/somewhere/drive"), "file")

    def test_skipped_cases_and_no_fio(self):
        document = drive("simulated:p4610", 13_000)
        for one in document["cases"][2:]:
            one |= {"skipped": "the device is too small for it", "value": None, "values": None, "requests_per_s": None}
        text = self.page({"drive-p4610": document})
        self.assertIn('id="drives-peaks"', text)
        self.assertNotIn('id="drives-random"', text)
        self.assertNotIn("Beside fio", text)


if __name__ == "__main__":
    unittest.main()
