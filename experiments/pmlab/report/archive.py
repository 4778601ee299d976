"""The raw results of a release: scripts/release.sh --raw packs a folder of `pmlab run` into one archive."""

import contextlib
import lzma
import tarfile
import tempfile
import zlib
from pathlib import Path

from ..errors import FAILURE, Failure

# A small archive may become any number of bytes and files.
MOST_BYTES = 1 << 30
MOST_MEMBERS = 100_000


def is_archive(path):
    return Path(path).is_file()


def _safe_members(archive, path):
    """Folders and files that lie inside of where they are unpacked to."""
    total = 0
    for number, member in enumerate(archive, 1):
        total += member.size
        parts = Path(member.name).parts
        if not (member.isreg() or member.isdir()) or member.name.startswith("/") or ".." in parts:
            raise Failure(f"{path} holds {member.name!r}, which is no file of results", "give the archive of a release",
                          FAILURE)
        if total > MOST_BYTES or number > MOST_MEMBERS:
            raise Failure(f"{path} has more than {MOST_BYTES} bytes, or {MOST_MEMBERS} files, which is too much",
                          "give the archive of a release", FAILURE)
        yield member


@contextlib.contextmanager
def unpacked(path):
    """A folder of results: `path` itself, or, of an archive, a folder that lasts as long as the context. Raises
    Failure: it is no archive of results."""
    if not is_archive(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="pmlab-results-") as folder:
        try:
            with tarfile.open(path) as archive:
                for member in _safe_members(archive, path):
                    archive.extract(member, folder, set_attrs=False)
        except (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError) as problem:
            raise Failure(f"{path} is no archive that can be unpacked: {problem}",
                          "download it again, or name a folder", FAILURE) from None
        inside = [p for p in Path(folder).iterdir() if p.is_dir()]
        yield Path(folder) if (Path(folder) / "raw").is_dir() or len(inside) != 1 else inside[0]
