"""Tests that any set of claims must pass, in invented results where all is as claimed."""
from pmlab.claims.judging import BY_CONSTRUCTION, NOT_APPLICABLE, NOT_MEASURED, NOT_REPRODUCED, REPRODUCED, judge


def best_of(claim):
    """The verdict on it where all is as claimed."""
    return NOT_APPLICABLE if claim.partner else BY_CONSTRUCTION if claim.by_construction else REPRODUCED


class JudgesTest:
    """A mixin. `claims`: in their order; `invented`: a class of invented results; `changes`: (claim, place of the
    condition, cases as an expression, factor, path if it is not "value"): a change that the condition does not survive.
    `source`: of all of them. `count`: the number of claims."""

    claims = ()
    source = "[Han21]"
    count = 0
    invented = None
    changes = ()
    tried_elsewhere = frozenset()  # (claim, place of the condition)

    def judged(self, name, results):
        return judge(next(claim for claim in self.claims if claim.id == name), results.evidence())

    def test_every_claim_holds_where_things_are_as_claimed(self):
        results = self.invented()
        for claim in self.claims:
            judgement = judge(claim, results.evidence())
            self.assertEqual(judgement.verdict, best_of(claim), f"{claim.id}: {judgement.reason}")
            for finding in judgement.findings:
                self.assertIs(finding.holds, True, f"{claim.id}: {finding.condition.what} is {finding.measured}")
            self.assertEqual(len(judgement.findings), len(claim.conditions), claim.id)

    def test_every_condition_fails_where_its_figures_are_otherwise(self):
        for name, place, cases, factor, *path in self.changes:
            with self.subTest(claim=name, cases=cases, factor=factor):
                results = self.invented()
                self.assertGreater(results.multiply(cases, factor, *path), 0)
                judgement = self.judged(name, results)
                self.assertEqual(judgement.verdict, NOT_APPLICABLE if judgement.claim.partner else NOT_REPRODUCED)
                self.assertGreater(len(judgement.findings), place)
                finding = judgement.findings[place]
                self.assertIs(finding.holds, False, finding.condition.what)

    def test_no_condition_is_left_untried(self):
        tried = {(name, place) for name, place, *_ in self.changes} | self.tried_elsewhere
        for claim in self.claims:
            for place, condition in enumerate(claim.conditions):
                self.assertIn((claim.id, place), tried, condition.what)

    def test_missing_cases_are_named(self):
        for claim in self.claims:
            results = self.invented()
            del results.cases[claim.cases[0]]
            judgement = judge(claim, results.evidence())
            self.assertEqual(judgement.verdict, NOT_MEASURED, claim.id)
            self.assertIn(claim.missing or self.lacking(claim), judgement.reason, claim.id)

    def test_claims_are_numbered_in_order(self):
        letter = self.claims[0].id[0]
        self.assertEqual([claim.id for claim in self.claims], [f"{letter}{i}" for i in range(1, self.count + 1)])

    def lacking(self, claim):
        """A part of the reason if its first case lacks."""
        return claim.cases[0]

    def test_each_names_its_source_and_needs_what_its_cases_are_of(self):
        for claim in self.claims:
            self.assertIn(self.source, claim.source, claim.id)
            self.assertTrue(claim.needs, claim.id)
            if not claim.of_memory:
                self.assertEqual({name.split("/")[0] for name in claim.cases}, set(claim.needs), claim.id)


class StoreJudgesTest(JudgesTest):
    """A mixin for claims about a store: one of them is that `pmlab verify` found nothing. `crash_states`: (that claim,
    the verified subject)."""

    crash_states = ()

    @property
    def tried_elsewhere(self):
        return {(self.crash_states[0], 0)}  # below

    def lacking(self, claim):
        by, index = self.crash_states
        return f"pmlab verify --index {index}" if claim.id == by else super().lacking(claim)

    def test_few_crash_states_decide_nothing_and_a_violation_does(self):
        name, subject = self.crash_states
        results = self.invented()
        self.assertEqual(self.judged(name, results).verdict, REPRODUCED)
        results.multiply("^verify/", 0.1, "crash_states")
        few = self.judged(name, results)
        self.assertEqual(few.verdict, NOT_MEASURED)
        self.assertIn("there are 120,000", few.reason)
        results.cases[f"verify/index={subject}"].value = 1
        self.assertEqual(self.judged(name, results).verdict, NOT_REPRODUCED, "however few they were")
