"""`serve`: the tools of an API's changes, to one agent over standard input and output.

Standard output is the wire and nothing else; whatever there is to say goes to standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from attrs import evolve

import assisted_benchmark
from assisted_benchmark.cli import exits
from assisted_benchmark.cli.parser import PROGRAM
from assisted_benchmark.cli.place import root_of
from assisted_benchmark.contract.pins import load_pins
from assisted_benchmark.gateway.agent_session import AgentSession, Face
from assisted_benchmark.gateway.mutation_tools import change_tools, instructions, read_tools
from assisted_benchmark.gateway.tools import Session, select_tools
from assisted_benchmark.kernel.chance import SystemChance
from assisted_benchmark.kernel.clock import Clock, SystemClock
from assisted_benchmark.kernel.errors import DocumentError, IntegrityError, MisuseError
from assisted_benchmark.kernel.keys import KeyRing
from assisted_benchmark.kernel.reasons import REASONS, Layer, Reason
from assisted_benchmark.kernel.text import did_you_mean, shown
from assisted_benchmark.ledger.memory import MemoryLedger
from assisted_benchmark.ledger.protocol import Ledger
from assisted_benchmark.ledger.sqlite import SqliteLedger
from assisted_benchmark.ledger.store import Durability
from assisted_benchmark.mutation.broker import MutationBroker
from assisted_benchmark.mutation.changes import ChangeContract
from assisted_benchmark.mutation.changes_document import load_changes
from assisted_benchmark.mutation.ports import Endpoint
from assisted_benchmark.mutation.proposal import Session as BrokerSession
from assisted_benchmark.mutation.states import MUTATION_TABLE
from assisted_benchmark.mutation.store import ProposalStore
from assisted_benchmark.suite.catalogue import PINS_FILE
from assisted_benchmark.suite.files import Files
from assisted_benchmark.suite.storage import RunDirectory, create_keys, new_keys, read_keys

UNCONFIRMED: Final = "EQUINIX_MCP_ALLOW_UNCONFIRMED_MUTATIONS"
BEARER: Final = "ASSISTED_BENCHMARK_BEARER"

# What a person is told of where a change goes, beside the contract's own word; else it is the origin.
OFFLINE: Final = "an endpoint for trying out: nothing real"


def command(arguments: argparse.Namespace) -> int:
    """Serve until the client closes its side. Nothing runs any more when this returns."""
    root = root_of(arguments)
    contract = _contract(root, arguments.changes)
    clock = SystemClock()
    endpoint = _endpoint(arguments, clock)
    # What was proposed before a restart can be confirmed after it, but only where the endpoint's dry run took it.
    session = Session(f"serve {arguments.origin or 'offline'}", "stdio")
    with _opened(None if arguments.print_config else arguments.ledger) as (ledger, keys):
        broker = MutationBroker(
            contract=evolve(contract, endpoint=f"{contract.endpoint} ({arguments.origin or OFFLINE})"),
            endpoint=endpoint,
            store=ProposalStore(ledger=ledger, clock=clock, chance=SystemChance(), keys=keys),
            allow_unconfirmed=os.environ.get(UNCONFIRMED) == "true",
        )
        offered = (*read_tools(contract, endpoint, clock), *change_tools(contract, broker))
        tools = select_tools(offered, arguments.toolsets)
        if arguments.print_config:
            print(json.dumps(_config(arguments, root), indent=2))
            return exits.OK
        left = broker.recover()
        if left:
            _say(f"{len(left)} changes that a crash left open are closed: the receipts say how")
        if os.environ.get(UNCONFIRMED, "true") != "true":
            _say(f"{UNCONFIRMED} is not exactly `true`: a client that cannot ask a person confirms nothing")
        if sys.stdin.isatty():
            _say("this speaks to an MCP client; --print-config shows how to tell one of it, Ctrl-D ends it")
        agent = AgentSession(
            Face(tools, instructions(contract, tools)),
            session,
            clock,
            write_fd=_wire(),
            on_malformed=partial(broker.refuse_malformed, BrokerSession(*session)),
        )
        try:
            agent.serve()
        finally:
            broker.close()
            for odd in agent.oddities:
                # Of a line that is no message only the reason is said: its detail may quote the agent.
                _say(f"{odd.detail if odd.reason is None else odd.reason.value} ({odd.kind.value})")
    # A ledger that no longer verifies refuses every call; whoever started this must hear of it as well.
    doubted = any(odd.reason is not None and REASONS[odd.reason].layer is Layer.LEDGER for odd in agent.oddities)
    return exits.INTEGRITY if doubted else exits.OK


def _wire() -> int:
    """Standard output for the wire alone: what anything else prints from now on goes to standard error."""
    wire = os.dup(1)
    os.dup2(2, 1)
    return wire


def _contract(root: Path, name: str) -> ChangeContract:
    files = Files(root)
    known = {each.id: each for _, each in files.all("change contract", ".changes.yaml", load_changes)}
    if files.problems:
        raise DocumentError(files.problems)
    contract = known.get(name)
    if contract is None:
        hint = did_you_mean(name, known) or f"there are {', '.join(sorted(known)) or 'none'}"
        raise MisuseError(Reason.MISUSE, f"no change contract has the id `{shown(name, 60)}`; {hint}")
    pinned = load_pins(root / PINS_FILE, root).changes.get(name)
    if pinned != contract.digest:
        raise IntegrityError(
            Reason.PIN_MISMATCH,
            f"the change contract `{name}` is {contract.digest} and is pinned as {pinned or 'nothing'}; "
            "look at what changed, then `assisted-benchmark lint --write-pins`",
        )
    return contract


def _endpoint(arguments: argparse.Namespace, clock: Clock) -> Endpoint:
    if arguments.offline_endpoint:
        from assisted_benchmark.workloads.fabric_api import FabricApi, bearer_of
        from assisted_benchmark.workloads.fabric_api_endpoint import FabricEndpoint
        from assisted_benchmark.workloads.fabric_api_face import FabricFace

        if arguments.changes != "fabric":
            raise MisuseError(Reason.MISUSE, "there is an offline endpoint of `fabric` only; give --origin")
        return FabricEndpoint(FabricFace(FabricApi(0)), clock, bearer=bearer_of(0))
    try:
        from assisted_benchmark.mutation.http_endpoint import HttpEndpoint
    except ImportError as error:
        detail = f"--origin needs the extra `http` (no `{error.name}` here); install `assisted-benchmark[http]`"
        raise MisuseError(Reason.MISUSE, detail) from error
    return HttpEndpoint(arguments.origin, clock, bearer=os.environ.get(BEARER, ""))


@contextmanager
def _opened(folder: Path | None) -> Iterator[tuple[Ledger, KeyRing]]:
    """A ledger in memory, or the one in `folder`, which is made there at the first time and held by one process."""
    chance = SystemChance()
    if folder is None:
        yield MemoryLedger("serve", MUTATION_TABLE), new_keys(chance)
        return
    place = RunDirectory(folder)
    with place.held():
        keys = read_keys(place.keys) if place.keys.exists() else create_keys(place.keys, chance)
        file, anchor = folder / "changes.sqlite", folder / "changes.anchor"
        make = partial(SqliteLedger.create, ledger_id=chance.token(8).hex())
        take = SqliteLedger.open if file.exists() else make
        with closing(take(file, table=MUTATION_TABLE, keys=keys, anchor=anchor, durability=Durability.POWER)) as ledger:
            yield ledger, keys


def _config(arguments: argparse.Namespace, root: Path) -> dict[str, object]:
    """What the `mcpServers` of a client's configuration needs to hold."""
    where = ["--offline-endpoint"] if arguments.offline_endpoint else ["--origin", arguments.origin]
    sets = ["--toolsets", arguments.toolsets] if arguments.toolsets else []
    kept = ["--ledger", str(arguments.ledger.absolute())] if arguments.ledger else []
    words = ["serve", "--root", str(root.absolute()), "--changes", arguments.changes, *where, *sets, *kept]
    server: dict[str, object] = {"command": sys.executable, "args": ["-m", "assisted_benchmark", *words]}
    environment = {} if arguments.offline_endpoint else {BEARER: "the token that the endpoint wants"}
    package = str(Path(assisted_benchmark.__file__).resolve().parents[1])
    if package != sysconfig.get_path("purelib"):
        environment["PYTHONPATH"] = package
    return {"mcpServers": {f"assisted-benchmark-{arguments.changes}": {**server, "env": environment}}}


def _say(what: str) -> None:
    print(f"{PROGRAM}: {what}", file=sys.stderr)
