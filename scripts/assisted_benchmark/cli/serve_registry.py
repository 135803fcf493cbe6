"""`serve --registry`: the operations of one registry, at live instances; the operator consents at a terminal."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from assisted_benchmark.capability.broker import CapabilityBroker
from assisted_benchmark.capability.ports import Host
from assisted_benchmark.capability.projection import Projection
from assisted_benchmark.capability.registry import Registry
from assisted_benchmark.capability.registry_document import load_registry
from assisted_benchmark.capability.states import CAPABILITY_TABLE
from assisted_benchmark.capability.terminal_consent import TerminalConsent
from assisted_benchmark.cli.serving import agent_for, at_work, opened, pinned, print_config, wire
from assisted_benchmark.gateway.capability_tools import capability_resources, capability_tools, instructions
from assisted_benchmark.gateway.face import Face
from assisted_benchmark.gateway.flight import Limits
from assisted_benchmark.gateway.principals import EachItsOwn
from assisted_benchmark.gateway.tools import select_tools
from assisted_benchmark.kernel.chance import SystemChance
from assisted_benchmark.kernel.clock import Clock, SystemClock
from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown


def serve_registry(root: Path, arguments: argparse.Namespace) -> int:
    """Serve until the client closes its side."""
    name: str = arguments.registry
    registry = pinned(root, name, "registry", ".registry.yaml", load_registry, lambda pins: pins.registries)
    if not arguments.eligible:
        raise MisuseError(Reason.MISUSE, "--registry needs --eligible: the profiles and operations that may be used")
    eligible = _operations(registry, arguments.eligible)
    consent = TerminalConsent(registry, standing=_operations(registry, arguments.standing or ""))
    clock, projection, peer = SystemClock(), Projection(registry), f"process-{os.getpid()}"
    place = None if arguments.offline_host else str(arguments.host_socket.absolute())
    kept = None if arguments.print_config else arguments.ledger
    # What was admitted before a restart is known after it, but only where it was sent to, however that is spelled.
    principals = EachItsOwn(f"serve {os.path.realpath(place) if place else 'offline'}")
    with opened(kept, "operations", CAPABILITY_TABLE) as (ledger, keys), _host(name, place, clock) as host:
        broker = CapabilityBroker(
            run=principals.run,
            projection=projection,
            eligible=eligible,
            ledger=ledger,
            host=host,
            consent=consent,
            clock=clock,
            chance=SystemChance(),
            keys=keys,
        )
        tools = select_tools(capability_tools(projection, broker, peer), arguments.toolsets)
        if arguments.print_config:
            where = ["--host-socket", place] if place else ["--offline-host"]
            standing = ["--standing", arguments.standing] if arguments.standing else []
            words = ["--registry", name, *where, "--eligible", arguments.eligible, *standing]
            return print_config(name, arguments, root, words, {})
        agent = agent_for(
            arguments,
            name,
            wire(),
            Face(tools, instructions(registry, tools), capability_resources(registry, broker, peer)),
            principals,
            clock,
            limits=Limits(line=registry.bounds.envelope_bytes),
            on_malformed=broker.refuse_malformed,
            on_leaving=consent.close,
        )
        return at_work(agent, consent.close)


def _operations(registry: Registry, names: str) -> frozenset[str]:
    """The operations that profiles and operations name, joined by commas."""
    found: set[str] = set()
    for name in filter(None, map(str.strip, names.split(","))):
        if name in registry.profiles:
            found |= registry.of_profile(name)
        elif registry.operation(name) is not None:
            found.add(name)
        else:
            known = (*registry.profiles, *(each.id for each in registry.operations))
            hint = did_you_mean(name, known) or f"the profiles are {', '.join(registry.profiles)}"
            raise MisuseError(Reason.MISUSE, f"there is no profile or operation `{shown(name, 60)}`; {hint}")
    return frozenset(found)


@contextmanager
def _host(registry: str, socket: str | None, clock: Clock) -> Iterator[Host]:
    if socket is not None:
        from assisted_benchmark.capability.socket_host import SocketHost

        with closing(SocketHost(socket, clock)) as host:
            yield host
        return
    from assisted_benchmark.workloads.plugin_host_face import PluginHostFace
    from assisted_benchmark.workloads.plugin_host_in_process import InProcessHost

    if registry != "pulp":
        raise MisuseError(Reason.MISUSE, "there is an offline host of `pulp` only; give --host-socket")
    yield InProcessHost(PluginHostFace(0), clock)
