"""The quantities that charts of experiments show: where each is in a measurement, and how it is written."""

from dataclasses import dataclass
from typing import Callable

from . import names


@dataclass
class Quantity:
    axis: str  # what stands at the axis
    of: Callable  # Measurement -> number, or None where it was not measured
    text: Callable  # number -> text
    more_is_better: bool = False

    def range_of(self, measurement):
        """Lowest and highest of the repeats."""
        return measurement.range_of(self.of)


def _duration(path):
    return lambda m: m.latency(path)


def _counted(key):
    return lambda m: m.per_operation(key)


def _media_bytes(way):
    return lambda m: m.media_bytes(way)


def _between_hosts(key):
    return lambda m: m.between_hosts(key)


def _milliseconds(nanoseconds):
    return None if nanoseconds is None else nanoseconds / 1e6


def _of_case(*path):
    """A figure that only stores have."""
    return lambda m: m.of_case(*path) if hasattr(m, "of_case") else None


def _share_of_free(m):
    free, longest = _of_case("space", "free_bytes")(m), _of_case("space", "longest_free_extent")(m)
    return longest / free if free and longest is not None else None


def _thousand(value):
    return f"{names.number(value)} k/s"


def _microseconds(path):
    return lambda m: None if m.latency(path) is None else m.latency(path) / 1e3


def _us(value):
    return names.duration(value * 1e3)


def _million(value):
    return f"{names.number(value)} M/s"


def _ms(value):
    return names.duration(value * 1e6)


def _share(value):
    return f"{names.number(100 * value)} %"


def _hit_ratio(m):
    of_store = _of_case("hit_ratio")(m)
    return m.of_cache("hit_ratio") if of_store is None else of_store


def _cpu(m):
    nanoseconds = _of_case("cpu_ns_per_operation")(m)
    return None if nanoseconds is None else nanoseconds / 1e3


QUANTITIES = {
    "throughput": Quantity("million operations/s", lambda m: m.throughput / 1e6 if m.throughput else None, _million,
                           True),
    "latency": Quantity("ns per operation, mean", _duration("mean"), names.duration),
    "p99": Quantity("ns, 99 % of the operations", _duration("p99"), names.duration),
    "hit_ratio": Quantity("share of lookups that hit", _hit_ratio, _share, True),
    "flushes": Quantity("flushes per operation", _counted("flushes"), names.number),
    "fences": Quantity("fences per operation", _counted("fences"), names.number),
    "lines_read": Quantity("lines read per operation", _counted("pm_lines_read"), names.number),
    "device_reads": Quantity("device lines read per operation", _counted("device_lines_read"), names.number),
    "device_writes": Quantity("device lines written per operation", _counted("device_lines_written"), names.number),
    "media_bytes_read": Quantity("bytes of the media read per operation", _media_bytes("read"), names.number),
    "fetched": Quantity("lines from the shared device per operation", _between_hosts("fetched"), names.number),
    "media_bytes_written": Quantity("bytes of the media written per operation", _media_bytes("written"), names.number),
    "thousand": Quantity("thousand operations/s", lambda m: m.throughput / 1e3 if m.throughput else None, _thousand,
                         True),
    "microseconds": Quantity("us per operation, mean", _microseconds("mean"), _us),
    "microseconds_p99": Quantity("us, 99 % of the operations", _microseconds("p99"), _us),
    "lines_written": Quantity("lines of PM written per operation", _counted("pm_lines_written"), names.number),
    "written_per_byte": Quantity("bytes to the drive for each of the user's", _of_case("amplification", "host"),
                                 names.number),
    "written_in_all": Quantity("bytes written per user byte, later ones too", _of_case("written_in_all"),
                               names.number),
    "flash_per_byte": Quantity("bytes of flash per byte of the host", _of_case("amplification", "device"),
                               names.number),
    "cpu": Quantity("us of CPU per operation", _cpu, _us),
    "host_memory": Quantity("bytes of the host's DRAM", _of_case("space", "memory_bytes"), names.number),
    "longest_free": Quantity("free space in one extent", _share_of_free, _share, True),
    "milliseconds": Quantity("ms until it is open", lambda m: _milliseconds(m.latency("max")), _ms),
    "first_find": Quantity("ms until the first find", lambda m: _milliseconds(m.after_restart("find_ns")), _ms),
    "first_scan": Quantity("ms until the first scan", lambda m: _milliseconds(m.after_restart("scan_ns")), _ms),
    "pm_per_key": Quantity("bytes of PM per entry", lambda m: m.bytes_per_key("pm"), names.number),
    "dram_per_key": Quantity("bytes of DRAM per entry", lambda m: m.bytes_per_key("dram"), names.number),
}
