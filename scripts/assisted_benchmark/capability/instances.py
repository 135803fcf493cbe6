"""The exact instance only: never the newest, never a similar one."""

from __future__ import annotations

from collections.abc import Iterable

from assisted_benchmark.capability.ports import Instance
from assisted_benchmark.kernel.reasons import Reason


def exactly(instances: Iterable[Instance], instance_id: str) -> Instance | Reason:
    """The one instance of this id; instance_not_found if there is none, ambiguous_instance if there are more."""
    found = [each for each in instances if each.id == instance_id]
    if len(found) == 1:
        return found[0]
    return Reason.AMBIGUOUS_INSTANCE if found else Reason.INSTANCE_NOT_FOUND
