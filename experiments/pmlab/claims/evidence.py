"""The measurements as judges see them: cases by name, and the figures of each with its repeats."""

from ..errors import Failure
from .figure import Figure

KNOWN_SCHEMA = 1


class Missing(Exception):
    """The case was not measured; it can be."""


class NotApplicable(Exception):
    """This memory or machine lacks a requirement of the case."""


class Uncounted(Exception):
    """The case has no such figure: amplification is not counted on real memory."""


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _text(case, key):
    return isinstance(case.get(key), str)


def _at(case, path):
    """The number at `path` ("reads/gib_per_s") below a case; None: there is none."""
    for key in path.split("/"):
        case = case.get(key) if isinstance(case, dict) else None
    return case if is_number(case) else None


def _unit(case, path):
    """The unit of the figure at `path`: "ns", "GiB/s", "ops/s", or "": a ratio, or a count."""
    if path == "value":
        return case.get("unit") or ""
    if path.endswith("gib_per_s"):
        return "GiB/s"
    return "ns" if "_ns" in path or "ns_" in path else ""


# Set by the options of the benchmark: no clock changes it.
_ASKED = ("operations", "user_bytes", "records", "volume_bytes", "chunk_bytes", "device_bytes")


def _is_count(case, path):
    """Whether one repeat says it all. Bytes on a real clock do not: work in the background depends on it."""
    virtual = case.get("clock") == "virtual" or str(case.get("medium")).startswith("simulated:")
    return path in _ASKED or (not _unit(case, path) and (virtual or bool(case.get("counted"))))


def _repeats(case, path):
    """The figure at `path` in each repeat; empty where the result has its median alone."""
    if "repeats" not in case and path == "value":
        return [one for one in case.get("values") or () if is_number(one)]
    repeats = [_at(repeat, path) for repeat in case.get("repeats") or ()]
    return [] if None in repeats else repeats


def _like_value(case, value):
    """The suite keeps the repetitions of a case's value alone. Its other figures come from the same accesses, and are
    taken to spread as much."""
    values = _repeats(case, "value")
    return [value / case["value"] * one for one in values] if values and case["value"] else [value]


class Evidence:
    """Cases by name. `document`: an object as `pmlab microbench --json` writes it; results of other programs serve as
    well, if they have an array `cases` of objects with `name`, `value` and `unit`. `file` names it in errors. Raises
    Failure for anything else."""

    def __init__(self, document, file):
        def refuse(problem):
            raise Failure(f"{file} {problem}", "give a file that `pmlab microbench --json` wrote")

        if not isinstance(document, dict):
            refuse("holds no results")
        if not is_number(document.get("schema")) or document["schema"] != KNOWN_SCHEMA:
            refuse(f"is not of schema {KNOWN_SCHEMA}")
        if not isinstance(document.get("cases"), list):
            refuse("has no cases")
        self.document = document
        self._cases = {}
        for number, case in enumerate(document["cases"]):
            if not isinstance(case, dict) or not _text(case, "name"):
                refuse(f"has a case without a name, number {number}")
            if not (is_number(case.get("value")) and _text(case, "unit")) and not _text(case, "skipped"):
                refuse(f"has a case without a figure: {case['name']}")
            self._cases.setdefault(case["name"], case)

    @property
    def medium(self):
        """The memory that the results are of, for titles."""
        machine = self.document.get("machine")
        return str(machine.get("medium", "?")) if isinstance(machine, dict) else "?"

    def __contains__(self, name):
        return name in self._cases

    def _case(self, name):
        try:
            return self._cases[name]
        except KeyError:
            raise Missing(name) from None

    def figure(self, name, path="value"):
        """A Figure of a case, as the device itself would give it: the factor that an emulated device was slowed down by
        is taken off. `path`: "value", or a place below the case such as "reads/gib_per_s". Raises Missing (no such
        case), NotApplicable (it was skipped), Uncounted (it has no such figure)."""
        case = self._case(name)
        if _text(case, "skipped"):
            raise NotApplicable(f"{case['skipped']} ({name})")
        value = _at(case, path)
        if value is None:
            raise Uncounted(f"{name} has no {path}")
        unit = _unit(case, path)
        scale = case["scale"] if is_number(case.get("scale")) and case["scale"] else 1

        def of_device(number):
            return number / scale if unit == "ns" else number * scale if unit == "GiB/s" else number
        repeats = _repeats(case, path)
        if len(repeats) < 2 and _is_count(case, path):
            return Figure.exact(of_device(value))
        return Figure.of_repeats([of_device(one) for one in repeats or _like_value(case, value)], case.get("turns"),
                                 of_device(value))

    def published(self, name, path="value"):
        """The published figure that belongs in the place of a measured one. Raises Missing where there is none."""
        case = self._case(name)
        if path != "value" or not is_number(case.get("published")) or case.get("published_unit") != case.get("unit"):
            raise Missing(name)
        return case["published"]

    def memory_of(self, name):
        """The memory that a case ran on: "simulated:aep"; "" where the results do not say. Raises Missing."""
        case = self._case(name)
        return case["medium"] if _text(case, "medium") else ""
