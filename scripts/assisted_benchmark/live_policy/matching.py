"""How a call that is no candidate differs from the nearest one: the slow road, for people. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from assisted_benchmark.kernel.canonical import Canonical, Json, canonical_bytes
from assisted_benchmark.kernel.pointers import pointer
from assisted_benchmark.kernel.redact import REDACTED, holds_sensitive, is_sensitive
from assisted_benchmark.kernel.text import shown
from assisted_benchmark.live_policy.policy import Candidate, PlannedStep
from assisted_benchmark.live_policy.proposal import Proposal


def nearest(step: PlannedStep, proposal: Proposal) -> Candidate:
    """The candidate that differs in the fewest places; the first of them, if several do."""
    return min(step.candidates, key=lambda each: len(differences(each, proposal, ())))


def only_target_differs(step: PlannedStep, proposal: Proposal) -> bool:
    """Whether the call is one of the step's candidates but for the value of the target argument."""
    target, arguments = step.target, proposal.arguments
    if not target or target not in arguments or proposal.call in step.by_call:
        return False
    rest = _without(arguments, target)
    return any(rest == _without(Canonical(each.arguments).value, target) for each in step.candidates)


def differences(candidate: Candidate, proposal: Proposal, sensitive: tuple[str, ...]) -> tuple[str, ...]:
    """One line for each place where the proposed arguments are not the candidate's.

    Says what was proposed, as far as it is not sensitive, and never what was sealed. Of a marked value not even
    the keys are told, nor is an extra key beside one; and nothing of a value in another shape that has a mark within.
    """
    return tuple(_compare(Canonical(candidate.arguments).value, proposal.arguments, "", sensitive))


def _without(arguments: dict[str, Json], target: str) -> bytes:
    return canonical_bytes({key: value for key, value in arguments.items() if key != target})


def _compare(sealed: Json, proposed: Json, path: str, sensitive: tuple[str, ...]) -> Iterator[str]:
    marked = is_sensitive(path, sensitive)
    if not marked and type(sealed) is dict and type(proposed) is dict:
        for key in sorted(sealed.keys() | proposed.keys()):
            below = pointer(path, key)
            if key not in proposed:
                yield f"{shown(below)} is missing"
            elif key not in sealed:
                beside = holds_sensitive(path, sensitive)
                yield f"{shown(path) or '/'} has a key too many" if beside else f"{shown(below)} is extra"
            else:
                yield from _compare(sealed[key], proposed[key], below, sensitive)
    elif not marked and type(sealed) is list and type(proposed) is list and len(sealed) == len(proposed):
        for index, (one, other) in enumerate(zip(sealed, proposed, strict=True)):
            yield from _compare(one, other, pointer(path, index), sensitive)
    elif canonical_bytes(sealed) != canonical_bytes(proposed):
        hidden = holds_sensitive(path, sensitive)
        value = REDACTED if hidden else shown(canonical_bytes(proposed).decode(), 80)
        yield f"{shown(path) or '/'} differs: {value} was proposed"
