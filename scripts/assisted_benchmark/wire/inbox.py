"""What a server says, judged line by line: answers, progress, news, requests, and what fits nothing."""

from __future__ import annotations

from collections.abc import Callable

from assisted_benchmark.kernel.canonical import Json, canonical_bytes, parse_telling, plain_bytes
from assisted_benchmark.kernel.clock import Instant
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import Uncertain
from assisted_benchmark.kernel.text import shown
from assisted_benchmark.wire.carrier import Carrier
from assisted_benchmark.wire.frames import (
    CANCELLED,
    META_SUBSCRIPTION,
    METHOD_NOT_FOUND,
    PROGRESS,
    SUBSCRIBED,
    TOOLS_CHANGED,
    Bad,
    Notification,
    Request,
    Response,
    read_frame,
    write_error,
    write_result,
)
from assisted_benchmark.wire.outcomes import CallEnd, Error, Limits, Odd, Oddity, Result
from assisted_benchmark.wire.relay import Relay


class Inbox:
    """Sorts what comes: answers to the one awaited request, and everything else.

    `answers` holds what answered it; more than one contradict each other. `plain`: the last of
    them may be written by `plain_bytes`. `changed`: the tool list may differ from the one listed
    last. `deaf`: a server that promised to tell of changes has stopped telling, for good.
    `on_request` says whether it takes in a request of the server's, `on_cancelled` hears which one it takes back.
    """

    def __init__(self, channel: Carrier, limits: Limits) -> None:
        self._channel = channel
        self._limits = limits
        self.on_request: Callable[[Request], bool] = _refused
        self.on_cancelled: Callable[[Json], None] = _ignored
        self._last_id = 0
        self._awaited: int | None = None
        self._watch: _Watch | None = None
        self._subscription: int | None = None
        self.answers: list[Response | Bad] = []
        self.plain = False
        self._line_plain = False
        self.subscribed = False
        self.deaf = False
        self.changed = False
        self.oddities: list[Oddity] = []
        self.oddities_dropped = 0

    def new_id(self) -> int:
        """An id that this session has not used."""
        self._last_id += 1
        return self._last_id

    def expect(self, request_id: int, relay: Relay | None = None) -> None:
        """From now on this request is the awaited one; its progress goes by `relay`."""
        self._awaited = request_id
        self.answers = []
        self._watch = _Watch(request_id, relay, self._limits.progress) if relay is not None else None

    def settle(self) -> None:
        """No request is awaited any more; whatever still comes for the last one is late."""
        self._awaited = None
        self._watch = None
        self._channel.settle()

    def expect_subscription(self, request_id: int) -> None:
        """From now on this id is the one subscription's."""
        self._subscription = request_id

    def lose_subscription(self, detail: str) -> None:
        """Nothing will tell of changes any more."""
        self._subscription = None
        self.subscribed = False
        self.deaf = True
        self.record(Odd.WATCH_LOST, detail)

    def record(self, kind: Odd, detail: str, reason: Reason | None = None) -> None:
        """Remember something odd, within the bound."""
        if len(self.oddities) < self._limits.oddities:
            self.oddities.append(Oddity(kind, detail, reason))
        else:
            self.oddities_dropped += 1

    def send(self, frame: bytes) -> bool:
        """Write a frame that nobody waits for, as soon as the pipe takes it; False if it cannot be kept that long."""
        sent = self._channel.post(frame)
        if not sent:
            self.record(Odd.UNSENT, "the server does not read")
        return sent

    def take_lines(self) -> None:
        """Judge every line that has arrived."""
        lines = self._channel.lines
        while lines:
            line = lines.popleft()
            self._take(line if isinstance(line, Bad) else read_frame(line, self._limits.line, self._parse))
        if self._channel.half:
            self._channel.half = False
            self.record(Odd.HALF_LINE, "the last line has no end")

    def _parse(self, line: bytes, max_bytes: int) -> Json:
        value, self._line_plain = parse_telling(line, max_bytes)
        return value

    def _take(self, frame: Request | Notification | Response | Bad) -> None:
        if isinstance(frame, Response):
            self._take_response(frame)
        elif isinstance(frame, Notification):
            self._take_notification(frame)
        elif isinstance(frame, Request):
            if frame.method == "ping":
                self.send(write_result(frame.id, {}))
            elif not self.on_request(frame):
                self.record(Odd.REFUSED_REQUEST, shown(frame.method))
                self.send(write_error(frame.id, METHOD_NOT_FOUND, "this client serves no such request"))
        elif frame.reply and self._is_awaited(frame.id):
            self.answers.append(frame)
        else:
            self.record(Odd.BAD_LINE, frame.detail, frame.reason)
            if frame.id is not None and not frame.reply:
                self.send(write_error(frame.id, frame.code, "the line is no message"))

    def _take_response(self, response: Response) -> None:
        if self._is_awaited(response.id):
            self.answers.append(response)
            self.plain = self._line_plain
        elif type(response.id) is int and response.id == self._subscription:
            self.lose_subscription("the server ended the subscription to its tool list")
        elif type(response.id) is int and 0 < response.id <= self._last_id:
            self.record(Odd.SETTLED_ID, f"an answer to {response.id}, which is settled")
        else:
            self.record(Odd.UNKNOWN_ID, f"an answer to {shown(repr(response.id), 80)}, which nobody asked")

    def _is_awaited(self, answered: Json) -> bool:
        # Compared with its type: "33" is not 33.
        return self._awaited is not None and type(answered) is int and answered == self._awaited

    def _take_notification(self, frame: Notification) -> None:
        if frame.method == TOOLS_CHANGED:
            self.changed = True
        elif frame.method == PROGRESS:
            self._take_progress(frame.params)
        elif frame.method == CANCELLED:
            self.on_cancelled(frame.params.get("requestId"))
        elif frame.method == SUBSCRIBED:
            meta, honoured = as_object(frame.params.get("_meta")), as_object(frame.params.get("notifications"))
            subscription = meta.get(META_SUBSCRIPTION)
            if type(subscription) is int and subscription == self._subscription:
                self.subscribed = honoured.get("toolsListChanged") is True

    def _take_progress(self, params: dict[str, Json]) -> None:
        watch = self._watch
        if watch is None or self.answers or not watch.admits(params):
            self.record(Odd.STRAY_PROGRESS, "progress that nobody asked for, that goes back, or that is too much")
            return
        try:
            watch.hand_on(params)
        except Exception:  # noqa: BLE001 - a call that was written must end as a CallEnd, whatever a listener does
            self._watch = None
            self.record(Odd.CALLBACK_FAILED, "the progress callback raised; it is not called again")


class _Watch:
    """The progress of the call in flight: only ours, only forward, only so much."""

    __slots__ = ("_last", "_left", "_relay", "_token")

    def __init__(self, token: int, relay: Relay, left: int) -> None:
        self._token = token
        self._relay = relay
        self._left = left
        self._last: float | None = None

    def admits(self, params: dict[str, Json]) -> bool:
        token, current = params.get("progressToken"), params.get("progress")
        return (
            self._left > 0
            and type(token) is int
            and token == self._token
            and (type(current) is int or type(current) is float)
            and (self._last is None or current > self._last)
        )

    def hand_on(self, params: dict[str, Json]) -> None:
        self._left -= 1
        current, total, message = params["progress"], params.get("total"), params.get("message")
        self._last = current
        known_total = total if type(total) in {int, float} else None
        self._relay.progress(current, known_total, message if type(message) is str else "")


def judged(answer: Response | Bad, plain: bool, wrote: Instant, replied: Instant) -> CallEnd:
    """What an answer to a call is worth; `plain` says that `plain_bytes` may write it."""
    spell = plain_bytes if plain else canonical_bytes
    if isinstance(answer, Bad):
        return Uncertain(Reason.RESULT_INVALID, f"the answer is no message: {answer.detail}", wrote)
    if answer.error is not None:
        return Error(spell(answer.error), answer.error, wrote, replied)
    result = answer.result
    if type(result) is not dict:
        return Uncertain(Reason.RESULT_INVALID, "the result is not an object", wrote)
    if result.get("resultType", "complete") != "complete":
        return Uncertain(Reason.RESULT_INVALID, f"the result is {shown(str(result['resultType']), 40)}", wrote)
    if type(result.get("isError", False)) is not bool or type(result.get("content")) is not list:
        return Uncertain(
            Reason.RESULT_INVALID, "the result has no content list, or an isError that is no boolean", wrote
        )
    return Result(spell(result), result, wrote, replied)


def _refused(_request: Request) -> bool:
    return False


def _ignored(_request_id: Json) -> None:
    """Nothing was asked."""


def as_object(value: Json) -> dict[str, Json]:
    """The value if it is an object, else an empty one."""
    return value if type(value) is dict else {}
