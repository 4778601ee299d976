"""python3 -m pmlab run|merge|claims|report|compare ARGUMENTS: the program pmlab becomes this for these commands.

Each command is a module pmlab.COMMAND.command with main(arguments) -> exit status. It is imported when it is called, so
that only `pmlab report` needs matplotlib."""

import importlib
import io
import os
import signal
import sys
import traceback

from . import errors, processes
from .describe import describe
from .spelling import nearest
from .texts import one_line

COMMANDS = ("run", "merge", "claims", "report", "compare")


def _complain(problem):
    label = "pmlab: error:"
    # As the C++ commands: https://no-color.org.
    if sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") not in ("", "dumb"):
        label = f"\033[1;31m{label}\033[0m"
    print(f"{label} {one_line(problem)}", file=sys.stderr)


def _dispatch(arguments):
    if sys.version_info < (3, 11):
        raise errors.Failure(f"this Python is version {sys.version.split()[0]}, and pmlab needs 3.11",
                             "name another one in PMLAB_PYTHON")
    if not arguments:
        raise errors.Failure("no command was given", f"give one of {', '.join(COMMANDS)}")
    command, *rest = arguments
    if command == "describe":
        return describe(COMMANDS)
    if command not in COMMANDS:
        raise errors.Failure(f"there is no command '{command}'", f"did you mean {nearest(command, COMMANDS)}?")
    return importlib.import_module(f"pmlab.{command}.command").main(rest)


def _output_failed(problem):
    # Otherwise Python tries again at its exit, and complains a second time.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    _complain(f"cannot write to standard output: {problem.strerror}; give it a file, a pipe or a terminal with room")


def _flush(status):
    """Printed text may still lie in a buffer: a full device shows here at the latest."""
    try:
        sys.stdout.flush()
        return status
    except OSError as problem:
        _output_failed(problem)
        return errors.FAILURE if status == errors.SUCCESS else status


def _is_of_output(problem):
    """True of an error of `print`. Errors of files have a name, or standard output still takes a byte."""
    if problem.filename:
        return False
    try:
        os.write(sys.stdout.fileno(), b"\n")
        return False
    except OSError:
        return True


def _write_utf8():
    """As the C++ commands, in any locale; bytes of a path that are no UTF-8 go out as they came in."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="surrogateescape")


def main():
    """Runs one command. Exit statuses are those of the C++ commands: 0, 1 (found while working), 2 (bad input)."""
    try:
        # As other programs: a reader that has read enough (head) is no error.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        _write_utf8()
        with processes.signals():
            return _flush(_dispatch(sys.argv[1:]))
    except errors.Failure as failure:
        _complain(failure)
        return _flush(failure.status)
    except SystemExit as asked:
        # --help, which argparse has printed.
        return _flush(asked.code or errors.SUCCESS)
    except OSError as problem:
        if _is_of_output(problem):
            _output_failed(problem)
            return errors.FAILURE
        name = f"{problem.filename}: " if problem.filename else ""
        _complain(f"{name}{problem.strerror or problem}; check the path and its permissions")
        return _flush(errors.FAILURE)
    except MemoryError:
        _complain("no memory is left; give it less to read, or a machine with more")
        return _flush(errors.FAILURE)
    except Exception as defect:  # a defect of pmlab, in one line as every other error
        if os.environ.get("PMLAB_TRACEBACK"):
            raise
        at = traceback.extract_tb(defect.__traceback__)[-1]
        _complain(f"a defect of pmlab: {type(defect).__name__} in {os.path.basename(at.filename)}, line {at.lineno}: "
                  f"{defect}; report it with what PMLAB_TRACEBACK=1 prints")
        return _flush(errors.FAILURE)


if __name__ == "__main__":
    sys.exit(main())
