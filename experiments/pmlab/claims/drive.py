"""A solid-state drive beside the memory, measured by fio: claim M22 compares with it."""

import os
import shutil
import tempfile

from .. import processes
from ..errors import Failure
from ..json_files import read_json
from .evidence import is_number

_BYTES_PER_GIB = 1 << 30
_SIDES = ("write", "read")  # the order of fio's jobs: data must be written before it is read
_FORMAT_REMEDY = "pmlab knows the JSON of fio 3"


def _skipped(reason):
    return [{"name": f"drive-{side}", "medium": None, "skipped": reason, "value": None, "unit": None} for side in _SIDES]


def _fio(file):
    """1 MiB at a time, 32 at once, around the kernel's cache."""
    words = ["fio", "--output-format=json", f"--filename={file}", "--size=1G", "--bs=1M", "--direct=1",
             "--ioengine=libaio", "--iodepth=32", "--runtime=5", "--time_based"]
    for side in _SIDES:
        words += [f"--name={side}", "--stonewall", f"--rw={side}"]
    return words


def _bandwidth(answer, job, side):
    try:
        value = answer["jobs"][job][side]["bw_bytes"]
    except (KeyError, IndexError, TypeError):
        value = None
    if not is_number(value) or value <= 0:
        raise Failure("fio's output names no bandwidth", _FORMAT_REMEDY)
    return value / _BYTES_PER_GIB


def drive_cases(answer, folder):
    """Cases of the JSON that fio printed. Raises Failure: it names no bandwidth."""
    return [{"name": f"drive-{side}", "group": "drive", "about": f"peak bandwidth of the drive below {folder}, by fio",
             "claims": ["M22"], "medium": "drive", "skipped": None, "value": _bandwidth(answer, job, side),
             "unit": "GiB/s"} for job, side in enumerate(_SIDES)]


def measure_drive(folder):
    """Peak bandwidth of the drive that `folder` is on: cases drive-read and drive-write, as `pmlab microbench --json`
    writes cases. A file of 1 GiB, which is removed again; about a quarter of a minute. Where fio is not installed, or no
    folder was named, the cases are skipped, with the reason. Raises Failure: no such folder, fio failed."""
    if not folder:
        return _skipped("no drive to compare with: --ssd FOLDER measures the one below FOLDER with fio")
    if not os.path.isdir(folder):
        raise Failure(f"no folder {folder}", "give --ssd a folder on the drive to write in")
    if shutil.which("fio") is None:
        return _skipped("fio, which measures a drive, is not installed: install package fio")
    try:
        own = tempfile.TemporaryDirectory(prefix="pmlab-drive-", dir=folder)
    except OSError:
        raise Failure(f"cannot make a folder in {folder}", "give --ssd a folder on the drive to write in") from None
    with own:
        printed = os.path.join(own.name, "fio.json")
        if processes.run(_fio(os.path.join(own.name, "data")), output=printed) != 0:
            raise Failure(f"fio failed in {folder}",
                          "see its complaint above; it needs 1 GiB there and direct access (no tmpfs)")
        try:
            answer = read_json(printed)
        except Failure:
            raise Failure("fio's output is no JSON", _FORMAT_REMEDY) from None
        return drive_cases(answer, folder)
