"""The progress of a run: a line for each cell that has ended, and on a terminal a last line that moves."""

import shutil
import sys

from .time_left import duration

_ERASE = "\r\033[K"


class Progress:
    """On stderr. `quiet`: failures and warnings only. `moves`: it is a terminal, with a last line that is kept up to
    date."""

    def __init__(self, quiet=False, stream=None):
        self._stream = stream or sys.stderr
        self._quiet = quiet
        self.moves = not quiet and self._stream.isatty()
        self._shown = False

    def _print(self, text):
        if self._shown:
            self._stream.write(_ERASE)
            self._shown = False
        self._stream.write(text + "\n")
        self._stream.flush()

    def say(self, line):
        if not self._quiet:
            self._print(line)

    def warn(self, line):
        """Failures, and doubts about figures: quiet or not."""
        self._print(line)

    def moving(self, ended, total, running, left):
        """The last line, of a terminal. `running`: {name: seconds}."""
        if not self.moves:
            return
        names = ", ".join(f"{name} ({duration(seconds)})" for name, seconds in running.items())
        time = "" if left is None else f", {left_text(left)}"
        line = f"[{ended}/{total}] {names}{time}"
        width = shutil.get_terminal_size().columns - 1
        self._stream.write(_ERASE + (line if len(line) <= width else line[:width - 3] + "..."))
        self._stream.flush()
        self._shown = True

    def end(self):
        """Takes the last line away."""
        if self._shown:
            self._stream.write(_ERASE)
            self._stream.flush()
            self._shown = False


def left_text(seconds):
    return f"about {duration(seconds)} left"
