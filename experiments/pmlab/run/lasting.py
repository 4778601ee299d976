"""The part of a cell's results that lasts: all but when it was measured, how long that took, and where its file lay.

Figures on simulated media repeat to the digit. Without these, so do their files: those of 64 machines are, byte for
byte, those of one. The manifest has date and seconds."""

from ..json_files import read_json, write_json
from ..spelling import shell_form


def keep_the_lasting(path, words):
    """Takes the date, the run's seconds and the path of --json out of the results at `path`. `words`: of the cell.
    Returns the date, "" of results without one. Raises Failure: the file cannot be read, or not be written; then it is
    as it was."""
    document = read_json(path)
    date = ""
    if isinstance(document, dict):
        if isinstance(machine := document.get("machine"), dict) and "date" in machine:
            date, machine["date"] = machine["date"] or "", None
        if isinstance(options := document.get("options"), dict) and "command" in options:
            options["command"] = shell_form(words)
        # A microbenchmark has its seconds on a wall clock, whatever the medium.
        if "seconds" in document:
            document["seconds"] = None
    write_json(str(path), document)
    return date
