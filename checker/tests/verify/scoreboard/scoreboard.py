#!/usr/bin/env python3
"""Searches for the twins of published bugs, and prints what each search took. `pmlab verify --scoreboard` runs it.

    scoreboard.py --program PMLAB_SIMULATED [NAME,...] [--budget SECONDS] [--clean-states N] [--markdown FILE] [--quiet]

A twin is a defect that tests plant: a mutation of ROOM/tests/mutations or a toy of ../toys. bugs.toml names the twin of
each bug.
NAME is a source, a bug (witcher-7), a structure's twin (level_table) or one of its defects.

Status 0: every twin was found, and none of them without its defect. 1: otherwise. 2: bad input.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bugs as published  # noqa: E402
import page  # noqa: E402

COUNTS = re.compile(r": (\d+) rounds(?:, (\d+) crash states \((\d+) different ones judged)?.*?(?:, (\d+) schedules)?"
                    r"(?: \([^)]*\))? in ([0-9.]+) s: (1 VIOLATION|no violation)")
CHECKED = re.compile(r", (\d+) different states checked in ")
# All states of a program's run: neither sampled nor cut off by the budget.
COMPLETE = "complete: these are all states of this run"
# One run of a sound twin: short enough that a number of states is met closely.
ROUNDS_OF_A_DOSE = 48
STATES_FOR_A_SCHEDULE = 100
# Beyond the budget: the command ends by itself a little after it.
GRACE_SECONDS = 60


class BadInput(Exception):
    pass


class Board:
    def __init__(self, program, twins, budget):
        self.program = program
        self.twins = twins
        self.budget = budget

    def subject(self, defect):
        return self.twins / defect.library

    def run(self, defect, number, flags):
        """(status, output) of a verification with the defect of this number."""
        environment = dict(os.environ, **{defect.variable: str(number)})
        subject = str(self.subject(defect))
        command = [str(self.program), "verify", "--quiet", *flags]
        with tempfile.TemporaryDirectory() as folder:
            if defect.is_program:
                command += ["--program", f"{shlex.quote(subject)} run {{}}", "--check", f"{shlex.quote(subject)} check",
                            "--keep", f"{folder}/state"]
            else:
                command += ["--subject", subject, "--shrink", "0"]
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment,
                                      timeout=10 * self.budget + GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                raise BadInput(f"{' '.join(command)} does not end") from None
        # The budget ended before the first round did: nothing was found.
        if done.returncode == 2 and " was not explored: " in done.stderr:
            return 0, ""
        # 3: a program's budget ended in its first pass.
        if done.returncode not in ((0, 1, 3) if defect.is_program else (0, 1)):
            raise BadInput(f"{' '.join(command)}: {done.stderr.strip().removeprefix('pmlab: error: ')}")
        return done.returncode, done.stdout

    def search(self, defect):
        """What the search for a defect took: page.Found."""
        start = time.monotonic()
        status, output = self.run(defect, defect.number, [*defect.flags, "--budget", str(self.budget)])
        seconds = time.monotonic() - start
        counts = counts_of(output) if output else (0, 0)
        return page.Found(status == 1, *counts, seconds, violated(defect, output) if status == 1 else "")

    def judge_sound(self, defect, states):
        """Without its defect, until so many different states were judged; a hundredth as many schedules, if its search
        has no crashes.
        """
        judged, schedules, seed = 0, 0, 1
        # The run of a program has the states that it has.
        if defect.is_program:
            status, output = self.run(defect, 0, [*defect.flags, "--budget", str(self.budget)])
            return page.Sound(counts_of(output)[0], 0, status != 1, output, COMPLETE not in output)
        while judged < states and schedules * STATES_FOR_A_SCHEDULE < (states if judged == 0 else float("inf")):
            status, output = self.run(defect, 0, [*defect.sound_flags, "--seed", str(seed), "--rounds",
                                                  str(ROUNDS_OF_A_DOSE)])
            if status == 1:
                return page.Sound(judged, schedules, False, output)
            now, run = counts_of(output)
            judged += now
            schedules += run
            seed += ROUNDS_OF_A_DOSE
        return page.Sound(judged, schedules, True, "")


def counts_of(output):
    """Different states that were judged, and schedules."""
    if counts := COUNTS.search(output):
        _, _, judged, schedules, _, _ = counts.groups()
        return int(judged or 0), int(schedules or 0)
    if counts := CHECKED.search(output):
        return int(counts.group(1)), 0
    raise BadInput(f"no counts in:\n{output}")


# What is violated, in the words of docs/verification.md: that of the first words that the report's first line has.
PROPERTIES = [
    ("deadlock:", "no deadlock"),
    ("hang", "no hang"),
    ("leaked, or freed", "no leak, no double free"),
    ("release of a block that is not allocated", "no leak, no double free"),
    ("not allocated", "no access to freed memory"),
    ("freed", "no access to freed memory"),
    ("fault:", "it opens without a fault"),
    ("cannot be opened", "it opens"),
    ("after recovery", "it works on after recovery"),
    ("no order of", "an order explains all answers"),
    ("a walk", "find and walks agree"),
    ("check", "check() finds nothing"),
    ("is present twice", "no key twice"),
    ("no thread inserted it", "every key was inserted"),
    ("can only be", "what was answered stays true"),
]


def violated(defect, output):
    """The property that a report is about."""
    if defect.is_program:
        return "its own check accepts it"
    report = output.partition("\n\n")[2].strip().splitlines()
    first = report[0] if report else ""
    return next((name for words, name in PROPERTIES if words in first), "another property")


def chosen(board, names):
    """The bugs that the user names; all, if none."""
    if not names:
        return board.bugs
    picked = [b for b in board.bugs if any(n in (b.source, b.name, b.twin, b.defect) for n in names)]
    for name in names:
        if not any(name in (b.source, b.name, b.twin, b.defect) for b in picked):
            raise BadInput(f"the scoreboard has no '{name}'; name a source ({', '.join(board.sources)}), a bug such as "
                           f"{board.bugs[0].name}, or a twin")
    return picked


def check_built(program, twins, defects):
    if not program.exists():
        raise BadInput(f"there is no {program}; build it: ninja -C {program.parent.parent} pmlab_program")
    missing = sorted({d.library for d in defects if not (twins / d.library).exists()})
    if missing:
        raise BadInput(f"the planted defects are not built ({', '.join(missing)} is missing in {twins}); build them: "
                       f"ninja -C {program.parent.parent} scoreboard_twins")
    # It starts only if it finds its indexes.
    started = subprocess.run([str(program), "list"], capture_output=True, text=True, check=False)
    if started.returncode != 0:
        raise BadInput(started.stderr.strip().removeprefix("pmlab: error: "))


def run_all(board, defects, clean_states, jobs, shown):
    """{defect's full name: Found}, {library: Sound}"""
    found, sound = {}, {}
    lock = threading.Lock()

    def search(defect):
        result = board.search(defect)
        with lock:
            found[defect.full_name] = result
            shown(f"{len(found)} of {len(defects)}: {defect.full_name}: "
                  f"{'found' if result.found else 'NOT FOUND'} in {result.seconds:.1f} s")

    def judge(defect):
        result = board.judge_sound(defect, clean_states)
        with lock:
            sound[defect.sound_name] = result
            shown(f"without its defect: {defect.sound_name}: {page.judged(result)}: "
                  f"{'clean' if result.clean else 'A VIOLATION'}")

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for each in [pool.submit(search, d) for d in defects]:
            each.result()
        if clean_states:
            # One campaign for each subject and kind of search.
            for each in [pool.submit(judge, d) for d in {d.sound_name: d for d in defects}.values()]:
                each.result()
    return found, sound


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="?", default="")
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--twins", type=pathlib.Path, help="folder of the shared objects; that of the program's build")
    parser.add_argument("--budget", type=float, default=60)
    parser.add_argument("--clean-states", type=int, default=0)
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=min(2, len(os.sched_getaffinity(0))))
    parser.add_argument("--quiet", action="store_true")
    given = parser.parse_args()
    data = published.read()
    picked = chosen(data, [n for n in given.names.split(",") if n])
    if given.markdown and len(picked) != len(data.bugs):
        raise BadInput("--markdown writes the page of all bugs; leave the names out")
    defects = list({b.defect: data.defects[b.defect] for b in picked if b.defect}.values())
    twins = given.twins or given.program.resolve().parent.parent / "checker/tests/verify"
    check_built(given.program, twins, defects)
    shown = (lambda line: None) if given.quiet else (lambda line: print(line, file=sys.stderr, flush=True))
    found, sound = run_all(Board(given.program, twins, given.budget), defects, given.clean_states, given.jobs, shown)
    print(page.as_text(picked, found, sound), end="")
    if given.markdown:
        given.markdown.write_text(page.as_markdown(data, found, sound, page.machine_in_words()))
    for name, result in sound.items():
        if not result.clean:
            print(f"\n{name} without a defect:\n{result.report}")
    return 0 if all(f.found for f in found.values()) and all(s.clean for s in sound.values()) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (BadInput, published.Wrong) as problem:
        print(f"pmlab: error: {problem}", file=sys.stderr)
        sys.exit(2)
