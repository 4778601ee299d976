"""Texts that a user gives, and files that are written: one reader and one writer for all of the package. As
bench/support/read_file.hpp, output_file.hpp and tools/cli/outputs.hpp have them in C++."""

import errno
import gzip
import io
import lzma
import os
import re
import stat
import sys
import tempfile
import zlib
from pathlib import Path

from .errors import Failure

STANDARD_OUTPUT = "-"

_UTF8_MARK = b"\xef\xbb\xbf"
# UTF-32 first: its mark begins with that of UTF-16.
_WIDE_MARKS = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
_PACKED = {b"\x1f\x8b\x08": ("gzip", gzip.open), b"\xfd7zXZ\0": ("xz", lzma.open)}
# A small compressed file may become any number of bytes.
MOST_BYTES = 64 << 20
# What another program must unpack: its mark, what it is, the program.
_FOREIGN = {b"\x28\xb5\x2f\xfd": ("a zstd file", "zstd -dc"), b"BZh": ("a bzip2 file", "bunzip2 -c"),
            b"PK\x03\x04": ("a zip archive", "unzip -p")}


def _first_bytes(file, name):
    """All bytes of an open file. Raises Failure: there are more than a text has."""
    data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise Failure(f"{name} has more than {MOST_BYTES} bytes, decompressed, which is too much",
                      "check that it is the file that is meant")
    return data


def _unpacked(data, name):
    for mark, (what, unpacker) in _FOREIGN.items():
        if data.startswith(mark):
            raise Failure(f"{name} is {what}", f"unpack it first: {unpacker} FILE > NEW")
    for mark, (form, opened) in _PACKED.items():
        if data.startswith(mark):
            try:
                return _first_bytes(opened(io.BytesIO(data)), name)
            except (OSError, EOFError, zlib.error, lzma.LZMAError) as problem:
                raise Failure(f"{name} is a damaged or truncated {form} file: {problem}",
                              "make it or copy it again") from None
    return data


def _wide_encoding(data):
    """UTF-16 or UTF-32, with a mark or, where every second byte is zero, without; None: it is neither."""
    for mark, encoding in _WIDE_MARKS.items():
        if data.startswith(mark):
            return encoding
    start = data[:4096]
    for zero, encoding in (((2, 3), "UTF-32LE"), ((0, 1), "UTF-32BE")):
        if len(start) > 3 and not any(any(start[place::4]) for place in zero):
            return encoding
    for first, encoding in ((1, "UTF-16LE"), (0, "UTF-16BE")):
        if len(start) > 3 and not any(start[first::2]):
            return encoding
    return None


def _decoded(data, name):
    if encoding := _wide_encoding(data):
        raise Failure(f"{name} is a text in {encoding}", f"convert it: iconv -f {encoding} -t UTF-8 FILE > NEW")
    if (zero := data.find(b"\0")) >= 0:
        line = data.count(b"\n", 0, zero) + 1
        raise Failure(f"{name} is no text: line {line} has a zero byte",
                      "check that it is the file that is meant, and make it or copy it again")
    try:
        return data.removeprefix(_UTF8_MARK).decode("utf-8")
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        raise Failure(f"{name} is no text in UTF-8: line {line} has a byte {data[problem.start]:#04x}",
                      "convert it, for example from Latin-1: iconv -f ISO-8859-1 -t UTF-8 FILE > NEW") from None


def read_text(path, what):
    """The text of a file, decompressed (gzip, xz) and without a byte order mark. `what` names it in errors:
    "experiment". Raises Failure: it cannot be read, is damaged, is no text in UTF-8, or has more than MOST_BYTES."""
    name = f"{what} {printable(path)}"
    try:
        with open(path, "rb") as file:
            data = _first_bytes(file, name)
    except OSError as problem:
        raise Failure(f"{name} cannot be read: {problem.strerror}", "check the path and its permissions") from None
    except ValueError:
        raise Failure(f"{name} cannot be read: the path has a zero byte", "check the path") from None
    return _decoded(_unpacked(data, name), name)


def printable(text):
    r"""Bytes of a path that are no UTF-8, which Python has as lone surrogates, as \xNN. In some locales Python has all
    bytes above 127 as surrogates."""
    decoded = re.sub("[\udc80-\udcff]+", _in_utf8, str(text))
    return re.sub("[\ud800-\udfff]", _escaped, decoded)


def _in_utf8(surrogates):
    return surrogates[0].encode("ascii", "surrogateescape").decode("utf-8", "backslashreplace")


def one_line(text):
    r"""For one line of a terminal: as above, and control characters as \xNN. A very long text lacks its middle."""
    text = printable(text)
    most, kept = 4096, 1000
    if len(text) > most:
        text = f"{text[:kept]} [... {len(text) - 2 * kept} characters ...] {text[-kept:]}"
    return re.sub(r"[\x00-\x1f\x7f]", _escaped, text)


def _escaped(character):
    return f"\\x{ord(character[0]) & 0xff:02x}"


def _cannot_write(path, reason, remedy):
    return Failure(f"cannot write results to {printable(path)}: {reason}", remedy)


def is_standard_output(path):
    """Whether `path` is "-", or leads to what standard output leads to, as /dev/stdout does. None leads nowhere, and in
    /dev/null nothing mixes."""
    if path == STANDARD_OUTPUT:
        return True
    try:
        status = os.stat(path)
        return os.path.samestat(status, os.fstat(1)) and not os.path.samestat(status, os.stat(os.devnull))
    except (OSError, TypeError, ValueError):
        return False


def _is_full_device(status):
    """/dev/full, which takes nothing."""
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == os.makedev(1, 7)


def _make_unfinished(target):
    """(descriptor, path) of a new file that can take the name of `target`."""
    # A name may be as long as the file system allows, and this one is longer.
    start = os.fsdecode(os.fsencode(os.path.basename(target))[:200])
    return tempfile.mkstemp(prefix=start + ".unfinished.", dir=os.path.dirname(target))


def _check_name(path):
    """Raises OSError: a name that is too long, a loop of links, a folder that cannot be entered."""
    try:
        os.stat(path)
    except FileNotFoundError:
        pass


def check_writable(path, is_json=False):
    """Raises Failure if `write_text` will not be able to write there: it is better known before a long measurement.
    `is_json`: a file that is there is replaced only if it is JSON, too."""
    path = str(path)
    try:
        if is_standard_output(path):
            if _is_full_device(os.fstat(1)):
                raise _cannot_write("standard output", "No space left on device", "give it a file or a pipe")
            return
        folder = os.path.dirname(path) or "."
        if os.path.isdir(path):
            raise _cannot_write(path, "it is a folder", "name a file")
        if os.path.exists(path) and not os.path.isfile(path):
            if not os.access(path, os.W_OK):
                raise _cannot_write(path, "Permission denied", "check its permissions")
            status = os.stat(path)
            if _is_full_device(status):
                raise _cannot_write(path, "No space left on device", "name a file")
            if stat.S_ISSOCK(status.st_mode):
                raise _cannot_write(path, "it is a socket", "name a file")
            if stat.S_ISCHR(status.st_mode):
                # One may be there and refuse to be opened, as /dev/tty does without a terminal.
                os.close(os.open(path, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK))
            return
        if not os.path.isdir(folder):
            raise _cannot_write(path, f"there is no folder {printable(folder)}", "make it first")
        _check_name(path)
        _refuse_what_is_no_text(path, is_json)
        _try_to_write(path)
    except OSError as problem:
        raise _cannot_write(path, problem.strerror, "check the path, its permissions and its space") from None


def _refuse_what_is_no_text(path, is_json=False):
    """All files that are written are texts. A file that cannot be read may be replaced: nothing is known of it."""
    if not os.path.isfile(path) or not os.access(path, os.R_OK):
        return
    with open(path, "rb") as file:
        start = file.read(4096)
    what = "text" if b"\0" in start else "JSON" if is_json and start.strip()[:1] not in (b"", b"{", b"[") else None
    if what:
        raise _cannot_write(path, f"the file that is there is no {what}",
                            "nothing was overwritten: name another path, or remove it yourself")


def _try_to_write(path):
    """A file beside it with a block of bytes, which is removed again: every reason that the kernel has is met now."""
    block = b" " * (64 << 10)
    number, unfinished = _make_unfinished(os.path.realpath(path))
    try:
        with open(number, "wb") as file:
            file.write(block)
    finally:
        os.unlink(unfinished)


def check_folder(path):
    """Raises Failure if files cannot be written into the folder, or into the one that it will be made in."""
    folder = Path(path)
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        raise _cannot_write(path, f"{printable(folder)} is no folder", "name another folder")
    try:
        _try_to_write(str(folder / "file"))
    except OSError as problem:
        raise _cannot_write(path, problem.strerror, "give a folder that can be written to, with space") from None


def _replace(path, data):
    """After a power failure the name leads to the old content or to the new one. A link stays a link."""
    target = os.path.realpath(path)
    old = os.stat(target) if os.path.exists(target) else None
    number, unfinished = _make_unfinished(target)
    try:
        with open(number, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(number)
            # mkstemp keeps others out; a result is as readable as any file of the user.
            mask = os.umask(0)
            os.umask(mask)
            os.fchmod(number, stat.S_IMODE(old.st_mode) if old else 0o666 & ~mask)
        os.replace(unfinished, target)
    except BaseException:
        os.unlink(unfinished)
        raise


def _open_as_it_is(path):
    """The descriptor of a device, or of a FIFO once it has a reader: standard error shows that one is waited for."""
    try:
        number = os.open(path, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError as problem:
        if problem.errno != errno.ENXIO:
            raise
        print(f"pmlab: waiting for a reader of {printable(path)}", file=sys.stderr, flush=True)
        return os.open(path, os.O_WRONLY | os.O_NOCTTY)
    os.set_blocking(number, True)
    return number


def write_text(path, text):
    """In UTF-8, in any locale. "-" is standard output; devices and FIFOs are written as they are; other files are
    replaced as a whole. Raises Failure: not all of it could be written, and the old file is as it was."""
    data = printable(text).encode("utf-8")
    try:
        if is_standard_output(str(path)):
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
        elif os.path.exists(path) and not os.path.isfile(path):
            with open(_open_as_it_is(path), "wb") as file:
                file.write(data)
        else:
            _refuse_what_is_no_text(str(path))
            _replace(str(path), data)
    except OSError as problem:
        raise Failure(f"cannot write {printable(path)}: {problem.strerror}",
                      "check the path, its permissions and its space") from None
