"""The page: one HTML file that needs nothing else, no script, readable on a desk, on a phone, on paper and in the
dark."""

import re
from html import escape

from ..run.left_out import lines
from . import charts, claims, front, names, provenance, svg, targets
from .chart import Link

CSS = """
:root { color-scheme: light dark; --ink: #1a1a1a; --soft: #4d4d4d; --line: #d5d5d5; --accent: #0b4f7d; --paper: #fff;
        --bad: #b00020; --good: #1d6b3a; --card: #f4f5f6; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8e8; --soft: #b4b4b4; --line: #3d3d40; --accent: #7cc0f0; --paper: #161618; --bad: #ff6b7f;
          --good: #6fd39a; --card: #202024; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 84rem; padding: 1.25rem; color: var(--ink); background: var(--paper);
       font: 16px/1.5 system-ui, "DejaVu Sans", sans-serif; }
a { color: var(--accent); }
h1 { font-size: 1.5rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.2rem; margin: 1.8rem 0 .4rem; padding-top: .6rem; border-top: 2px solid var(--ink); }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
p, li { max-width: 52rem; }
.soft { color: var(--soft); }
.thesis { font-size: 1.12rem; margin: .5rem 0 .8rem; }
.bad { border: 2px solid var(--bad); padding: .6rem .9rem; font-weight: 600; }
.warn { border-left: 4px solid var(--bad); padding: .3rem .9rem; background: var(--card); }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 23rem), 1fr)); gap: 1.2rem 1.8rem; }
figure { margin: 0; min-width: 0; break-inside: avoid; }
figure.broad { grid-column: 1 / -1; }
.title { font-weight: 700; font-size: .95rem; margin: 0; }
.source { font-size: .72rem; color: var(--soft); margin: 0; overflow-wrap: anywhere; }
.drawing svg { display: block; width: 100%; height: auto; }
figcaption { font-size: .9rem; margin-top: .3rem; max-width: 46rem; }
.take { font-size: .85rem; margin: .15rem 0 0; }
details { font-size: .85rem; margin-top: .25rem; }
summary { cursor: pointer; color: var(--accent); }
details.experiment { font-size: 1rem; border-top: 1px solid var(--line); margin: 0; padding: .45rem 0; }
details.experiment > summary h2 {
  display: inline; border: 0; padding: 0; margin: 0; font-size: 1.05rem; color: var(--ink); }
nav ul { columns: 17rem; padding-left: 1.1rem; margin: .3rem 0; font-size: .9rem; }
.wide { container-type: inline-size; }
table { border-collapse: collapse; font-size: .9rem; margin: .4rem 0; }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.figure { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.verdicts { font-size: .82rem; } .verdicts td { padding: .12rem .8rem .12rem 0; }
.v-yes { color: var(--good); } .v-no, .invalid { color: var(--bad); } .invalid { font-weight: 700; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: .4rem 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
code { font-size: .85em; overflow-wrap: anywhere; }
@media (max-width: 40rem) {
  body { padding: .75rem; } dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .4rem; }
  h1, h2, h3, p, li, figcaption { overflow-wrap: anywhere; }
}
@container (max-width: 40rem) {
  thead { display: none; } tbody, table { display: block; }
  tr { display: block; border-bottom: 1px solid var(--line); padding: .35rem 0; overflow-wrap: anywhere; }
  td, td.figure { display: inline; border: 0; padding: 0 .9rem 0 0; white-space: normal; }
  td:first-child { display: block; font-weight: 600; }
  td:empty { display: none; }
  td[data-label]::before { content: attr(data-label) " "; color: var(--soft); font-weight: 400; }
}
.all { font-size: 1rem; }
.titled { margin-top: 1rem; break-inside: avoid; }
.titled p { margin: 0; }
@media print { body { font-size: 10pt; padding: 0; max-width: none; } nav, .take { display: none; }
  details.experiment::details-content { content-visibility: visible; height: auto; }
  .charts { grid-template-columns: 1fr 1fr; } h2 { break-after: avoid; } }
"""
DRAWINGS = "/* drawings */"  # where their rules go
MOST = 1.6  # CSS pixels for a point: letters of 13 pixels


def _prose(text):
    """Text as HTML; what stands in backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _lines(cell):
    if isinstance(cell, Link):
        return f'<a href="{escape(cell.target)}">{escape(cell.text)}</a>'
    if cell == charts.INVALID:
        return f"<span class=invalid>{cell}</span>"
    return coloured_lines(str(cell))


def coloured_lines(text):
    """Text as HTML; verdicts that are known have colours."""
    return "<br>".join(map(_coloured, _prose(text).split("\n")))


def _coloured(line):
    """A line that begins with a verdict, up to its first space, has the verdict's colour."""
    css = {"✓": "v-yes", "✗": "v-no"}.get(line[:1])
    if css is None:
        return line
    verdict, space, rest = line.partition(" ")
    return f"<span class={css}>{verdict}</span>{space}{rest}"


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
    head, body = f"<thead><tr>{cells}</tr></thead>", f"<tbody>{''.join(lines)}</tbody>"
    return f'<div class=wide><table class="{css}">{head}{body}</table></div>'


def _titled_table(table):
    title = f"<h3>{escape(table.title)}</h3>" if table.title else ""
    sentence = f"<p>{_prose(table.sentence)}</p>" if table.sentence else ""
    return f"<div class=titled>{title}{sentence}{_table(table.rows, prose=table.prose)}</div>"


def _take(files):
    """Links to the chart as files: for a paper, or to draw it another way."""
    links = ", ".join(f'<a href="{escape(target)}">{kind}</a>' for kind, target in files)
    return f"<p class=take>Take it: {links}</p>" if files else ""


class Drawings:
    """How the charts of one page are shown. `files_of`: of a chart, the files that hold it, (kind, path from the page).
    `figures`: each with a table of its figures, and each claim with all that decided; otherwise they are in files
    only."""

    def __init__(self, files_of, figures=True):
        self.shared = svg.Shared()
        self.figures = figures
        self._files_of = files_of

    def _drawing(self, drawing, title):
        head = f'<svg style="max-width:{drawing.width * MOST:.0f}px" role=img aria-label="{escape(title)}"'
        return re.sub(r'<svg [^>]*?( viewBox="[^"]*")[^>]*>', rf"{head}\1>", self.shared.on_page(drawing), count=1)

    def _drawings(self, chart):
        """One drawing, or title, key, panels and footer, as many panels beside each other as there is room for."""
        if not chart.parts:
            return f"<div class=drawing>{self._drawing(chart.drawing, chart.title)}</div>"
        key = f"<div class=drawing>{self._drawing(chart.key_drawing, 'key')}</div>" if chart.key else ""
        drawn = "".join(self._drawing(part, chart.title) for part in chart.part_drawings)
        return (f'<p class=title>{escape(chart.title)}</p>{key}<div class="charts drawing">{drawn}</div>'
                f"<p class=source>{_lines(chart.footer)}</p>")

    def _one(self, chart):
        figures = f"<details><summary>Figures</summary>{_table(chart.rows)}</details>" if self.figures else ""
        broad = " class=broad" if chart.parts else ""
        return (f'<figure id="{escape(chart.name)}"{broad}>{self._drawings(chart)}'
                f"<figcaption>{escape(chart.caption)}</figcaption>{_take(self._files_of(chart))}{figures}</figure>")

    def all(self, found):
        return f'<div class=charts>{"".join(map(self._one, found))}</div>' if found else ""


def _definitions(pairs):
    return "<dl>" + "".join(f"<dt>{escape(k)}</dt><dd>{escape(str(v))}</dd>" for k, v in pairs
                            if v not in (None, "")) + "</dl>"


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
        text += "; they are stated for 10 M records, and this run has fewer or more if the verdict has that note"
    return f"<p><strong>{text}.</strong></p>"


def _media_notes(results):
    kinds = []
    for medium in results.media:
        kinds += provenance.kinds_of(medium)
    return "<ul>" + "".join(f"<li>{_prose(note)}</li>" for kind, note in provenance.NOTES.items()
                            if kind in kinds) + "</ul>"


def _peers(results):
    present = {m.index for run in results.runs for m in run.measurements}
    lines = "".join(f"<li>{escape(index)}: {escape(what)}.</li>" for index, what in names.PEERS.items()
                    if index in present)
    return f"<h3>Who the peers are</h3><ul>{lines}</ul>" if lines else ""


def _remarks(results):
    runs = [*results.runs, *results.memories, *results.drives, *results.stores]
    remarks = list(dict.fromkeys(f"{text}" for run in runs for text in run.remarks))
    if not remarks:
        return ""
    items = "".join(f"<li>{_prose(t)}</li>" for t in remarks)
    return f"<details class=all><summary>What the program remarked ({len(remarks)})</summary><ul>{items}</ul></details>"


def _left_out(results):
    reasons = {}
    for run in results.runs:
        for skipped in run.skipped:
            reasons.setdefault((skipped.get("index"), skipped.get("phase"), skipped.get("reason")), None)
    lines = "".join(f"<li>{_prose(f'{phase} of {index}: {reason}')}</li>" for index, phase, reason in reasons)
    return f"<h3>Left out</h3><ul>{lines}</ul>" if lines else ""


def _runs_table(results):
    rows = [["run", "what", "command"]]
    rows += [[r.name, r.about, r.command] for r in results.listed]
    body = "".join(f"<tr><td>{escape(n)}</td><td>{_prose(a)}</td><td><code>{escape(c)}</code></td></tr>"
                   for n, a, c in rows[1:])
    head = "<thead><tr><th>run</th><th>what</th><th>command</th></tr></thead>"
    return f"<div class=wide><table>{head}<tbody>{body}</tbody></table></div>"


def _raw(links):
    """Links to the JSON of each cell, beside the page."""
    if not links:
        return ""
    items = ", ".join(f'<a href="{escape(target)}">{escape(text)}</a>' for text, target in links)
    many = f"{len(links)} file{'s' if len(links) != 1 else ''}"
    return f"<details><summary>Raw data: {many}</summary><p>{items}</p></details>"


def _section(section, drawings):
    return [f"<p>{_prose(section.text)}</p>" if section.text else "",
            _definitions(section.facts) if section.facts else "",
            _raw(section.links), drawings.all(section.charts), *map(_titled_table, section.tables)]


def _folded(title, anchor, parts):
    """A part of the page that is closed until it is wanted. The anchor is inside: a link to it opens it."""
    return (f'<details class=experiment><summary><h2>{escape(title)}</h2></summary><div id="{escape(anchor)}">'
            f'{"".join(parts)}</div></details>')


def _anchor(section):
    return section.anchor or "section-" + re.sub(r"[^a-z0-9]+", "-", section.title.lower()).strip("-")


def _contents(found):
    items = "".join(f'<li><a href="#{escape(anchor)}">{escape(title)}</a></li>' for title, anchor, _ in found)
    return f"<nav id=contents><h2>Contents</h2><ul>{items}</ul></nav>"


def _thesis(first_screen, drawings):
    """In a sentence, and a chart."""
    if first_screen.thesis is None:
        return []
    return [f"<p class=thesis><strong>{escape(first_screen.thesis.sentence)}</strong></p>",
            drawings.all([first_screen.thesis.overview])]


def _thesis_by_threads(first_screen, drawings):
    if first_screen.thesis is None:
        return []
    heading = "<h2 id=finds>Finds by number of threads</h2>" if first_screen.thesis.charts else ""
    return [heading, drawings.all(first_screen.thesis.charts), f"<p class=soft>[Han21] {escape(front.HAN21)}</p>"]


def _ranking(first_screen, drawings):
    chart = first_screen.ranking
    return ["<h2 id=ranking>Ranking</h2>", drawings.all([chart])] if chart else []


def _verdict_line(results):
    line = claims.line(results)
    return f'<p class=verdict-line><a href="#verdicts">Verdicts</a>: {_prose(line)}</p>' if line else ""


def _verdicts(results):
    """Those of each source, folded, a row for each claim."""
    parts = ["<h2 id=verdicts>Verdicts</h2>"] if results.verdicts else []
    for table in claims.by_source(results):
        parts.append(f"<details class=all><summary>{escape(table.title)}</summary><p>{_prose(table.sentence)}</p>"
                     f'{_table(table.rows, "verdicts", True)}</details>')
    return parts


def _ran(results):
    machine = results.machine
    # When it ran is no property of figures that repeat to the digit, and their page repeats to the byte.
    timed = results.has_real_clock
    minutes = f"{results.seconds / 60:.1f} minutes" if results.seconds and timed else ""
    repeats = [m.n for run in results.runs for m in run.measurements if m.phase not in ("load", "reopen")]
    text, wrong = front.answers(results) if results.runs or results.stores else ("", False)
    warning = front.load_warnings(results)
    invalid = sum(m.invalid for run in results.runs for m in run.measurements)
    parts = ["<h2 id=ran>What ran where</h2>"]
    if text:
        parts.append(f"<p class=bad>{text}</p>" if wrong else f"<p>{text}</p>")
    for failed in results.failed:
        parts.append(f'<p class=bad>Run {escape(failed["name"])} ended with status {failed["status"]}: '
                     f'{escape(failed.get("message") or "")}</p>')
    parts += [f"<p class=warn>{_prose(text)}</p>" for text in [*results.caveats, *([warning] if warning else [])]]
    parts += [f"<p class=warn>Missing from the charts: {_prose(line)}.</p>" for line in lines(results.left_out)]
    if invalid:
        marked = f"{invalid} figure is" if invalid == 1 else f"{invalid} figures are"
        parts.append(f"<p class=warn>{marked} marked INVALID: this machine could not keep up with the device that it "
                     "emulated.</p>")
    parts.append(_definitions([
        ("Machine", provenance.machine_lines(r.machine for r in results.listed if r.machine)),
        *((kind, f"{media}: {claims.many(len(titles), 'experiment')}") for kind, media, titles in front.where(results)),
        ("Started", results.started if timed else ""), ("Took", minutes),
        ("Repeats", "n = " + " to ".join(map(str, sorted({min(repeats), max(repeats)}))) if repeats else ""),
        ("Commit", machine.get("commit")),
        ("Compiler", machine.get("compiler"))]))
    items = "".join(f"<li>{escape(media)}: {escape(', '.join(titles))}</li>"
                    for _, media, titles in front.where(results))
    return [*parts, "<details class=all><summary>Which experiment ran on which "
            f"medium</summary><ul>{items}</ul></details>"]


def _claims(results, in_full):
    """`in_full`: with every figure that decided. Where that is not on the page, it is in the claims table beside it."""
    details = "".join(_titled_table(claims.scorecard(v)) for v in results.verdicts)
    deciding = f"<details class=all><summary>Every figure that decided</summary>{details}</details>" if in_full else (
        '<p>Every figure that decided: <a href="claims.csv">claims.csv</a>.</p>')
    return ["<p>Judged from measurements alone: a claim is reproduced if all of its figures lie where they must, and "
            "undecided if the spread of one crosses its limit. Published figures of the first Optane generation decide "
            "nothing. On a medium that is not Optane, “not reproduced” means that it is different.</p>", deciding]


def _targets(results):
    return [_verdict(results),
            "<p>Medians of interleaved repeats: every index did its part of a repeat before any did the next one, so "
            "that a slow moment of the machine falls on all alike. Absolute figures differ between machines, ratios "
            "much less.</p>", _table(headline_rows(results))]


def _how(results):
    machine = _definitions((k, _flat(v)) for k, v in results.machine.items())
    return [_runs_table(results), _left_out(results), "<h3>Machine in full</h3>", machine]


def _with_style(parts, drawings):
    """The page, with the colours and rules that its drawings use."""
    text = "\n".join(part for part in parts if part)
    return text.replace(DRAWINGS, drawings.shared.rules(), 1).replace("<body>",
                                                                      f"<body>{drawings.shared.definitions()}",
                                                                      1) + "\n"


def comparison_page(first, second, sections):
    """The HTML text of two result sets side by side. `first`, `second`: their names."""
    drawings = Drawings(lambda _: [])
    parts = _head(f"{first} and {second}", "Two result sets, by what was measured in both.")
    for section in sections:
        parts += [f"<h2>{escape(section.title)}</h2>", *_section(section, drawings)]
    return _with_style([*parts, "</body></html>"], drawings)


def _head(title, about):
    return ["<!doctype html><html lang=en><head><meta charset=utf-8>",
            '<meta name=viewport content="width=device-width, initial-scale=1">',
            f"<title>pmlab: {escape(title)}</title><style>{CSS}{DRAWINGS}</style></head><body>",
            f"<h1>pmlab: {escape(title)}</h1>", f"<p class=soft>{_prose(about)}</p>"]


def page(results, sections, first_screen, drawings):
    """The HTML text of the report. `first_screen`: its charts (front.first_screen)."""
    folded = [(section.title, _anchor(section), _section(section, drawings)) for section in sections]
    if results.verdicts:
        folded.append(("What is claimed, and what was measured", "claims", _claims(results, drawings.figures)))
    if any(map(targets.plain, results.runs)):
        folded.append(("Headline figures", "headline", _targets(results)))
    folded += [("What the media are", "media", [_media_notes(results), _peers(results), _remarks(results)]),
               ("How it was run", "how", _how(results))]
    parts = [*_head(results.title, results.about), *_thesis(first_screen, drawings), _verdict_line(results),
             *_ran(results),
             *_thesis_by_threads(first_screen, drawings), *_ranking(first_screen, drawings), *_verdicts(results),
             _contents(folded),
             *(_folded(*part) for part in folded), "</body></html>"]
    return _with_style(parts, drawings)
