"""A server that is to be pinned: from the words that start it to a launch template whose closure is closed.

What can be known is pinned by itself: the distributions that `{python} -m MODULE` needs, the program that is no
`{python}`, the script that it is given and, where that is installed by npm, the whole `node_modules` it is in. What is
missing then is named by whoever pins, or said to be open; nothing becomes `unpinned` by itself.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Final

from attrs import frozen

from assisted_benchmark.contract.model import Launch
from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import shown
from assisted_benchmark.mcp_router.closure import PYTHON, interpreted
from assisted_benchmark.mcp_router.identity import OWN, PACKAGE, Artifacts, normal_name
from assisted_benchmark.mcp_router.templates import in_place as in_place_now

_INSTALLED: Final = "node_modules"


@frozen(kw_only=True)
class Words:
    """What a person says of a server's start: the words, and what they know of its closure. Paths are from here."""

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    cwd: str | None = None
    packages: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    in_place: tuple[str, ...] = ()
    unpinned: bool = False


def template(words: Words, folder: Path, artifacts: Artifacts) -> Launch:
    """The launch template for a contract in `folder`. Nothing is started; `launch.resolve` judges whether it is closed.

    Raises:
        MisuseError: there is no such program, file or folder.
        ServerError: launch_failed for what cannot be hashed, or a package that is not installed.
    """
    python = _is_this_python(words.argv[0])
    argv = [PYTHON if python else _program(words.argv[0]), *words.argv[1:]]
    files = [_existing(each) for each in words.files]
    in_place = [_existing(each) for each in words.in_place]
    if not python:
        in_place.append(argv[0])
    at = len(argv) - len(interpreted(tuple(argv))[1]) if python else 1
    script = _script(argv[at]) if len(argv) > at else None
    if script is not None:
        argv[at] = script
        if not any(script.startswith(f"{each}{os.sep}") for each in in_place):
            installed = _installed(script)
            (files if installed is None else in_place).append(installed or script)
    named = {*files, *in_place}
    modules = argv[at + 1 : at + 2] if python and argv[at : at + 1] == ["-m"] else []
    return Launch(
        argv=(
            argv[0],
            *(
                _portable(whole, folder) if (whole := os.path.abspath(each)) in named or each == script else each
                for each in argv[1:]
            ),
        ),
        env=tuple(sorted(words.env)),
        cwd=None if words.cwd is None else _portable(_existing(words.cwd), folder),
        packages=_packages([*words.packages, *_distributions(modules)], artifacts) if python else (),
        files=tuple(sorted({_portable(each, folder): artifacts.file(each).digest for each in files}.items())),
        in_place=tuple(
            sorted({_portable(each, folder): in_place_now(each, artifacts).digest for each in in_place}.items())
        ),
        unpinned=words.unpinned,
    )


def _is_this_python(word: str) -> bool:
    """Whether the word starts the very interpreter that runs us, virtual environment and all."""
    if word == PYTHON:
        return True
    found = shutil.which(word)
    here = os.path.dirname(sys.executable)
    return (
        found is not None
        and os.path.dirname(os.path.abspath(found)) == here
        and os.path.realpath(found) == os.path.realpath(sys.executable)
    )


def _program(word: str) -> str:
    found = shutil.which(word)
    if found is None:
        raise MisuseError(Reason.MISUSE, f"there is no program `{shown(word)}`; give its path, or install it")
    return os.path.abspath(found)


def _existing(path: str) -> str:
    if not os.path.exists(path):
        raise MisuseError(Reason.MISUSE, f"there is no `{shown(path)}`; give the path from here")
    return os.path.abspath(path)


def _script(word: str) -> str | None:
    """The file that a program is given to run, where its links end, for there it looks for what it imports."""
    return os.path.realpath(word) if os.path.isfile(word) else None


def _installed(script: str) -> str | None:
    """The outermost `node_modules` that a script lies in."""
    parts = script.split(os.sep)
    return os.sep.join(parts[: parts.index(_INSTALLED) + 1]) if _INSTALLED in parts else None


def _portable(path: str, folder: Path) -> str:
    """The path as a contract has it: from the contract's folder where both lie below one root."""
    top = str(folder.absolute().parent)
    if not path.startswith(top + os.sep):
        return path
    return "{contract}/" + os.path.relpath(path, folder.absolute())


def _distributions(modules: Iterable[str]) -> list[str]:
    """Which distributions have these modules; our own is not listed by any when it runs from a checkout."""
    found: list[str] = []
    for module in modules:
        top = module.split(".")[0]
        found += [OWN] if top == PACKAGE.name else packages_distributions().get(top, [])
    return found


def _packages(names: Iterable[str], artifacts: Artifacts) -> tuple[tuple[str, str], ...]:
    """These distributions with all that they need, each in the version that is installed."""
    found: dict[str, str] = {}
    waiting = [normal_name(each) for each in names]
    while waiting:
        name = waiting.pop()
        if name not in found:
            package = artifacts.package(name)
            found[name] = package.version
            waiting += package.needs
    return tuple(sorted(found.items()))
