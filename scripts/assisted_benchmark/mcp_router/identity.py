"""What stands on this machine: files by what they hold, packages by their files, the host by its id.

A file is hashed from the descriptor it was opened by, once for each state that the file system can tell
apart (device, inode, size, both times). Its digest is the plain SHA-256 of its bytes, as `sha256sum` has it.

Not covered, and so not promised: the standard library and shared libraries beyond the executable itself, and
the bytecode that an interpreter keeps beside the sources (`__pycache__`), which the same user could forge.
"""

from __future__ import annotations

import base64
import ctypes
import hashlib
import os
import re
import stat
import sys
import sysconfig
import time
from importlib.metadata import Distribution, PackageNotFoundError, PackagePath, distribution
from pathlib import Path
from typing import Final, NamedTuple

from attrs import frozen

import assisted_benchmark
from assisted_benchmark.kernel.clock import SECOND
from assisted_benchmark.kernel.digest import Digest, digest_of
from assisted_benchmark.kernel.errors import InputError, ServerError
from assisted_benchmark.kernel.reasons import Reason

OWN: Final = "assisted-benchmark"
PACKAGE: Final = Path(assisted_benchmark.__file__).parent

_HOST: Final = "projectbuddy/host-identity@1"
_MACHINE_IDS: Final = ("/etc/machine-id", "/var/lib/dbus/machine-id")
_BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
_NAME: Final = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_EXTRA: Final = re.compile(r"\bextra\s*==")
_SITE: Final = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
_STDLIB: Final = sysconfig.get_path("stdlib")
_CUSTOM: Final = ("sitecustomize.py", "usercustomize.py")


class FileKey(NamedTuple):
    """What tells two states of a file apart without reading it. A change time cannot be set by hand."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


@frozen
class Artifact:
    """A file, the state it was hashed in, and its digest."""

    path: str
    key: FileKey
    digest: Digest


@frozen
class Package:
    """An installed distribution: its version, its files, and the installed distributions it needs.

    A file's digest is the one that was noted when it was installed, if one was.
    """

    version: str
    files: tuple[tuple[str, Digest | None], ...]
    needs: tuple[str, ...]


class Artifacts:
    """Hashes files and finds packages, and remembers both for as long as nothing changed."""

    def __init__(self) -> None:
        self._digests: dict[FileKey, Digest] = {}
        self._packages: dict[str, Package] = {}

    def open(self, path: str) -> tuple[int, Artifact]:
        """Open a regular file and hash it by its descriptor, which is the caller's to close.

        Raises:
            ServerError: launch_failed if it cannot be read, artifact_drift if it changed meanwhile.
        """
        try:
            # Not blocking: a named pipe in a file's place must not hold us up.
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise ServerError(Reason.LAUNCH_FAILED, f"`{path}` cannot be opened: {error.strerror}") from error
        try:
            key = _regular(fd, path)
            digest = self._digests.get(key)
            if digest is None:
                digest = _hash(fd)
                if _regular(fd, path) != key:
                    raise ServerError(Reason.ARTIFACT_DRIFT, f"`{path}` changed while it was read")
                # INVARIANT: a file that changed a moment ago may change again within one tick of the file
                # system's clock and show the same key, so only a settled state is remembered. The time is the
                # file system's, never a scenario's.
                if time.time_ns() - max(key.ctime_ns, key.mtime_ns) > SECOND:
                    self._digests[key] = digest
        except BaseException:
            os.close(fd)
            raise
        return fd, Artifact(path, key, digest)

    def file(self, path: str) -> Artifact:
        """The file's digest now, as `open` has it."""
        try:
            key = _key(os.stat(path))
        except OSError as error:
            raise ServerError(Reason.LAUNCH_FAILED, f"`{path}` cannot be read: {error.strerror}") from error
        if key in self._digests:
            return Artifact(path, key, self._digests[key])
        fd, artifact = self.open(path)
        os.close(fd)
        return artifact

    def package(self, name: str) -> Package:
        """The distribution that this interpreter would import; our own is the folder we run from.

        Raises:
            ServerError: launch_failed, if it is not installed or keeps no list of its files.
        """
        if name == OWN:
            return Package("self", tuple((str(path), None) for path in sorted(PACKAGE.rglob("*.py"))), ())
        if name not in self._packages:
            try:
                self._packages[name] = _package(distribution(name))
            except PackageNotFoundError as error:
                raise ServerError(
                    Reason.LAUNCH_FAILED, f"the package `{name}` is pinned and not installed here; install it"
                ) from error
        return self._packages[name]


def sha256_of(data: bytes) -> Digest:
    """The digest of a file that holds exactly these bytes."""
    return Digest("sha256:" + hashlib.sha256(data).hexdigest())


def _regular(fd: int, path: str) -> FileKey:
    """The key of an open regular file; ServerError(launch_failed) if it is something else."""
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        raise ServerError(Reason.LAUNCH_FAILED, f"`{path}` is not a regular file")
    return _key(found)


def unchanged(artifact: Artifact) -> bool:
    """Whether the path still leads to the file in the state it was hashed in."""
    try:
        found = os.stat(artifact.path)
    except OSError:
        return False
    # As `_key` has it: asked of every file of a closure at each look, so no value is made of it.
    return artifact.key == (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def startup_files(*, site: bool = True) -> tuple[str, ...]:
    """What this interpreter reads or runs by itself before a program's first line, as far as it exists.

    Without `site` (the interpreter's `-S`) it looks at nothing that is installed.
    """
    found = [os.path.join(sys.prefix, "pyvenv.cfg")]
    if site:
        for folder in sorted(_SITE):
            found += (os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".pth"))
        found += (os.path.join(folder, name) for folder in sorted({*_SITE, _STDLIB}) for name in _CUSTOM)
    return tuple(path for path in found if os.path.isfile(path))


def normal_name(name: str) -> str:
    """A distribution's name in the one spelling that indexes use."""
    return re.sub(r"[-_.]+", "-", name).lower()


def host_identity() -> Digest:
    """A digest that names this host: of the operating system's machine id, which itself is kept nowhere.

    A host without one (many containers) is named by its boot, so that its identity ends with it. This limits
    replay to the host; it attests nothing.
    """
    for path in _MACHINE_IDS:
        raw = _line(path)
        if raw:
            return digest_of(_HOST, raw)
    for kind, raw in (("hardware", _hardware_id()), ("boot", _line(_BOOT_ID))):
        if raw:
            return digest_of(_HOST, kind.encode(), raw)
    raise InputError(Reason.UNREADABLE, "this host has no machine id; create /etc/machine-id")


def _hardware_id() -> bytes:
    """The hardware UUID of a Mac."""
    if sys.platform == "darwin":
        uuid = ctypes.create_string_buffer(16)
        at_once = (ctypes.c_long * 2)(0, 0)
        if ctypes.CDLL(None).gethostuuid(uuid, at_once) == 0:
            return uuid.raw
    return b""


def _line(path: str) -> bytes:
    try:
        return Path(path).read_bytes().strip()
    except OSError:
        return b""


def _key(found: os.stat_result) -> FileKey:
    return FileKey(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _hash(fd: int) -> Digest:
    with os.fdopen(os.dup(fd), "rb", buffering=0) as file:
        return Digest("sha256:" + hashlib.file_digest(file, "sha256").hexdigest())


def _package(found: Distribution) -> Package:
    name = found.metadata["Name"]
    listed = found.files
    if not listed:
        raise ServerError(Reason.LAUNCH_FAILED, f"the package `{name}` keeps no list of its files; install it anew")
    files = {
        os.path.normpath(str(found.locate_file(file))): _noted(file)
        for file in listed
        if "__pycache__" not in file.parts
    }
    needs = set()
    for requirement in found.requires or ():
        spelled = _NAME.match(requirement)
        marker = requirement.partition(";")[2]
        if spelled is None or _EXTRA.search(marker):
            continue
        need = normal_name(spelled[1])
        # A need that is not installed belongs to another platform or version: nothing imports it here.
        if need not in needs and _installed(need):
            needs.add(need)
    return Package(found.version, tuple(sorted(files.items())), tuple(sorted(needs)))


def _noted(file: PackagePath) -> Digest | None:
    if file.hash is None or file.hash.mode != "sha256":
        return None
    return Digest("sha256:" + base64.urlsafe_b64decode(file.hash.value + "=").hex())


def _installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True
