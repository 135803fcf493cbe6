"""Folders that are pinned as they stand: an installed npm package with all that lies beside it, for example.

What is pinned is each file below by its path and bytes, and each link by where it leads; a link that leads out of the
folder would lead to what is not pinned, and is refused. Not covered, as everywhere: bytecode caches (`__pycache__`),
and the bits that say who may read or run a file.
"""

from __future__ import annotations

import os
from typing import Final

from attrs import frozen

from assisted_benchmark.kernel.canonical import canonical_bytes
from assisted_benchmark.kernel.digest import Digest, digest_of
from assisted_benchmark.kernel.errors import ServerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.mcp_router.identity import Artifact, Artifacts, unchanged

MAX_ENTRIES: Final = 50_000


@frozen
class Tree:
    """A folder as it was hashed: `names` are the paths below it, each with where it leads if it is a link."""

    path: str
    digest: Digest
    files: tuple[Artifact, ...]
    names: tuple[tuple[str, str], ...]

    def changed(self) -> tuple[str, ...]:
        """What is no longer as it was."""
        try:
            names = names_below(self.path)
        except ServerError:
            return (self.path,)
        other = {os.path.join(self.path, name) for name, _ in set(names) ^ set(self.names)}
        return tuple(sorted(other | {each.path for each in self.files if not unchanged(each)}))


def tree_of(path: str, artifacts: Artifacts) -> Tree:
    """The folder, hashed.

    Raises:
        ServerError: launch_failed if it cannot be read whole, holds what is neither a file nor a link within it, or
            is too large.
    """
    names = names_below(path)
    files = {name: artifacts.file(os.path.join(path, name)) for name, leads in names if not leads}
    held = {name: f"-> {leads}" if leads else files[name].digest for name, leads in names}
    return Tree(path, digest_of("tree@1", canonical_bytes(held)), tuple(files.values()), names)


def names_below(path: str) -> tuple[tuple[str, str], ...]:
    """All paths below a folder, in order, and where each leads if it is a link; ServerError as for `tree_of`."""
    found: list[tuple[str, str]] = []
    waiting = [""]
    real = os.path.realpath(path)
    try:
        while waiting:
            below = waiting.pop()
            with os.scandir(os.path.join(path, below)) as entries:
                for each in entries:
                    name = os.path.join(below, each.name)
                    if each.is_symlink():
                        found.append((name, _within(each.path, real)))
                    elif not each.is_dir(follow_symlinks=False):
                        found.append((name, ""))
                    elif each.name != "__pycache__":
                        waiting.append(name)
            if len(found) + len(waiting) > MAX_ENTRIES:
                raise ServerError(
                    Reason.LAUNCH_FAILED, f"`{path}` holds more than {MAX_ENTRIES} files; name a smaller folder"
                )
        for name, leads in found:
            (name + leads).encode()
    except OSError as error:
        raise ServerError(Reason.LAUNCH_FAILED, f"`{path}` cannot be read: {error.strerror}") from error
    except UnicodeEncodeError as error:
        raise ServerError(Reason.LAUNCH_FAILED, f"`{path}` holds a name that is not UTF-8; rename it") from error
    return tuple(sorted(found))


def _within(link: str, real: str) -> str:
    """Where a link leads, which is within the folder."""
    if not os.path.realpath(link).startswith(real + os.sep):
        raise ServerError(Reason.LAUNCH_FAILED, f"the link `{link}` leads out of the folder that is pinned; remove it")
    return os.readlink(link)
