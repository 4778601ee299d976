"""A folder that has its name once it is whole."""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from .errors import FAILURE, Failure


@contextlib.contextmanager
def new_folder(out):
    """Yields the path of a folder beside `out`, which gets that name at the end, unless an error ends it: then nothing
    is left, and what was read is as it was. Raises Failure: `out` holds something; the device is full."""
    out = Path(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise Failure(f"{out} is there already", "give --out a new folder")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=f"{out.name}.unfinished.", dir=out.parent))
    except OSError as problem:
        raise Failure(f"cannot make {out}: {problem.strerror}", "give --out a folder that can be made") from None
    try:
        yield unfinished
        # mkdtemp keeps others out; results are as readable as any folder of the user.
        mask = os.umask(0)
        os.umask(mask)
        unfinished.chmod(0o777 & ~mask)
        os.replace(unfinished, out)
    except OSError as problem:
        raise Failure(f"cannot write {out}: {problem.strerror}",
                      "give --out a folder with space; the parts are as they were",
                      FAILURE) from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
