"""`serve --changes`: the tools of one API's changes."""

from __future__ import annotations

import argparse
import os
from functools import partial
from pathlib import Path
from typing import Final

from attrs import evolve

from assisted_benchmark.cli.serving import agent_for, at_work, opened, pinned, print_config, say, wire
from assisted_benchmark.gateway.face import Face
from assisted_benchmark.gateway.mutation_tools import change_tools, instructions, read_tools
from assisted_benchmark.gateway.principals import HTTP, STDIO, EachItsOwn
from assisted_benchmark.gateway.tools import select_tools
from assisted_benchmark.kernel.chance import SystemChance
from assisted_benchmark.kernel.clock import Clock, SystemClock
from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.mutation.broker import ALLOW_UNCONFIRMED, MutationBroker, allows_unconfirmed
from assisted_benchmark.mutation.changes_document import load_changes
from assisted_benchmark.mutation.ports import Endpoint
from assisted_benchmark.mutation.proposal import Session as BrokerSession
from assisted_benchmark.mutation.states import MUTATION_TABLE
from assisted_benchmark.mutation.store import ProposalStore

BEARER: Final = "ASSISTED_BENCHMARK_BEARER"

# What a person is told of where a change goes, beside the contract's own word; else it is the origin.
OFFLINE: Final = "an endpoint for trying out: nothing real"


def serve_changes(root: Path, arguments: argparse.Namespace) -> int:
    """Serve until the client closes its side."""
    name: str = arguments.changes
    contract = pinned(root, name, "change contract", ".changes.yaml", load_changes, lambda pins: pins.changes)
    clock = SystemClock()
    endpoint = _endpoint(arguments, clock)
    # What was proposed before a restart can be confirmed after it, but only where the endpoint's dry run took it.
    principals = EachItsOwn(f"serve {arguments.origin or 'offline'}")
    session = principals.session(HTTP if arguments.http else STDIO, None)
    allowed = allows_unconfirmed(os.environ)
    with opened(None if arguments.print_config else arguments.ledger, "changes", MUTATION_TABLE) as (ledger, keys):
        broker = MutationBroker(
            contract=evolve(contract, endpoint=f"{contract.endpoint} ({arguments.origin or OFFLINE})"),
            endpoint=endpoint,
            store=ProposalStore(ledger=ledger, clock=clock, chance=SystemChance(), keys=keys),
            allow_unconfirmed=allowed,
        )
        offered = (*read_tools(contract, endpoint, clock), *change_tools(contract, broker))
        tools = select_tools(offered, arguments.toolsets)
        if arguments.print_config:
            where = ["--offline-endpoint"] if arguments.offline_endpoint else ["--origin", arguments.origin]
            needs = {} if arguments.offline_endpoint else {BEARER: "the token that the endpoint wants"}
            return print_config(name, arguments, root, ["--changes", name, *where], needs)
        left = broker.recover()
        if left:
            say(f"{len(left)} changes that a crash left open are closed: the receipts say how")
        if ALLOW_UNCONFIRMED in os.environ and not allowed:
            say(f"{ALLOW_UNCONFIRMED} is not exactly `true`: a client that cannot ask a person confirms nothing")
        agent = agent_for(
            arguments,
            name,
            wire(),
            Face(tools, instructions(contract, tools)),
            principals,
            clock,
            on_malformed=partial(broker.refuse_malformed, BrokerSession(*session)),
        )
        return at_work(agent, broker.close)


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
