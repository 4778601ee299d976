"""The table of a scoreboard: for a terminal, and as docs/scoreboard.md."""
import dataclasses
import datetime

COMMAND = "pmlab verify --scoreboard"


@dataclasses.dataclass(frozen=True)
class Found:
    found: bool
    judged: int  # different crash states
    schedules: int
    seconds: float
    violated: str


@dataclasses.dataclass(frozen=True)
class Sound:
    judged: int  # different crash states
    schedules: int
    clean: bool
    report: str
    sampled: bool = False  # a program whose run has more states


def number(n):
    return f"{n:,}"


def machine_in_words():
    """The day and the processor: seconds are those of one machine."""
    processor = "an unknown processor"
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            processor = next(line.partition(":")[2].strip() for line in info if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{datetime.date.today().isoformat()}, {processor}"


def needed(result):
    """What the search took, in states or schedules: that does not depend on the machine's speed."""
    parts = []
    if result.judged:
        parts.append(f"{number(result.judged)} states")
    if result.schedules:
        parts.append(f"{number(result.schedules)} schedules")
    return ", ".join(parts) or "0"


def judged(sound):
    """In words; of a program, whether they are all states that its run has."""
    parts = [f"{number(n)} {what}" for n, what in ((sound.judged, "states"), (sound.schedules, "schedules")) if n]
    if sound.sampled:
        parts.append("sampled")
    return ", ".join(parts) or "nothing"


def as_text(bugs, found, sound):
    """The rows of the bugs that have a twin, and the counts."""
    lines = []
    for bug in bugs:
        if bug.defect not in found:
            continue
        r = found[bug.defect]
        verdict = f"found in {r.seconds:.1f} s, {needed(r)}: {r.violated}" if r.found else "NOT FOUND"
        lines.append(f"{bug.name:<18} {bug.structure:<16} {bug.wrong}\n{'':<18} {bug.defect}: {verdict}")
    for name, result in sorted(sound.items()):
        lines.append(f"without a defect: {name}: {judged(result)}, {'clean' if result.clean else 'A VIOLATION'}")
    twins = {b.defect for b in bugs if b.defect in found}
    there = sum(found[t].found for t in twins)
    rows = [b for b in bugs if b.defect in found]
    slowest = max((found[t].seconds for t in twins), default=0)
    lines.append(f"{len(rows)} bugs have a twin here; {there} of their {len(twins)} twins found, the slowest in "
                 f"{slowest:.1f} s; {len(bugs) - len(rows)} bugs have none")
    return "\n".join(lines) + "\n"


def cell(text):
    return text.replace("|", "\\|").replace("\n", " ")


def head(data):
    """What does not depend on a run."""
    covered = [b for b in data.bugs if b.defect]
    lines = ["# Scoreboard: published bugs", "",
             f"`{COMMAND} --markdown FILE` writes such a page; its data are in "
             "`checker/tests/verify/scoreboard/bugs.toml`.", "",
             "Tools, papers and issue threads have published bugs of indexes on persistent memory. Each row is one of "
             "them. Its", "*twin* is a defect of the same shape, of code of its own, that tests plant in an index of "
             "pmlab (`NAME_mutated.so`) or in a",
             "small structure of its own (`toy_NAME.so`), or in a program with a pool (`program_NAME`). `pmlab verify`",
             "([verification.md](verification.md)) searches for it.", "",
             f"{len(data.bugs)} published bugs: {len(covered)} have a twin here, {len(data.bugs) - len(covered)} do "
             "not "
             f"(the reasons are below). {len({b.defect for b in covered})} different twins: several bugs of one shape "
             "share one.", f"{sum(bool(b.inferred) for b in data.bugs)} bugs are marked *inferred*: the source gives a "
             "place and no description; the defect is our reading of it.",
             "", "| source | bugs | with a twin | without |", "| --- | --- | --- | --- |"]
    for source in data.sources.values():
        own = [b for b in data.bugs if b.source == source.name]
        has = sum(bool(b.defect) for b in own)
        title = f"{source.name}: {cell(source.title)} ({source.address})"
        lines.append(f"| {title} | {len(own)} | {has} | {len(own) - has} |")
    return lines + ["", "Not counted:", ""] + [f"- {sentence}" for sentence in data.uncounted]


COLUMNS = "| bug | structure | where | defect | twin | found | needed | s | violated |"
LAST_FIXED = 5  # columns before the measured ones


def wrong_of(bug):
    return bug.wrong + (f" *(inferred: {bug.inferred})*" if bug.inferred else "")


def fixed_cells(bug):
    return [bug.name, cell(bug.structure), cell(bug.where), cell(wrong_of(bug)), f"`{bug.defect}`"]


def tail(data):
    lines = ["", "## Without a twin", "", "| bug | structure | where | defect | why |",
             "| --- | --- | --- | --- | --- |"]
    lines += [f"| {b.name} | {cell(b.structure)} | {cell(b.where)} | {cell(wrong_of(b))} | {cell(b.why_not)} |"
              for b in data.bugs if not b.defect]
    return lines


def as_markdown(data, found, sound, machine):
    lines = head(data)
    there = [f for f in found.values() if f.found]
    lines += ["", "## Found", "",
              f"{len(there)} of {len(found)} twins found. *Needed* are the different crash states that were judged, "
              "and the schedules", "that were run, up to the violation: the same at every run of one version (of a "
              "program with a pool: about so many, as",
              "several are checked at once). *s* are seconds from the start of the command, two at a time",
              f"({machine}; other work was running).", "", COLUMNS,
              "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for bug in data.bugs:
        if not bug.defect:
            continue
        cells = fixed_cells(bug)
        if bug.defect in found:
            r = found[bug.defect]
            cells += ["yes" if r.found else "**no**", needed(r), f"{r.seconds:.1f}", cell(r.violated)]
        else:
            cells += ["", "", "", ""]
        lines.append("| " + " | ".join(cells) + " |")
    if sound:
        lines += ["", "## Without the defects", "",
                  "The same subjects without a defect, searched in the same way: different crash states that were "
                  "judged, and", "schedules that were run; of programs, as many as a minute allows: *sampled*, where "
                  "their run has more.", f"`{COMMAND} --clean-states 1000000` judges a million of each (ten thousand "
                  "schedules where the search", "has no crashes).", "",
                  "| subject and search | judged | verdict |", "| --- | --- | --- |"]
        lines += [f"| `{name}` | {judged(r)} | {'clean' if r.clean else '**a violation**'} |"
                  for name, r in sorted(sound.items())]
    return "\n".join(lines + tail(data)) + "\n"
