"""Measurements of `pmlab bench`, as the report reads them."""

import statistics
from dataclasses import dataclass, field, replace


@dataclass
class Measurement:
    """One index on one medium in one phase, over all repeats of a run."""

    run: str
    index: str
    medium: str
    phase: str
    threads: int
    batch: int
    repeats: list = field(default_factory=list)
    hosts: int = 1  # that share the memory; `threads` is of each

    def _median(self, value_of):
        values = [v for v in map(value_of, self.repeats) if v is not None]
        return statistics.median(values) if values else None

    @property
    def throughput(self):
        """Operations per second, median of the repeats."""
        return self._median(lambda r: r.get("throughput_ops_per_s"))

    @property
    def throughput_range(self):
        return self.range_of(lambda m: m.throughput)

    @property
    def n(self):
        """How many repeats it was measured in."""
        return len(self.repeats)

    @property
    def invalid(self):
        """Whether the emulation did not hold in any repeat: the figure is not valid for the device."""
        return any(r.get("invalid") or r.get("valid") is False for r in self.repeats)

    def alone(self):
        """A measurement for each repeat."""
        return [replace(self, repeats=[r]) for r in self.repeats]

    def latency_range(self, percentile):
        return self.range_of(lambda m: m.latency(percentile))

    def latency(self, percentile):
        """Nanoseconds, median of the repeats' percentile."""
        return self._median(lambda r: (r.get("latency_ns") or {}).get(percentile))

    def per_operation(self, what):
        return self._median(lambda r: (r.get("per_operation") or {}).get(what))

    def between_hosts(self, what):
        return self._median(lambda r: (r.get("between_hosts") or {}).get(what))

    def range_of(self, value_of):
        """Lowest and highest of the repeats: `value_of` of a measurement of each. (None, None): it was not measured."""
        values = [v for v in map(value_of, self.alone()) if v is not None]
        return (min(values), max(values)) if values else (None, None)

    def media_bytes(self, way):
        """Bytes that the device's media "read" or have "written" per operation."""
        return self._median(lambda r: (r.get("media_bytes") or {}).get(way))

    def bytes_per_key(self, where):
        return self._median(lambda r: (r.get("bytes_per_key") or {}).get(where))

    @property
    def data_over_caches(self):
        """Bytes of the index over those of all CPU caches of its simulated machine; None: of another machine, or
        empty."""
        def of(repeat):
            held, caches = repeat.get("bytes_per_key"), repeat.get("cpu_cache_bytes")
            if not (held and caches and repeat.get("entries")):
                return None
            return sum(held.values()) * repeat["entries"] / caches
        return self._median(of)

    def of_cache(self, what):
        """A figure of the cache in front of the index."""
        return self._median(lambda r: (r.get("cache") or {}).get(what))

    def after_restart(self, what):
        return self._median(lambda r: (r.get("restart") or {}).get(what))

    @property
    def operations(self):
        return self._median(lambda r: r.get("operations"))

    @property
    def wrong_answers(self):
        """Over all repeats; None where answers were not checked."""
        counts = [r["wrong_answers"] for r in self.repeats if r.get("wrong_answers") is not None]
        return sum(counts) if counts else None


@dataclass
class Run:
    """One call of `pmlab bench`."""

    name: str
    about: str
    command: str
    machine: dict
    options: dict
    remarks: list  # the program's warnings about its figures
    skipped: list  # {index, threads, phase, reason}
    measurements: list
    experiment: str = ""
    values: dict = field(default_factory=dict)  # values of the experiment's matrix

    @property
    def records(self):
        """Entries loaded before the measured phases; None if the run does not say."""
        return self.options.get("records")

    @property
    def medium(self):
        """As the user named it: what pmlab's own indexes ran on."""
        return str(self.machine.get("medium", ""))

    def find(self, index=None, phase=None, threads=None, batch=None):
        return [m for m in self.measurements
                if index in (None, m.index) and phase in (None, m.phase) and threads in (None, m.threads)
                and batch in (None, m.batch)]

    def one(self, **which):
        found = self.find(**which)
        return found[0] if found else None

    def indexes(self):
        return list(dict.fromkeys(m.index for m in self.measurements))

    def phases(self):
        return list(dict.fromkeys(m.phase for m in self.measurements))
