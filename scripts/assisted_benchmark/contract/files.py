"""The one edge to the file system: a file is read whole, as a regular one below a root, and written whole."""

from __future__ import annotations

import errno
import os
import stat
from functools import lru_cache
from pathlib import Path
from typing import Final

from assisted_benchmark.kernel.canonical import MIB
from assisted_benchmark.kernel.errors import DocumentError, Problem
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import shown

# Non-blocking, or opening a FIFO would wait for its writer.
_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


def name_below(path: Path, root: Path) -> str:
    """The path as messages show it: relative to `root` where it lies below."""
    whole, base = os.path.abspath(path), os.path.abspath(root)
    return whole[len(base) + 1 :] if whole.startswith(base + os.sep) else str(path)


def is_utf8(name: str) -> bool:
    """Whether a file's name can be written down: stores and all JSON are UTF-8, while names may be any bytes."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def read(path: Path, root: Path, max_bytes: int = MIB) -> bytes:
    """All bytes of a regular file that lies below `root`, links resolved, and is no link itself.

    Raises:
        DocumentError: unreadable, path_escape or too_large.
    """
    if not is_utf8(name_below(path, root)):
        raise _refused(Reason.UNREADABLE, "the file's name is not UTF-8", path, root, "give it another name")
    try:
        folder = _real(os.path.dirname(path) or ".")
        if not _below(folder, _real(root)):
            raise _escape(path, root)
        descriptor = os.open(os.path.join(folder, os.path.basename(path)), _FLAGS)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                what = "a folder" if stat.S_ISDIR(found.st_mode) else "not a regular file"
                raise _refused(Reason.UNREADABLE, what, path, root, "name a regular file")
            data = b""
            # One byte more than is there, so that the end is seen, and a file that grows meanwhile.
            while len(data) <= max_bytes and (piece := os.read(descriptor, min(found.st_size, max_bytes) + 1)):
                data += piece
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno == errno.ELOOP and not _below(os.path.realpath(path), _real(root)):
            raise _escape(path, root) from error
        why = "a symbolic link, or links that never end" if error.errno == errno.ELOOP else error.strerror
        raise _refused(Reason.UNREADABLE, f"the file cannot be read: {why}", path, root, "check the path") from error
    except ValueError as error:  # a NUL in the path
        raise _refused(Reason.UNREADABLE, f"the file cannot be read: {error}", path, root, "check the path") from error
    if len(data) > max_bytes:
        detail = f"the file has more than the {max_bytes} bytes that are allowed"
        raise _refused(Reason.TOO_LARGE, detail, path, root, "split it into several files")
    return data


def check_below(path: Path, root: Path) -> None:
    """Whether what is to be written there would lie below `root`, links resolved.

    Raises:
        DocumentError: path_escape.
    """
    if not _below(os.path.realpath(os.path.dirname(path)), os.path.realpath(root)):
        raise _escape(path, root)


def write(path: Path, data: bytes) -> None:
    """Put `data` in the file's place, never through a link: it is there whole, or what was there before is.

    Raises:
        OSError: the disk is full, or the folder cannot be written to.
    """
    draft = path.with_name(f".{path.name}.draft")
    try:
        draft.unlink(missing_ok=True)  # one that was left behind, or a link that leads elsewhere
        with draft.open("xb") as out:  # which no link is followed by
            out.write(data)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _real(folder: str | Path) -> str:
    found = os.stat(folder)
    return _resolved(str(folder), os.getcwd() if not os.path.isabs(folder) else "", found.st_dev, found.st_ino)


@lru_cache(maxsize=1024)
def _resolved(folder: str, _seen_from: str, _device: int, _inode: int) -> str:
    """The folder without links. Remembered for as long as the name leads to the same folder."""
    return os.path.realpath(folder)


def _below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip(os.sep) + os.sep)


def _escape(path: Path, root: Path) -> DocumentError:
    return _refused(Reason.PATH_ESCAPE, f"the path leads out of {root}", path, root, "keep every file in its folder")


def _refused(reason: Reason, detail: str, path: Path, root: Path, hint: str) -> DocumentError:
    return DocumentError([Problem(reason, detail, shown(name_below(path, root)), hint=hint)])
