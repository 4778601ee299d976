"""Files of experiments: valid ones, and refused ones with their remedies."""
import os
import subprocess
import sys
import unittest

from package import HEAD, OPTIONS, ROOT
from pmlab.errors import Failure
from pmlab.run.experiment import load_experiment, parse_experiment

BODY = '[arguments]\nindex = ["a", "b(c,d)"]\n'


def read(text):
    return parse_experiment(text, "folder/mine.toml", OPTIONS)


class ExperimentTest(unittest.TestCase):
    def refused(self, text, part):
        with self.assertRaises(Failure, msg=text) as raised:
            read(text)
        self.assertIn(part, str(raised.exception))
        self.assertIn("; ", str(raised.exception), "no remedy")

    def test_is_read_as_written(self):
        e = read(HEAD + 'claims = ["I1"]\n'
                 '[arguments]\nindex = ["a", "b"]\nverify = false\nworkload = [["x"], ["y", "z"]]\n'
                 '[matrix]\nmedium = ["m", "n"]\nthreads = [1, [2, 4]]\n'
                 '[scale.smoke]\nrecords = "1k"\nthreads = [8]\n'
                 '[[chart]]\nkind = "bars"\nx = "medium"\ny = "latency"\nseries = "index"\n')
        self.assertEqual((e.name, e.kind, e.claims), ("mine", "bench", ["I1"]))
        self.assertEqual([a.key for a in e.common.arguments], ["index", "verify", "workload"])
        self.assertEqual(e.common.arguments[0].values, ("a,b",))
        self.assertTrue(e.common.arguments[1].absent)
        self.assertEqual(e.common.arguments[2].values, ("x", "y,z"))
        self.assertEqual(e.common.matrix, {"medium": ["m", "n"], "threads": ["1", "2,4"]})
        smoke = e.scales["smoke"]
        self.assertEqual(len(smoke.arguments), 1)
        self.assertEqual(smoke.matrix["threads"], ["8"])
        self.assertEqual(e.charts[0].y, "latency")

    def test_numbers_are_as_typed(self):
        e = read(HEAD + "[arguments]\nrecords = 1000\nseconds = 0.5\nrepeat = 3.0\n")
        self.assertEqual({a.key: a.values for a in e.common.arguments},
                         {"records": ("1000",), "seconds": ("0.5",), "repeat": ("3",)})
        self.refused(HEAD + "[arguments]\nindex = [true]\n", "neither a text nor a number")
        self.refused(HEAD + "[arguments]\nindex = 2026-01-01\n", "neither a text nor a number")

    def test_mistakes_have_remedies(self):
        refused = self.refused
        refused("title = = 1", "mine.toml:1: not TOML")
        refused(HEAD + "\n[arguments\n", "mine.toml:5: not TOML")
        refused('about = "A"\nshows = "x"\n' + BODY, "has no title")
        refused(HEAD, "has no [arguments]")
        refused(HEAD + 'titel = "x"\n' + BODY, "mine.toml:4: key 'titel' is not known; did you mean 'title'")
        refused(HEAD + 'kind = "bnech"\n' + BODY, "did you mean 'bench'")
        refused(HEAD + '[arguments]\nindx = "a"\n', "mine.toml:5: pmlab bench has no option --indx; did you mean "
                "--index")
        refused(HEAD + BODY + '[matrix]\nmedium = "m"\n', "medium of the matrix is no list")
        refused(HEAD + BODY + '[matrix]\nindex = ["m"]\n', "is in [arguments] and in [matrix]")
        refused(HEAD + BODY + "[scale.huge]\nrecords = 1\n", "did you mean")
        refused(HEAD + BODY + "[scale.quick]\nrecrods = 1\n",
                "mine.toml:7: pmlab bench has no option --recrods; did you "
                                                             "mean --records")
        refused(HEAD + BODY + '[[chart]]\nkind = "pie"\n', "did you mean")
        refused(HEAD + BODY + '[[chart]]\nkind = "bars"\nx = "medium"\ny = "speed"\nseries = "index"\n', "did you mean")
        refused(HEAD + BODY + '[[chart]]\nkind = "bars"\nx = "distribution"\ny = "p99"\nseries = "index"\n',
                "cannot be")
        refused(HEAD + BODY + '[[chart]]\nkind = "standard"\n[[chart]]\nkind = "bars"\nx = "index"\ny = "p99"\n'
                'series = "index"\npanels = ["moon"]\n', "mine.toml:13: a chart's panels cannot be by 'moon'")
        refused(HEAD + BODY + '[[chart]]\nkind = "timeline"\nx = "threads"\nseries = "index"\n',
                "a timeline has x already")
        refused("scale = 1\n" + HEAD + BODY, "write [scale]")
        refused("chart = 1\n" + HEAD + BODY, "write [[chart]]")
        refused("title = 1.5e3\n" + BODY, "has no about")

    def test_only_the_report_needs_matplotlib(self):
        done = subprocess.run([sys.executable, "-B", "-c", "import sys, pmlab.run.command, pmlab.claims.command; "
                               "sys.exit('matplotlib' in sys.modules)"], cwd=os.path.join(ROOT, "experiments"),
                              check=False)
        self.assertEqual(done.returncode, 0)

    def test_unknown_names_have_a_nearest_one(self):
        with self.assertRaisesRegex(Failure, "did you mean 'hybrid'"):
            load_experiment("hybird", OPTIONS)
        with self.assertRaisesRegex(Failure, "experiment no/such/file.toml cannot be read: No such file"):
            load_experiment("no/such/file.toml", OPTIONS)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
