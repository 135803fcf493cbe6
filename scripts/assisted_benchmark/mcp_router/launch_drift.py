"""What this machine has in another state than a launch template pins it. Nothing is started."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from attrs import frozen

from assisted_benchmark.contract.model import Launch
from assisted_benchmark.kernel.errors import ServerError
from assisted_benchmark.kernel.pointers import pointer
from assisted_benchmark.kernel.text import shown
from assisted_benchmark.mcp_router.identity import Artifacts
from assisted_benchmark.mcp_router.templates import filled, in_place, places

_MISSING: Final = "missing"


@frozen
class LaunchChange:
    """One pinned part of a launch: a JSON pointer into it, what it is pinned as, and what is there."""

    pointer: str
    before: str
    after: str

    def line(self) -> str:
        """The change in one line, with nothing invisible in it."""
        return f"launch at {shown(self.pointer, 300)}: was `{shown(self.before)}`, is `{shown(self.after)}`"


def launch_changes(launch: Launch, folder: Path, artifacts: Artifacts) -> tuple[LaunchChange, ...]:
    """Every part that is another: versions of packages and their files as installed, files and folders by digest."""
    return (*_packages(launch, artifacts), *_paths(launch, folder, artifacts))


def _packages(launch: Launch, artifacts: Artifacts) -> Iterator[LaunchChange]:
    for name, version in launch.packages:
        where = pointer("/packages", name)
        try:
            package = artifacts.package(name)
        except ServerError:
            yield LaunchChange(where, version, _MISSING)
            continue
        if package.version != version:
            yield LaunchChange(where, version, package.version)
            continue
        for path, noted in package.files:
            if noted is not None and (found := _digest(path, artifacts)) != noted:
                yield LaunchChange(pointer(where, path), noted, found)


def _paths(launch: Launch, folder: Path, artifacts: Artifacts) -> Iterator[LaunchChange]:
    known = places(folder)
    for part, pairs in (("/files", launch.files), ("/in_place", launch.in_place)):
        for name, pinned in pairs:
            path = os.path.normpath(os.path.join(folder.absolute(), filled(name, known)))
            if (found := _digest(path, artifacts)) != pinned:
                yield LaunchChange(pointer(part, name), pinned, found)


def _digest(path: str, artifacts: Artifacts) -> str:
    try:
        return in_place(path, artifacts).digest
    except ServerError as error:
        return _MISSING if not os.path.exists(path) else f"unreadable: {error.detail}"
