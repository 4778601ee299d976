"""The measurements as judges see them: cases by name, and the figures of each with its repeats."""

from dataclasses import dataclass

from ..errors import Failure

KNOWN_SCHEMA = 1

# A single repeat on a real clock says nothing of its spread. It is taken to lie within this part of the figure: 10 %, about
# as much as two runs of the same cell differ by on a machine that does nothing else.
MARGIN_OF_ONE = 0.1


class Missing(Exception):
    """The case was not measured; it can be."""


class NotApplicable(Exception):
    """This memory or machine does not have what the case needs."""


class Uncounted(Exception):
    """The case has no such figure: amplification is not counted on real memory."""


@dataclass(frozen=True)
class Figure:
    """A number of a case. `low` and `high`: the least and the most of its repeats; equal to `value` where it repeats to
    the digit. `repeats`: the figure of each repeat, of cases whose repeats were measured in turns with those of other
    cases of the same `cell`; otherwise empty."""

    value: float
    low: float
    high: float
    n: int = 1
    repeats: tuple[float, ...] = ()
    cell: str | None = None


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
    """What the figure at `path` is in: "ns", "GiB/s", "ops/s", or "": a ratio, or a count."""
    if path == "value":
        return case.get("unit") or ""
    if path.endswith("gib_per_s"):
        return "GiB/s"
    return "ns" if "_ns" in path or "ns_" in path else ""


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
        scale = case["scale"] if is_number(case.get("scale")) else 1
        factor = 1 / scale if unit == "ns" else scale if unit == "GiB/s" else 1
        value = value / scale if unit == "ns" else value * factor
        if not unit or case.get("exact") or str(case.get("medium")).startswith("simulated:"):
            return Figure(value, value, value, self._repeats_of(case))
        return self._with_spread(case, path, value, factor)

    @staticmethod
    def _repeats_of(case):
        return len(case.get("repeats") or case.get("values") or [None])

    @staticmethod
    def _with_spread(case, path, value, factor):
        in_turns = [_at(repeat, path) for repeat in case.get("repeats", ())]
        if len(in_turns) > 1 and None not in in_turns:
            repeats = tuple(factor * r for r in in_turns)
            return Figure(value, min(*repeats, value), max(*repeats, value), len(repeats), repeats, case.get("cell"))
        # The suite keeps the repetitions of a case's value alone. Its other figures come from the same accesses, and are
        # taken to spread as much.
        values = [v for v in case.get("values") or () if is_number(v)]
        if len(values) > 1 and case["value"]:
            part = value / case["value"]
            return Figure(value, min(*(part * v for v in values), value), max(*(part * v for v in values), value),
                          len(values))
        margin = abs(value) * MARGIN_OF_ONE
        return Figure(value, value - margin, value + margin)

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
