"""What can come of a send besides an answer: the two values that no broker may mix up."""

from __future__ import annotations

from attrs import frozen

from assisted_benchmark.kernel.clock import Instant
from assisted_benchmark.kernel.reasons import Reason


@frozen
class NotSent:
    """Not one byte of the call was written.

    `reason` is expired (the gate said no), cancelled, server_unavailable, deadline_exceeded, too_large, or
    binding_mismatch (not what was claimed).
    """

    reason: Reason
    detail: str = ""


@frozen
class Uncertain:
    """At least one byte may have reached the server, and what came of it is not known.

    `reason` is outcome_unknown (lost answer, timeout, death, garbage, a late cancel) or
    result_invalid (the answer contradicts itself, or there were two).
    """

    reason: Reason
    detail: str
    wrote: Instant
