"""What is left of a server that nobody keeps: found by its traces, ended, and told of if it stays."""

import subprocess
import sys
from contextlib import ExitStack

import pytest
from marks import promise

from assisted_benchmark.mcp_router import remains
from assisted_benchmark.mcp_router.remains import end_remains

LINUX = sys.platform == "linux"
NOBODY = 2**22 + 1  # above every number that a system gives
# It says that it runs once it does: before its exec a child shows its parent's environment.
WAIT = "import os, signal; os.write(1, b'.'); signal.pause()"
LEAVE = f"import os; os.fork() and os._exit(0); os.setpgid(0, 0); {WAIT}"


@pytest.fixture
def room(tmp_path):
    (tmp_path / "room" / "cwd").mkdir(parents=True)
    return tmp_path / "room"


@pytest.fixture
def started():
    with ExitStack() as ends:

        def start(code=WAIT, **more):
            child = subprocess.Popen([sys.executable, "-IS", "-c", code], stdout=subprocess.PIPE, **more)
            ends.callback(child.stdout.close)
            ends.callback(child.wait)
            ends.callback(child.kill)
            assert child.stdout.read(1) == b"."
            return child

        yield start


@promise("W10a")
@pytest.mark.parametrize("trace", ["group", "session", "environment", "place"] if LINUX else ["group"])
def test_every_trace_of_a_server_is_enough_and_others_are_spared(room, started, trace):
    other = started(env={"HOME": f"{room}other/home"})
    if trace == "group":
        one = started(start_new_session=True)
        server = one.pid
    elif trace == "session":
        one = started(LEAVE, start_new_session=True)
        server = one.pid
    elif trace == "environment":
        one, server = started(env={"HOME": f"{room}/home"}), NOBODY
    else:
        one, server = started(cwd=room / "cwd"), NOBODY
    assert end_remains(server, str(room)) == ()
    assert one.stdout.read() == b""  # nobody holds it any more
    assert other.poll() is None


@promise("W10a")
@pytest.mark.parametrize("_", [0] if LINUX else [])
def test_who_cannot_be_ended_in_time_is_told_of(room, started, monkeypatch, _):
    monkeypatch.setattr(remains, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(remains.os, "kill", lambda pid, number: None)
    one = started(cwd=room / "cwd")
    found = end_remains(NOBODY, str(room))
    monkeypatch.undo()
    assert found == (one.pid,)


def test_who_was_forked_during_an_empty_look_is_found_by_the_next(monkeypatch):
    looks = iter([(), (4_000_000,), (), ()])
    killed = []
    monkeypatch.setattr(remains, "_found", lambda server, room: next(looks))
    monkeypatch.setattr(remains.os, "killpg", lambda group, number: None)
    monkeypatch.setattr(remains.os, "kill", lambda pid, number: killed.append(pid))
    assert end_remains(1, "/nowhere") == ()
    assert (killed, list(looks)) == ([4_000_000], [])
