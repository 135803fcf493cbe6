"""The placeholders of a launch template filled in on this machine, and the files and folders that it pins looked at."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Final

from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.errors import ServerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.mcp_router.identity import PACKAGE, Artifact, Artifacts
from assisted_benchmark.mcp_router.trees import Tree, tree_of

_PLACEHOLDER: Final = re.compile(r"\{([a-z_]+)\}")


def places(folder: Path) -> dict[str, str]:
    """What the placeholders stand for; `folder` is the contract file's."""
    return {"python": sys.executable, "contract": str(folder.absolute()), "package": str(PACKAGE.parent)}


def filled(text: str, known: dict[str, str]) -> str:
    """The text with each placeholder replaced; ServerError(launch_failed) if one is not known."""

    def place(match: re.Match[str]) -> str:
        if match[1] not in known:
            names = ", ".join(f"{{{name}}}" for name in known)
            raise ServerError(Reason.LAUNCH_FAILED, f"`{match[0]}` in `{text}` is no placeholder; known are {names}")
        return known[match[1]]

    return _PLACEHOLDER.sub(place, text)


def pinned_file(folder: Path, name: str, digest: Digest, artifacts: Artifacts) -> Artifact:
    """A file that is the one that was pinned; ServerError(artifact_drift) if it is another."""
    path = os.path.join(folder.absolute(), name)
    found = artifacts.file(path)
    _require(path, found.digest, digest)
    return found


def pinned_in_place(folder: Path, name: str, digest: Digest, artifacts: Artifacts) -> Artifact | Tree:
    """A file or a whole folder that is the one that was pinned; ServerError(artifact_drift) if it is another."""
    found = in_place(os.path.normpath(os.path.join(folder.absolute(), name)), artifacts)
    _require(found.path, found.digest, digest)
    return found


def in_place(path: str, artifacts: Artifacts) -> Artifact | Tree:
    """What stands at a path: a file or a folder, hashed."""
    return tree_of(path, artifacts) if os.path.isdir(path) else artifacts.file(path)


def _require(path: str, found: Digest, pinned: Digest) -> None:
    if found != pinned:
        raise ServerError(Reason.ARTIFACT_DRIFT, f"`{path}` is {found} and pinned as {pinned}")
