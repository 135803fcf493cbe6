"""Makes `.venv` what requirements.txt says. Run by setup.sh, with any Python new enough; standard library only."""

import fcntl
import filecmp
import os
import shutil
import subprocess
import sys
from pathlib import Path

INSTALL = ["-m", "pip", "install", "-qq", "--no-input", "--disable-pip-version-check"]
PINNED = ["--require-hashes", "--only-binary", ":all:", "-r"]


def main(root: Path) -> str | int:
    """One command at a time sets up; the others wait, and find it done. Returns 0, or what is wrong."""
    lock = os.open(root, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # on the folder itself: ends with the process, leaves no file
        return set_up(root / ".venv", root / "requirements.txt")
    finally:
        os.close(lock)


def set_up(venv: Path, wanted: Path) -> str | int:
    """Make `venv` anew, unless its stamp says that it is as wanted."""
    python, stamp = venv / "bin" / "python", venv / "requirements.txt"
    if python.exists() and stamp.exists() and filecmp.cmp(wanted, stamp, shallow=False):
        return 0
    sys.stderr.write("setting up .venv (on first use and when requirements.txt changes; takes about a minute)\n")
    if subprocess.run([sys.executable, "-m", "venv", "--clear", venv]).returncode:
        return "could not make .venv\n  install the venv part of Python (Debian and Ubuntu: python3-venv)"
    if subprocess.run([python, *INSTALL, *PINNED, wanted]).returncode:
        return "could not install requirements.txt\n  the first set-up needs a package index; then run this again"
    # The stamp comes last and at once: a set-up that was cut off is not taken for a whole one.
    shutil.copyfile(wanted, venv / "requirements.part")
    (venv / "requirements.part").replace(stamp)
    return 0


if __name__ == "__main__":
    try:
        problem = main(Path(sys.argv[1]))
    except KeyboardInterrupt:
        problem = "interrupted while setting up\n  run it again: it starts over"
    sys.exit(problem)
