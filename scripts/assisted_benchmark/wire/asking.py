"""What a server asks of people while a call is in flight: one question at a time, in one bounded time of theirs.

In the handshake era a question is a request of the server's, answered by its id while the call waits. In the stateless
era it is in the result that the call comes to first, and the answers go with the request that goes on with it. A person
who accepts says so in these very words; everything else that is no decline is told to the server as a cancel.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

import orjson

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.clock import Deadline
from assisted_benchmark.wire.frames import INVALID_PARAMS, Id, Request, write_error
from assisted_benchmark.wire.inbox import Inbox
from assisted_benchmark.wire.outcomes import Limits
from assisted_benchmark.wire.relay import Relay, Silence

ELICITATION: Final = "elicitation"  # the capability
ELICIT: Final = "elicitation/create"  # the request
CANCEL: Final[dict[str, Json]] = {"action": "cancel"}
_DECLINE: Final[dict[str, Json]] = {"action": "decline"}


class _Asked(NamedTuple):
    key: Id
    message: str
    schema: dict[str, Json]


class Asking:
    """The questions of one call. `ring` wakes the thread that reads, which alone calls everything here.

    While one is open the call's own budget stands still.
    """

    def __init__(self, relay: Relay, limits: Limits, ring: Callable[[], None]) -> None:
        self._relay = relay
        self._left = limits.questions
        self._left_ns = limits.human_ns
        self._ring = ring
        self._waiting: deque[_Asked] = deque()
        self._heard: deque[tuple[_Asked, Json | Silence]] = deque()  # from any thread
        self._open: _Asked | None = None
        self._end: Callable[[], None] | None = None
        self._people: Deadline | None = None
        self._kept_ns = 0
        self._answered: list[tuple[Id, dict[str, Json]]] = []

    @property
    def busy(self) -> bool:
        """Whether something waits for an answer."""
        return self._open is not None or bool(self._waiting)

    def put(self, key: Id, params: Json) -> bool:
        """Ask this when its turn has come; False if it is no question that a form can ask."""
        message, schema = params.get("message"), params.get("requestedSchema")
        if type(message) is not str or type(schema) is not dict or params.get("mode", "form") != "form":
            return False
        self._left -= 1
        if self._left < 0 or not self._relay.can_ask:
            self._answered.append((key, CANCEL))
        else:
            self._waiting.append(_Asked(key, message, schema))
        return True

    def put_all(self, wanted: dict[str, Json] | None) -> bool:
        """Ask all of these; False if there are none, too many, or such that are no question."""
        return wanted is not None and len(wanted) <= self._left and all(self.put(*each) for each in wanted.items())

    def taken(self) -> list[tuple[Id, dict[str, Json]]]:
        """What was answered since this was asked last, for the server."""
        answered, self._answered = self._answered, []
        return answered

    def take_back(self, key: Json) -> None:
        """The server does not want to know any more: nobody is asked, and nothing answered."""
        if self._open is not None and same(self._open.key, key):
            self._close()
        self._waiting = deque(each for each in self._waiting if not same(each.key, key))

    def go_on(self, deadline: Deadline) -> Deadline:
        """Take in what was heard, and ask what is next; the call's own budget, after the time that people took."""
        while self._heard:
            asked, answer = self._heard.popleft()
            if asked is self._open:
                self._answered.append((asked.key, _told(answer)))
                self._close()
        if self._open is None and self._people is not None:
            deadline, self._people = deadline.anew(self._kept_ns), None
        if self._open is None and self._waiting:
            self._ask(self._waiting.popleft(), deadline)
        return deadline

    def until(self, deadline: Deadline) -> Deadline:
        """What is waited for: people, or the server."""
        return deadline if self._people is None else self._people

    def give_up(self) -> None:
        """Nobody is asked any longer: every question is cancelled."""
        if self._open is not None:
            self._answered.append((self._open.key, CANCEL))
            self._close()
        self._answered += ((each.key, CANCEL) for each in self._waiting)
        self._waiting.clear()

    def close(self) -> None:
        """The call is over, and so is what was asked for it."""
        self._waiting.clear()
        self._close()

    def _ask(self, asked: _Asked, deadline: Deadline) -> None:
        self._kept_ns = deadline.remaining_ns()
        self._people = deadline.anew(self._left_ns)
        self._open = asked

        def heard(answer: Json | Silence) -> None:
            self._heard.append((asked, answer))
            self._ring()

        try:
            self._end = self._relay.question(asked.message, asked.schema, heard)
        except Exception:  # noqa: BLE001 - a call that was written must end as a CallEnd, whatever a relay does
            heard(Silence.FAILED)

    def _close(self) -> None:
        end, self._end, self._open = self._end, None, None
        if self._people is not None:
            self._left_ns = self._people.remaining_ns()
        if end is not None:
            end()


class Requests:
    """The questions that come as requests of the server's: taken in where they belong to a call, else refused."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self._asking: Asking | None = None
        inbox.on_request = self._take
        inbox.on_cancelled = self._take_back

    def begin(self, relay: Relay, limits: Limits, ring: Callable[[], None]) -> Asking:
        """From now on they are questions of this call."""
        self._asking = Asking(relay, limits, ring)
        return self._asking

    def end(self) -> None:
        """The call is over, and so is whatever was asked for it."""
        asking, self._asking = self._asking, None
        if asking is not None:
            asking.close()

    def _take(self, request: Request) -> bool:
        if self._asking is None or request.method != ELICIT:
            return False
        if not self._asking.put(request.id, request.params):
            self._inbox.send(write_error(request.id, INVALID_PARAMS, "this client shows forms alone"))
        return True

    def _take_back(self, request_id: Json) -> None:
        if self._asking is not None:
            self._asking.take_back(request_id)


def asked_for_input(result: dict[str, Json]) -> dict[str, Json] | None:
    """What such a result of the stateless era asks for, by its keys; None if it asks for anything but people."""
    wanted, state = result.get("inputRequests"), result.get("requestState", "")
    if type(wanted) is not dict or not wanted or type(state) is not str:
        return None
    asked: dict[str, Json] = {}
    for key, each in wanted.items():
        if type(each) is not dict or each.get("method") != ELICIT or type(each.get("params")) is not dict:
            return None
        asked[key] = each["params"]
    return asked


def going_on(result: dict[str, Json], answers: list[tuple[Id, dict[str, Json]]]) -> bytes:
    """What goes with the request that goes on: the server's own state, and the answers; members of its params."""
    more: dict[str, Json] = {"inputResponses": dict(answers)}
    if "requestState" in result:
        more["requestState"] = result["requestState"]
    return b"," + orjson.dumps(more)[1:-1]


def same(one: Json, other: Json) -> bool:
    """Whether two ids are one: `"33"` is not 33."""
    return type(one) is type(other) and one == other


def _told(answer: Json | Silence) -> dict[str, Json]:
    """What the server is told. INVARIANT: an acceptance is one by its word and its content, and nothing else is."""
    if isinstance(answer, Silence) or type(answer) is not dict:
        return CANCEL
    action, content = answer.get("action"), answer.get("content")
    if action == "accept" and type(content) is dict:
        return {"action": "accept", "content": content}
    return _DECLINE if action == "decline" else CANCEL
