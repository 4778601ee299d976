"""Runs cells: each a child process of pmlab, so that one that fails takes no other one with it."""

import contextlib
import fcntl
import os
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

from .. import errors, processes
from ..errors import Failure, Interrupted
from ..spelling import file_form, shell_form
from ..texts import check_folder
from .lasting import keep_the_lasting
from .manifest import Ending, Manifest
from .other_load import OtherPrograms, load, warning_after, warning_before
from .progress import Progress, left_text
from .time_left import TimeLeft, duration, guess

_POOLS_PREFIX = "pmlab-run-"
_COMPLAINT = "pmlab: error: "
_REFRESH_SECONDS = 1


@dataclass
class RunSettings:
    """`program`: pmlab itself; `pools`: where pool files are made and removed, a tmpfs or an fsdax device; `source`:
    pmlab's source tree, None: cells that need it fail; `command`: as the user typed it, for the record; `machine`:
    facts of machine and build; `left_out`: [LeftOut], for the record; `shard`: for the record; `jobs`: cells at a time,
    of those whose figures do not depend on what else the machine does."""

    program: str
    folder: Path
    pools: Path
    source: Path | None
    scale: str
    command: str
    machine: dict
    left_out: list = field(default_factory=list)
    shard: object = None
    resume: bool = False
    quiet: bool = False
    jobs: int = 1


@dataclass
class RunSummary:
    done: int = 0  # ended well
    kept: int = 0  # --resume: were there
    failed: int = 0  # wrong answers, no memory, ...


@dataclass
class _Running:
    cell: object
    child: processes.Child
    begun: float
    load: float | None
    others: OtherPrograms | None


def _complaint_of(log):
    """The last complaint of a log; if there is none, its last line."""
    last = found = ""
    try:
        text = log.read_text(encoding="utf-8", errors="backslashreplace")
    except OSError as problem:
        return f"its log cannot be read: {problem.strerror}"
    for line in map(str.rstrip, text.splitlines()):
        if line.startswith(_COMPLAINT):
            found = line.removeprefix(_COMPLAINT)
        last = line or last
    return found or last


def _keep_others_out(folder):
    """Locks the folder until this process ends. An engine that was killed and started again may begin a job that still
    runs: two in one folder would take each other's notes. Other machines: if the file system knows their locks. Raises
    Failure."""
    try:
        fcntl.flock(os.open(folder, os.O_RDONLY | os.O_CLOEXEC), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Failure(f"another `pmlab run` works in {folder}", "wait for its end, or end it") from None
    except OSError:
        pass  # a file system without locks


def _open_folder(settings):
    folder = settings.folder
    used = (folder / "raw").exists() or (folder / "manifest.json").exists()
    if used and not settings.resume:
        raise Failure(f"{folder} holds results already",
                      "give --out another folder, or --resume to run the missing cells")
    try:
        (folder / "raw").mkdir(parents=True, exist_ok=True)
    except OSError:
        pass
    if not os.access(folder, os.W_OK):
        raise Failure(f"cannot write to {folder}", "give --out a folder that can be written to")
    check_folder(folder)
    _keep_others_out(folder)
    open_manifest = Manifest.resume if settings.resume else Manifest.begin
    return open_manifest(folder, settings.scale, settings.command, settings.machine, load())


class Runner:
    """One run of `cells`, of those that are `planned`. Writes into the folder: raw/CELL.json, as the commands write it
    (whole, or not at all; without its date); log/CELL.txt, their output; manifest.json after each cell. Raises Failure:
    the folder holds results and `resume` is not set, it cannot be written to."""

    def __init__(self, experiments, planned, cells, settings):
        self._settings = settings
        self._cpus = settings.machine["cores"]
        self._progress = Progress(settings.quiet)
        self.manifest = _open_folder(settings)
        self.manifest.describe(experiments, planned, settings.left_out, settings.shard)
        missing = [cell for cell in cells if not self.manifest.has(cell)]
        self._summary = RunSummary(kept=len(cells) - len(missing))
        # The longest ones first, so that at the end no CPU waits long for another one.
        self._shared = sorted((c for c in missing if not c.has_real_clock), key=guess, reverse=True)
        self._alone = [c for c in missing if c.has_real_clock]
        self._total, self._ended = len(missing), 0
        self._left = TimeLeft(missing, settings.jobs)
        self._running = []

    def run(self):
        """Runs all cells and continues after one that fails. Simulated and counted cells come first, `jobs` of them at
        a time, since nothing beside them changes their figures; then the others, one after the other. Raises
        Interrupted: SIGINT or SIGTERM arrived; the cells that ran have ended, and the results of those before are kept.
        Failure: the manifest cannot be written."""
        if self._summary.kept:
            self._progress.say(f"{self._summary.kept} cells have results of the same build and arguments")
        if not self._total:
            # A shard may have no cells: its folder shows that it was run.
            self.manifest.write()
            return self._summary
        if self._alone:
            before = load()
            self.manifest.begins_real_clock(before)
            self._warn(warning_before(before, self._cpus))
        with processes.signals_noted():
            self._remove_pools()
            self.manifest.pools = self._settings.pools / f"{_POOLS_PREFIX}{os.getpid()}"
            self.manifest.write()
            try:
                self._run_queue(self._shared, max(1, self._settings.jobs))
                self._run_queue(self._alone, 1)
            finally:
                self._stop_all()
                self._progress.end()
                self._remove_pools()
            self.manifest.pools = ""
            self.manifest.write()
            if processes.stopped():
                raise Interrupted(processes.stopped(),
                                  f"interrupted; the finished cells are in {self._settings.folder}",
                                  "give --resume to continue")
        return self._summary

    def _warn(self, warning):
        if warning:
            self._progress.warn(f"pmlab: warning: {warning}")

    def _remove_pools(self):
        """Those of a run that was killed, too; nothing else, whatever the manifest has there."""
        pools = Path(self.manifest.pools)
        if pools.name.startswith(_POOLS_PREFIX):
            shutil.rmtree(pools, ignore_errors=True)

    def _run_queue(self, queue, jobs):
        waiting = list(queue)
        while (waiting and not processes.stopped()) or self._running:
            while waiting and len(self._running) < jobs and not processes.stopped():
                self._start(waiting.pop(0))
            self._show_running()
            if self._running:
                self._wait_for_one()

    def _start(self, cell):
        try:
            words, log = self._prepare(cell)
            alone = cell.has_real_clock
            before = load() if alone else None
            others = OtherPrograms(time.monotonic) if alone else None
            child = processes.Child(words, log, merge_errors=True)
        except (Failure, OSError) as problem:
            self._note(cell, Ending(errors.FAILURE, str(problem)))
            return
        self._running.append(_Running(cell, child, time.monotonic(), before, others))

    def _prepare(self, cell):
        """The words of its call, and the file of its log, with the folders that it needs."""
        results = self._results_of(cell)
        log = self._settings.folder / "log" / f"{cell.name}.txt"
        for path in (results, log):
            path.parent.mkdir(parents=True, exist_ok=True)
        results.unlink(missing_ok=True)
        self._remove_drive(cell)
        pools = self._pools_of(cell)
        if any("{pool}" in word for word in cell.words):
            pools.mkdir(parents=True, exist_ok=True)
        if self._settings.source is None and any("{source}" in word for word in cell.words):
            raise Failure("this cell needs pmlab's source tree", "run a pmlab that was built there")
        words = [self._filled(word, pools, self._drive_of(cell)) for word in cell.words]
        return [self._settings.program, *words, "--quiet", "--json", str(results)], log

    def _results_of(self, cell):
        return self._settings.folder / "raw" / f"{cell.name}.json"

    def _pools_of(self, cell):
        """A folder of the cell's own: cells on counting media may run beside each other."""
        return Path(self.manifest.pools) / file_form(cell.name)

    def _drive_of(self, cell):
        """A file on the drive of the results; pools lie in memory."""
        return self._settings.folder / f"{file_form(cell.name)}.drive"

    def _remove_drive(self, cell):
        """A cell that was killed leaves it."""
        with contextlib.suppress(OSError):
            self._drive_of(cell).unlink()

    def _filled(self, word, pools, drive):
        parts = {"{pool}": pools / "pmlab.pool", "{drive}": drive, "{source}": self._settings.source or ""}
        for name, path in parts.items():
            word = word.replace(name, str(path))
        return word

    def _wait_for_one(self):
        """Until a cell has ended, and notes how."""
        timeout = _REFRESH_SECONDS if self._progress.moves else None
        by_child = {r.child: r for r in self._running}
        date = ""
        while (child := processes.first_ended(by_child, timeout)) is None:
            self._show_running()
        running = by_child[child]
        self._running.remove(running)
        try:
            status = child.wait()
            if status == errors.INVALID_FIGURES:
                self._progress.warn(f"{running.cell.name}: some rows are INVALID: this machine could not emulate the "
                                    "device")
                status = errors.SUCCESS
            if status == 0:
                date = keep_the_lasting(self._results_of(running.cell), running.cell.words)
            message = "" if status == 0 else _complaint_of(self._settings.folder / "log" / f"{running.cell.name}.txt")
        except Interrupted:
            # The cell is not noted, so that --resume runs it again.
            return
        except Failure as problem:
            status, message = errors.FAILURE, str(problem)
        finally:
            shutil.rmtree(self._pools_of(running.cell), ignore_errors=True)
            self._remove_drive(running.cell)
        self._note(running.cell, Ending(status, message, time.monotonic() - running.begun, running.load,
                                        running.others.cpus() if running.others else None, date))

    def _stop_all(self):
        """After an error: the cells that run are asked to end, and waited for."""
        for running in self._running:
            running.child.stop()
        for running in self._running:
            try:
                running.child.wait()
            except Failure:
                pass
        self._running = []

    def _note(self, cell, ending):
        self.manifest.add(cell, ending)
        self._ended += 1
        self._left.ended(cell, ending.seconds)
        left = self._left.seconds(self._seconds_of_running())
        more = "" if left is None or self._ended == self._total else f", {left_text(left)}"
        place = f"[{self._ended}/{self._total}] {cell.name}"
        if ending.status == 0:
            self._summary.done += 1
            self._progress.say(f"{place}: {duration(ending.seconds)}{more}")
        else:
            self._summary.failed += 1
            self._progress.warn(f"{place}: FAILED with status {ending.status}{more}\n    {ending.message}\n"
                                f"    alone: {self._alone_form(cell)}")
        self._warn(warning_after(cell.name, ending.other_cpus, self._cpus))

    def _alone_form(self, cell):
        """The command that runs the cell without the rest."""
        return self._filled(shell_form(cell.words), self._settings.pools, self._drive_of(cell))

    def _seconds_of_running(self):
        now = time.monotonic()
        return {r.cell.name: now - r.begun for r in self._running}

    def _show_running(self):
        seconds = self._seconds_of_running()
        if seconds:
            self._progress.moving(self._ended, self._total, seconds, self._left.seconds(seconds))
