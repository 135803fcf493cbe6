"""A call over stdio: through the router, beside a bare client that writes a line and reads a line.

Both talk to the same few lines of a server, each in a process of its own; the calls take turns, so that a
slow moment of the machine strikes both.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter_ns
from typing import IO

from assisted_benchmark.contract.model import SERVER_SET, Contract, Effect, Launch, Server, Tool
from assisted_benchmark.kernel.canonical import Canonical
from assisted_benchmark.kernel.clock import SECOND, Deadline, SystemClock
from assisted_benchmark.kernel.decision import Admitted
from assisted_benchmark.kernel.digest import Digest, digest_of
from assisted_benchmark.ledger.protocol import Claimed
from assisted_benchmark.live_policy.ports import Observation, Replied
from assisted_benchmark.mcp_router.process import Launcher
from assisted_benchmark.mcp_router.router import Router
from figures.figure import Figure, at_most, quiet

_CALLS = 2_000
_TOOL = {"name": "do", "inputSchema": {"type": "object"}}
_SERVER = f"""
import json, sys
def say(request, result):
    sys.stdout.write(json.dumps({{"jsonrpc": "2.0", "id": request["id"], "result": result}}) + "\\n")
    sys.stdout.flush()
for line in sys.stdin:
    request = json.loads(line)
    if request["method"] == "tools/call":
        say(request, {{"content": [{{"type": "text", "text": "done"}}]}})
    elif request["method"] == "tools/list":
        say(request, {{"tools": [{json.dumps(_TOOL)}]}})
    elif request["method"] == "initialize":
        say(request, {{"protocolVersion": "2025-06-18", "capabilities": {{"tools": {{}}}},
                      "serverInfo": {{"name": "hand", "version": "1"}}}})
    elif "id" in request:
        sys.stdout.write(json.dumps({{"jsonrpc": "2.0", "id": request["id"],
                                     "error": {{"code": -32601, "message": "no such method"}}}}) + "\\n")
        sys.stdout.flush()
"""
_ARGUMENTS = b'{"targetId":"approve","taskId":"t-1"}'


def figures() -> Iterator[Figure]:
    """One figure: the round trip's ratio."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "hand.py")
        script.write_text(_SERVER, encoding="utf-8")
        ours, bare = _take_turns(script)
    yield at_most("stdio round trip through the router", "ratio to bare", ours / bare, 1.3, {"bare us": bare})


def _take_turns(script: Path) -> tuple[float, float]:
    """The median microseconds of a call through the router, and of a bare one."""
    clock = SystemClock()
    router = Router(_contract(script), script.parent, clock, Launcher())
    bare = subprocess.Popen([sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if bare.stdin is None or bare.stdout is None:
        raise AssertionError("pipes were asked for")
    seen = router.observe("hand", fresh=True, deadline=Deadline.after(clock, 20 * SECOND))
    if not isinstance(seen, Observation) or seen.drift:
        raise AssertionError(f"the server to measure with is not as pinned: {seen}")
    claimed = Claimed(Admitted(b"group", digest_of("candidate@1", _ARGUMENTS), "hand", "do", _ARGUMENTS), "run-1")
    ours, theirs = [], []
    with quiet():
        for call in range(_CALLS):
            began = perf_counter_ns()
            reply = router.send(claimed, gate=lambda: True, deadline=Deadline.after(clock, 20 * SECOND))
            middle = perf_counter_ns()
            _bare_call(bare.stdin, bare.stdout, call)
            theirs.append(perf_counter_ns() - middle)
            ours.append(middle - began)
            if not isinstance(reply, Replied):
                raise TypeError(f"a measured call went wrong: {reply}")
    router.close()
    bare.stdin.close()
    bare.wait()
    bare.stdout.close()
    return median(ours) / 1000, median(theirs) / 1000


def _bare_call(to: IO[bytes], back: IO[bytes], number: int) -> None:
    params = {"name": "do", "arguments": json.loads(_ARGUMENTS)}
    request = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    to.write(json.dumps(request).encode() + b"\n")
    to.flush()
    if json.loads(back.readline())["id"] != number:
        raise AssertionError("the answer is for another call")


def _contract(script: Path) -> Contract:
    content = Digest("sha256:" + hashlib.sha256(script.read_bytes()).hexdigest())
    launch = Launch(argv=("{python}", "-S", "-E", str(script)), files=((str(script), content),))
    tool = Tool(effect=Effect.ACT, definition=Canonical.of(_TOOL))
    return Contract(schema=SERVER_SET, id="measured", servers=(Server(id="hand", launch=launch, tools=(tool,)),))
