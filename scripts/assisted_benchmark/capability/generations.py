"""Claims of an instance's state generation: of two changes that expect the same one, one may go on.

The host compares the generation once more when it applies the change, as its own user can change the state
too. What is kept here decides between calls of this broker, before anything is sent.
"""

from __future__ import annotations

from threading import Lock

from attrs import define, field

from assisted_benchmark.capability.ports import Instance


@define
class _Known:
    publication: str
    generation: int = -1
    claimed: set[int] = field(factory=set)


class Generations:
    """What is known of each instance's state under its present publication. Threads may share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: dict[str, _Known] = {}

    def claim(self, instance: Instance, expected: int) -> bool:
        """Take the generation, if it is the present one and nobody has taken it: true for one caller.

        The instance is as its inventory had it, and may be older than what is known here.
        """
        with self._lock:
            known = self._known.get(instance.id)
            if known is None or known.publication != instance.publication:
                known = self._known[instance.id] = _Known(instance.publication)
            if expected != max(known.generation, instance.state_generation) or expected in known.claimed:
                return False
            known.claimed.add(expected)
            return True

    def release(self, instance: Instance, expected: int) -> None:
        """Give a claim back: the change was not made, or the host alone knows whether it was."""
        with self._lock:
            self._claimed(instance, expected)

    def advance(self, instance: Instance, expected: int, now: int) -> None:
        """The claimed change was made; the state is at `now`, and never again at what was expected."""
        with self._lock:
            known = self._claimed(instance, expected)
            if known is not None:
                known.generation = max(known.generation, now, expected + 1)

    def _claimed(self, instance: Instance, expected: int) -> _Known | None:
        """What is known, with the claim taken back; None if the instance has published anew since."""
        known = self._known[instance.id]
        if known.publication != instance.publication:
            return None
        known.claimed.discard(expected)
        return known
