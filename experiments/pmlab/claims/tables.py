"""Verdicts as a table for people and as JSON, and the rules as a table for the documentation."""

import math
from collections import Counter
from dataclasses import dataclass

from .claim import text_of, text_of_published, text_of_range
from .judging import VERDICTS

_SCHEMA = 1
_MARKS = {True: "", False: " !", None: " ?"}


@dataclass
class _Line:
    what: str
    value: str
    rule: str
    published: str
    beside: str


def _spread(finding):
    """ "0.95x to 1.12x of 5 repeats"; nothing where the figures repeat to the digit."""
    m, unit = finding.measured, finding.condition.unit
    if m.exact or not m.is_number:
        return ""
    return f"spread {text_of(m.low, unit)} to {text_of(m.high, unit)} of {m.n} repeat{'' if m.n == 1 else 's'}"


def _public(finding):
    if finding.public is None:
        return ""
    limits = finding.condition.must_be
    outside = not limits.low <= finding.public <= limits.high
    return f"public {text_of(finding.public, finding.condition.unit)}{' !' if outside else ''}"


def _lines_of(judgement):
    lines = []
    for condition in judgement.claim.conditions:
        rule, published = text_of_range(condition.must_be, condition.unit), text_of_published(condition)
        finding = judgement.finding_of(condition)
        if finding is None:
            lines.append(_Line(condition.what, "-", rule, published, ""))
        else:
            value = text_of(finding.measured.value, condition.unit) + _MARKS[finding.holds]
            beside = ", ".join(filter(None, (_spread(finding), _public(finding))))
            lines.append(_Line(condition.what, value, rule, published, beside))
    return lines


def in_words(counts):
    """ "reproduced 3, undecided 1", of a Counter of verdicts. """
    return ", ".join(f"{verdict} {counts[verdict]}" for verdict in VERDICTS if counts[verdict])


def verdicts_table(judgements, evidence):
    of_each = [(j, _lines_of(j)) for j in judgements]
    every = [line for _, lines in of_each for line in lines]
    what, value, rule, published = (max((len(getattr(line, column)) for line in every), default=0)
                                    for column in ("what", "value", "rule", "published"))
    text = f"claims on {evidence.medium}\n"
    for judgement, lines in of_each:
        text += f"\n{judgement.claim.id:<4} {judgement.verdict:<15} {judgement.claim.text}\n"
        for line in lines:
            row = (f"       {line.what:<{what}}  {line.value:>{value}}  {line.rule:<{rule}}  published: "
                   f"{line.published:<{published}}  {line.beside}")
            text += row.rstrip(" ") + "\n"
        if judgement.reason:
            text += f"       {judgement.reason}\n"
        if judgement.claim.stand_in:
            text += f"       stand-in: {judgement.claim.stand_in}\n"
    counts = Counter(j.verdict for j in judgements)
    return text + (f"\n{in_words(counts)}; ! does not hold; ? its spread crosses the limit, or it is x/0; "
                   "public: other measurements of the first Optane generation\n")


def _limit(value):
    return None if math.isinf(value) else value


def _condition_to_json(condition, finding):
    m, stated = finding.measured if finding else None, condition.published
    return {"what": condition.what, "unit": condition.unit, "measured": m.value if m else None,
            "spread": None if m is None or m.exact or not m.is_number else [m.low, m.high], "n": m.n if m else None,
            "published": stated.low if stated and stated.low == stated.high else None,
            "stated": text_of_published(condition),
            "public": finding.public if finding else None, "at_least": _limit(condition.must_be.low),
            "at_most": _limit(condition.must_be.high), "holds": finding.holds if finding else None,
            "rule": text_of_range(condition.must_be, condition.unit)}


def verdicts_to_json(judgements, evidence, command, results=None):
    """docs/claims.md describes every field. `command`: as the user gave it; `results`: the file that was judged, None:
    measured by the same command."""
    return {"schema": _SCHEMA, "kind": "claims", "machine": evidence.document.get("machine"),
            "options": {"command": command, "results": results or None},
            "claims": [{"id": j.claim.id, "claim": j.claim.text, "source": j.claim.source,
                        "stand_in": j.claim.stand_in or None, "by_construction": j.claim.by_construction or None,
                        "partner": j.claim.partner or None, "verdict": j.verdict,
                        "reason": j.reason or None,
                        "conditions": [_condition_to_json(c, j.finding_of(c)) for c in j.claim.conditions],
                        "cases": j.claim.cases} for j in judgements]}


def _counted(condition):
    return ", where that is counted" if condition.where_counted else ""


def rules_table(claims):
    """Claims and their rules; measures nothing."""
    return "".join(f"{claim.id:<4} {claim.text}\n" + "".join(
        f"       {c.what}: {text_of_range(c.must_be, c.unit)}{_counted(c)}; published: {text_of_published(c)}\n"
        for c in claim.conditions)
        for claim in claims)


def _notes(claim):
    notes = (("Stand-in", claim.stand_in), ("By construction", claim.by_construction), ("Not measured", claim.missing),
             ("Not applicable here, without the source's partner", claim.partner))
    return "".join(f" *{what}: {note}.*" for what, note in notes if note)


def rules_markdown(claims):
    return "| id | claim | is reproduced if | published |\n| --- | --- | --- | --- |\n" + "".join(
        f"| {claim.id} | {claim.text}{_notes(claim)} | " + "<br>".join(
            f"{c.what}: **{text_of_range(c.must_be, c.unit)}**{_counted(c)}" for c in claim.conditions)
        + f" | {'<br>'.join(map(text_of_published, claim.conditions))} |\n" for claim in claims)
