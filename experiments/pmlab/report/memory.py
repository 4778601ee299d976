"""What `pmlab microbench --json` and `pmlab claims --json` wrote, as the report reads it."""

from dataclasses import dataclass

from . import provenance


@dataclass
class Memory:
    """One run of a microbenchmark suite on one memory."""

    name: str
    about: str
    command: str
    machine: dict
    remarks: list
    cases: dict  # name -> the case as it is in the JSON
    experiment: str = ""

    @property
    def medium(self):
        return str(self.machine.get("medium", ""))

    def value(self, name, path="value"):
        """A figure as the device itself would give it; None where it was not measured. `path` such as
        reads.gib_per_s."""
        case = self.cases.get(name)
        if case is None or case.get("skipped"):
            return None
        found = case
        for key in path.split("."):
            found = (found or {}).get(key)
        if found is None:
            return None
        scale = case.get("scale") or 1
        unit = case["unit"] if path == "value" else "GiB/s" if path.endswith("gib_per_s") else "ns"
        return found * scale if unit == "GiB/s" else found / scale

    def range_of_value(self, name):
        """(lowest, highest) of the repetitions; None where the figure was not measured."""
        if self.value(name) is None:
            return None
        case = self.cases[name]
        values = case.get("values") or [case["value"]]
        ends, scale = (min(values), max(values)), case.get("scale") or 1
        return tuple(end * scale if case["unit"] == "GiB/s" else end / scale for end in ends)

    def repetitions(self, name):
        return self.cases[name].get("repetitions", 1)

    def published(self, name):
        """What was published in its place, of the first Optane generation; None if nothing was."""
        case = self.cases.get(name) or {}
        return case.get("published") if case.get("published_unit") == case.get("unit") else None

    def range_of(self, names):
        """How much memory the first of these cases goes over, in words."""
        case = next((self.cases[n] for n in names if n in self.cases), None)
        megabytes = (case or {}).get("case", {}).get("working_set_bytes", 0) >> 20
        return f"{megabytes >> 10} GB" if megabytes >= 1024 else f"{megabytes} MB"

    def why_skipped(self, name):
        return (self.cases.get(name) or {}).get("skipped")

    @property
    def footer(self):
        return (f"{provenance.medium_line([self.medium])} · {provenance.profile_line([self.medium])}\n"
                f"{provenance.commit_line(self.machine)} · {provenance.machine_line(self.machine)}")


@dataclass
class Verdicts:
    """The claims, judged from one run."""

    name: str
    about: str
    command: str
    machine: dict
    claims: list  # as in the JSON

    @property
    def medium(self):
        return str(self.machine.get("medium", ""))


def memory_of(name, document, described):
    cases = {case["name"]: case for case in document.get("cases", [])}
    return Memory(name, described.get("about", ""), described.get("command", ""), document.get("machine", {}),
                  document.get("remarks") or [], cases, described.get("experiment", ""))


def verdicts_of(name, document, described):
    return Verdicts(name, described.get("about", ""), described.get("command", ""), document.get("machine") or {},
                    document.get("claims", []))
