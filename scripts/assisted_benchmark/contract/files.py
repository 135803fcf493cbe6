"""The one edge to the file system: a regular file below a root, read whole, or a clear refusal."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from assisted_benchmark.kernel.canonical import MIB
from assisted_benchmark.kernel.errors import DocumentError, Problem
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import shown


def name_below(path: Path, root: Path) -> str:
    """The path as messages show it: relative to `root` where it lies below."""
    try:
        return Path(os.path.abspath(path)).relative_to(os.path.abspath(root)).as_posix()
    except ValueError:
        return str(path)


def read(path: Path, root: Path, max_bytes: int = MIB) -> bytes:
    """All bytes of a regular file that lies below `root`, links resolved, and is no link itself.

    Raises:
        DocumentError: unreadable, path_escape or too_large.
    """
    file = shown(name_below(path, root))
    try:
        real = os.path.realpath(path)
        if not Path(real).is_relative_to(os.path.realpath(root)):
            raise _refused(Reason.PATH_ESCAPE, f"the path leads out of {root}", file, "keep every file in its folder")
        if os.path.islink(path):
            raise _refused(Reason.UNREADABLE, "a symbolic link", file, "put the file itself there")
        # Non-blocking, or opening a FIFO would wait for its writer.
        descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(descriptor, "rb") as opened:
            mode = os.fstat(descriptor).st_mode
            if not stat.S_ISREG(mode):
                what = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
                raise _refused(Reason.UNREADABLE, what, file, "name a regular file")
            data = opened.read(max_bytes + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise _refused(Reason.UNREADABLE, f"the file cannot be read: {why}", file, "check the path") from error
    if len(data) > max_bytes:
        detail = f"the file has more than the {max_bytes} bytes that are allowed"
        raise _refused(Reason.TOO_LARGE, detail, file, "split it into several files")
    return data


def _refused(reason: Reason, detail: str, file: str, hint: str) -> DocumentError:
    return DocumentError([Problem(reason, detail, file, hint=hint)])
