"""How a client finds the era of a server, agrees on a version and locks both. No call is ever part of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.clock import Deadline
from assisted_benchmark.kernel.errors import ServerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import shown
from assisted_benchmark.wire.exchange import Exchange, always
from assisted_benchmark.wire.frames import (
    HANDSHAKE_VERSIONS,
    META_CAPABILITIES,
    META_CLIENT_INFO,
    META_SERVER_INFO,
    META_VERSION,
    STATELESS_VERSIONS,
    UNSUPPORTED_VERSION,
    Response,
    write_notification,
    write_request,
)
from assisted_benchmark.wire.inbox import as_object
from assisted_benchmark.wire.outcomes import Connected, Era, Limits

CLIENT_INFO: Final[Json] = {"name": "assisted-benchmark", "version": "1"}


def connect(exchange: Exchange, limits: Limits, capabilities: Json, era: Era | None, deadline: Deadline) -> Connected:
    """Connect to the server behind `exchange`, and set the envelope that its era wants. `era`: where it is known.

    Raises:
        ServerError: protocol_mismatch, deadline_exceeded, server_unavailable, or
            malformed_frame for an answer of a wrong shape.
    """
    connecting = _Connecting(exchange, limits, capabilities)
    connected = connecting.negotiate(era, deadline)
    if connected.era is Era.STATELESS and connected.list_changed:
        connecting.subscribe(deadline.child(limits.probe_ns))
    return connected


class _Connecting:
    def __init__(self, exchange: Exchange, limits: Limits, capabilities: Json) -> None:
        self._exchange = exchange
        self._limits = limits
        self._capabilities = capabilities

    def negotiate(self, era: Era | None, deadline: Deadline) -> Connected:
        roads: dict[Era | None, tuple[Callable[[Deadline], Connected | None], ...]] = {
            None: (self._probe, self._initialize, self._discover),
            Era.HANDSHAKE: (self._initialize,),
            Era.STATELESS: (self._discover,),
        }
        for road in roads[era]:
            connected = road(deadline)
            if connected is not None:
                return connected
        raise ServerError(Reason.PROTOCOL_MISMATCH, "the server is in no era that was tried")

    def _probe(self, deadline: Deadline) -> Connected | None:
        """Look for the stateless era; silence and every error but a clear no mean the other one."""
        try:
            return self._discover(deadline.child(self._limits.probe_ns))
        except ServerError as error:
            if error.reason is Reason.PROTOCOL_MISMATCH or self._exchange.closed or deadline.passed:
                raise
            self._exchange.envelope = {}
            return None

    def _discover(self, deadline: Deadline) -> Connected | None:
        """The stateless era; None where the server shows no sign of it."""
        version = STATELESS_VERSIONS[-1]
        self._exchange.envelope = {
            META_VERSION: version,
            META_CLIENT_INFO: CLIENT_INFO,
            META_CAPABILITIES: self._capabilities,
        }
        answer = self._exchange.ask("server/discover", {}, deadline)
        found = as_object(answer.result)
        if version in _listed(found.get("supportedVersions")):
            return Connected(Era.STATELESS, version, _server_info(found), as_object(found.get("capabilities")))
        self._exchange.envelope = {}
        spoken = _listed(_supported(answer))
        if spoken and not set(spoken) & {*HANDSHAKE_VERSIONS, version}:
            raise ServerError(Reason.PROTOCOL_MISMATCH, f"the server speaks only {shown(', '.join(spoken))}")
        return None

    def _initialize(self, deadline: Deadline) -> Connected | None:
        """The handshake; None if the server says that it is in the stateless era after all.

        That is so where a probe was answered too late: the server has locked itself to it.
        """
        offer = {
            "protocolVersion": HANDSHAKE_VERSIONS[-1],
            "capabilities": self._capabilities,
            "clientInfo": CLIENT_INFO,
        }
        answer = self._exchange.ask("initialize", offer, deadline)
        if STATELESS_VERSIONS[-1] in _listed(_supported(answer)):
            return None
        found = complete(answer, "initialize")
        version = found.get("protocolVersion")
        if version not in HANDSHAKE_VERSIONS:
            raise ServerError(Reason.PROTOCOL_MISMATCH, f"the server answers with the version {shown(str(version))}")
        self._exchange.channel.agreed(version)
        self._exchange.inbox.send(write_notification("notifications/initialized", {}))
        return Connected(Era.HANDSHAKE, version, found.get("serverInfo"), as_object(found.get("capabilities")))

    def subscribe(self, deadline: Deadline) -> None:
        """Ask to hear of changes of the tool list: in the stateless era they come no other way."""
        inbox = self._exchange.inbox
        request_id = inbox.new_id()
        inbox.expect_subscription(request_id)
        params: Json = {"notifications": {"toolsListChanged": True}, "_meta": self._exchange.envelope}
        frame = write_request(request_id, "subscriptions/listen", params)
        self._exchange.transmit(request_id, frame, deadline, always)
        lost = self._exchange.channel.lost
        while not (inbox.subscribed or inbox.deaf or lost(request_id)) and self._exchange.wait(deadline):
            pass
        if not inbox.subscribed and not inbox.deaf:
            inbox.lose_subscription("the server did not acknowledge the subscription to its tool list")


def complete(answer: Response, method: str) -> dict[str, Json]:
    """The result object of an answer.

    Raises:
        ServerError: failed for an error, malformed_frame for anything but a complete result.
    """
    if answer.error is not None:
        raise ServerError(Reason.FAILED, f"the server refused {method} with the error {answer.error['code']}")
    if type(answer.result) is not dict or answer.result.get("resultType", "complete") != "complete":
        raise ServerError(Reason.MALFORMED_FRAME, f"the result of {method} is not a complete object")
    return answer.result


def _supported(answer: Response) -> Json:
    """The versions that an `unsupported version` error names."""
    if answer.error is None or answer.error["code"] != UNSUPPORTED_VERSION:
        return None
    return as_object(answer.error.get("data")).get("supported")


def _server_info(found: dict[str, Json]) -> Json:
    return as_object(found.get("_meta")).get(META_SERVER_INFO)


def _listed(value: Json) -> list[str]:
    return [each for each in value if type(each) is str] if type(value) is list else []
