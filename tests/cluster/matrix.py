"""A matrix of small simulated cells, and what of two folders must be the same byte for byte."""
import os

# Two media, and more cells for each value of records.
EXPERIMENT = """
title = "Small"
about = "Many small cells."
shows = "beyond the paper"
[arguments]
operations = "300"
phases = ["read", "insert"]
[matrix]
medium = ["simulated:aep", "simulated:classic"]
index = {indexes}
records = {records}
threads = {threads}
[[chart]]
kind = "bars"
x = "records"
y = "throughput"
series = "index"
panels = ["phase", "medium"]
"""

# Dates, hosts and seconds differ by nature. (Snakemake leaves a time in a folder that a job makes.)
NOT_COMPARED = ("manifest.json", "doctor.txt", "log", ".snakemake_timestamp")


def experiment(indexes=("cceh", "fast_fair"), records=("300", "500"), threads=("1",)):
    def listed(values):
        return "[" + ", ".join(f'"{v}"' for v in values) + "]"
    return EXPERIMENT.format(indexes=listed(indexes), records=listed(records), threads=listed(threads))


def contents(folder):
    """{path: bytes} of all that is compared."""
    found = {}
    for place, folders, files in os.walk(folder):
        below = os.path.relpath(place, folder)
        folders[:] = [f for f in folders if below != "." or f not in NOT_COMPARED]
        for name in files:
            if below != "." or name not in NOT_COMPARED:
                with open(os.path.join(place, name), "rb") as f:
                    found[os.path.normpath(os.path.join(below, name))] = f.read()
    return found
