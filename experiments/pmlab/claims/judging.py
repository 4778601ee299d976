"""Judging a claim, from measurements alone."""

from dataclasses import dataclass, field

from .claim import Claim, Condition, text_of, text_of_range
from .evidence import Missing, NotApplicable, Uncounted
from .figure import MARGIN_OF_ONE
from .limits import Measured, keeps
from .spread import measure

REPRODUCED = "reproduced"
BY_CONSTRUCTION = "by construction"  # true of any measurement here: no evidence
NOT_REPRODUCED = "not reproduced"
UNDECIDED = "undecided"  # a spread crosses its limit: more repeats, or larger cells, may decide
NOT_APPLICABLE = "not applicable"  # this memory or machine cannot show it, or has not got the source's partner
NOT_MEASURED = "not measured"  # a case is missing
VERDICTS = (REPRODUCED, BY_CONSTRUCTION, NOT_REPRODUCED, UNDECIDED, NOT_APPLICABLE, NOT_MEASURED)


@dataclass(frozen=True)
class Finding:
    """The result of a measured condition. `holds`: None where the spread crosses a limit, or is no number. `public`:
    the same quantity of other published measurements of the device, which decides nothing; None where there are
    none."""

    condition: Condition
    measured: Measured
    public: float | None
    holds: bool | None


@dataclass
class Judgement:
    claim: Claim
    verdict: str = NOT_MEASURED
    findings: list[Finding] = field(default_factory=list)
    reason: str = ""  # reason of a verdict that figures alone do not explain

    def finding_of(self, condition):
        return next((f for f in self.findings if f.condition is condition), None)


def _public(condition, evidence):
    try:
        return condition.quantity.of(evidence, evidence.published)
    except (Missing, NotApplicable):
        return None


def _why_undecided(finding):
    unit, m = finding.condition.unit, finding.measured
    if not m.is_number:
        return f"{finding.condition.what}: no number, as a figure in it is over 0"
    basis = f"{m.n} repeats" if m.n > 1 else f"1 repeat, each figure taken to be within {100 * MARGIN_OF_ONE:.0f} %"
    return (f"{finding.condition.what}: spread {text_of(m.low, unit)} to {text_of(m.high, unit)} crosses its limit, "
            f"{text_of_range(finding.condition.must_be, unit)} ({basis})")


def judge(claim, evidence):
    """A condition that fails decides, even if others could not be measured on this memory or are undecided."""
    judgement = Judgement(claim)
    lacking, inapplicable = set(), []
    for condition in claim.conditions:
        try:
            found = measure(condition.quantity, evidence)
            judgement.findings.append(
                Finding(condition, found, _public(condition, evidence), keeps(found, condition.must_be)))
        except Missing as missing:
            lacking.add(str(missing))
        except NotApplicable as reason:
            inapplicable.append(str(reason))
        except Uncounted as uncounted:
            if not condition.where_counted:
                lacking.add(str(uncounted))
    undecided = [f for f in judgement.findings if f.holds is None]
    if lacking:
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        judgement.reason = claim.missing or f"no {min(lacking)}{more}"
    elif claim.partner:
        judgement.verdict = NOT_APPLICABLE
        judgement.reason = f"{claim.partner} is not here; its substitute stands beside"
    elif any(f.holds is False for f in judgement.findings):
        judgement.verdict = NOT_REPRODUCED
    elif undecided:
        judgement.verdict, judgement.reason = UNDECIDED, _why_undecided(undecided[0])
    elif inapplicable or not judgement.findings:
        judgement.verdict, judgement.reason = NOT_APPLICABLE, next(iter(inapplicable), "")
    elif claim.by_construction:
        judgement.verdict, judgement.reason = BY_CONSTRUCTION, claim.by_construction
    else:
        judgement.verdict = REPRODUCED
    return judgement
