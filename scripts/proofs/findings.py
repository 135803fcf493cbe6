"""What comes of every model, variant and limit, as values."""

from __future__ import annotations

from time import process_time
from typing import Any, Final

from attrs import field, frozen

from proofs.catalogue import LIMITS, MODELS, REACHES, Variant, variants
from proofs.explorer import explore
from proofs.replay import replay, whole_table
from proofs.rows import RowLedger, Rows
from proofs.stores import KINDS
from proofs.system import System

AT_MOST_ONCE: Final = "at most one send"


@frozen(kw_only=True)
class Proof:
    """One model, explored to its end: how large it is, what holds of it, and how the real ledgers answered.

    `broken` has the shortest way to break each invariant that does not hold. `edges_taken` are the transitions of the
    broker's table that happen in it. `replayed` are questions to each real ledger, `differing` the answers that were
    not the model's. `seconds` are of the processor.
    """

    model: str
    states: int
    edges: int
    holds: tuple[str, ...]
    broken: dict[str, tuple[str, ...]]
    edges_taken: tuple[str, ...] = field(repr=False)
    replayed: dict[str, int]
    differing: tuple[str, ...]
    seconds: float

    @property
    def sound(self) -> bool:
        """Whether all holds, of the model and of the real ledgers."""
        return not self.broken and not self.differing


@frozen(kw_only=True)
class Caught:
    """A wrong model, and the shortest way to what breaks in it; no way if nothing did."""

    model: str
    breaks: str
    flaws: tuple[str, ...]
    way: tuple[str, ...]

    @property
    def sound(self) -> bool:
        """Whether it was caught."""
        return bool(self.way)


def proof(model: System) -> Proof:
    """Explore a model, then ask the real ledgers the same."""
    began = process_time()
    found = explore(model)
    broken = dict(found.broken) | ({} if found.stuck is None else {REACHES: found.stuck})
    replayed = dict.fromkeys(KINDS, 0)
    differing: list[str] = []
    born = model.start.rows
    tables = ((born, found.asked), (born[:1], whole_table(model.table, model.born)))
    for kind in KINDS:
        # In live runs groups are there from the start, in others they come later; the ledgers must not care.
        for later in (False, True):
            for start, asked in tables:
                came = replay(model.table, start, asked, kind, later=later)
                replayed[kind] += came.questions
                differing += [f"{kind}: {each}" for each in came.differing]
    names = (*model.guards, *model.invariants, REACHES)
    return Proof(
        model=model.name,
        states=found.states,
        edges=found.edges,
        holds=tuple(name for name in names if name not in broken),
        broken=broken,
        edges_taken=_taken(model, found.asked),
        replayed=replayed,
        differing=tuple(differing),
        seconds=round(process_time() - began, 2),
    )


def caught(variant: Variant) -> Caught:
    """Look for what must break."""
    broker = type(variant.model).__name__.lower()
    if variant.breaks == REACHES:
        way = explore(variant.model).stuck or ()
    else:
        way = explore(variant.model, only=variant.breaks).broken.get(variant.breaks, ())
    return Caught(model=broker, breaks=variant.breaks, flaws=tuple(sorted(variant.flaws)), way=way)


def limit(number: int) -> Caught:
    """The way to two sends where nothing is promised: it must be there, or the promise could be larger."""
    model = LIMITS[number]()
    way = explore(model, only=AT_MOST_ONCE).broken.get(AT_MOST_ONCE, ())
    return Caught(model=model.name, breaks=AT_MOST_ONCE, flaws=("a power loss takes commits and anchor",), way=way)


def untaken(proofs: tuple[Proof, ...]) -> tuple[str, ...]:
    """The transitions of any table that happen in no model."""
    every = {each for make in MODELS for each in _edges(make())}
    return tuple(sorted(every - {edge for each in proofs for edge in each.edges_taken}))


def prove(job: tuple[str, int]) -> Proof | Caught:
    """One of the jobs, by its kind and number: for a pool of processes."""
    kind, number = job
    if kind == "model":
        return proof(MODELS[number]())
    return caught(variants()[number]) if kind == "variant" else limit(number)


def jobs() -> list[tuple[str, int]]:
    """All of them, the longest first."""
    return [
        *[("model", number) for number in range(len(MODELS))],
        *[("limit", number) for number in range(len(LIMITS))],
        *[("variant", number) for number in range(len(variants()))],
    ]


def _edges(model: System) -> tuple[str, ...]:
    return tuple(f"{model.table.name}: {before} -> {after}" for before, after in model.table.edges)


def _taken(model: System, asked: frozenset[tuple[Rows, Any]]) -> tuple[str, ...]:
    ledger = RowLedger(model.table)
    taken = set()
    for rows, question in asked:
        after, _ = ledger.ask(rows, question)
        taken |= {
            (old.state, new.state) for old, new in zip(rows, after, strict=True) if old.state != new.state and old.state
        }
    return tuple(sorted(f"{model.table.name}: {before} -> {state}" for before, state in taken))
