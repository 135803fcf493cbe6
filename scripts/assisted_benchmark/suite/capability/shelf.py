"""The registries of a root, by id, and the cases of capability scenarios under them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from assisted_benchmark.capability.registry import Registry
from assisted_benchmark.capability.registry_document import load_registry
from assisted_benchmark.contract.pins import Pins
from assisted_benchmark.contract.strict_yaml import Document
from assisted_benchmark.kernel.digest import Digest, digest_of
from assisted_benchmark.kernel.errors import Problem
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown
from assisted_benchmark.suite.broker import Found, Pinned
from assisted_benchmark.suite.capability.expand import Origin, cases_of
from assisted_benchmark.suite.capability.scaffold import scaffold
from assisted_benchmark.suite.capability.scenario import CapabilityCase
from assisted_benchmark.suite.capability.scenario_document import scenario_from
from assisted_benchmark.suite.files import Files
from assisted_benchmark.suite.result import CaseResult
from assisted_benchmark.suite.tables import Flaws

SUFFIX: Final = ".registry.yaml"


class CapabilityShelf:
    """The registries of a root, and the problems of their files."""

    def __init__(self, root: Path, _: Pins | None) -> None:
        files = Files(root)
        self.problems = files.problems
        self.policies: dict[str, Registry] = {}
        self._used: set[str] = set()
        for _path, registry in files.all("registry", SUFFIX, load_registry):
            self.policies[registry.id] = registry

    @property
    def stock(self) -> Mapping[tuple[str, str], Mapping[str, Digest]]:
        return {("registries", "registry"): {name: each.digest for name, each in self.policies.items()}}

    def pinned(self, *, used: bool) -> Iterator[Pinned]:
        for name in self._used if used else self.policies:
            yield Pinned("registry", "registries", name, self.policies[name].digest)

    def found(self, document: Document, data: bytes) -> Found[CapabilityCase]:
        scenario = scenario_from(document)
        registry = self.policies.get(scenario.registry)
        if registry is None:
            flaws = Flaws()
            if not self.problems:  # else the registry's own file is at fault, and is told of
                hint = did_you_mean(scenario.registry, self.policies) or "it is looked for in contracts/*.registry.yaml"
                detail = f"no registry has the id `{shown(scenario.registry, 60)}`"
                flaws.add(Reason.UNKNOWN_REFERENCE, ("registry",), detail, hint)
            return Found(scenario.id, (), flaws)
        self._used.add(registry.id)
        source = digest_of("capability-source@1", data, registry.digest.encode())
        cases, flaws = cases_of(scenario, Origin(registry, source))
        return Found(scenario.id, cases, flaws)

    def lint(self) -> Iterator[Problem]:
        """Nothing: a registry names no file of this machine."""
        return iter(())

    def scaffold(
        self, scenario_id: str, policy: str, candidate: str | None, play: Callable[[CapabilityCase], CaseResult]
    ) -> str:
        return scaffold(scenario_id, self.policies[policy], candidate, play)
