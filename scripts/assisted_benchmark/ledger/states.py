"""The transition table of one broker's groups: data, used by the ledgers, the docs and the explorer."""

from __future__ import annotations

from attrs import field, frozen

from assisted_benchmark.kernel.errors import LedgerError
from assisted_benchmark.kernel.reasons import Reason


@frozen(kw_only=True)
class TransitionTable:
    """Which state may follow which.

    `in_flight` are the states of a durable marker whose end is not known yet; after a crash
    each of them can only become `after_crash`. A state without an edge out of it is terminal.
    """

    name: str
    initial: str
    claimed: str
    after_crash: str
    edges: frozenset[tuple[str, str]]
    states: frozenset[str] = field(init=False)
    terminal: frozenset[str] = field(init=False)

    def __attrs_post_init__(self) -> None:
        states = frozenset(state for edge in self.edges for state in edge)
        object.__setattr__(self, "states", states)
        object.__setattr__(self, "terminal", states - {before for before, _ in self.edges})
        needed = {(self.initial, self.claimed), (self.claimed, self.after_crash)}
        if not needed <= self.edges or self.after_crash not in self.terminal:
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


def drawn(table: TransitionTable) -> str:
    """The table as a Mermaid state diagram, the same for the same table."""
    lines = ["stateDiagram-v2", f"    [*] --> {table.initial}"]
    lines += [f"    {before} --> {after}" for before, after in sorted(table.edges)]
    lines += [f"    {state} --> [*]" for state in sorted(table.terminal)]
    return "\n".join(lines) + "\n"
