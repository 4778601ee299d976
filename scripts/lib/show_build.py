#!/usr/bin/env python3
"""Runs a build by CMake and Ninja and shows how far it is, with the time that is left, on standard error.

    show_build.py [--every SECONDS] cmake --build --preset release --target pmlab_program

The output of the build is passed on to standard output. On a terminal one line is rewritten; otherwise there is a line
every 20 seconds, or SECONDS. The exit status is that of the build.

How the time is estimated. The steps that are to be done come from a dry run. Each has a weight: about the seconds that
it takes on one core (WEIGHTS). In a new folder the dry run ends before the first step, because CMake's lists of files
are checked first; the steps that are left then have the mean weight of the finished ones. The weight that is left is
divided by the weight that this build has finished per second; at the beginning, by what one core finishes, times the
cores. So a slow machine and a compiler cache are accounted for, and a weight that has become wrong only bends the
estimate. """

import os
import re
import subprocess
import sys
import threading
import time

# The first pattern that occurs in the description of a step decides; measured on a core of 2024.
WEIGHTS = [
    (re.compile(r"Linking|Generating|Automatic|Copying"), 0.3),
    (re.compile(r"offered/|_mutated|strings_subject/|compiled_indexes|indexes/tests/|strings/tests/"), 9),
    (re.compile(r"subject/|_unoptimised|pibench_|cache/tests/|hybrid/tests/|tools/tests/pool/"), 6),
    (re.compile(r"tools/cli/|strings_index|hybrid_index|chosen_medium"), 6),
    (re.compile(r"Building CXX"), 2.5),
]
OTHER_WEIGHT = 0.5
# The weight of a step that no dry run has listed: the mean of the program's steps, and how many steps this counts for.
UNLISTED_WEIGHT, UNLISTED_STEPS = 3, 20
# A dry run that ends with this has not listed the steps of the build.
RECONFIGURES = "Re-running CMake"
STEP = re.compile(r"^\[(\d+)/(\d+)\] (.*)")
# Seconds of finished work that the assumed speed counts for.
PRIOR = 10
TERMINAL_PERIOD, LINE_PERIOD = 0.2, 20


def weight_of(description):
    return next((weight for pattern, weight in WEIGHTS if pattern.search(description)), OTHER_WEIGHT)


def as_time(seconds):
    """In steps that the estimate is good for: "20 s", "3 min", "1 h 10 min"."""
    if seconds < 55:
        return f"{max(5, 5 * round(seconds / 5))} s"
    minutes = max(1, round(seconds / 60))
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class Estimate:
    """`total`: of the weights of the `listed` steps."""

    def __init__(self, total, cores, listed):
        self.total = total
        self.cores = cores
        self.listed = listed
        self.finished = 0.0

    def finish(self, weight, number, steps):
        """Step `number` of `steps`, as the build counts them, has ended."""
        self.finished += weight
        if steps != self.listed:
            mean = (self.finished + UNLISTED_WEIGHT * UNLISTED_STEPS) / (number + UNLISTED_STEPS)
            self.total = self.finished + (steps - number) * mean
        self.total = max(self.total, self.finished)

    def seconds_left(self, elapsed):
        speed = (self.finished + PRIOR * self.cores) / (elapsed + PRIOR)
        return (self.total - self.finished) / speed

    def percent(self):
        return int(100 * self.finished / self.total) if self.total else 100


class Display(threading.Thread):
    """Shows the result of `text()` on `stream`, every `period` seconds, until `end`."""

    def __init__(self, stream, text, period):
        super().__init__(daemon=True)
        self.stream = stream
        self.rewrites = stream.isatty()
        self.text = text
        self.period = TERMINAL_PERIOD if self.rewrites else period
        self.ended = threading.Event()

    def run(self):
        while not self.ended.wait(self.period):
            self.stream.write(f"\r\x1b[K{self.text()}" if self.rewrites else self.text() + "\n")
            self.stream.flush()

    def end(self):
        self.ended.set()
        self.join()
        if self.rewrites:
            self.stream.write("\r\x1b[K")
            self.stream.flush()


def steps_to_do(command):
    """Descriptions of the steps, as a dry run prints them; none, if the generator has no dry run."""
    done = subprocess.run([*command, "--", "-n"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          env={**os.environ, "NINJA_STATUS": "[%f/%t] "}, check=False)
    return [found.group(3) for found in map(STEP.match, done.stdout.splitlines()) if found]


def build(command, stream, period):
    """Runs `command` and returns its exit status."""
    steps = steps_to_do(command)
    estimate = Estimate(sum(map(weight_of, steps)), os.cpu_count() or 1, len(steps))
    progress = f"0 of {len(steps)}"
    began = time.monotonic()

    def text():
        if not steps or (not estimate.finished and any(RECONFIGURES in step for step in steps)):
            return "  building"
        left = as_time(estimate.seconds_left(time.monotonic() - began))
        return f"  building: {progress} steps, {estimate.percent()} %, about {left} left"

    display = Display(stream, text, period)
    display.start()
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               env={**os.environ, "NINJA_STATUS": "[%f/%t] "})
    for line in running.stdout:
        sys.stdout.write(line)
        sys.stdout.flush()
        if step := STEP.match(line):
            estimate.finish(weight_of(step.group(3)), int(step.group(1)), int(step.group(2)))
            progress = f"{step.group(1)} of {step.group(2)}"
    status = running.wait()
    display.end()
    return status


def main(arguments):
    period = LINE_PERIOD
    if arguments[:1] == ["--every"]:
        period, arguments = float(arguments[1]), arguments[2:]
    if not arguments or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    return build(arguments, sys.stderr, period)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
