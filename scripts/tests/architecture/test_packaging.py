"""The core stays small and starts at once; the commands work from anywhere; requirements are exact and of no index."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
import setup_peers
from marks import promise

import setup_venv

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MEGABYTE = 1_000_000


def name_of(requirement: str) -> str:
    return re.match(r"[\w.-]+", requirement)[0].lower().replace("_", "-")


def closure(names: set[str]) -> set[str]:
    """These distributions and all that they need (extras and other systems left out)."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [name_of(each) for each in distribution(name).requires or [] if ";" not in each]
    return found


CORE = closure({name_of(each) for each in PROJECT["dependencies"]})


@promise("H22")
def test_the_core_is_at_most_16_packages_and_45_megabytes():
    size = sum(file.stat().st_size for file in (ROOT / "scripts" / "assisted_benchmark").rglob("*.py"))
    for name in CORE:
        files = distribution(name).files or []
        assert files
        size += sum(path.stat().st_size for each in files if (path := Path(each.locate())).is_file())
    assert len(CORE) + 1 <= 16
    assert size <= 45 * MEGABYTE


def seconds_of(*arguments: str) -> float:
    """The processor time of the quickest of a few runs: what the program needs, whatever else the machine does."""
    environment = {"PYTHONPATH": str(ROOT / "scripts"), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-P", "-m", "assisted_benchmark", *arguments]
    times = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(("assisted-benchmark ", "usage: assisted-benchmark "))
    return min(times)


@promise("H22")
@pytest.mark.parametrize("flag", ["--version", "--help"])
def test_the_version_and_the_help_come_within_150_milliseconds(flag):
    assert seconds_of(flag) <= 0.15


@promise("H22")
def test_asking_for_the_version_loads_nothing_that_is_installed():
    program = "import sys; from assisted_benchmark.cli.main import main; main(['--version']); print(*sys.modules)"
    command = [sys.executable, "-P", "-c", program]
    done = subprocess.run(command, env={"PYTHONPATH": str(ROOT / "scripts")}, capture_output=True, text=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded & {"attr", "attrs", "orjson", "rfc8785", "yaml", "apsw", "jsonschema_rs", "shtab"} == set()


@pytest.mark.parametrize("file", ["requirements.txt", "requirements-perf.txt", "scripts/peers/requirements.txt"])
def test_every_requirement_is_exact_and_hashed_and_names_no_place(file):
    lines = (ROOT / file).read_text(encoding="ascii").splitlines()
    kinds = re.compile(
        r"[a-z0-9.-]+==\S+( ; .+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?|    #( {3}| via ?)\S*( \(\S+\))?|# .*"
    )
    assert [line for line in lines if not kinds.fullmatch(line)] == []


def test_the_requirements_cover_every_direct_dependency_and_each_says_what_it_is_for():
    pinned = set(re.findall(r"^([a-z0-9.-]+)==", (ROOT / "requirements.txt").read_text(encoding="ascii"), re.MULTILINE))
    extras = PROJECT["optional-dependencies"]
    direct = [*PROJECT["dependencies"], *extras["test"], *extras["http"]]
    assert {name_of(each) for each in direct} <= pinned
    source = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for requirement in direct:
        assert any(requirement in line and re.search(r'",\s+# \w', line) for line in source.splitlines()), requirement


@pytest.mark.parametrize(
    "command", ["scripts/bench", "scripts/test", "scripts/generate", ".ci/run", ".ci/packaged", "scripts/peers/install"]
)
def test_a_command_may_be_run_and_is_sound_bash(command):
    path = ROOT / command
    assert path.stat().st_mode & 0o111 == 0o111
    assert subprocess.run(["bash", "-n", path], capture_output=True).returncode == 0


@pytest.fixture
def checkout(tmp_path):
    """A checkout with a space in its path, whose `.venv` is there already and only says how it was called."""
    root = tmp_path / "new comer"
    (root / "scripts").mkdir(parents=True)
    for name in ("setup.sh", "setup_venv.py", "bench", "test"):
        (root / "scripts" / name).write_bytes((ROOT / "scripts" / name).read_bytes())
        (root / "scripts" / name).chmod(0o755)
    (root / ".venv" / "bin").mkdir(parents=True)
    python = root / ".venv" / "bin" / "python"
    python.write_text('#!/bin/sh\nprintf "%s\\n" "$PWD" "$PYTHONPATH" "$@"\n')
    python.chmod(0o755)
    for place in (root, root / ".venv"):
        (place / "requirements.txt").write_text("")
    return root


@pytest.mark.parametrize("way", ["directly", "through a link", "by bash from its folder"])
def test_a_command_works_from_any_folder_and_hands_its_arguments_on(checkout, tmp_path, way):
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    (elsewhere / "link").symlink_to(checkout / "scripts" / "bench")
    command, folder = {
        "directly": ([checkout / "scripts" / "bench"], elsewhere),
        "through a link": ([elsewhere / "link"], tmp_path),
        "by bash from its folder": (["bash", "bench"], checkout / "scripts"),
    }[way]
    done = subprocess.run([*command, "-k", "a b"], cwd=folder, capture_output=True, text=True)
    wanted = ["-m", "assisted_benchmark", "run", "--root", str(checkout), "-k", "a b"]
    assert (done.stdout.splitlines(), done.stderr) == ([str(folder), str(checkout / "scripts"), *wanted], "")


def test_the_tests_run_in_the_checkout_on_two_processes(checkout, tmp_path):
    done = subprocess.run([checkout / "scripts" / "test", "-x"], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.splitlines() == [str(checkout), str(checkout / "scripts"), "-m", "pytest", "-n", "2", "-x"]


def test_without_a_new_enough_python_it_is_said_what_to_do(checkout, tmp_path):
    (checkout / ".venv" / "requirements.txt").unlink()
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "dirname", "readlink", "uname", "cmp", "env"):
        found = subprocess.run(["bash", "-c", f"command -v {name}"], capture_output=True, text=True).stdout.strip()
        (tools / name).symlink_to(found)
    done = subprocess.run([checkout / "scripts" / "bench"], env={"PATH": str(tools)}, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[0] == "bench: no Python 3.11 or newer was found"


class Setting:
    """Stands for the programs that a set-up starts: says which failed, and remembers what was asked."""

    def __init__(self, failing: str) -> None:
        self.failing = failing
        self.started: list[str] = []

    def run(self, command):
        self.started.append(command[2])
        return subprocess.CompletedProcess(command, int(command[2] == self.failing))


@pytest.mark.parametrize(("failing", "started"), [("venv", ["venv"]), ("pip", ["venv", "pip"])])
def test_a_set_up_that_fails_leaves_no_stamp_and_is_tried_again(checkout, monkeypatch, failing, started):
    (checkout / "requirements.txt").write_text("new\n")
    (checkout / ".venv" / "requirements.txt").unlink()
    for _ in range(2):
        monkeypatch.setattr(setup_venv, "subprocess", Setting(failing))
        assert isinstance(setup_venv.main(checkout), str)
        assert setup_venv.subprocess.started == started
        assert not (checkout / ".venv" / "requirements.txt").exists()


def test_a_set_up_that_worked_is_not_done_again_until_the_requirements_change(checkout, monkeypatch):
    for text, started in [("new\n", ["venv", "pip"]), ("new\n", []), ("newer\n", ["venv", "pip"]), ("newer\n", [])]:
        (checkout / "requirements.txt").write_text(text)
        monkeypatch.setattr(setup_venv, "subprocess", Setting(""))
        assert setup_venv.main(checkout) == 0
        assert setup_venv.subprocess.started == started
        assert (checkout / ".venv" / "requirements.txt").read_text() == text


class Installing(Setting):
    """The same, of the programs that install the npm peers."""

    def run(self, command, **_):
        self.started.append(next(word for word in ("pip", "npm") if word in "".join(map(str, command))))
        return subprocess.CompletedProcess(command, int(self.started[-1] == self.failing))


@pytest.fixture
def peers_folder(tmp_path):
    for name in setup_peers.LOCKS:
        (tmp_path / name).write_text(name)
    return tmp_path


@pytest.mark.parametrize(("failing", "started"), [("pip", ["pip"]), ("npm", ["pip", "npm"])])
def test_an_installation_of_the_npm_peers_that_fails_is_tried_again(peers_folder, monkeypatch, failing, started):
    for _ in range(2):
        monkeypatch.setattr(setup_peers, "subprocess", Installing(failing))
        assert isinstance(setup_peers.main(peers_folder), str)
        assert setup_peers.subprocess.started == started
        assert not setup_peers.is_set_up(peers_folder)


@pytest.mark.parametrize("lock", setup_peers.LOCKS)
def test_the_npm_peers_are_installed_anew_only_when_a_lock_file_changes(peers_folder, monkeypatch, lock):
    for started in (["pip", "npm"], []):
        monkeypatch.setattr(setup_peers, "subprocess", Installing(""))
        assert setup_peers.main(peers_folder) == 0
        assert setup_peers.subprocess.started == started
        assert setup_peers.is_set_up(peers_folder)
    (peers_folder / lock).write_text("newer")
    assert not setup_peers.is_set_up(peers_folder)


def test_the_npm_lock_pins_every_package_by_hash_and_names_no_registry():
    packages = json.loads((ROOT / "scripts" / "peers" / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    wanted = json.loads((ROOT / "scripts" / "peers" / "package.json").read_text(encoding="utf-8"))["dependencies"]
    assert packages.pop("")["dependencies"] == wanted
    assert [name for name, each in packages.items() if "integrity" not in each or "resolved" in each] == []
    assert {name: packages[f"node_modules/{name}"]["version"] for name in wanted} == wanted
