"""The calls of a client session: each is made at most once, and ends as what is known of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import orjson

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.clock import Clock, Deadline, Instant
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import Uncertain
from assisted_benchmark.wire.asking import CANCEL, ELICITATION, Asking, Requests, asked_for_input, going_on
from assisted_benchmark.wire.carrier import Carrier
from assisted_benchmark.wire.exchange import Exchange
from assisted_benchmark.wire.frames import (
    CANCELLED,
    META_CAPABILITIES,
    Response,
    write_call,
    write_notification,
    write_result,
)
from assisted_benchmark.wire.inbox import Inbox, judged
from assisted_benchmark.wire.outcomes import CallEnd, Limits
from assisted_benchmark.wire.relay import NO_RELAY, Relay, shows_forms

_AGENT_CANCELLED: Final = "the agent cancelled the call"


class Calls:
    """One call at a time, by whoever holds the session; `cancel` may come from any thread."""

    def __init__(
        self, channel: Carrier, inbox: Inbox, exchange: Exchange, clock: Clock, limits: Limits, capabilities: Json
    ) -> None:
        self._channel = channel
        self._inbox = inbox
        self._exchange = exchange
        self._clock = clock
        self._limits = limits
        self._calling = 0  # the id of the call in flight: of its first request, where it goes on by others
        self._requests = Requests(inbox) if shows_forms(capabilities) else None

    def call(self, tool: str, arguments: bytes, gate: Callable[[], bool], deadline: Deadline, relay: Relay) -> CallEnd:
        """See `ClientSession.call`."""
        requests = self._requests
        asking = None if requests is None else requests.begin(relay, self._limits, self._channel.ring)
        try:
            self._exchange.drain()  # before the id is given out: no answer can be there already
            self._calling = token = self._inbox.new_id()
            if relay is not NO_RELAY:
                relay.on_cancel(partial(self._stop, token, _AGENT_CANCELLED))
            return self._made(token, tool, arguments, gate, deadline, relay, asking)
        finally:
            self._calling = 0
            self._inbox.settle()
            if requests is not None:
                requests.end()

    def cancel(self, reason: str) -> bool:
        """See `ClientSession.cancel`."""
        calling = self._calling
        if calling:
            self._stop(calling, reason)
        return calling != 0

    def _stop(self, token: int, reason: str) -> None:
        # No lock: a reason is tied to one call's id, so one that comes too late cancels nothing else.
        if self._calling == token:
            self._exchange.cancelled = (token, reason)
            self._channel.ring()

    def _made(
        self,
        token: int,
        tool: str,
        arguments: bytes,
        gate: Callable[[], bool],
        deadline: Deadline,
        relay: Relay,
        asking: Asking | None,
    ) -> CallEnd:
        envelope, heard = self._envelope(asking, relay), relay if relay.wants_progress else None
        request_id, more, first = token, b"", None
        while True:
            meta = envelope if heard is None else {**envelope, "progressToken": request_id}
            frame = write_call(request_id, tool, arguments, orjson.dumps(meta) if meta else b"", more)
            self._inbox.expect(request_id, heard)
            sent = self._exchange.transmit(token, frame, deadline, gate)
            if not isinstance(sent, Instant):
                if first is None:
                    return sent
                return Uncertain(
                    Reason.OUTCOME_UNKNOWN, f"the call did not go on after a question: {sent.detail}", first
                )
            first = first or sent
            end = self._end_of_call(token, request_id, first, deadline, asking)
            wanted = None if asking is None else self._wanted()
            if asking is None or wanted is None or not asking.put_all(asked_for_input(wanted)):
                return end
            deadline = self._ask(token, deadline, asking)
            more = going_on(wanted, asking.taken())
            request_id = self._inbox.new_id()

    def _envelope(self, asking: Asking | None, relay: Relay) -> dict[str, Json]:
        """What the call's `_meta` holds: a server that would ask hears beforehand if nobody can be asked."""
        envelope = self._exchange.envelope
        if asking is None or not envelope or relay.can_ask:
            return envelope
        declared = {key: each for key, each in envelope[META_CAPABILITIES].items() if key != ELICITATION}
        return {**envelope, META_CAPABILITIES: declared}

    def _wanted(self) -> dict[str, Json] | None:
        """The result, if it is of the stateless era and wants more before the call is done."""
        answers = self._inbox.answers
        if not self._exchange.envelope or len(answers) != 1:
            return None
        (answer,) = answers
        result = answer.result if isinstance(answer, Response) else None
        return result if type(result) is dict and result.get("resultType") == "input_required" else None

    def _ask(self, token: int, deadline: Deadline, asking: Asking) -> Deadline:
        """Have people answer what the server wants to know; no request of ours is out meanwhile."""
        while True:
            deadline = asking.go_on(deadline)
            if not asking.busy:
                return deadline
            if (
                self._exchange.closed
                or self._exchange.cancelled[0] == token
                or not self._exchange.wait(asking.until(deadline))
            ):
                asking.give_up()

    def _end_of_call(
        self, token: int, request_id: int, wrote: Instant, deadline: Deadline, asking: Asking | None
    ) -> CallEnd:
        told = False
        while not self._inbox.answers:
            lost = self._channel.lost(request_id)
            if lost:
                return Uncertain(Reason.OUTCOME_UNKNOWN, lost, wrote)
            if asking is not None:
                deadline = asking.go_on(deadline)
                self._answer(asking)
            cancelled, reason = self._exchange.cancelled
            if cancelled == token and not told:
                told = True
                self._send_cancelled(request_id, reason)
                if asking is not None:
                    asking.give_up()
                    deadline = asking.go_on(deadline)
                    self._answer(asking)
                deadline = deadline.child(self._limits.grace_ns)
            if not self._exchange.wait(deadline if asking is None else asking.until(deadline)):
                if asking is not None and asking.busy:
                    asking.give_up()
                    continue
                if told:
                    return Uncertain(Reason.OUTCOME_UNKNOWN, "the call was cancelled after it was sent", wrote)
                self._send_cancelled(request_id, "the time budget ran out")
                return Uncertain(Reason.OUTCOME_UNKNOWN, "no answer came in time", wrote)
        replied = self._clock.now()
        while self._channel.more and not deadline.passed:
            self._exchange.drain()  # a second answer may stand right behind the first
        if len(self._inbox.answers) > 1:
            return Uncertain(Reason.RESULT_INVALID, "the server answered the call twice", wrote)
        return judged(self._inbox.answers[0], self._inbox.plain, wrote, replied)

    def _answer(self, asking: Asking) -> None:
        for key, answer in asking.taken():
            if not self._inbox.send(write_result(key, answer)):
                self._inbox.send(write_result(key, CANCEL))  # what was too much is not left open

    def _send_cancelled(self, request_id: int, reason: str) -> None:
        self._inbox.send(write_notification(CANCELLED, {"requestId": request_id, "reason": reason}))
