"""Where figures come from, in words: the line on every chart and the notes about media."""

import re

from . import names

NOTES = {
    "emulated": "Emulated: the bytes are in DRAM (or in the pool named after @); the extra time that the device model "
                "gives a read, a flush or a fence is waited for by the clock. Software cannot emulate a specific "
                "device exactly: read these figures as the direction and rough size of an effect.",
    "simulated": "Simulated: every access of the index runs on a modelled machine with a core for each thread, in "
    "virtual "
                 "time. The figures repeat to the digit, and their ranges are of other layouts; what they rest on is "
                 "in docs/device-profiles.md. Read them as "
                 "how an index scales and what it waits for, not as a device's absolute figures.",
    "counted": "Counted: cache lines, 256-byte device lines, flushes and fences are counted exactly. These figures do "
               "not depend on the machine; times taken while counting mean nothing and are not shown.",
    "tmpfs": "tmpfs is not persistent memory. A pool there is made, flushed and fenced exactly as on the real thing, "
             "but it lies in DRAM: it survives the process and not the power, and its speed is DRAM's.",
    "pmem": "pmem: a libpmemobj pool on the path named.",
    "dram": "dram: ordinary memory; nothing survives the process. Flush and fence cost nothing.",
}


def kinds_of(medium):
    """Keys of NOTES that apply to a medium such as counted:emulated:aep@/dev/shm/pool."""
    parts = [p for p in medium.split("@")[0].split(":") if p]
    kinds = [kind for kind in ("counted", "emulated", "simulated", "pmem", "dram") if kind in parts]
    if is_tmpfs(medium):
        kinds.append("tmpfs")
    return kinds


def is_tmpfs(medium):
    return "/dev/shm" in medium


def medium_line(media):
    """One phrase for the media of a chart."""
    distinct = list(dict.fromkeys(names.short_medium(m) + (" (tmpfs, so DRAM)" if is_tmpfs(m) else "") for m in media))
    return ", ".join(distinct)


def cpu(machine):
    model = machine.get("cpu") or machine.get("cpu_model") or machine.get("processor") or "unknown CPU"
    return str(model).replace("(R)", "").replace("(TM)", "").replace(" CPU", "").split(" @")[0].strip()


def cores(machine):
    return machine.get("cores") or machine.get("cpus") or machine.get("logical_cpus")


def machine_line(machine):
    many = cores(machine)
    return cpu(machine) + (f", {many} core{'s' if many != 1 else ''}" if many else "")


def machine_lines(machines):
    """The machines of results that several machines made."""
    return "; ".join(dict.fromkeys(map(machine_line, machines)))


def exact(measurements):
    """Whether the media of all of them repeat to the digit."""
    return all(set(kinds_of(m.medium)) & {"simulated", "counted"} for m in measurements)


def profile_line(media):
    """The device profiles that media such as simulated:aep stand on."""
    found = [re.search(r"(?:simulated|emulated):([^@:]+)", m) for m in media]
    named = list(dict.fromkeys(f[1] for f in found if f))
    return f"profile {', '.join(named)}" if named else "no device profile"


def commit_line(machine):
    return f"commit {machine.get('commit') or 'unknown'}"


def caches_line(measurements):
    """How much more data there are than a simulated machine has CPU caches, with most threads: less than some, and the
    figures are of caches. Empty: no machine is simulated."""
    most = max((m.threads for m in measurements), default=0)
    found = [m.data_over_caches for m in measurements if m.threads == most and m.data_over_caches]
    return f"data {names.number(min(found))}x the CPU caches with {names.count(most)} threads" if found else ""


def footer(run, measurements, records=None):
    """Medium, profile, records and caches; commit and machine."""
    media = list(dict.fromkeys(m.medium for m in measurements))
    records = records or (names.count(run.records) if run.records else None)
    caches = caches_line(measurements)
    return (f"{medium_line(media)} · {profile_line(media)}{f' · {records} records' if records else ''}"
            f"{f' · {caches}' if caches else ''}\n{commit_line(run.machine)} · {machine_line(run.machine)}")
