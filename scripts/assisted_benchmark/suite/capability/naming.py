"""Operations as scenarios name them, in full or without namespace and version, and what is wrong with a name. Pure."""

from __future__ import annotations

from attrs import evolve, frozen

from assisted_benchmark.capability.registry import VERSION_SUFFIX, Operation, Registry
from assisted_benchmark.contract.strict_yaml import Path
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown
from assisted_benchmark.suite.capability.scenario import Expect
from assisted_benchmark.suite.tables import Flaws


def operation_id(registry: Registry, name: str) -> str:
    """The id of an operation that a scenario names in full, or without namespace and version."""
    return name if name.endswith(VERSION_SUFFIX) else f"{registry.namespace}{name}{VERSION_SUFFIX}"


def short_name(registry: Registry, operation: str) -> str:
    """An operation as scenarios name it."""
    return operation.removeprefix(registry.namespace).removesuffix(VERSION_SUFFIX)


@frozen
class Names:
    """The names of one registry. What it does not have is a flaw."""

    registry: Registry
    flaws: Flaws

    def operation(self, name: str, path: Path, *, at_key: bool = False) -> Operation | None:
        """The operation of that name; `path` is where it stands."""
        found = self.registry.operation(operation_id(self.registry, name))
        if found is None:
            names = [short_name(self.registry, each.id) for each in self.registry.operations]
            hint = did_you_mean(name, names) or f"operations: {', '.join(names)}"
            detail = f"the registry `{self.registry.id}` has no operation `{shown(name, 60)}`"
            self.flaws.add(Reason.UNKNOWN_REFERENCE, path, detail, hint, at_key=at_key)
        return found

    def eligible(self, names: tuple[str, ...] | None, path: Path) -> frozenset[str]:
        """The operations of the operator's policy: all, if none is named."""
        if names is None:
            return frozenset(each.id for each in self.registry.operations)
        found = [self.operation(name, (*path, "eligible", index)) for index, name in enumerate(names)]
        return frozenset(each.id for each in found if each is not None)

    def standing(self, names: tuple[str, ...], path: Path) -> frozenset[str]:
        """The profiles and operations that a standing policy consents to."""
        profiles = self.registry.profiles
        for index, name in enumerate(names):
            near = "" if name in profiles or "/" in name else did_you_mean(name, profiles)
            if near:
                detail = f"the registry `{self.registry.id}` has no profile `{shown(name, 60)}`"
                self.flaws.add(Reason.UNKNOWN_REFERENCE, (*path, "standing", index), detail, near)
            elif name not in profiles:
                self.operation(name, (*path, "standing", index))
        return frozenset(name if name in profiles else operation_id(self.registry, name) for name in names)

    def executed(self, expect: Expect, path: Path) -> Expect:
        """The expectation with its operations in full."""
        if expect.executed is None:
            return expect
        place = (*path, "expect", "executed")
        found = [(self.operation(name, (*place, name), at_key=True), count) for name, count in expect.executed]
        return evolve(expect, executed=tuple((each.id, count) for each, count in found if each is not None))
