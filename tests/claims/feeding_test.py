"""The experiments that come with pmlab feed every claim, on one medium at least, at the scales that are judged."""
import sys
import unittest
from collections import defaultdict

import package  # noqa: F401
from pmlab.claims.catalogue import every_claim
from pmlab.claims.claim import MEMORY
from pmlab.claims.index_cases import case_name
from pmlab.run.experiment import experiment_names, load_experiment
from pmlab.run.plan import plan

OPTIONS = {"bench": ["index", "medium", "records", "operations", "threads", "workload", "phases", "distribution", "verify",
                     "repeat", "batch", "trace", "huge-pages", "seconds"],
           "microbench": ["suite", "medium"]}


def split_list(text):
    """Commas within brackets separate nothing."""
    parts, depth = [""], 0
    for c in text:
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return parts


def values_of(cell, option):
    """Of an option that may be given several times."""
    words = cell.words
    return [v for word, value in zip(words, words[1:]) if word == option for v in split_list(value)]


def cases_of(cell):
    """The cases that results of this cell become (pmlab/claims/result_set.py)."""
    prefix = cell.experiment + "".join(f"/{key}={value}" for key, value in sorted(cell.values.items())
                                       if key not in ("medium", "index", "threads"))
    return {case_name(prefix, index, threads, phase) for index in values_of(cell, "--index")
            for threads in [*(values_of(cell, "--threads") or ["1"]), "most"]
            for phase in values_of(cell, "--phases") + values_of(cell, "--workload")}


class Feeding(unittest.TestCase):
    def test_every_claim_about_indexes_on_one_medium_at_least(self):
        experiments = [load_experiment(name, OPTIONS) for name in experiment_names()]
        for scale in ("quick", "full"):
            by_medium = defaultdict(set)
            for e in experiments:
                for cell in plan(e, scale) if e.kind == "bench" else ():
                    by_medium[values_of(cell, "--medium")[0]] |= cases_of(cell)
            for claim in every_claim():
                if not claim.of_memory:
                    self.assertTrue(any(set(claim.cases) <= cases for cases in by_medium.values()),
                                    f"{claim.id} at scale {scale}")

    def test_an_experiment_names_the_claims_that_need_it(self):
        fed = {name: set(load_experiment(name, OPTIONS).claims) for name in experiment_names()}
        for claim in every_claim():
            for experiment in claim.needs:
                self.assertIn(claim.id, fed.get(experiment, ()), experiment)
        self.assertEqual({name for name, claims in fed.items() if any(c[0] == "M" for c in claims)}, {MEMORY})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
