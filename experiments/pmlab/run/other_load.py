"""The load of this machine by other programs: it makes figures of a real clock wrong."""

import os
import resource


def load():
    """Processes that ran or waited for a CPU, on average over the last minute; None: the kernel does not tell."""
    try:
        return round(os.getloadavg()[0], 2)
    except OSError:
        return None


def _busy_seconds():
    """Busy seconds of all CPUs since the machine was started, with the time that a hypervisor took for others."""
    with open("/proc/stat", encoding="ascii") as f:
        user, nice, system, _idle, _waiting, *more = map(int, f.readline().split()[1:9])
    return (user + nice + system + sum(more)) / os.sysconf("SC_CLK_TCK")


def _own_seconds():
    """Busy seconds of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def warning_before(now, cpus):
    """Warns of the load before a run, which none of our cells has caused; None: at most half of the CPUs are busy."""
    if now is None or now <= cpus / 2:
        return None
    return (f"this machine has {cpus} CPUs and a load of {now:.1f} before the run; stop other programs, or do not "
            "trust figures of media that are not simulated")


def warning_after(name, other_cpus, cpus):
    """Warns after a cell has ended; None: other programs left it at least half of the CPUs."""
    if other_cpus is None or other_cpus <= cpus / 2:
        return None
    return f"{name}: other programs used {other_cpus:.1f} of {cpus} CPUs while it ran; do not trust its figures"


class OtherPrograms:
    """CPUs that programs other than ours use while one of our children runs alone. The average load cannot tell: our
    own cells are most of it."""

    def __init__(self, clock):
        self._clock = clock
        self._begun = self._now()

    def _now(self):
        try:
            return self._clock(), _busy_seconds() - _own_seconds()
        except (OSError, ValueError):
            return None

    def cpus(self):
        """Since this object was made, to be asked when the child has ended; None: the kernel does not tell."""
        now = self._now()
        if now is None or self._begun is None or now[0] <= self._begun[0]:
            return None
        return round(max(0.0, (now[1] - self._begun[1]) / (now[0] - self._begun[0])), 2)
