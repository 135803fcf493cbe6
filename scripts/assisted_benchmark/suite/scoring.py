"""What is held against the cases of every broker: what came of each call, the scores, the faults. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.result import Miss, Scores


class Expected(Protocol):
    """What a case must come to, whichever broker it drives. None: not said."""

    @property
    def decisions(self) -> tuple[str, ...] | None: ...

    @property
    def refused(self) -> Reason | None: ...

    @property
    def scores(self) -> tuple[tuple[str, float], ...]: ...


def expected_words(expect: Expected, said: Sequence[str]) -> tuple[str, ...]:
    """What must come of each call that was made; `said` is what was said with the call itself, empty if nothing."""
    if expect.decisions is not None:
        return (*expect.decisions, *("",) * len(said))[: len(said)]
    if expect.refused is not None and said:
        return (*said[:-1], expect.refused.value)
    return tuple(said)


def missed_words(expect: Expected, said: Sequence[str], came: Sequence[str], call: str) -> Iterator[Miss]:
    """Where something else came of a call than what was said; `call` is what messages call one."""
    if expect.decisions is not None:
        if tuple(came) != expect.decisions:
            expected, actual = (", ".join(words) or "none" for words in (expect.decisions, came))
            yield Miss(what="decisions", expected=expected, actual=actual)
        return
    for number, (wanted, word) in enumerate(zip(expected_words(expect, said), came, strict=True), 1):
        if wanted and wanted != word:
            yield Miss(what=f"{call} {number}", expected=wanted, actual=word)
    if expect.refused is not None and not came:
        yield Miss(what="refused", expected=expect.refused.value, actual=f"no {call}")


def missed_scores(expect: Expected, scores: Scores) -> Iterator[Miss]:
    """The scores that are others than was said."""
    for name, wanted in expect.scores:
        actual = getattr(scores, name)
        if actual != wanted:
            yield Miss(what=f"score {name}", expected=str(float(wanted)), actual=str(actual))


def unstruck_faults(faults: Sequence[str]) -> Iterator[Miss]:
    """Faults that were declared and whose moment never came."""
    for fault in faults:
        yield Miss(what="fault", expected=f"{fault} strikes", actual="its moment never came")


def refusals_of(words: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """How often each reason was given, by code."""
    counts: dict[str, int] = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    return tuple(sorted(counts.items()))
