"""Plans: which calls an experiment stands for, and that those which come with pmlab feed every claim."""
import sys
import unittest

from package import HEAD, OPTIONS
from pmlab.errors import Failure
from pmlab.run.experiment import SCALES, experiment_names, load_experiment, parse_experiment
from pmlab.run.plan import plan
from pmlab.run.time_left import guess
from pmlab.spelling import shell_form


def read(text):
    return parse_experiment(HEAD + text, "mine.toml", OPTIONS)


class Plan(unittest.TestCase):
    def test_crosses_the_matrix_and_takes_the_scale(self):
        e = read('[arguments]\nindex = "a"\nrecords = "1M"\n'
                 '[matrix]\nmedium = ["simulated:aep", "pmem:{pool}"]\ndistribution = ["uniform", "zipfian:0.99"]\n'
                 '[scale.smoke]\nrecords = "1k"\ndistribution = ["uniform"]\n')
        smoke = plan(e, "smoke")
        self.assertEqual([c.name for c in smoke], ["mine/simulated-aep_uniform", "mine/pmem-pool_uniform"])
        self.assertEqual(shell_form(smoke[0].words),
                         "pmlab bench --medium simulated:aep --distribution uniform --index a --records 1k --verify")
        quick = plan(e, "quick")
        self.assertEqual(len(quick), 4)
        self.assertEqual(quick[3].values["distribution"], "zipfian:0.99")
        self.assertGreater(guess(quick[0]), guess(smoke[0]))

    def test_answers_are_checked_unless_the_file_is_against_it(self):
        def command(text):
            return shell_form(plan(read(text), "quick")[0].words)
        self.assertEqual(command('[arguments]\nindex = "a"\n'), "pmlab bench --index a --verify")
        self.assertEqual(command('[arguments]\nindex = "a"\nverify = false\n'), "pmlab bench --index a")
        self.assertEqual(command('kind = "microbench"\n[arguments]\nsuite = "a b"\n'), "pmlab microbench --suite 'a b'")

    def test_cells_of_one_name_are_refused(self):
        with self.assertRaises(Failure):
            plan(read('[arguments]\nindex = "a"\n[matrix]\nmedium = ["a:b", "a-b"]\n'), "quick")


class Experiments(unittest.TestCase):
    def test_all_that_come_with_pmlab_have_a_plan_at_every_scale(self):
        self.assertGreater(len(experiment_names()), 15)
        for name in experiment_names():
            e = load_experiment(name, OPTIONS)
            for scale in SCALES:
                self.assertTrue(plan(e, scale), name)
            self.assertTrue(e.kind == "microbench" or name in ("answers", "trace") or e.charts, name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
