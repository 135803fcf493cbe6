"""The transition table of one broker's groups: data, used by the ledgers, the docs and the explorer."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from attrs import field, frozen

from assisted_benchmark.kernel.errors import LedgerError
from assisted_benchmark.kernel.reasons import Reason


def _as_texts(after_crash: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType({str(state): str(end) for state, end in after_crash.items()})


@frozen(kw_only=True)
class TransitionTable:
    """Which state may follow which.

    A group is born `initial`; a claim brings it from `ready` (the initial state, if nothing else is said) to
    `claimed`, the durable marker. `after_crash` names each state that a crash must not leave as it is, and
    the end that it comes to then. A state without an edge out of it is terminal; from an `unclaimed` one a
    claim is still ahead.
    """

    name: str
    initial: str
    ready: str = field()
    claimed: str
    after_crash: Mapping[str, str] = field(converter=_as_texts, hash=False)
    edges: frozenset[tuple[str, str]]
    states: frozenset[str] = field(init=False)
    terminal: frozenset[str] = field(init=False)
    unclaimed: frozenset[str] = field(init=False)

    @ready.default
    def _initial(self) -> str:
        return self.initial

    def __attrs_post_init__(self) -> None:
        states = frozenset(state for edge in self.edges for state in edge)
        object.__setattr__(self, "states", states)
        object.__setattr__(self, "terminal", states - {before for before, _ in self.edges})
        object.__setattr__(self, "unclaimed", _leading_to(self.claimed, self.edges))
        into = {before for before, after in self.edges if after == self.claimed}
        safe = self.claimed in self.after_crash and all(
            (state, end) in self.edges and end in self.terminal for state, end in self.after_crash.items()
        )
        if into != {self.ready} or self.initial not in self.unclaimed or not safe:
            raise LedgerError(Reason.ILLEGAL_TRANSITION, f"the table `{self.name}` lacks the road through a crash")

    def require(self, before: str, after: str) -> None:
        """LedgerError(illegal_transition) unless the table has this edge."""
        if (before, after) not in self.edges:
            raise LedgerError(Reason.ILLEGAL_TRANSITION, f"`{self.name}` has no edge {before} -> {after}")

    def require_move(self, before: str, after: str) -> None:
        """LedgerError(illegal_transition) unless this is an edge that needs no claim."""
        self.require(before, after)
        if after == self.claimed:
            raise LedgerError(Reason.ILLEGAL_TRANSITION, f"only a claim leads to `{after}`")


def _leading_to(state: str, edges: frozenset[tuple[str, str]]) -> frozenset[str]:
    """Every other state from which the edges lead to `state`."""
    found, added = {state}, {state}
    while added:
        added = {before for before, after in edges if after in added} - found
        found |= added
    return frozenset(found - {state})


def drawn(table: TransitionTable) -> str:
    """The table as a Mermaid state diagram, the same for the same table."""
    lines = ["stateDiagram-v2", f"    [*] --> {table.initial}"]
    lines += [f"    {before} --> {after}" for before, after in sorted(table.edges)]
    lines += [f"    {state} --> [*]" for state in sorted(table.terminal)]
    return "\n".join(lines) + "\n"
