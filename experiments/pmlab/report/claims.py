"""The scorecard: every claim, on every medium that shows it, with the figures that decided."""

from . import names, provenance
from .chart import Link, Table
from .sections import anchor_of

NO_BREAK = "\u00a0"
SIGNS = {"reproduced": "✓", "not reproduced": "✗", "undecided": "?"}
OF_MEMORY, OF_STORES = "M", "U"  # claims on the memory itself, and on stores, begin with it


def _figure(value, unit):
    if value is None:
        return "–"
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
    text = f"{condition['what']}: {_figure(condition['measured'], condition['unit'])}{_spread(condition)}, must be {condition['rule']}"
    if condition["holds"] is False:
        text += " – it is not"
    elif condition["holds"] is None and condition["measured"] is not None:
        text += " – undecided: its spread crosses the limit"
    if (known := condition["published"]) is not None:
        low, high = condition["at_least"], condition["at_most"]
        outside = (low is not None and known < low) or (high is not None and known > high)
        text += f" (published: {_figure(known, condition['unit'])}{', which is not either' if outside else ''})"
    return text


def _text(claim):
    """With the part of the published measurement that something else stands for."""
    stand_in = claim.get("stand_in")
    return f"{claim['id']}: {claim['claim']}" + (f" [stand-in: {stand_in}]" if stand_in else "")


def _sign(verdict):
    return f"{SIGNS.get(verdict, '–')} {verdict}".replace(" ", NO_BREAK)


def summary(verdicts):
    """How many claims had which verdict, in one sentence."""
    counts = {}
    for claim in verdicts.claims:
        counts[claim["verdict"]] = counts.get(claim["verdict"], 0) + 1
    parts = [f"{count} {verdict}" for verdict, count in sorted(counts.items(), key=lambda item: -item[1])]
    return f"{len(verdicts.claims)} claims on {provenance.medium_line([verdicts.medium])}: {', '.join(parts)}."


def scorecard(verdicts):
    """One row for each claim: what was found, and the figures that decided."""
    rows = [["claim", "verdict", "figures"]]
    for claim in verdicts.claims:
        lines = [_condition(c) for c in claim["conditions"]]
        if claim["reason"]:
            lines = [claim["reason"], *(line for line, c in zip(lines, claim["conditions"]) if c["measured"] is not None)]
        rows.append([_text(claim), _sign(claim["verdict"]), "\n".join(lines)])
    return Table(rows, f"On {provenance.medium_line([verdicts.medium])}", summary(verdicts), prose=True)


def _number_of(claim):
    """Memory first, stores last."""
    letter = claim["id"][0]
    return {OF_MEMORY: 0, OF_STORES: 2}.get(letter, 1), int(claim["id"][1:])


def _deciding(claim):
    """The condition that a reader looks for first: one that failed, or that is open, or the first one."""
    measured = [c for c in claim["conditions"] if c["measured"] is not None]
    for holds in (False, None, True):
        for condition in measured:
            if condition["holds"] is holds:
                return condition
    return None


def _deciding_text(claim):
    condition = _deciding(claim)
    if condition is None:
        return claim["reason"] or ""
    return f"{_figure(condition['measured'], condition['unit'])} ({condition['rule']})"


def _flips(claims, media):
    """Claims that one medium reproduces and another one does not."""
    found = []
    for claim_id, on in claims.items():
        verdicts = {m: on[m]["verdict"] for m in media if m in on}
        yes = [m for m, v in verdicts.items() if v == "reproduced"]
        no = [m for m, v in verdicts.items() if v == "not reproduced"]
        if yes and no:
            found.append(f"{claim_id} holds on {names.enumerate_words(yes)} and not on {names.enumerate_words(no)}")
    return f" Where the verdict depends on the device: {'; '.join(found)}." if found else ""


def overview(results):
    """Claims against media, with the figure that decided and where it is shown; None where nothing was judged."""
    media = [v.medium for v in results.verdicts]
    if not media:
        return None
    claims = {}
    for verdicts in results.verdicts:
        for claim in verdicts.claims:
            claims.setdefault(claim["id"], {})[verdicts.medium] = claim
    ordered = dict(sorted(claims.items(), key=lambda item: _number_of(next(iter(item[1].values())))))
    feeding = {c: e for e in reversed(results.experiments) for c in e.claims}
    rows = [["claim", *media, "shown in"]]
    for claim_id, on in ordered.items():
        text = _text(next(iter(on.values())))
        cells = [f"{_sign(on[m]['verdict'])}\n{_deciding_text(on[m])}" if m in on else "" for m in media]
        experiment = feeding.get(claim_id)
        rows.append([text, *cells,
                     Link(experiment.title, f"#{anchor_of(experiment.name)}") if experiment else ""])
    sentence = " ".join(summary(v) for v in results.verdicts) + _flips(ordered, media)
    return Table(rows, "", sentence, prose=True)


def verdict_lines(results, subject):
    """The verdicts, one line for each claim and medium, with the quantity that decided: rows of a table. `subject`: of the
    claims whose ids begin so; "": of those on neither memory nor stores."""
    rows = [["claim", "verdict", "on", "quantity that decided"]]
    for verdicts in results.verdicts:
        for claim in verdicts.claims:
            letter = claim["id"][0]
            if (letter if letter in (OF_MEMORY, OF_STORES) else "") != subject:
                continue
            c = _deciding(claim)
            rows.append([_text(claim), _sign(claim["verdict"]), verdicts.medium,
                         f"{c['what']}: {_figure(c['measured'], c['unit'])}{_spread(c)}; must be {c['rule']}" if c
                         else claim["reason"] or ""])
    rows[1:] = sorted(rows[1:], key=lambda row: int(row[0][1:].split(":")[0]))
    for above, row in reversed(list(zip(rows[1:], rows[2:]))):
        if above[0] == row[0]:
            row[0] = ""
    return rows


def counts(rows):
    """"21 reproduced, 5 not reproduced", of rows of `verdict_lines`."""
    found = {}
    for row in rows[1:]:
        verdict = row[1].split(NO_BREAK, 1)[1].replace(NO_BREAK, " ")
        found[verdict] = found.get(verdict, 0) + 1
    return ", ".join(f"{count} {verdict}" for verdict, count in sorted(found.items(), key=lambda item: -item[1]))
