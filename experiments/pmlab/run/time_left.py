"""The time that is left of a run.

The seconds of a cell are guessed from its operations and from times on one machine. Cells of its kind that have ended
in this run correct the guess: by the ratio of their times to their guesses."""

import os
import re

from .. import programs
from ..errors import Failure

_STARTUP_SECONDS = 0.4
_CALIBRATION_SECONDS = 1  # seconds to calibrate an emulated medium
_DEFAULT_COUNT = 1e6  # records, operations
_SUITE_SECONDS = {"quick": 10, "paper": 50, "full": 300}
# Seconds of a drive: on a virtual clock, and on a real one.
_DRIVE_SECONDS = {"quick": (2, 12), "drive": (8, 90), "full": (80, 2500)}
# Costs of a store: writing a megabyte of its volume, as each case's steady state does several times; an operation.
_STORE_SECONDS_PER_MB, _STEADY_VOLUMES = 0.002, 4
_STORE_MICROSECONDS = {"simulated": 40}
_BEFORE_A_CASE = 3000  # operations that fill the buffer of a modelled drive, in the mean of all sizes
_OTHER_STORE_MICROSECONDS = 6
# One operation of an index, the checks of its answer included.
_MICROSECONDS = {"simulated": 10, "emulated": 1.6, "counted": 0.9}
_OTHER_MICROSECONDS = 0.6
_COUNT = re.compile(r"([0-9.]+(?:e[0-9]+)?)([kmgt]?)", re.IGNORECASE)


def count_of(text, option):
    """ "10k" -> 10000. Raises Failure: no number."""
    found = _COUNT.fullmatch(text)
    try:
        return float(found[1]) * 1000 ** ("kmgt".index(found[2].lower()) + 1 if found[2] else 0)
    except (TypeError, ValueError):
        raise Failure(f"{option} '{text}' is not a number", "give a count such as 10M, 1k or 200000") from None


def bytes_of(text):
    """ "64M" -> 67108864. """
    unit = "KMGT".find(text[-1:].upper()) + 1
    return float(text[:-1] if unit else text) * 1024 ** unit


def _parts(text):
    """How many a list names; "1,4-6" are four. Commas within brackets separate nothing."""
    depth, parts = 0, 1
    for c in text:
        depth += (c == "(") - (c == ")")
        parts += c == "," and depth == 0
    for first, last in re.findall(r"(?:^|,)(\d+)-(\d+)(?=,|$)", text):
        parts += max(0, int(last) - int(first))
    return parts


def _trace_operations(path):
    """By the size of the file: a line of YCSB's generator is some 80 characters long, and compressed some 20."""
    try:
        size = os.path.getsize(path.replace("{source}", str(programs.source() or "")))
    except OSError:
        return 0
    return size / (20 if path.endswith((".gz", ".xz", ".zst")) else 80)


def kind_of(cell):
    """Cells of one kind err alike in their guesses."""
    return f"{cell.words[0]} {cell.medium.split(':')[0]}"


def _guess_of_pairs(cell, operation):
    """A load of all keys before the cases of each size of values, and as one of the phases; and a check at the end."""
    def listed(option, otherwise):
        return _parts(cell.value(option, otherwise))
    records, repeats = count_of(cell.value("--records", "100k"), "--records"), count_of(cell.value("--repeat", "1"),
                                                                                        "--repeat")
    done = count_of(cell.value("--operations", "100k"), "--operations") * operation
    phases = cell.value("--phases", "load,ycsb-a,ycsb-c").split(",")
    cases = sum(records * operation if phase == "load" else float(cell.value("--seconds", "0")) or done
                for phase in phases)
    times = listed("--value", "1000") * listed("--depth", "1") * listed("--pattern", "random")
    return _STARTUP_SECONDS + listed("--store", "a") * (2 * records * operation + cases * times * repeats)


def _guess_of_stores(cell):
    def listed(option, otherwise):
        return _parts(cell.value(option, otherwise))
    stores, sizes = listed("--store", "a"), listed("--size", "4K,16K")
    cases = listed("--phases", "fill,overwrite,read") * sizes * listed("--pattern", "random") * listed("--depth",
                                                                                                       "1,32")
    kind = cell.medium.split(":")[0]
    operation = _STORE_MICROSECONDS.get(kind, _OTHER_STORE_MICROSECONDS) / 1e6
    done = count_of(cell.value("--operations", "10k"), "--operations") + _BEFORE_A_CASE
    case = float(cell.value("--seconds", "0")) or done * operation
    if cell.words[1] == "pairs":
        return _guess_of_pairs(cell, operation)
    filling = bytes_of(cell.value("--volume-bytes", "256M")) / 1e6 * _STORE_SECONDS_PER_MB * _STEADY_VOLUMES * sizes
    starting = _STARTUP_SECONDS + (_CALIBRATION_SECONDS if kind == "emulated" else 0)
    return starting + stores * (filling + cases * case * count_of(cell.value("--repeat", "1"), "--repeat"))


def guess(cell):
    """Seconds that it may take."""
    if cell.words[0] == "stores":
        return _guess_of_stores(cell)
    if cell.value("--device"):
        return _STARTUP_SECONDS + _DRIVE_SECONDS.get(cell.value("--suite", "drive"), (8, 90))[cell.has_real_clock]
    if cell.words[0] != "bench":
        layouts = count_of(cell.value("--layouts", "1"), "--layouts")
        return _STARTUP_SECONDS + layouts * _SUITE_SECONDS.get(cell.value("--suite", "quick"), _SUITE_SECONDS["paper"])

    def count(option, otherwise):
        text = cell.value(option)
        return count_of(text, option) if text else otherwise

    runs = _parts(cell.value("--index")) * _parts(cell.value("--threads", "1")) * _parts(cell.value("--hosts", "1"))
    # A composed index does the work of two, and a scan that of many reads; the kind's correction covers the rest.
    operation = _MICROSECONDS.get(cell.medium.split(":")[0], _OTHER_MICROSECONDS) / 1e6
    if cell.all_values("--trace"):
        return _STARTUP_SECONDS + runs * sum(map(_trace_operations, cell.all_values("--trace"))) * operation
    starting = _STARTUP_SECONDS + (_CALIBRATION_SECONDS if cell.medium.startswith("emulated:") else 0)
    phases = len(cell.all_values("--workload")) + (_parts(cell.value("--phases")) if cell.value("--phases") else 0)
    repeats = count("--repeat", 1)
    phases = (phases or 6) * repeats
    # A repeat in simulated time has another layout of its memory, so it loads for itself.
    loads = runs * (repeats if cell.medium.startswith("simulated:") else 1)
    loading = loads * count("--records", _DEFAULT_COUNT) * operation
    if cell.value("--seconds"):
        return starting + loading + runs * phases * count("--seconds", 1)
    return starting + loading + runs * phases * count("--operations", _DEFAULT_COUNT) * operation


class TimeLeft:
    """`jobs`: how many cells without a real clock run at a time. Cells that --resume keeps are not among `cells`."""

    def __init__(self, cells, jobs):
        self._jobs = max(1, jobs)
        self._waiting = {cell.name: cell for cell in cells}
        self._guesses = {cell.name: guess(cell) for cell in cells}
        self._guessed, self._taken = {}, {}  # seconds by kind, of cells that have ended

    def ended(self, cell, seconds):
        self._waiting.pop(cell.name, None)
        kind = kind_of(cell)
        self._guessed[kind] = self._guessed.get(kind, 0) + self._guesses[cell.name]
        self._taken[kind] = self._taken.get(kind, 0) + seconds

    def _correction(self, kind):
        if kind in self._taken:
            return self._taken[kind] / self._guessed[kind]
        # This machine's speed, as far as other kinds show it.
        return sum(self._taken.values()) / sum(self._guessed.values()) if self._taken else 1

    def seconds(self, running):
        """The time left; None: no cell has ended, so a figure would be no more than a guess. `running`: {name: seconds
        since it was started} of the cells that run."""
        if not self._taken:
            return None
        alone, shared, longest = 0, 0, 0
        for cell in self._waiting.values():
            whole = self._guesses[cell.name] * self._correction(kind_of(cell))
            left = max(0, whole - running.get(cell.name, 0))
            if cell.has_real_clock:
                alone += left
            else:
                shared += left
                longest = max(longest, left)
        return alone + max(longest, shared / self._jobs)


def duration(seconds):
    """ "40 s", "7 min", "3 h 20 min"."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
