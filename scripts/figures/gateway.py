"""A call over the stdio gateway, beside the same call made directly: the official SDK at both ends of either way.

The way through the gateway has the decision, the ledger at `process` durability and every receipt in it. Calls
take turns between the ways, so that a slow moment of the machine strikes both. Without the SDK (it comes with
`requirements-perf.txt`) there is nothing to measure.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter_ns
from typing import Any, Final

from figures.bench import ROOT
from figures.figure import Figure, at_most, quiet

# The calls of one session are the steps of one grant; several sessions make the sample.
_CALLS, _SESSIONS, _UNCOUNTED = 24, 10, 4
_SMALL, _LARGE, _BIG_CALLS = 1_000_000, 16_000_000, 5
_SERVED: Final = "measured__fill"
_ENV: Final = {"PYTHONPATH": str(ROOT / "scripts")}
_SERVER: Final = """
import anyio, mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

SCHEMA = {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}
TOOLS = [types.Tool(name="fill", description="Answers with so many letters.", input_schema=SCHEMA)]

async def list_tools(ctx, params):
    return types.ListToolsResult(tools=TOOLS)

async def call_tool(ctx, params):
    return types.CallToolResult(content=[types.TextContent(type="text", text="n" * params.arguments["size"])])

async def main():
    server = Server("measured", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())

anyio.run(main)
"""


def figures() -> Iterator[Figure]:
    """Both kinds of recheck beside the direct way, median and tail; then whether a large result costs its length."""
    if find_spec("mcp") is None:
        return
    for recheck in ("on_change", "always"):
        with tempfile.TemporaryDirectory() as folder:
            ours, direct = asyncio.run(_take_turns(_root(Path(folder), recheck, [200] * _CALLS), recheck == "always"))
        name = f"call through the stdio gateway, recheck {recheck}"
        yield at_most(
            f"{name}, p50", "ratio to direct", median(ours) / median(direct), 1.25, {"direct us": median(direct)}
        )
        yield at_most(f"{name}, p99", "ratio to direct", _p99(ours) / _p99(direct), 1.5, {"direct us": _p99(direct)})
    with tempfile.TemporaryDirectory() as folder:
        sizes = [_SMALL, _LARGE] * (1 + _BIG_CALLS)  # the first two make everything ready
        times = _each(_root(Path(folder), "on_change", sizes), sizes)
    per_byte = [median(times[at + 2 :: 2]) / sizes[at] for at in (0, 1)]
    yield at_most("16 MiB result through the gateway to 1 MiB, a byte", "ratio", per_byte[1] / per_byte[0], 1.5)


def _p99(times: list[float]) -> float:
    return quantiles(times, n=100)[98]


def _root(root: Path, recheck: str, sizes: list[int]) -> Path:
    """A folder to serve from: the server as it is, and a policy that allows these calls in this order."""
    (root / "contracts").mkdir()
    (root / "fixtures" / "live").mkdir(parents=True)
    (root / "server.py").write_text(_SERVER, encoding="utf-8")
    launch = {"argv": ["{python}", str(root / "server.py")], "artifacts": "unpinned"}
    tools = {"fill": {"effect": "observe", "definition": asyncio.run(_definition(root))}}
    contract = {"servers": {"measured": {"launch": launch, "recheck": recheck, "tools": tools}}}
    steps = [{"call": {"server": "measured", "tool": "fill", "arguments": {"size": size}}} for size in sizes]
    policy = {"contract": "measured.contract.yaml", "expires_after": "600s", "steps": steps}
    for kind, schema, value in (
        ("contract", "projectbuddy/assisted-mcp-server-set@1", contract),
        ("policy", "assisted-benchmark/policy@1", policy),
    ):
        written = json.dumps({"schema": schema, "id": "measured", **value})
        (root / "contracts" / f"measured.{kind}.yaml").write_text(written, encoding="utf-8")
    scenario = {"schema": "assisted-benchmark/scenario@1", "id": "measured", "policy": "measured", "agent": "plan"}
    (root / "fixtures" / "live" / "measured.scenario.yaml").write_text(json.dumps(scenario), encoding="utf-8")
    subprocess.run([*_command(root, "lint"), "--write-pins"], cwd=ROOT / "scripts", check=True, capture_output=True)
    return root


def _command(root: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "assisted_benchmark", *words, "--root", str(root)]


async def _definition(root: Path) -> Any:
    async with _client(sys.executable, str(root / "server.py")) as client:
        (tool,) = (await client.list_tools()).tools
        return tool.model_dump(by_alias=True, exclude_none=True)


@asynccontextmanager
async def _client(command: str, *words: str) -> AsyncIterator[Any]:
    """The SDK's client of a command, of whose standard error (the served case's report) nothing is shown."""
    mcp: Any = import_module("mcp")
    launch = mcp.StdioServerParameters(command=command, args=list(words), env=_ENV)
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:  # noqa: ASYNC230 - it never blocks
        async with mcp.Client(mcp.stdio_client(launch, errlog=nowhere)) as client:
            yield client


def _serve(root: Path) -> list[str]:
    return _command(root, "serve", "live/measured", "--durability", "process")


async def _take_turns(root: Path, listing: bool) -> tuple[list[float], list[float]]:
    """The microseconds of calls through the gateway, and of direct ones, with a list before each if `listing`."""
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(_SESSIONS):
        async with AsyncExitStack() as opened:
            direct = await opened.enter_async_context(_client(sys.executable, str(root / "server.py")))
            gateway = await opened.enter_async_context(_client(*_serve(root)))

            async def directly(direct: Any = direct) -> Any:
                if listing:
                    await direct.list_tools()
                return await direct.call_tool("fill", {"size": 200})

            async def through(gateway: Any = gateway) -> Any:
                return await gateway.call_tool(_SERVED, {"size": 200})

            await direct.list_tools()
            await gateway.list_tools()
            with quiet():
                for call in range(_CALLS):
                    taken = await _time(directly), await _time(through)
                    if call >= _UNCOUNTED:
                        theirs.append(taken[0])
                        ours.append(taken[1])
    return ours, theirs


def _each(root: Path, sizes: list[int]) -> list[float]:
    """The microseconds of one call of each size through the gateway, by a bare client: the SDK's is not linear."""
    launch = _serve(root)
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(launch, stdin=pipe, stdout=pipe, stderr=nothing, env=_ENV) as gateway, quiet():
        to, back = gateway.stdin, gateway.stdout
        if to is None or back is None:
            raise AssertionError("pipes were asked for")

        def ask(method: str, params: dict[str, Any]) -> bytes:
            to.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n")
            to.flush()
            return back.readline()

        client = {"name": "bare", "version": "1"}
        ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
        times = []
        for size in sizes:
            began = perf_counter_ns()
            line = ask("tools/call", {"name": _SERVED, "arguments": {"size": size}})
            times.append((perf_counter_ns() - began) / 1000)
            if len(line) < size:
                raise AssertionError(f"a measured call went wrong: {line!r}")
        to.close()
    return times


async def _time(call: Callable[[], Awaitable[Any]]) -> float:
    began = perf_counter_ns()
    result = await call()
    taken = (perf_counter_ns() - began) / 1000
    if result.is_error:
        raise AssertionError(f"a measured call went wrong: {result}")
    return taken
