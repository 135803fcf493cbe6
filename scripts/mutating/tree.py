"""The work directory: copies of the checkout in which faults are made, so that the checkout itself is never touched."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import Final

PACKAGE: Final = "scripts/assisted_benchmark"
TESTS: Final = "scripts/tests"


def copy_checkout(root: Path, to: Path) -> None:
    """Make `to` what the checkout holds: every file that git knows or would take."""
    listed = subprocess.run(
        ["/usr/bin/env", "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
    )
    if listed.returncode:
        names = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
    else:
        names = [name for name in listed.stdout.split("\0") if name and (root / name).is_file()]
    wanted = set(names)
    for path in [each for each in to.rglob("*") if each.is_file() and "__pycache__" not in each.parts]:
        if str(path.relative_to(to)) not in wanted:
            path.unlink()
    for name in names:
        source, target = root / name, to / name
        if not (target.exists() and target.read_bytes() == source.read_bytes()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    peers = root / "scripts/peers/installed"
    if peers.exists() and not (to / "scripts/peers/installed").exists():
        (to / "scripts/peers/installed").symlink_to(peers)


def digest(*paths: Path) -> str:
    """What these files hold, in this order."""
    state = hashlib.sha256()
    for path in paths:
        data = path.read_bytes()
        state.update(len(data).to_bytes(8, "big") + data)
    return state.hexdigest()


def sources(tree: Path, rooms: tuple[str, ...]) -> dict[str, bytes]:
    """The modules of the rooms, by their place in the package."""
    package = tree / PACKAGE
    paths = sorted(path for room in rooms for path in (package / room).rglob("*.py"))
    return {str(path.relative_to(package)): path.read_bytes() for path in paths}


def test_files(tree: Path, folders: tuple[str, ...]) -> list[str]:
    """The files of tests in the folders, as pytest is told them."""
    tests = tree / TESTS
    return sorted(str(path.relative_to(tree)) for each in folders for path in (tests / each).rglob("test_*.py"))


def test_stamps(tree: Path, files: list[str]) -> dict[str, str]:
    """What the coverage of each file of tests follows from: the package, what tests share, and itself."""
    shared = sorted(path for path in (tree / TESTS).rglob("*.py") if not path.name.startswith("test_"))
    common = digest(*sorted((tree / PACKAGE).rglob("*.py")), *shared)
    return {name: common[:32] + digest(tree / name)[:32] for name in files}
