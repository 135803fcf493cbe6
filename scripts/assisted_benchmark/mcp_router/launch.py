"""A contract's launch template, resolved on this machine: exactly what will run, and a digest of it.

The digest covers the argument list, the names and values of the environment, the working directory's policy,
the links that argv[0] goes through, and the digests of every file of the closure. It is of this machine: a
grant seals it, a contract cannot.

The closure is the executable; the declared files and folders; the files of the declared packages, with what the
interpreter runs by itself at its start (of what is installed, nothing if `-S` is its first option); the modules
where PYTHONPATH leads; and every program that the argument list or the environment names by its absolute path. It is
open, and refused unless the contract says `unpinned`, when there is another way to code (`closure.opening`), or a
declared package needs one that is not declared.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import Final

from attrs import frozen

from assisted_benchmark.contract.model import Launch, Remote
from assisted_benchmark.kernel.canonical import canonical_bytes
from assisted_benchmark.kernel.digest import Digest, digest_of
from assisted_benchmark.kernel.errors import ServerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.mcp_router.closure import (
    PYTHON,
    interpreted,
    is_pinned_module,
    modules_in,
    opening,
    search_path,
    searched,
)
from assisted_benchmark.mcp_router.identity import (
    Artifact,
    Artifacts,
    normal_name,
    startup_files,
    unchanged,
)
from assisted_benchmark.mcp_router.remote import REMOTE
from assisted_benchmark.mcp_router.templates import filled, pinned_file, pinned_in_place, places
from assisted_benchmark.mcp_router.trees import Tree

UNPINNED: Final = "artifacts: unpinned"
UNPINNED_IMPORTS: Final = "imports: unpinned"

_MAX_LINKS: Final = 40


@frozen(kw_only=True, slots=False)
class Resolved:
    """A launch as it is on this machine.

    `executable` is what argv[0] leads to, by way of `links`. `copied` are the declared files: the server gets
    private copies of exactly the bytes that were hashed. `trees` are the folders that are pinned where they stand, and
    `watched` is the rest of the closure. `found` are the
    names that a `{python}` would find before the declared ones: its startup files, and where PYTHONPATH leads, with all
    modules below those places that are `searched`.
    """

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    cwd: str | None
    links: tuple[str, ...]
    executable: Artifact
    copied: tuple[Artifact, ...]
    watched: tuple[Artifact, ...]
    trees: tuple[Tree, ...]
    found: tuple[str, ...]
    searched: tuple[str, ...]
    python: bool
    control: bool

    @property
    def files(self) -> tuple[Artifact, ...]:
        """The whole closure."""
        return (*self._single, *(file for tree in self.trees for file in tree.files))

    @property
    def _single(self) -> tuple[Artifact, ...]:
        return (self.executable, *self.copied, *self.watched)

    @cached_property
    def digest(self) -> Digest:
        """The launch half of a server's identity."""
        return digest_of(
            "launch@1",
            canonical_bytes(
                {
                    "argv": list(self.argv),
                    "env": dict(self.env),
                    "cwd": self.cwd,
                    "links": list(self.links),
                    "files": {each.path: each.digest for each in self._single},
                    "trees": {each.path: each.digest for each in self.trees},
                    "found": list(self.found),
                    "control": self.control,
                }
            ),
        )

    def changed(self) -> tuple[str, ...]:
        """What is no longer as it was when this was resolved; empty if nothing is."""
        paths = [each.path for each in self._single if not unchanged(each)]
        paths += (path for tree in self.trees for path in tree.changed())
        if _links(self.argv[0]) != self.links:
            paths.append(self.argv[0])
        if self.python:
            paths += set(self.found) ^ set(_findable(self.argv, self.env, self.searched))
        return tuple(sorted(set(paths)))


def resolve(launch: Launch, folder: Path, artifacts: Artifacts) -> Resolved:
    """Fill in a launch template for this machine; `folder` is the contract file's.

    Raises:
        ServerError: launch_failed if it cannot be started as it stands, artifact_drift if a file or a
            package is not the one that was pinned.
    """
    known = places(folder)
    argv = tuple(filled(each, known) for each in launch.argv)
    env = tuple(sorted((name, filled(value, known)) for name, value in launch.env))
    cwd = None if launch.cwd is None else filled(launch.cwd, known)
    _check_texts(argv, env)
    if not os.path.isabs(argv[0]):
        raise ServerError(
            Reason.LAUNCH_FAILED, f"the program `{argv[0]}` is not named by its absolute path; write it out or {PYTHON}"
        )
    if cwd is not None and not os.path.isabs(cwd):
        raise ServerError(Reason.LAUNCH_FAILED, f"the folder `{cwd}` is not absolute; begin it with {{contract}}/")
    python = launch.argv[0] == PYTHON
    links = _links(argv[0])
    executable = _executable(links[-1], artifacts)
    copied = tuple(pinned_file(folder, filled(path, known), digest, artifacts) for path, digest in launch.files)
    in_place = tuple(
        pinned_in_place(folder, filled(path, known), digest, artifacts) for path, digest in launch.in_place
    )
    trees = tuple(each for each in in_place if isinstance(each, Tree))
    places_searched = searched(launch, argv, dict(env)) if python and not launch.unpinned else ()
    if not launch.unpinned:
        pinned = [each.path for each in copied], [each.path for each in trees]
        _require_closed(launch, opening(launch, argv, dict(env), cwd, *pinned), artifacts)
    watched = _packaged(launch, python, artifacts)
    for place in places_searched:
        watched.update((path, artifacts.file(path)) for path in _modules(place))
    if launch.packages and not launch.unpinned:
        _require_pinned_module(argv, watched, places_searched)
    for path in _programs((*argv[1:], *(value for _, value in env))):
        watched[path] = artifacts.file(path)
    if python:
        watched.update((path, artifacts.file(path)) for path in _startup_files(argv))
    watched.update((each.path, each) for each in in_place if isinstance(each, Artifact))
    return Resolved(
        argv=argv,
        env=env,
        cwd=cwd,
        links=links,
        executable=executable,
        copied=copied,
        watched=tuple(watched[path] for path in sorted(watched)),
        trees=trees,
        found=_findable(argv, env, places_searched) if python else (),
        searched=places_searched,
        python=python,
        control=launch.control,
    )


def faults(launch: Launch, folder: Path, artifacts: Artifacts) -> Iterator[tuple[tuple[str | int, ...], ServerError]]:
    """What the files of this machine contradict in a template, without starting it: which part of it, and why.

    Of packages nothing is said: which are installed is each machine's own matter.
    """
    known = places(folder)
    looks: list[tuple[tuple[str | int, ...], Callable[[], object]]] = [
        (("files", path), partial(pinned_file, folder, filled(path, known), digest, artifacts))
        for path, digest in launch.files
    ]
    looks += (
        (("in_place", path), partial(pinned_in_place, folder, filled(path, known), digest, artifacts))
        for path, digest in launch.in_place
    )
    if launch.argv[0] != PYTHON:
        looks.append((("argv", 0), lambda: _executable(_links(filled(launch.argv[0], known))[-1], artifacts)))
    sound = True
    for where, look in looks:
        try:
            look()
        except ServerError as error:
            sound = False
            yield where, error
    if sound and not launch.unpinned:
        why = opening(
            launch,
            tuple(filled(each, known) for each in launch.argv),
            {name: filled(value, known) for name, value in launch.env},
            launch.cwd,
            [os.path.join(folder.absolute(), filled(path, known)) for path, _ in launch.files],
            [os.path.normpath(os.path.join(folder.absolute(), filled(path, known))) for path, _ in launch.in_place],
        )
        if why is not None:
            yield ("argv",), _open(why)


def stamps(launch: Launch | Remote) -> tuple[str, ...]:
    """What a report must repeat: that this closure is open or out of reach, or that it may import what nothing pins."""
    if isinstance(launch, Remote):
        return (REMOTE,)
    if launch.unpinned:
        return (UNPINNED,)
    return (UNPINNED_IMPORTS,) if not launch.packages and _may_import(launch) else ()


def _may_import(launch: Launch) -> bool:
    """Whether this is an interpreter with a way to code that is neither its own nor a declared file."""
    if launch.argv[0] != PYTHON:
        return len(launch.argv) > 1  # of what another program imports nothing is known
    return "S" not in interpreted(launch.argv)[0] or bool(search_path(launch.argv, dict(launch.env)))


def _check_texts(argv: tuple[str, ...], env: tuple[tuple[str, str], ...]) -> None:
    texts = [*argv, *(part for pair in env for part in pair)]
    if any("\0" in text for text in texts) or any(not name or "=" in name for name, _ in env):
        raise ServerError(Reason.LAUNCH_FAILED, "an argument or variable has a NUL character, or a name is no name")


def _links(path: str) -> tuple[str, ...]:
    """The path, what each link in its last place leads to, and the real file at the end."""
    steps = [path]
    try:
        while os.path.islink(steps[-1]):
            steps.append(os.path.join(os.path.dirname(steps[-1]), os.readlink(steps[-1])))
            if len(steps) > _MAX_LINKS:
                raise ServerError(Reason.LAUNCH_FAILED, f"the links from `{path}` do not end")
        real = os.path.realpath(path, strict=True)
    except OSError as error:
        raise ServerError(Reason.LAUNCH_FAILED, f"`{path}` leads nowhere: {error.strerror}") from error
    return (*steps, real) if real != steps[-1] else tuple(steps)


def _executable(path: str, artifacts: Artifacts) -> Artifact:
    executable = artifacts.file(path)
    if not os.access(path, os.X_OK):
        raise ServerError(Reason.LAUNCH_FAILED, f"`{path}` may not be executed; set its execute bit")
    with open(path, "rb") as file:
        if file.read(2) == b"#!":
            raise ServerError(
                Reason.LAUNCH_FAILED, f"`{path}` is a script; name its interpreter first, and it as a file"
            )
    return executable


def _packaged(launch: Launch, python: bool, artifacts: Artifacts) -> dict[str, Artifact]:
    """The files of the declared packages, each as it was installed."""
    if launch.packages and not python:
        raise ServerError(
            Reason.LAUNCH_FAILED, f"`packages` are those of {PYTHON}, which does not run here; list files instead"
        )
    files: dict[str, Artifact] = {}
    for name, version in launch.packages:
        package = artifacts.package(name)
        if package.version != version:
            raise ServerError(
                Reason.ARTIFACT_DRIFT, f"the package `{name}` is {package.version} here and pinned as {version}"
            )
        for path, noted in package.files:
            files[path] = artifacts.file(path)
            if noted is not None and files[path].digest != noted:
                raise ServerError(Reason.ARTIFACT_DRIFT, f"`{path}` was edited after `{name}` was installed")
    return files


def _open(why: str) -> ServerError:
    return ServerError(Reason.LAUNCH_FAILED, f"{why}, or say `artifacts: unpinned`")


def _require_closed(launch: Launch, why: str | None, artifacts: Artifacts) -> None:
    if why is not None:
        raise _open(why)
    declared = {normal_name(name) for name, _ in launch.packages}
    missing = sorted({need for name, _ in launch.packages for need in artifacts.package(name).needs} - declared)
    if missing:
        raise ServerError(
            Reason.LAUNCH_FAILED, f"the packages need `{'`, `'.join(missing)}` as well; list them, or say `unpinned`"
        )


def _modules(place: str) -> tuple[str, ...]:
    found = modules_in(place)
    if found is None:
        raise _open(f"`{place}` in PYTHONPATH holds too much to be hashed; name a smaller folder")
    return found


def _require_pinned_module(argv: tuple[str, ...], pinned: Iterable[str], places: Iterable[str]) -> None:
    program = interpreted(argv)[1]
    if program[:1] == ("-m",) and program[1:] and not is_pinned_module(program[1], pinned, places):
        raise _open(f"the module `{program[1]}` is in none of the `packages`; list the one that has it")


def _programs(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the texts that are absolute paths of executable files."""
    found = []
    for text in texts:
        if text.startswith("/"):
            try:
                mode = os.stat(text).st_mode
            except OSError:
                continue
            if stat.S_ISREG(mode) and mode & 0o111:
                found.append(text)
    return tuple(found)


def _startup_files(argv: tuple[str, ...]) -> tuple[str, ...]:
    # Only where it stands first is `-S` the interpreter's own for sure.
    return startup_files(site=argv[1:2] != ("-S",))


def _findable(argv: tuple[str, ...], env: tuple[tuple[str, str], ...], places: tuple[str, ...]) -> tuple[str, ...]:
    """What the interpreter would find first: its startup files, what lies where PYTHONPATH leads, modules below."""
    found = list(_startup_files(argv))
    for folder in filter(None, dict(env).get("PYTHONPATH", "").split(os.pathsep)):
        try:
            names = os.listdir(folder)
        except OSError:
            names = []
        found += (os.path.join(folder, name) for name in sorted(names) if name[0] != "." and name != "__pycache__")
    for place in places:
        found += modules_in(place) or ()
    return tuple(dict.fromkeys(found))
