#!/usr/bin/env python3
"""status.py JOB: prints "running", "success" or "failed", as Snakemake 7 asks after a job of Slurm.

Without it, a job that was killed with its node would be waited for without end."""

import re
import subprocess
import sys

RUNNING = ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "REQUEUED", "REQUEUE_HOLD", "SUSPENDED", "RESIZING",
           "SIGNALING")


def said_by(*words):
    try:
        return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def state_of(job):
    """In Slurm's words; "": neither its controller nor its accounts answer about it."""
    found = re.search(r"\bJobState=(\w+)", said_by("scontrol", "show", "job", job, "--oneliner"))
    if found:
        return found[1]
    words = said_by("sacct", "--jobs", job, "--format", "State", "--noheader", "--parsable2", "--allocations").split()
    return words[0] if words else ""


state = state_of(sys.argv[1])
# One that is not known is asked for again, rather than lost: the controller may be starting.
print("success" if state == "COMPLETED" else "running" if state in (*RUNNING, "") else "failed")
