"""Server processes: what they are given, and that they end."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from marks import promise
from router_bench import CLOCK, HAND, Life, a_contract, a_launch, a_router, a_script, answer, noted, soon, told

from assisted_benchmark.contract.model import Launch
from assisted_benchmark.kernel.clock import SECOND
from assisted_benchmark.kernel.errors import ServerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.mcp_router import process
from assisted_benchmark.mcp_router.process import Ending, Launcher
from assisted_benchmark.mcp_router.router import Router

CAT = os.path.realpath(shutil.which("cat"))
LINUX = sys.platform == "linux"


def observed(router):
    assert router.observe("hand", fresh=False, deadline=soon()).drift == ()
    return router


# -- what a server is given


@promise("W10")
def test_a_server_inherits_no_environment_and_has_a_fresh_home(launcher, tmp_path, monkeypatch):
    monkeypatch.setenv("LEAK", "1")
    monkeypatch.setenv("PYTHONPATH", "/leak")
    router = observed(a_router(launcher, tmp_path, env=(("GIVEN", "{contract}"),)))
    env = answer(told(router, "env"))
    home = env.pop("HOME")
    env.pop("LC_CTYPE", None)  # the interpreter's own doing
    assert env == {"GIVEN": str(tmp_path)}
    assert home != os.environ["HOME"]
    assert Path(home).is_dir()
    router.close()
    assert not Path(home).exists()


@promise("W10")
def test_a_server_has_three_descriptors_and_an_empty_folder_of_its_own(launcher, tmp_path):
    leak = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(leak, True)
    routers = [observed(a_router(launcher, tmp_path)) for _ in range(2)]
    places = [answer(told(router, "place")) for router in routers]
    for place in places:
        assert place["fds"] == [0, 1, 2, 3]  # the last is the listing's own
        assert (place["files"], place["home"]) == ([], [])
    assert places[0]["cwd"] != places[1]["cwd"]
    for router in routers:
        router.close()
    os.close(leak)


def test_a_contract_may_name_the_folder_to_work_in(launcher, tmp_path):
    router = observed(a_router(launcher, tmp_path, cwd="{contract}"))
    assert answer(told(router, "place"))["cwd"] == os.path.realpath(tmp_path)
    router.close()


@promise("W10")
def test_a_virtual_environments_interpreter_runs_by_its_own_path_in_its_own_group(launcher, tmp_path):
    router = observed(a_router(launcher, tmp_path))
    program = answer(told(router, "program"))
    assert (program["executable"], program["group"]) == (sys.executable, True)
    router.close()


@promise("W10")
def test_a_declared_script_runs_as_a_private_copy_beside_its_siblings(launcher, tmp_path):
    (tmp_path / "package").mkdir()
    helper = tmp_path / "package" / "helper.py"
    helper.write_text("NAME = 'helped'\n")
    script = a_script(tmp_path, f"from package.helper import NAME\nNAME\n{HAND.read_text()}")
    pinned = tuple((str(path), process.sha256_of(path.read_bytes())) for path in (script, helper))
    template = Launch(argv=("{python}", "-S", "-E", str(script), str(tmp_path)), files=pinned)
    router = observed(Router(a_contract(hand=template), tmp_path, CLOCK, launcher))
    ran = Path(answer(told(router, "program"))["argv"][0])
    assert ran.name == "server.py"
    assert ran != script
    router.close()
    assert not ran.exists()


# -- what cannot run


@pytest.mark.parametrize("what", ["folder", "no program"])
def test_what_the_system_does_not_run_is_a_failed_launch(launcher, tmp_path, what):
    if what == "folder":
        template = Launch(argv=(CAT,), cwd=f"{tmp_path}/missing")
    else:
        program = tmp_path / "program"
        program.write_bytes(b"\x00\x01\x02")
        program.chmod(0o700)
        template = Launch(argv=(str(program),))
    with pytest.raises(ServerError) as caught:
        launcher.start(launcher.resolve(template, tmp_path))
    assert caught.value.reason is Reason.LAUNCH_FAILED


class _Swapping(Launcher):
    """A launcher in whose way something is swapped, between the check and the run."""

    swap = staticmethod(lambda: None)

    def _request(self, request, fds):
        self.swap()
        super()._request(request, fds)


def _intruder(folder):
    path = folder / "intruder"
    path.write_text(f"#!/bin/sh\ntouch {folder}/intruded\n")
    path.chmod(0o700)
    return path


@promise("W10")
@pytest.mark.parametrize("when", ["before the start", "within the start"])
def test_a_program_that_is_swapped_after_its_check_does_not_run(tmp_path, when):
    program = tmp_path / "program"
    shutil.copy(CAT, program)
    with _Swapping() as launcher:
        resolved = launcher.resolve(Launch(argv=(str(program),)), tmp_path)
        if when == "before the start":
            _intruder(tmp_path).replace(program)
        else:
            launcher.swap = lambda: _intruder(tmp_path).replace(program)
        with pytest.raises(ServerError) as caught:
            launcher.start(resolved)
    assert caught.value.reason is Reason.ARTIFACT_DRIFT
    assert not (tmp_path / "intruded").exists()


@promise("W10")
def test_a_script_that_is_swapped_after_its_check_does_not_run(tmp_path):
    script = a_script(tmp_path)
    with _Swapping() as launcher:
        router = a_router(launcher, tmp_path, script=script)
        launcher.swap = lambda: script.write_text(f"open({str(tmp_path / 'intruded')!r}, 'w')\n")
        seen = router.observe("hand", fresh=False, deadline=soon())
        router.close()
    assert seen.reason is Reason.ARTIFACT_DRIFT
    assert noted(tmp_path, "starts") != []
    assert not (tmp_path / "intruded").exists()


def test_a_script_that_is_swapped_while_it_is_copied_is_drift(tmp_path, monkeypatch):
    script = a_script(tmp_path)
    with Launcher() as launcher:
        resolved = launcher.resolve(a_launch(tmp_path, script=script), tmp_path)
        monkeypatch.setattr(process, "sha256_of", lambda data: "sha256:other")
        with pytest.raises(ServerError) as caught:
            launcher.start(resolved)
    assert caught.value.reason is Reason.ARTIFACT_DRIFT


# -- the end


@promise("W10a")
@pytest.mark.parametrize(
    ("mode", "ending"),
    [
        ("", Ending("stdin", 0)),
        ("ignore-eof", Ending("term", -signal.SIGTERM)),
        ("ignore-term", Ending("kill", -signal.SIGKILL)),
    ],
)
def test_a_server_is_asked_to_end_and_then_made_to(launcher, tmp_path, mode, ending):
    life = Life(tmp_path)
    router = observed(a_router(launcher, tmp_path, mode))
    assert router.close() == {"hand": (ending,)}
    assert life.over()


@promise("W10a")
@pytest.mark.parametrize("mode", ["stray", "stray-ignore-term"] if LINUX else [])
def test_a_process_that_left_the_servers_group_is_found_and_ended(launcher, tmp_path, mode):
    life = Life(tmp_path)
    router = observed(a_router(launcher, tmp_path, mode))
    [ending] = router.close()["hand"]
    assert (ending.strays, ending.left) == (1, ())
    assert life.over()


@promise("W10a")
def test_a_server_that_ended_by_itself_leaves_its_status(launcher, tmp_path):
    router = observed(a_router(launcher, tmp_path))
    told(router, "die")
    [ending] = router.close()["hand"]
    assert (ending.status, ending.strays, ending.left) == (3, 0, ())
    assert ending.by in {"exit", "stdin"}  # whether its end was heard of before it was asked for


def test_a_server_that_ends_at_once_is_heard_to_end(launcher, tmp_path):
    resolved = launcher.resolve(Launch(argv=(CAT,)), tmp_path)
    for _ in range(5):
        started = launcher.start(resolved)
        for fd in (started.stdin, started.stdout, started.stderr):
            os.close(fd)
        assert started.stop(lambda _: True, soon(), SECOND * 10) in (Ending("exit", 0), Ending("stdin", 0))


@promise("W10a")
def test_a_server_that_kills_its_keeper_ends_with_it_and_so_do_its_strays(launcher, tmp_path):
    life = Life(tmp_path)
    router = observed(a_router(launcher, tmp_path, "stray" if LINUX else ""))
    told(router, "kill-keeper", seconds=0.2)
    assert [(ending.left, ending.known) for ending in router.close()["hand"]] == [((), False)]
    assert life.over()


def _process(router):
    return router._routes["hand"]._live.process


@promise("W10a")
def test_of_a_server_without_keeper_and_warden_what_is_found_is_ended_and_nothing_is_called_known(launcher, tmp_path):
    life = Life(tmp_path)
    router = observed(a_router(launcher, tmp_path, "stray-ignore-term" if LINUX else "ignore-term"))
    keeper = _process(router)._told["keeper"]
    os.kill(keeper, signal.SIGSTOP)  # or it would end all when the warden dies
    os.kill(launcher._warden.pid, signal.SIGKILL)
    os.kill(keeper, signal.SIGKILL)
    [ending] = router.close()["hand"]
    assert (ending.status, ending.left, ending.known) == (None, (), False)
    assert life.over()


@promise("W10a")
def test_a_keeper_and_a_warden_that_were_stopped_go_on_and_the_end_is_soon_and_known(tmp_path):
    life = Life(tmp_path)
    with Launcher() as launcher:
        router = observed(a_router(launcher, tmp_path, "stray" if LINUX else ""))
        os.kill(launcher._warden.pid, signal.SIGSTOP)
        os.kill(_process(router)._told["keeper"], signal.SIGSTOP)
        began = time.monotonic()
        [ending] = router.close()["hand"]
    assert (ending.left, ending.known) == ((), True)
    assert life.over()
    assert time.monotonic() - began < process._END_SECONDS


@promise("W10a")
def test_a_keeper_that_does_not_answer_is_killed_and_what_it_kept_with_it(launcher, tmp_path, monkeypatch):
    monkeypatch.setattr(process.warden, "SWEEP_SECONDS", 0.0)
    monkeypatch.setattr(process.signal, "SIGCONT", 0)  # as if it was stopped again at once
    life = Life(tmp_path)
    router = observed(a_router(launcher, tmp_path, "ignore-term"))
    os.kill(_process(router)._told["keeper"], signal.SIGSTOP)
    assert router.close() == {"hand": (Ending("kill", None, known=False),)}
    assert life.over()


def test_a_closed_launcher_leaves_no_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Launcher() as launcher:
        started = launcher.start(launcher.resolve(Launch(argv=(CAT,)), tmp_path))
        assert len(list(tmp_path.iterdir())) == 1
        for fd in (started.stdin, started.stdout, started.stderr):
            os.close(fd)
        started._line.close()
    assert list(tmp_path.iterdir()) == []
    launcher.close()


@promise("W10a")
def test_closing_the_launcher_ends_what_nobody_ended(tmp_path):
    life = Life(tmp_path)
    with Launcher() as launcher:
        router = observed(a_router(launcher, tmp_path, "ignore-term"))
        router._routes["hand"]._live.process._line.close()
        launcher.close()
        assert life.over()
        router._routes["hand"]._live.session.close()


@promise("W10a")
def test_a_warden_that_was_killed_takes_its_servers_with_it_and_another_takes_its_place(launcher, tmp_path):
    life = Life(tmp_path)
    router = observed(a_router(launcher, tmp_path, "stray-ignore-term" if LINUX else ""))
    os.kill(launcher._warden.pid, signal.SIGKILL)
    if LINUX:
        assert life.over()
    launcher._warden.wait()
    [ending] = router.close()["hand"]
    assert (ending.left, ending.known) == ((), True)
    other = tmp_path / "other"
    other.mkdir()
    again = observed(a_router(launcher, other))
    assert answer(told(again, "echo")) == "echo"
    again.close()


@promise("W10a")
def test_a_warden_that_stands_still_is_ended_as_well(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "_END_SECONDS", 0.1)
    monkeypatch.setattr(process.signal, "SIGCONT", 0)  # as if it was stopped again at once
    life = Life(tmp_path)
    with Launcher() as launcher:
        router = observed(a_router(launcher, tmp_path))
        os.kill(launcher._warden.pid, signal.SIGSTOP)
    router.close()
    assert life.over()


def test_a_warden_that_cannot_be_reached_is_a_failed_launch(launcher, tmp_path):
    resolved = launcher.resolve(Launch(argv=(CAT,)), tmp_path)
    started = launcher.start(resolved)
    os.close(started.stdin)
    assert started._ended_within(20.0)
    assert started.ended
    launcher._line.close()
    with pytest.raises(ServerError) as caught:
        launcher.start(resolved)
    assert caught.value.reason is Reason.LAUNCH_FAILED
    os.close(started.stdout)
    os.close(started.stderr)
    started._line.close()


HARNESS = """
import sys
from pathlib import Path
sys.path[:0] = {paths!r}
from router_bench import *
from assisted_benchmark.mcp_router.process import Launcher
launcher = Launcher()
router = a_router(launcher, Path({folder!r}), {mode!r})
assert router.observe("hand", fresh=False, deadline=soon()).drift == ()
print("observed", flush=True)
sys.stdin.read()
"""


@promise("W10a")
@pytest.mark.parametrize("mode", ["ignore-term", "stray-ignore-term"] if LINUX else ["ignore-term"])
def test_no_orphan_is_left_when_the_harness_is_killed(tmp_path, mode):
    life = Life(tmp_path)
    paths = [str(Path(__file__).parent), str(Path(process.__file__).parents[2])]
    text = HARNESS.format(paths=paths, folder=str(tmp_path), mode=mode)
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", text], stdin=pipe, stdout=pipe) as harness:
        assert harness.stdout.readline() == b"observed\n"
        harness.kill()
        assert life.over()
    assert len(json.loads(f"[{','.join(noted(tmp_path, 'starts'))}]")) == 1
