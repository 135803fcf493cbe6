"""What the router's tests need: contracts over the hand-written server, claimed calls, and a way to hear the end."""

from __future__ import annotations

import json
import os
import select
from pathlib import Path

from assisted_benchmark.contract.model import SERVER_SET, Contract, Effect, Launch, Server, Tool
from assisted_benchmark.kernel.canonical import Canonical, canonical_bytes
from assisted_benchmark.kernel.clock import SECOND, Deadline, SystemClock
from assisted_benchmark.kernel.decision import Admitted
from assisted_benchmark.kernel.digest import digest_of
from assisted_benchmark.ledger.protocol import Claimed
from assisted_benchmark.live_policy.ports import Replied
from assisted_benchmark.mcp_router.identity import sha256_of
from assisted_benchmark.mcp_router.router import Router

HAND = Path(__file__).parent / "hand_server.py"
DO = {
    "name": "do",
    "description": "Does as it is told.",
    "inputSchema": {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]},
    "x-unknown": {"kept": True},
}
CLOCK = SystemClock()


def soon(seconds=20):
    return Deadline.after(CLOCK, int(seconds * SECOND))


def a_script(folder, text=None):
    """A copy of the hand-written server (or another text) that a test may change."""
    path = folder / "server.py"
    path.write_text(HAND.read_text() if text is None else text)
    return path


def a_launch(folder, mode="", *, script=HAND, env=(), **more):
    argv = ("{python}", "-S", "-E", str(script), str(folder), *([mode] if mode else []))
    return Launch(argv=argv, env=env, files=((str(script), sha256_of(script.read_bytes())),), **more)


def a_contract(**launches):
    tool = Tool(effect=Effect.ACT, definition=Canonical.of(DO))
    servers = tuple(
        Server(id=name.replace("_", "-"), launch=launch, tools=(tool,)) for name, launch in sorted(launches.items())
    )
    return Contract(schema=SERVER_SET, id="hand", servers=servers)


def a_router(launcher, folder, mode="", **more):
    """A router over one hand-written server, `hand`."""
    return Router(a_contract(hand=a_launch(folder, mode, **more)), folder, CLOCK, launcher, grace_ns=SECOND // 4)


def claimed(what, server="hand", tool="do"):
    arguments = canonical_bytes({"what": what})
    return Claimed(Admitted(b"group", digest_of("candidate@1", arguments), server, tool, arguments), "run-1")


def told(router, what, server="hand", seconds=20):
    return router.send(claimed(what, server), gate=lambda: True, deadline=soon(seconds))


def answer(reply):
    """The JSON that a reply's text holds."""
    assert isinstance(reply, Replied)
    return json.loads(json.loads(reply.result)["content"][0]["text"])


def noted(folder, name):
    path = folder / name
    return path.read_text().splitlines() if path.exists() else []


class Life:
    """A pipe that a server and its strays hold open; `over` waits until the last of them has ended."""

    def __init__(self, folder):
        os.mkfifo(folder / "life")
        self._fd = os.open(folder / "life", os.O_RDONLY | os.O_NONBLOCK)

    def over(self, seconds=20):
        readable, _, _ = select.select([self._fd], [], [], seconds)
        return bool(readable) and os.read(self._fd, 1) == b""
