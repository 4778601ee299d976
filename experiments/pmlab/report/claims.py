"""The scorecard: every claim, on every medium that shows it, with the figures that decided."""

import math

from . import names, provenance
from .chart import Link, Table
from .sections import anchor_of

NO_BREAK = "\u00a0"
SIGNS = {"reproduced": "✓", "not reproduced": "✗", "undecided": "?"}
BY_CONSTRUCTION = "by construction"  # true of any measurement: not counted
# What claims are about, by the first letter of their ids.
SOURCES = {"I": "Indexes", "M": "The memory itself", "U": "Chunk store", "K": "Key-value SSD", "H": "Tiered store"}
OTHERS = "Others"


def _figure(value, unit):
    if value is None:
        return "–"
    if not math.isfinite(value):
        return "no number"
    if unit == "ns":
        return names.duration(value)
    if unit == "x":
        return names.times(value)
    if not unit:
        return names.count(value)
    return f"{names.number(value)}{NO_BREAK}{unit}"


def _spread(condition):
    """The spread of the repeats; nothing where the figures repeat to the digit."""
    if not condition.get("spread"):
        return ""
    low, high = (_figure(value, condition["unit"]) for value in condition["spread"])
    return f" ({low} to {high}, n = {condition['n']})"


def _condition(condition):
    measured = _figure(condition["measured"], condition["unit"])
    text = f"{condition['what']}: {measured}{_spread(condition)}, must be {condition['rule']}"
    if condition["holds"] is False:
        text += " – it is not"
    elif condition["holds"] is None and condition["measured"] is not None:
        text += " – undecided: its spread crosses the limit"
    if stated := condition.get("stated"):
        text += f" (stated: {stated})"
    if (known := public(condition)) is not None:
        low, high = condition["at_least"], condition["at_most"]
        outside = (low is not None and known < low) or (high is not None and known > high)
        text += f" (published: {_figure(known, condition['unit'])}{', which is not either' if outside else ''})"
    return text


def public(condition):
    """The same quantity of other published measurements of the device; None: there are none. Verdicts that do not have
    what the source states have it as `published`."""
    return condition.get("public") if "stated" in condition else condition["published"]


def _text(claim):
    """With the part of the published measurement that something else stands for, and why it is no evidence."""
    notes = [(what, claim[key]) for what, key in (("stand-in", "stand_in"), ("by construction", "by_construction"))
             if claim.get(key)]
    return f"{claim['id']}: {claim['claim']}" + "".join(f" [{what}: {note}]" for what, note in notes)


def signed(verdict):
    """The verdict behind its sign; one that is not known has a dash."""
    return f"{SIGNS.get(verdict, '–')} {verdict}".replace(" ", NO_BREAK)


def _counts(verdicts):
    """"3 reproduced, 1 undecided, beside 2 by construction": of names of verdicts."""
    counts = {}
    for verdict in verdicts:
        counts[verdict] = counts.get(verdict, 0) + 1
    beside = counts.pop(BY_CONSTRUCTION, 0)
    parts = [f"{count} {verdict}" for verdict, count in sorted(counts.items(), key=lambda item: -item[1])]
    return ", ".join(parts or ["none"]) + (f", beside {beside} {BY_CONSTRUCTION}" if beside else "")


def summary(verdicts):
    """How many claims had which verdict, in one sentence."""
    return (f"{many(len(verdicts.claims), 'claim')} on {provenance.medium_line([verdicts.medium])}: "
            f"{_counts(claim['verdict'] for claim in verdicts.claims)}.")


def scorecard(verdicts):
    """One row for each claim: what was found, and the figures that decided."""
    rows = [["claim", "verdict", "figures"]]
    for claim in verdicts.claims:
        lines = [_condition(c) for c in claim["conditions"]]
        if claim["reason"]:
            lines = [claim["reason"], *(line for line, c in zip(lines, claim["conditions"])
                                        if c["measured"] is not None)]
        rows.append([_text(claim), signed(claim["verdict"]), "\n".join(lines)])
    return Table(rows, f"On {provenance.medium_line([verdicts.medium])}", summary(verdicts), prose=True)


def _deciding(claim):
    """The condition that a reader looks for first: one that failed, or that is open, or the first one."""
    measured = [c for c in claim["conditions"] if c["measured"] is not None]
    for holds in (False, None, True):
        for condition in measured:
            if condition["holds"] is holds:
                return condition
    return None


def _flips(claims):
    """Claims that one medium reproduces and another one does not."""
    found = []
    for claim_id, on in claims.items():
        yes, no = ([m for m, claim in on.items() if claim["verdict"] == v] for v in ("reproduced", "not reproduced"))
        if yes and no:
            found.append(f"{claim_id} holds on {names.enumerate_words(yes)} and not on {names.enumerate_words(no)}")
    return f"The verdict depends on the device: {'; '.join(found)}." if found else ""


def _on(medium, claim):
    """A verdict on one medium, with the quantity that decided, in a line."""
    c = _deciding(claim)
    why = claim["reason"] or ""
    if c:
        why = f"{c['what']}: {_figure(c['measured'], c['unit'])}{_spread(c)}; must be {c['rule']}"
        why += f"; stated: {c['stated']}" if c.get("stated") else ""
    return f"{signed(claim['verdict'])} on {medium}" + (f": {why}" if why else "")


def _by_source(results):
    """source -> claim id -> medium -> claim, in the order of SOURCES."""
    found = {}
    for verdicts in results.verdicts:
        for claim in verdicts.claims:
            source = SOURCES.get(claim["id"][0], OTHERS)
            found.setdefault(source, {}).setdefault(claim["id"], {})[verdicts.medium] = claim
    return {source: dict(sorted(found[source].items(), key=lambda item: (item[0][0], int(item[0][1:]))))
            for source in [*SOURCES.values(), OTHERS] if source in found}


def by_source(results):
    """A table for each source: a row for each claim, with its verdict on each medium and where it is shown."""
    feeding = {c: e for e in reversed(results.experiments) for c in e.claims}
    tables = []
    for source, claims in _by_source(results).items():
        rows = [["claim", "verdicts", "shown in"]]
        for claim_id, on in claims.items():
            experiment = feeding.get(claim_id)
            rows.append([_text(next(iter(on.values()))), "\n".join(_on(*one) for one in on.items()),
                         Link(experiment.title, f"#{anchor_of(experiment.name)}") if experiment else ""])
        every = [claim["verdict"] for on in claims.values() for claim in on.values()]
        title = f"{source}: {many(len(claims), 'claim')}, {many(len(every), 'verdict')}: {_counts(every)}"
        tables.append(Table(rows, title, _flips(claims), prose=True))
    return tables


def many(count, noun):
    return f"{count} {noun}{'s' if count != 1 else ''}"


def line(results):
    """All verdicts in one line; empty where nothing was judged."""
    every = [(claim["id"], claim["verdict"]) for verdicts in results.verdicts for claim in verdicts.claims]
    if not every:
        return ""
    media = len({verdicts.medium for verdicts in results.verdicts})
    claims = many(len({claim for claim, _ in every}), "published claim")
    return (f"{claims} on {many(media, 'medium').replace('mediums', 'media')}, "
            f"{many(len(every), 'verdict')}: {_counts(verdict for _, verdict in every)}.")
