"""docs/claims.md, "Adding a claim", in a copy of the package: one file, and its verdict is there. No compiler."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import package

PAGE = Path(package.ROOT) / "docs" / "claims.md"


def example():
    """(name of the file, its text) on the page."""
    page = PAGE.read_text(encoding="utf-8")
    section = page[page.index("## Adding a claim"):]
    name = re.search(r"`experiments/pmlab/claims/declared/(\w+\.py)`", section).group(1)
    return name, re.search(r"```python\n(.*?)```", section, re.S).group(1)


class AddingAClaim(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="pmlab-test-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        shutil.copytree(Path(package.ROOT) / "experiments" / "pmlab", self.folder / "pmlab",
                        ignore=shutil.ignore_patterns("__pycache__"))
        self.declared = self.folder / "pmlab" / "claims" / "declared"

    def claims(self, *arguments):
        return subprocess.run([sys.executable, "-B", "-m", "pmlab", "claims", *map(str, arguments)], text=True,
                              check=False, capture_output=True, timeout=60,
                              env=os.environ | {"PYTHONPATH": str(self.folder)})

    def results(self, ours, peer, medium="simulated:aep"):
        """A folder as `pmlab run` leaves it, with the experiment that the page's claim needs."""
        folder = self.folder / "results"
        (folder / "raw" / "mine").mkdir(parents=True, exist_ok=True)
        (folder / "manifest.json").write_text(json.dumps({"schema": 1, "experiments": [], "runs": [
            {"name": "mine/all", "experiment": "mine", "values": {"medium": medium}, "status": 0}]}))
        (folder / "raw" / "mine" / "all.json").write_text(json.dumps(
            {"schema": 1, "machine": {"medium": medium}, "skipped": [], "results": [
                {"index": index, "threads": 1, "phase": "read", "repeat": repeat, "throughput_ops_per_s": speed}
                for index, speeds in (("fp_tree", ours), ("fast_fair", peer))
                for repeat, speed in enumerate(speeds, 1)]}))
        return folder

    def verdict(self, *speeds, **more):
        folder = self.results(*speeds, **more)
        done = self.claims("--from", folder, "X1")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(next((folder / "claims").glob("*.json")).read_text())["claims"][0]

    def test_the_page_is_followed(self):
        name, text = example()
        (self.declared / name).write_text(text)
        self.assertIn("X1 ", self.claims("--list").stdout)
        found = self.verdict([200], [100])
        self.assertEqual((found["id"], found["verdict"]), ("X1", "reproduced"))
        self.assertEqual(found["conditions"][0]["measured"], 2)
        self.assertEqual(self.verdict([100], [100])["verdict"], "not reproduced")
        found = self.verdict([100, 120, 190, 180, 200], [100, 100, 100, 100, 100], medium="dram")
        self.assertEqual((found["verdict"], found["conditions"][0]["n"]), ("undecided", 5))

    def test_the_others_stay(self):
        before = self.claims("--list").stdout
        name, text = example()
        (self.declared / name).write_text(text)
        self.assertTrue(self.claims("--list").stdout.startswith(before))

    def test_mistakes_are_named(self):
        name, text = example()
        for changed, part in ((text.replace('"X1"', '"I1"'), "two claims have the id I1"),
                              (text.replace('"X1"', '"mine"'), "'mine' is no id of a claim")):
            (self.declared / name).write_text(changed)
            done = self.claims("--list")
            self.assertEqual(done.returncode, 2)
            self.assertIn(part, done.stderr)
            self.assertIn("; ", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
