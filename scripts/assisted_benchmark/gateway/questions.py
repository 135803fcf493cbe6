"""What we have asked the client and it has not answered yet."""

from __future__ import annotations

import threading
from typing import Final

from assisted_benchmark.kernel.clock import SECOND, Deadline
from assisted_benchmark.kernel.strict_json import Json
from assisted_benchmark.wire.frames import Bad, Response
from assisted_benchmark.wire.outcomes import Odd
from assisted_benchmark.wire.relay import Heard, Silence

_PREFIX: Final = "ask-"


class Question:
    """One open question. It is settled once, by an answer or by silence; whatever comes later changes nothing.

    `heard` is told of it then, from the thread that settles it. `asked_ns` and `sent` are for whoever asks.
    """

    def __init__(self, question_id: str, heard: Heard | None = None) -> None:
        self.id = question_id
        self.asked_ns = 0
        self.sent = False
        self._heard = heard
        self._lock = threading.Lock()
        self._settled = threading.Event()
        self._end: Json | Silence = None

    @property
    def settled(self) -> bool:
        """Whether it has an end."""
        return self._settled.is_set()

    @property
    def end(self) -> Json | Silence:
        """Its end, once it is settled."""
        return self._end

    def settle(self, end: Json | Silence) -> bool:
        """Settle it; False if it was settled before."""
        with self._lock:
            if self._settled.is_set():
                return False
            self._end = end
            self._settled.set()
        if self._heard is not None:
            self._heard(end)
        return True

    def wait(self, deadline: Deadline) -> Json | Silence:
        """The answer, or why there is none by the deadline at the latest."""
        while not self._settled.is_set() and not deadline.passed:
            self._settled.wait(min(deadline.remaining_ns() / SECOND, threading.TIMEOUT_MAX))
        self.settle(Silence.TIMED_OUT)
        return self._end


class Questions:
    """The open questions of one session, by our own ids; those are texts, and no id of the client's counts for one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, Question] = {}
        self._asked = 0
        self._closed = False

    def open(self, heard: Heard | None = None) -> Question:
        """A new question. In a session that has ended it has failed already."""
        with self._lock:
            self._asked += 1
            question = Question(f"{_PREFIX}{self._asked}", heard)
            if self._closed:
                question.settle(Silence.FAILED)
            else:
                self._open[question.id] = question
            return question

    def take(self, frame: Response | Bad) -> Odd | None:
        """Settle the question that a frame answers; or what is odd about a frame that answers none."""
        with self._lock:
            question = self._open.pop(frame.id, None) if type(frame.id) is str else None
            if question is None:
                return Odd.SETTLED_ID if self._was_asked(frame.id) else Odd.UNKNOWN_ID
        end = Silence.FAILED if isinstance(frame, Bad) or frame.error is not None else frame.result
        return None if question.settle(end) else Odd.SETTLED_ID

    def withdraw(self, question: Question) -> None:
        """Wait for this one no longer: an answer that still comes is late."""
        with self._lock:
            self._open.pop(question.id, None)

    def close(self) -> None:
        """No answer will come any more: every question has failed, and so has every later one."""
        with self._lock:
            self._closed = True
            left = list(self._open.values())
            self._open.clear()
        for question in left:
            question.settle(Silence.FAILED)

    def _was_asked(self, answered: Json) -> bool:
        number = answered.removeprefix(_PREFIX) if type(answered) is str else ""
        if not number.isdecimal() or len(number) > 9:
            return False
        return answered == f"{_PREFIX}{int(number)}" and 0 < int(number) <= self._asked
