"""Which models there are; and, for each invariant, what is wrong with the world in which it breaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from proofs import capability, live, mutation, rows, system
from proofs.capability import Capability
from proofs.live import Live
from proofs.mutation import Mutation
from proofs.system import Power, System

# Between what a model must keep and what it must reach there is one name more.
REACHES: Final = "an end can be reached from everywhere"

DURABLE: Final = Power(durable=True)
TOLD: Final = Power(durable=False, tells=True)
UNTOLD: Final = Power(durable=False, tells=False)

MODELS: Final[tuple[Callable[[], System], ...]] = (
    lambda: Capability("capability: two brokers, two grants", grants=2, keys=1),
    lambda: Live("live: one broker with two threads, two steps in order", threads=(0, 0), groups=2),
    lambda: Live("live: three brokers, one group", threads=(0, 1, 2)),
    lambda: Live("live: two brokers, `process` durability, power losses that the anchor tells", power=TOLD),
    lambda: Live("live: two brokers, `power` durability, power losses", power=DURABLE),
    lambda: Mutation("mutation: one broker with two threads, two proposals", threads=(0, 0), groups=2),
    lambda: Mutation("mutation: three brokers", threads=(0, 1, 2)),
    lambda: Mutation("mutation: two brokers, `process` durability, power losses that the anchor tells", power=TOLD),
    lambda: Mutation("mutation: two brokers, `power` durability, power losses", power=DURABLE),
    lambda: Capability("capability: one broker with two threads, another with one", threads=(0, 0, 1)),
    lambda: Capability("capability: one broker with three threads", threads=(0, 0, 0)),
    lambda: Capability(
        "capability: one broker with two threads, grants left to it", threads=(0, 0), grants=2, keys=1, automatic=True
    ),
    lambda: Capability("capability: two brokers, `process` durability, power losses that the anchor tells", power=TOLD),
    lambda: Capability("capability: one broker, `power` durability, power losses", threads=(0, 0), power=DURABLE),
)

# What is promised of nobody: a ledger that lost its commits, and the anchor with them. (An operation's name has its
# consent in it, and consents end with their broker: it would be executed again only when it is consented to anew.)
LIMITS: Final[tuple[Callable[[], System], ...]] = (
    lambda: Live("live: a power loss that takes the last commits and the anchor", threads=(0,), power=UNTOLD),
    lambda: Mutation("mutation: the same", threads=(0,), power=UNTOLD),
)


class Variant(NamedTuple):
    """A model that is wrong in some way, what must break in it, and the same model with nothing wrong."""

    breaks: str
    flaws: frozenset[str]
    model: System
    right: System


def _variant(kind: Callable[..., System], breaks: str, *flaws: str, **settings: Any) -> Variant:
    wrong = kind("a wrong one", flaws=frozenset(flaws), **settings)
    return Variant(breaks, frozenset(flaws), wrong, kind("a right one", **settings))


_SHARED: Final = (
    ("at most one send", system.SENDS_AGAIN),
    ("a marker before every send", system.SENDS_FIRST),
    ("never back to before the claim", rows.RECOVERS_TO_READY),
    ("an end stays", rows.SETTLES_ANYTHING),
    ("the gate saw no end", system.GATE_IS_OPEN),
    ("told as recorded", system.SILENCE_IS_SUCCESS),
)


def variants() -> tuple[Variant, ...]:
    """For each invariant of each broker at least one."""
    shared = [_variant(kind, breaks, flaw) for kind in (Live, Mutation, Capability) for breaks, flaw in _SHARED]
    return (
        *shared,
        *[
            _variant(kind, "a receipt of every send", system.SENDS_UNHEARD, system.GATE_IS_OPEN)
            for kind in (Live, Mutation, Capability)
        ],
        _variant(Live, "at most one send", system.SENDS_FIRST),
        _variant(Live, "at most one send", rows.RECOVERS_TO_READY),
        _variant(Live, "at most one send", rows.CLAIMS_WHAT_IT_READ),
        _variant(Live, "of a group's candidates one is sent", rows.CLAIMS_EACH_CANDIDATE),
        _variant(Live, "what says unsent was not sent", live.REVOKES_ANYTHING),
        _variant(Live, "an end stays", live.RECONCILES_OVER),
        _variant(Live, "an end stays", rows.MOVES_ANYTHING),
        _variant(Live, "no success after the end", system.LATE_IS_SUCCESS),
        _variant(Live, "a step is sent after the one before succeeded", live.IGNORES_ORDER, groups=2),
        _variant(Live, REACHES, rows.RECOVERS_NOTHING, live.LEAVES_OTHERS),
        _variant(Mutation, "at most one send", rows.RECOVERS_TO_READY, mutation.KEEPS_QUESTIONS),
        _variant(Mutation, "what says unsent was not sent", mutation.ENDS_ANYTHING, mutation.KEEPS_QUESTIONS),
        _variant(Mutation, "a token is used up once", mutation.LOOKS_ONLY),
        _variant(Mutation, "an answer counts once", mutation.KEEPS_QUESTIONS),
        _variant(Mutation, "only what a person agreed to is sent", mutation.ASKS_NOBODY),
        _variant(Mutation, REACHES, rows.RECOVERS_NOTHING),
        _variant(Capability, "at most one send", rows.OPENS_ANYTHING, capability.LOOKS_NOTHING_UP, threads=(0, 0)),
        _variant(Capability, "at most one send", capability.RUNS_WHAT_WAS_RUNNING),
        _variant(Capability, "what says unsent was not sent", system.SENDS_FIRST),
        _variant(Capability, "no success after the end", system.LATE_IS_SUCCESS),
        _variant(Capability, "a consent is used once", capability.SPENDS_NOTHING, threads=(0, 0)),
        _variant(
            Capability,
            "a key is executed once under all grants",
            capability.ASKS_ONE_GRANT,
            threads=(0, 0),
            grants=2,
            keys=1,
            automatic=True,
        ),
        _variant(Capability, "nothing is sent without a consent", capability.NEEDS_NO_GRANT),
        _variant(Capability, "what ended before its marker was not sent", system.SENDS_UNHEARD, system.GATE_IS_OPEN),
        _variant(Capability, "done after the end is told apart", system.LATE_IS_SUCCESS),
        _variant(Capability, REACHES, rows.RECOVERS_NOTHING),
    )
