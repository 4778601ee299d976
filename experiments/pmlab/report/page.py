"""The page: one HTML file that needs nothing else, no script, readable on a desk, on a phone and on paper."""

import base64
from html import escape

from . import claims, names, provenance, targets
from .chart import Link

CSS = """
:root { --ink: #1a1a1a; --soft: #4d4d4d; --line: #d5d5d5; --accent: #0b4f7d; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 84rem; padding: 1.25rem; color: var(--ink); background: #fff;
       font: 16px/1.5 system-ui, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.25rem; margin: 2.4rem 0 .4rem; padding-top: .8rem; border-top: 2px solid var(--ink); }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
p, li { max-width: 46rem; }
.soft { color: var(--soft); }
.bad { border: 2px solid #b00020; padding: .6rem .9rem; font-weight: 600; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 23rem), 1fr)); gap: 1.4rem 1.8rem; }
figure { margin: 0; break-inside: avoid; }
figure img { width: 100%; max-width: 30rem; height: auto; display: block; }
figcaption { font-size: .92rem; margin-top: .3rem; }
details { font-size: .85rem; margin-top: .25rem; }
summary { cursor: pointer; color: var(--accent); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; margin: .4rem 0; }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.figure { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: .4rem 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
code { font-size: .85em; overflow-wrap: anywhere; }
@media (max-width: 40rem) {
  body { padding: .75rem; } dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .4rem; }
  .stack thead { display: none; } .stack tr { display: block; border-bottom: 1px solid var(--line); padding: .35rem 0; }
  .stack td { display: inline; border: 0; padding: 0 .9rem 0 0; white-space: normal; }
  .stack td:first-child { display: block; font-weight: 600; }
  .stack td:empty { display: none; }
  .stack td[data-label]::before { content: attr(data-label) " "; color: var(--soft); font-weight: 400; }
}
.all { font-size: 1rem; }
.titled { margin-top: 1rem; break-inside: avoid; }
.titled p { margin: 0; }
@media print { body { font-size: 10pt; padding: 0; max-width: none; } details { display: none; }
  .charts { grid-template-columns: 1fr 1fr; } h2 { break-after: avoid; } }
"""


def _lines(cell):
    if isinstance(cell, Link):
        return f'<a href="{escape(cell.target)}">{escape(cell.text)}</a>'
    return escape(str(cell)).replace("\n", "<br>")


def _table(rows, css="", prose=False):
    head, *body = rows
    kind = "" if prose else " class=figure"
    cells = "".join(f"<th scope=col>{escape(str(c))}</th>" for c in head)
    lines = []
    for row in body:
        first, *rest = row
        tds = f"<td>{escape(str(first))}</td>" + "".join(
            f'<td{kind} data-label="{escape(str(label))}">{_lines(c)}</td>'
            for label, c in zip(head[1:], rest))
        lines.append(f"<tr>{tds}</tr>")
    return f'<div class=wide><table class="{css}"><thead><tr>{cells}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def _titled_table(table):
    title = f"<h3>{escape(table.title)}</h3>" if table.title else ""
    sentence = f"<p>{escape(table.sentence)}</p>" if table.sentence else ""
    return f"<div class=titled>{title}{sentence}{_table(table.rows, 'stack' if table.prose else '', table.prose)}</div>"


def _figure(chart):
    data = base64.b64encode(chart.svg.encode()).decode()
    return (f'<figure id="{escape(chart.name)}"><img alt="{escape(chart.title)}. {escape(chart.sentence)}" '
            f'src="data:image/svg+xml;base64,{data}"><figcaption>{escape(chart.sentence)}</figcaption>'
            f"<details><summary>Figures</summary>{_table(chart.rows)}</details></figure>")


def _definitions(pairs):
    return "<dl>" + "".join(f"<dt>{escape(k)}</dt><dd>{escape(str(v))}</dd>" for k, v in pairs if v not in (None, "")) + "</dl>"


def _flat(value):
    if isinstance(value, dict):
        return ", ".join(f"{k} {_flat(v)}" for k, v in value.items())
    if isinstance(value, list):
        return ", ".join(_flat(v) for v in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def headline_rows(results):
    rows = [["Target (stated for 10 M records)", "target", "measured", "records", "verdict"]]
    for target in targets.TARGETS:
        finding = target.measure(results)
        if finding is None:
            rows.append([target.what, target.limit_text, "–", "–", "not measured in this run"])
            continue
        records = names.count(finding.records) if finding.records else "?"
        verdict = target.verdict(finding)
        if target.depends_on_size and finding.records != targets.TARGET_RECORDS:
            verdict += " at this size"
        text = f"{finding.text} ({finding.spread})" if verdict.startswith("undecided") else finding.text
        rows.append([target.what, target.limit_text, text, records, verdict])
    return rows


def _verdict(results):
    verdicts = [row[-1] for row in headline_rows(results)[1:]]
    measured = [v for v in verdicts if v.startswith(("met", "not met", "undecided"))]
    met = sum(v.startswith("met") for v in measured)
    text = f"{met} of the {len(measured)} targets that this run measures are met"
    if any(v.endswith("at this size") for v in measured):
        text += "; they are stated for 10 M records, and this run has fewer or more where the verdict says so"
    return f"<p><strong>{text}.</strong></p>"


def _answers(results):
    wrong, checked = results.wrong_answers()
    if wrong:
        return f'<p class=bad>{wrong:,} wrong answers in {checked:,} checked operations.</p>'
    if checked:
        return f"<p>Every answer of the runs with --verify was checked: {checked:,} operations, none wrong.</p>"
    return "<p>No run of this set checked its answers (--verify).</p>"


def _media_notes(results):
    kinds = []
    for medium in results.media:
        kinds += provenance.kinds_of(medium)
    return "<ul>" + "".join(f"<li>{escape(note)}</li>" for kind, note in provenance.NOTES.items() if kind in kinds) + "</ul>"


def _peers(results):
    present = {m.index for run in results.runs for m in run.measurements}
    lines = "".join(f"<li>{escape(index)}: {escape(what)}.</li>" for index, what in names.PEERS.items() if index in present)
    return f"<h3>Who the peers are</h3><ul>{lines}</ul>" if lines else ""


def _remarks(results):
    remarks = list(dict.fromkeys(f"{text}" for run in [*results.runs, *results.memories] for text in run.remarks))
    if not remarks:
        return ""
    items = "".join(f"<li>{escape(t)}</li>" for t in remarks)
    return f"<details class=all><summary>What the program remarked ({len(remarks)})</summary><ul>{items}</ul></details>"


def _left_out(results):
    reasons = {}
    for run in results.runs:
        for skipped in run.skipped:
            reasons.setdefault((skipped.get("index"), skipped.get("phase"), skipped.get("reason")), None)
    lines = "".join(f"<li>{escape(f'{phase} of {index}: {reason}')}</li>" for index, phase, reason in reasons)
    return f"<h3>Left out</h3><ul>{lines}</ul>" if lines else ""


def _runs_table(results):
    rows = [["run", "what", "command"]]
    rows += [[r.name, r.about, r.command] for r in results.listed]
    body = "".join(f"<tr><td>{escape(n)}</td><td>{escape(a)}</td><td><code>{escape(c)}</code></td></tr>" for n, a, c in rows[1:])
    return f"<div class=wide><table class=stack><thead><tr><th>run</th><th>what</th><th>command</th></tr></thead><tbody>{body}</tbody></table></div>"


def _raw(links):
    """Links to the JSON of each cell, beside the page."""
    if not links:
        return ""
    items = ", ".join(f'<a href="{escape(target)}">{escape(text)}</a>' for text, target in links)
    return f"<details><summary>Raw data: {len(links)} file{'s' if len(links) != 1 else ''}</summary><p>{items}</p></details>"


def _section(section):
    anchor = f' id="{escape(section.anchor)}"' if section.anchor else ""
    return [f"<h2{anchor}>{escape(section.title)}</h2>", f"<p>{escape(section.text)}</p>" if section.text else "",
            _definitions(section.facts) if section.facts else "", _raw(section.links),
            '<div class=charts>' + "".join(map(_figure, section.charts)) + "</div>", *map(_titled_table, section.tables)]


def _claims(results):
    overview = claims.overview(results)
    if overview is None:
        return []
    details = "".join(_titled_table(claims.scorecard(v)) for v in results.verdicts)
    return ["<h2 id=claims>What is claimed, and what was measured</h2>",
            "<p>Judged from measurements alone: a claim is reproduced if all of its figures lie where they must. What was "
            "published of the first Optane generation decides nothing. On a medium that is not Optane, “not reproduced” "
            "means that it is different.</p>", _titled_table(overview),
            f"<details class=all><summary>Every figure that decided</summary>{details}</details>"]


def comparison(first, second, sections):
    """The HTML text of two result sets side by side."""
    title = f"{first.folder.name} and {second.folder.name}"
    return "\n".join([*_head(title, "Two result sets, by what was measured in both."),
                      *(part for section in sections for part in _section(section)), "</body></html>\n"])


def _head(title, about):
    return ["<!doctype html><html lang=en><head><meta charset=utf-8>",
            '<meta name=viewport content="width=device-width, initial-scale=1">',
            f"<title>pmlab: {escape(title)}</title><style>{CSS}</style></head><body>", f"<h1>pmlab: {escape(title)}</h1>",
            f"<p class=soft>{escape(about)}</p>"]


def page(results, sections):
    """The HTML text of the report."""
    machine = results.machine
    minutes = f"{results.seconds / 60:.1f} minutes" if results.seconds else ""
    parts = [
        *_head(results.title, results.about),
        _definitions([("Machine", provenance.machine_line(machine)),
                      ("Media", provenance.medium_line(results.media)),
                      ("Started", results.started), ("Took", minutes), ("Commit", machine.get("commit")),
                      ("Compiler", machine.get("compiler")), ("Runs", len(results.listed))]),
    ]
    for failed in results.failed:
        parts.append(f'<p class=bad>Run {escape(failed["name"])} ended with status {failed["status"]}: '
                     f'{escape(failed.get("message", ""))}</p>')
    if results.runs:
        parts.append(_answers(results))
    parts += _claims(results)
    if any(map(targets.plain, results.runs)):
        parts += [
            "<h2>Headline figures</h2>", _verdict(results),
            "<p>Medians of interleaved repeats: every index did its part of a repeat before any did the next one, so that "
            "a change of the machine's mood falls on all alike. Absolute figures move from machine to machine, ratios "
            "much less.</p>",
            _table(headline_rows(results), "stack"),
        ]
    parts += ["<h2>What the media are</h2>", _media_notes(results), _peers(results), _remarks(results)]
    for section in sections:
        parts += _section(section)
    parts += ["<h2>How it was run</h2>", _runs_table(results), _left_out(results), "<h3>Machine in full</h3>",
              _definitions((k, _flat(v)) for k, v in machine.items()), "</body></html>\n"]
    return "\n".join(parts)
