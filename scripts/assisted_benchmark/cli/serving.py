"""What every kind of serving shares: the pinned contract, the ledger, the wire, the client's configuration."""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Final, Protocol, TypeVar

import assisted_benchmark
from assisted_benchmark.cli import exits
from assisted_benchmark.cli.parser import PROGRAM
from assisted_benchmark.contract.pins import Pins, load_pins
from assisted_benchmark.gateway.agent_session import AgentSession
from assisted_benchmark.gateway.face import Face
from assisted_benchmark.gateway.flight import Limits
from assisted_benchmark.gateway.http_guard import url_of
from assisted_benchmark.gateway.principals import STDIO, Principals
from assisted_benchmark.gateway.service import unnoticed
from assisted_benchmark.kernel.chance import SystemChance
from assisted_benchmark.kernel.clock import Clock
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.errors import DocumentError, IntegrityError, MisuseError
from assisted_benchmark.kernel.keys import KeyRing
from assisted_benchmark.kernel.reasons import REASONS, Layer, Reason
from assisted_benchmark.kernel.strict_json import Json
from assisted_benchmark.kernel.text import did_you_mean, shown
from assisted_benchmark.ledger.memory import MemoryLedger
from assisted_benchmark.ledger.protocol import Ledger
from assisted_benchmark.ledger.sqlite import SqliteLedger
from assisted_benchmark.ledger.states import TransitionTable
from assisted_benchmark.ledger.store import Durability
from assisted_benchmark.suite.catalogue import PINS_FILE
from assisted_benchmark.suite.files import Files
from assisted_benchmark.suite.storage import RunDirectory, create_keys, new_keys, read_keys
from assisted_benchmark.wire.outcomes import Oddity


class _Pinned(Protocol):
    @property
    def id(self) -> str: ...

    @property
    def digest(self) -> Digest: ...


T = TypeVar("T", bound=_Pinned)

BEARER: Final = "ASSISTED_BENCHMARK_AGENT_BEARER"

_BEARER_BYTES: Final = 32
_SHORTEST: Final = 32
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+", re.ASCII)


def pinned(
    root: Path,
    name: str,
    kind: str,
    suffix: str,
    load: Callable[[Path, Path], T],
    pins_of: Callable[[Pins], Mapping[str, Digest]],
) -> T:
    """The contract of that id, as the root's pins have it."""
    files = Files(root)
    known = {each.id: each for _, each in files.all(kind, suffix, load)}
    if files.problems:
        raise DocumentError(files.problems)
    contract = known.get(name)
    if contract is None:
        hint = did_you_mean(name, known) or f"there are {', '.join(sorted(known)) or 'none'}"
        raise MisuseError(Reason.MISUSE, f"no {kind} has the id `{shown(name, 60)}`; {hint}")
    digest = pins_of(load_pins(root / PINS_FILE, root)).get(name)
    if digest != contract.digest:
        raise IntegrityError(
            Reason.PIN_MISMATCH,
            f"the {kind} `{name}` is {contract.digest} and is pinned as {digest or 'nothing'}; "
            "look at what changed, then `assisted-benchmark lint --write-pins`",
        )
    return contract


@contextmanager
def opened(folder: Path | None, name: str, table: TransitionTable) -> Iterator[tuple[Ledger, KeyRing]]:
    """A ledger in memory, or that of this name in `folder`, made at the first time and held by one process."""
    chance = SystemChance()
    if folder is None:
        yield MemoryLedger("serve", table), new_keys(chance)
        return
    place = RunDirectory(folder)
    with place.held():
        keys = read_keys(place.keys) if place.keys.exists() else create_keys(place.keys, chance)
        file, anchor = folder / f"{name}.sqlite", folder / f"{name}.anchor"
        make = partial(SqliteLedger.create, ledger_id=chance.token(8).hex())
        take = SqliteLedger.open if file.exists() else make
        with closing(take(file, table=table, keys=keys, anchor=anchor, durability=Durability.POWER)) as ledger:
            yield ledger, keys


def wire() -> int:
    """Standard output for the wire alone: what anything else prints from now on goes to standard error."""
    copy = os.dup(1)
    os.dup2(2, 1)
    return copy


class Agent(Protocol):
    """An agent's session, over whichever way."""

    @property
    def client(self) -> Json: ...

    @property
    def oddities(self) -> tuple[Oddity, ...]: ...

    def serve(self) -> None: ...


def agent_for(
    arguments: argparse.Namespace,
    name: str,
    write_fd: int,
    face: Face,
    principals: Principals,
    clock: Clock,
    *,
    on_malformed: Callable[[Reason, str], object],
    on_leaving: Callable[[], None] = unnoticed,
    limits: Limits | None = None,
) -> Agent:
    """The session of the client at standard input and `write_fd`, or with --http of those that have the bearer.

    These are told at `write_fd` where it is; then that is closed.
    """
    if not arguments.http:
        return AgentSession(
            face,
            principals.session(STDIO, None),
            clock,
            write_fd=write_fd,
            limits=limits,
            on_malformed=on_malformed,
            on_leaving=on_leaving,
        )
    try:
        from assisted_benchmark.gateway.http_server import HttpServer
    except ImportError as error:
        detail = f"--http needs the extra `http` (no `{error.name}` here); install `assisted-benchmark[http]`"
        raise MisuseError(Reason.MISUSE, detail) from error
    chance = SystemChance()
    bearer = bearer_of(os.environ) or chance.token(_BEARER_BYTES).hex()
    server = HttpServer(
        face,
        principals,
        clock,
        chance,
        bearer=bearer,
        port=arguments.port or 0,
        limits=limits,
        on_malformed=on_malformed,
        on_leaving=on_leaving,
    )
    with open(write_fd, "w") as out:
        out.write(_http_config(name, server.url, bearer))
    return server


def at_work(agent: Agent, close: Callable[[], None]) -> int:
    """Serve until the client closes its side, then `close`; the exit code. Nothing runs any more afterwards."""
    if isinstance(agent, AgentSession) and sys.stdin.isatty():
        say("this speaks to an MCP client; --print-config shows how to tell one of it, Ctrl-D ends it")
    gc.freeze()  # what was loaded stays: a collection that walked all of it would hold up the call it falls in
    try:
        agent.serve()
    finally:
        close()
        for odd in agent.oddities:
            # Of a line that is no message only the reason is said: its detail may quote the agent.
            say(f"{odd.detail if odd.reason is None else odd.reason.value} ({odd.kind.value})")
    # A ledger that no longer verifies refuses every call; whoever started this must hear of it as well.
    doubted = any(odd.reason is not None and REASONS[odd.reason].layer is Layer.LEDGER for odd in agent.oddities)
    return exits.INTEGRITY if doubted else exits.OK


def print_config(name: str, arguments: argparse.Namespace, root: Path, words: list[str], needs: dict[str, str]) -> int:
    """Print what the `mcpServers` of a client's configuration needs to hold; `needs` are variables to be set."""
    if arguments.http:
        if not arguments.port:
            raise MisuseError(Reason.MISUSE, "a configuration names the port: give --port")
        print(_http_config(name, url_of(arguments.port), bearer_of(os.environ) or f"${{{BEARER}}}"), end="")
        return exits.OK
    sets = ["--toolsets", arguments.toolsets] if arguments.toolsets else []
    kept = ["--ledger", str(arguments.ledger.absolute())] if arguments.ledger else []
    line = ["-m", "assisted_benchmark", "serve", "--root", str(root.absolute()), *words, *sets, *kept]
    environment = dict(needs)
    package = str(Path(assisted_benchmark.__file__).resolve().parents[1])
    if package != sysconfig.get_path("purelib"):
        environment["PYTHONPATH"] = package
    server: dict[str, object] = {"command": sys.executable, "args": line, "env": environment}
    print(_config(name, server), end="")
    return exits.OK


def bearer_of(environment: Mapping[str, str]) -> str:
    """The secret that clients have to bring over HTTP, where the operator sets it; else nothing.

    Raises:
        MisuseError: it is none that a header can hold, or too short.
    """
    bearer = environment.get(BEARER, "")
    if bearer and (len(bearer) < _SHORTEST or not _TOKEN.fullmatch(bearer)):
        detail = f"{BEARER} is not a bearer: it needs {_SHORTEST} or more of A-Z a-z 0-9 - . _ ~ + /"
        raise MisuseError(Reason.MISUSE, detail)
    return bearer


def _http_config(name: str, url: str, bearer: str) -> str:
    return _config(name, {"type": "http", "url": url, "headers": {"Authorization": f"Bearer {bearer}"}})


def _config(name: str, server: dict[str, object]) -> str:
    return json.dumps({"mcpServers": {f"assisted-benchmark-{name}": server}}, indent=2) + "\n"


def say(what: str) -> None:
    """Tell whoever started this."""
    print(f"{PROGRAM}: {what}", file=sys.stderr)
