"""The door to a case: one that knows the secret comes in, and its bytes go both ways until either side ends."""

import json
import os
import socket
import threading

import pytest
from marks import promise

from assisted_benchmark.gateway import bridge
from assisted_benchmark.kernel.clock import SECOND
from assisted_benchmark.suite.live import door as door_module
from assisted_benchmark.suite.live.door import SERVER, Door

SECRET = "a" * 64


@pytest.fixture
def door(tmp_path):
    opened = Door(tmp_path, SECRET)
    yield opened
    opened.close()


def place(door):
    return json.loads(door.config())["mcpServers"][SERVER]["env"][bridge.SOCKET]


class Bridged:
    """A bridge on a thread of this process, with pipes for its stdio."""

    def __init__(self, door):
        theirs_in, self.write_fd = os.pipe()
        self.read_fd, self.theirs_out = os.pipe()
        self.entered = []
        arguments = (place(door), SECRET, theirs_in, self.theirs_out)
        self.thread = threading.Thread(target=lambda: self.entered.append(bridge.carry(*arguments)))
        self.thread.start()


@promise("H6")
def test_bytes_go_both_ways_until_the_case_is_over(door):
    client = Bridged(door)
    with door.guest() as guest:
        os.write(client.write_fd, b"asked\n")
        assert guest.recv(100) == b"asked\n"
        guest.sendall(b"answered\n")
        assert os.read(client.read_fd, 100) == b"answered\n"
        os.close(client.write_fd)
        assert guest.recv(100) == b""
        door.close()
    client.thread.join()
    assert client.entered == [True]
    assert door.turned_away == 0


@promise("H6")
def test_a_client_that_is_gone_ends_its_bridge(door):
    client = Bridged(door)
    with door.guest() as guest:
        os.close(client.read_fd)
        guest.sendall(b"x")
        client.thread.join()
        assert guest.recv(1) == b""
    assert client.entered == [True]


@promise("W15a")
def test_only_the_first_that_knows_the_secret_comes_in(door):
    assert bridge.carry(place(door), "b" * 64, 0, 1) is False
    first = Bridged(door)
    with door.guest():
        assert bridge.carry(place(door), SECRET, 0, 1) is False
        assert door.turned_away == 2
    first.thread.join()
    assert first.entered == [True]


def test_behind_a_closed_door_nobody_comes(tmp_path):
    door = Door(tmp_path, SECRET)
    where = place(door)
    door.close()
    assert door.guest() is None
    assert bridge.carry(where, SECRET, 0, 1) is False
    assert door.turned_away == 0


def sent_away(client):
    """Whether the other side has closed; what it had not read makes a reset of that."""
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def test_who_says_nothing_at_the_door_keeps_it_from_closing_for_no_time_at_all(tmp_path, monkeypatch):
    monkeypatch.setattr(door_module, "_PATIENCE_NS", 3600 * SECOND)
    door = Door(tmp_path, SECRET)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.connect(place(door))
        silent.sendall(b"a")
        closing = threading.Thread(target=door.close, daemon=True)
        closing.start()
        assert sent_away(silent)  # however long it would have been waited for
        closing.join(30)
    assert (closing.is_alive(), door.guest()) == (False, None)


def test_the_configuration_starts_the_bridge_by_its_path_alone(door):
    server = json.loads(door.config())["mcpServers"][SERVER]
    assert server["args"] == ["-I", "-S", os.path.abspath(bridge.__file__)]
    assert server["env"][bridge.SECRET] == SECRET
