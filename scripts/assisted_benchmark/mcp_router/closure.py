"""Whether all that a launch will run is pinned, and which modules lie where PYTHONPATH leads.

What is pinned is the contract's (`files`, `packages`) or hashed into the launch (programs by their paths, the modules
of PYTHONPATH). A launch with another way to code is open, and refused unless the contract says `unpinned`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterable
from importlib.machinery import all_suffixes
from itertools import takewhile
from typing import Final

from assisted_benchmark.contract.model import Launch
from assisted_benchmark.mcp_router.identity import OWN, PACKAGE

PYTHON: Final = "{python}"
MAX_ENTRIES: Final = 1_000
MAX_BYTES: Final = 32 * 1024 * 1024

# The interpreter's own options without a value; what follows them is the program.
_OPTIONS: Final = re.compile(r"-[bBdEiIOPqsSuvx]+")
_LOADER: Final = ("LD_", "DYLD_")
_ELSEWHERE: Final = frozenset({"PYTHONHOME", "PYTHONPLATLIBDIR", "PYTHONPYCACHEPREFIX", "PYTHONUSERBASE"})
_SUFFIXES: Final = tuple(all_suffixes())


def opening(
    launch: Launch,
    argv: tuple[str, ...],
    env: dict[str, str],
    cwd: str | None,
    files: Collection[str],
    folders: Collection[str] = (),
) -> str | None:
    """The first way to code that nothing pins, and what to do; None if there is none.

    `argv`, `env`, `cwd` and the paths of `files` and (in place) `folders` are those of the launch, filled in. No file
    is looked at.
    """

    def pinned(script: str) -> bool:
        # A script that is used where it stands looks beside itself: only in a pinned folder is that pinned as well.
        return script in files or any(os.path.normpath(script).startswith(f"{each}/") for each in folders)

    python = launch.argv[0] == PYTHON
    for name in env:
        if name.startswith(_LOADER) or name in _ELSEWHERE or (name == "PYTHONPATH" and not python):
            return f"`{name}` leads to code that nothing pins; leave it out"
    if not python:
        if len(argv) > 1 and not pinned(argv[1]):
            return (
                f"what `{argv[0]}` runs for `{argv[1]}` is not pinned; "
                "let a script of `files` or of a folder of `in_place` come first"
            )
        return None
    if not launch.packages and not launch.files and not launch.in_place:
        return "nothing pins what the interpreter runs; list `packages` or `files`"
    letters, program = interpreted(argv)
    for folder in search_path(argv, env):
        if not os.path.isabs(folder):
            return f"`{folder}` in PYTHONPATH is looked for in the working directory; write it out"
    if not program:
        return None
    if program[0] == "-m":
        if cwd is not None and not letters & {"I", "P"}:
            return "`-m` looks into `cwd` first, where nothing is pinned; put `-P` before it"
        return None
    if program[0].startswith("-"):
        return f"what `{program[0]}` makes the interpreter run is not pinned; name a module by `-m` or a script"
    if not pinned(program[0]):
        return f"the script `{program[0]}` is not pinned; list it in `files` by this path ({{contract}}/…)"
    return None


def interpreted(argv: tuple[str, ...]) -> tuple[frozenset[str], tuple[str, ...]]:
    """The letters of the interpreter's own options, and what it is told to run."""
    options = tuple(takewhile(_OPTIONS.fullmatch, argv[1:]))
    return frozenset("".join(options)) - {"-"}, argv[1 + len(options) :]


def search_path(argv: tuple[str, ...], env: dict[str, str]) -> tuple[str, ...]:
    """Where PYTHONPATH leads, unless the interpreter is told to ignore it."""
    if interpreted(argv)[0] & {"E", "I"} or not env.get("PYTHONPATH"):
        return ()
    return tuple(env["PYTHONPATH"].split(os.pathsep))


def searched(launch: Launch, argv: tuple[str, ...], env: dict[str, str]) -> tuple[str, ...]:
    """The places of PYTHONPATH whose modules are hashed.

    That is all of them but the one that holds our own package (perhaps beside all else that is installed), where one
    of its own servers runs: it imports itself, which is hashed as a package, and the standard library.
    """
    program = interpreted(argv)[1]
    ours = program[:1] == ("-m",) and program[1:2] and program[1].split(".")[0] == PACKAGE.name
    spared = os.path.realpath(PACKAGE.parent) if ours and OWN in dict(launch.packages) else None
    return tuple(each for each in search_path(argv, env) if os.path.realpath(each) != spared)


def modules_in(place: str) -> tuple[str, ...] | None:
    """The modules (sources, bytecode, extensions) at a place of PYTHONPATH; None if it holds too much to hash."""
    if os.path.isfile(place):
        return (place,)  # an archive
    found: list[str] = []
    entries = 0
    for top, folders, names in os.walk(place, followlinks=True):
        folders[:] = sorted(name for name in folders if name[0] != "." and name != "__pycache__")
        found += (os.path.join(top, name) for name in sorted(names) if name.endswith(_SUFFIXES))
        entries += len(folders) + len(names)
        if entries > MAX_ENTRIES:
            return None
    return tuple(found) if _size(found) <= MAX_BYTES else None


def is_pinned_module(name: str, paths: Iterable[str], places: Iterable[str]) -> bool:
    """Whether `-m` of this name runs the standard library's, or what is among these files.

    Modules lie at the given places, where this interpreter finds its own, and where our package lies.
    """
    top = name.split(".")[0]
    roots = {os.path.abspath(each) for each in (*places, *filter(None, sys.path), str(PACKAGE.parent))}
    modules = {f"{root}/{top}{suffix}" for root in roots for suffix in _SUFFIXES}
    packages = tuple(f"{root}/{top}/" for root in roots)
    return top in sys.stdlib_module_names or any(path in modules or path.startswith(packages) for path in paths)


def _size(paths: Iterable[str]) -> int:
    return sum(os.stat(path).st_size for path in paths if os.path.isfile(path))
