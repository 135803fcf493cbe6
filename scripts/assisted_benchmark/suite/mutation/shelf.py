"""The change contracts of a root, by id, and the cases of mutation scenarios under them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from assisted_benchmark.contract.pins import Pins
from assisted_benchmark.contract.strict_yaml import Document
from assisted_benchmark.kernel.digest import Digest, digest_of
from assisted_benchmark.kernel.errors import Problem
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown
from assisted_benchmark.mutation.changes import ChangeContract
from assisted_benchmark.mutation.changes_document import CHANGES_SUFFIX, load_changes
from assisted_benchmark.suite.broker import Found, Pinned
from assisted_benchmark.suite.files import Files
from assisted_benchmark.suite.mutation.expand import Origin, cases_of
from assisted_benchmark.suite.mutation.scaffold import scaffold
from assisted_benchmark.suite.mutation.scenario import MutationCase
from assisted_benchmark.suite.mutation.scenario_document import scenario_from
from assisted_benchmark.suite.mutation.world import unplayable
from assisted_benchmark.suite.result import CaseResult
from assisted_benchmark.suite.tables import Flaws


class MutationShelf:
    """The change contracts of a root, and the problems of their files."""

    def __init__(self, root: Path, _: Pins | None) -> None:
        files = Files(root)
        self.problems = files.problems
        self.policies: dict[str, ChangeContract] = {}
        self._used: set[str] = set()
        for _path, contract in files.all("change contract", CHANGES_SUFFIX, load_changes):
            self.policies[contract.id] = contract

    @property
    def stock(self) -> Mapping[tuple[str, str], Mapping[str, Digest]]:
        return {("changes", "change contract"): {name: each.digest for name, each in self.policies.items()}}

    def pinned(self, *, used: bool) -> Iterator[Pinned]:
        for name in self._used if used else self.policies:
            yield Pinned("change contract", "changes", name, self.policies[name].digest)

    def found(self, document: Document, data: bytes) -> Found[MutationCase]:
        scenario = scenario_from(document)
        contract = self.policies.get(scenario.changes)
        if contract is None:
            flaws = Flaws()
            if not self.problems:  # else the contract's own file is at fault, and is told of
                hint = did_you_mean(scenario.changes, self.policies) or "it is looked for in contracts/*.changes.yaml"
                detail = f"no change contract has the id `{shown(scenario.changes, 60)}`"
                flaws.add(Reason.UNKNOWN_REFERENCE, ("changes",), detail, hint)
            return Found(scenario.id, (), flaws)
        if (said := unplayable(contract)) is not None:
            flaws = Flaws()
            flaws.add(Reason.UNKNOWN_REFERENCE, ("changes",), *said)
            return Found(scenario.id, (), flaws)
        self._used.add(contract.id)
        source = digest_of("mutation-source@1", data, contract.digest.encode())
        cases, flaws = cases_of(scenario, Origin(contract, source))
        return Found(scenario.id, cases, flaws)

    def lint(self) -> Iterator[Problem]:
        """Nothing: a change contract names no file of this machine."""
        return iter(())

    def scaffold(
        self, scenario_id: str, policy: str, candidate: str | None, play: Callable[[MutationCase], CaseResult]
    ) -> str:
        return scaffold(scenario_id, self.policies[policy], candidate, play)
