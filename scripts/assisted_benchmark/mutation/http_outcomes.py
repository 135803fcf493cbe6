"""What an HTTP exchange that went wrong comes to: one judgement for the client and for the model in process.

What leaves it open whether the endpoint acted is `Uncertain`: `outcome_unknown` where no whole answer came,
`result_invalid` where one came that cannot be believed. A whole answer is an `HttpReply`, whatever its status.
"""

from __future__ import annotations

from enum import StrEnum, unique
from typing import Final

from assisted_benchmark.kernel.clock import Instant
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.sending import Uncertain
from assisted_benchmark.kernel.strict_json import MIB

MAX_ANSWER: Final = MIB


@unique
class Broken(StrEnum):
    """Why an exchange whose request was written gave no answer to go by; the value is for people."""

    LATE = "no whole answer came in time"
    CLOSED = "the connection was closed before the answer was whole"
    NO_HTTP = "what came is not HTTP"
    TOO_LARGE = "the answer is larger than is taken"
    TWICE = "something came after the answer"
    NO_JSON = "an answer of success that is not called JSON"

    def uncertain(self, wrote: Instant) -> Uncertain:
        """The outcome that it comes to."""
        unbelievable = self in (Broken.TWICE, Broken.NO_JSON)
        return Uncertain(Reason.RESULT_INVALID if unbelievable else Reason.OUTCOME_UNKNOWN, self.value, wrote)


def unbelievable(status: int, media: str) -> Broken | None:
    """What is wrong with a whole answer's head, if anything is.

    An error may be a page, as proxies write them: it still says that nothing was done. A success may not.
    """
    if status < 300 and media.partition(";")[0].strip().lower() != "application/json":
        return Broken.NO_JSON
    return None
