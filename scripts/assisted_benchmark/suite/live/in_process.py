"""The servers of a case as models in this process: the fast dispatcher. It ships as product code, not as a mock.

Calls are counted where they arrive, at the server's face. A server whose contract asks for the
harness's channel is the synthetic interface; every other answers from its cassette.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from assisted_benchmark.contract.drift import drift
from assisted_benchmark.contract.model import Contract, Launch, Server, tools_digest
from assisted_benchmark.kernel.canonical import Canonical, canonical_bytes
from assisted_benchmark.kernel.clock import Clock, Deadline
from assisted_benchmark.kernel.digest import Digest, digest_of
from assisted_benchmark.kernel.errors import ServerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.ledger.protocol import Claimed
from assisted_benchmark.live_policy.ports import (
    NO_RELAY,
    NotSent,
    Observation,
    Relay,
    Replied,
    Reply,
    Unavailable,
    Uncertain,
)
from assisted_benchmark.mcp_router.launch import stamps
from assisted_benchmark.workloads.faults import Delivery, Face, Fault, FaultKind
from assisted_benchmark.workloads.model import Event, Model
from assisted_benchmark.workloads.recorded import Recorded
from assisted_benchmark.workloads.recorded import load as load_cassette
from assisted_benchmark.workloads.synthetic_ui import TOOLS, SyntheticUi

_RECORDED: Final = "assisted_benchmark.workloads.recorded"
_SYNTHETIC: Final = "assisted_benchmark.workloads.synthetic_ui"
_LOST: Final = {
    Delivery.NEVER: "no answer came within the time",
    Delivery.DIED: "the server died before its answer",
    Delivery.GARBLED: "what came is no answer",
}


def launches_in_process(contract: Contract) -> dict[str, Digest]:
    """What each server's launch resolves to here: a model in this process, named by its template."""
    return {each.id: digest_of("in-process@1", canonical_bytes(each.launch.value())) for each in contract.servers}


_cassette: Final = lru_cache(maxsize=64)(load_cassette)


@lru_cache(maxsize=64)
def _listed(cassette: Path | None) -> Digest:
    """The digest of the list that a model shows at first: the cassette's, or the synthetic interface's."""
    return tools_digest(list(TOOLS if cassette is None else _cassette(cassette).tools))


def model_of(server: Server, cassette: Path | None, seed: int, task: str) -> Model:
    """The model that a contract's launch template would start; `cassette` is the one it is played back from, if any.

    Raises:
        ServerError: launch_failed, if the template starts no workload that can run in this process.
    """
    if is_synthetic(server):
        return SyntheticUi(seed, task)
    if cassette is not None:
        return Recorded(_cassette(cassette))
    detail = f"the server `{server.id}` has no model and runs only as a process; write `servers: process`, or nothing"
    raise ServerError(Reason.LAUNCH_FAILED, detail)


def has_model(server: Server) -> bool:
    """Whether the server's launch template starts a workload that can run in this process."""
    return is_synthetic(server) or _RECORDED in _argv(server)


def cassette_of(server: Server, folder: str) -> Path | None:
    """The cassette that the server is played back from, if it is."""
    argv = _argv(server)
    return _cassette_path(argv[-1], folder) if _RECORDED in argv else None


@lru_cache(maxsize=64)
def _cassette_path(template: str, folder: str) -> Path:
    return Path(template.replace("{contract}", folder))


def is_synthetic(server: Server) -> bool:
    """Whether the server is the synthetic interface, which the oracle can judge."""
    return _SYNTHETIC in _argv(server)


def _argv(server: Server) -> tuple[str, ...]:
    """What starts the server; nothing, where others run it."""
    return server.launch.argv if isinstance(server.launch, Launch) else ()


class InProcess:
    """Carries claimed calls to fresh models. `launches` are what the contract's launches resolved to.

    `folder` is the contract file's. `total` counts the calls that arrived at all servers.
    """

    def __init__(
        self, contract: Contract, folder: str, clock: Clock, launches: Mapping[str, Digest], *, seed: int, task: str
    ) -> None:
        self.stamps = tuple(stamp for server in contract.servers for stamp in stamps(server.launch))
        self._contract = contract
        self._launches = dict(launches)
        self._clock = clock
        self._cassettes = {each.id: cassette_of(each, folder) for each in contract.servers}
        self._faces = {each.id: Face(model_of(each, self._cassettes[each.id], seed, task)) for each in contract.servers}
        self.total = 0

    @property
    def calls(self) -> dict[str, int]:
        """How many calls arrived at each server."""
        return {name: sum(face.received.values()) for name, face in self._faces.items()}

    def starts(self, server: str) -> list[list[Event]]:
        """What a server really did, the oracle's view: a model is started once."""
        return [self._faces[server].model.events]

    def arm(self, server: str, fault: Fault) -> None:
        """From now on this server misbehaves."""
        self._faces[server].arm(fault)

    def kill(self, server: str) -> None:
        """The server dies now."""
        self._faces[server].ended = FaultKind.DIE_BEFORE

    def substitute(self, server: str) -> None:
        """From now on another program stands where this server was."""
        self._launches[server] = digest_of("in-process@1", self._launches[server].encode())

    def observe(
        self,
        server: str,
        *,
        fresh: bool,  # noqa: ARG002 - a model is always looked at afresh
        deadline: Deadline,  # noqa: ARG002 - and at once
    ) -> Observation | Unavailable:
        face, pinned = self._faces[server], self._contract.server(server)
        if face.ended is not None or pinned is None:
            return Unavailable(Reason.SERVER_UNAVAILABLE, "the server has ended")
        # A model's list changes only with a notice, so an unchanged one is digested once and for all.
        live = _listed(self._cassettes[server]) if face.changes == 0 else tools_digest(face.tools())
        same = live == pinned.tools_digest
        lines = () if same else tuple(change.line() for change in drift(pinned, face.tools()))
        return Observation(self._launches[server], live, lines)

    def send(
        self,
        claimed: Claimed,
        *,
        gate: Callable[[], bool],
        deadline: Deadline,  # noqa: ARG002 - a model answers at once, or its fault says that it never will
        relay: Relay = NO_RELAY,  # noqa: ARG002 - so that it has nothing to say meanwhile
    ) -> Reply:
        permit = claimed.permit
        face = self._faces[permit.server]
        if face.ended is not None:
            return NotSent(Reason.SERVER_UNAVAILABLE, "the server has ended")
        if not gate():
            return NotSent(Reason.EXPIRED)
        wrote = self._clock.now()
        self.total += face.ended is None
        answer = face.call(permit.tool, Canonical(permit.arguments).value)
        delivery = answer.delivery
        if delivery is Delivery.TWICE:
            return Uncertain(Reason.RESULT_INVALID, "two answers came to one call", wrote)
        if delivery is not Delivery.WHOLE:
            return Uncertain(Reason.OUTCOME_UNKNOWN, _LOST[delivery], wrote)
        result = answer.result or {}
        return Replied(canonical_bytes(result), result.get("isError") is True, wrote, self._clock.now())
