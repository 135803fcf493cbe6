"""Everything that is found under a root: contracts, policies, pins, scenarios and candidates, by id.

All problems of all files are gathered, so that one look shows everything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeVar

from attrs import evolve

from assisted_benchmark.contract.document import load_contract
from assisted_benchmark.contract.files import is_utf8, name_below, read
from assisted_benchmark.contract.model import Contract
from assisted_benchmark.contract.pins import Pins, load_pins
from assisted_benchmark.contract.shape import Fault as Flaw
from assisted_benchmark.contract.strict_yaml import Document, load
from assisted_benchmark.kernel.digest import Digest, digest_of
from assisted_benchmark.kernel.errors import DocumentError, Problem
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown
from assisted_benchmark.live_policy.checks import Pins as Trusted
from assisted_benchmark.live_policy.policy import Policy
from assisted_benchmark.live_policy.policy_document import load_policy
from assisted_benchmark.suite.candidates import scenario_of
from assisted_benchmark.suite.expand import Origin, broker_of, cases_of
from assisted_benchmark.suite.scenario import Case
from assisted_benchmark.suite.scenario_document import candidates_from, scenario_from

SCENARIO_SUFFIX: Final = ".scenario.yaml"
CANDIDATES_SUFFIX: Final = ".candidates.yaml"
CONTRACT_SUFFIX: Final = ".contract.yaml"
POLICY_SUFFIX: Final = ".policy.yaml"

PINS_FILE: Final = "contracts/pins.yaml"
NOT_PINNED: Final = Digest("sha256:" + "0" * 64)

T = TypeVar("T")


class Catalogue:
    """The contracts, policies and pins of a root, and the problems of their files."""

    def __init__(self, root: Path) -> None:
        if not is_utf8(str(root.absolute())):
            hint = "move contracts/ and fixtures/ to one whose whole path is"
            place = shown(str(root.absolute()))
            raise DocumentError([Problem(Reason.UNREADABLE, "the folder's name is not UTF-8", place, hint=hint)])
        self.root = root
        self.problems: list[Problem] = []
        # Read first: a file that cannot be read is told of before all that follows from it.
        pins = root / PINS_FILE
        self.pins = self._taken(load_pins, pins) if pins.is_file() else Pins({}, {})
        self.contracts: dict[str, Contract] = {}
        self.policies: dict[str, Policy] = {}
        self.files: dict[str, Path] = {}
        folder = root / "contracts"
        seen: dict[tuple[str, str], str] = {}
        for path in _files(folder, CONTRACT_SUFFIX):
            contract = self._taken(load_contract, path)
            if contract is not None and self._first(seen, "contract", contract.id, path):
                self.contracts[contract.id] = contract
                self.files[contract.id] = path
        for path in _files(folder, POLICY_SUFFIX):
            policy = self._taken(load_policy, path)
            if policy is None or not self._first(seen, "policy", policy.id, path):
                continue
            if policy.contract.id in self.contracts:
                self.policies[policy.id] = policy
            else:
                detail = f"its contract `{policy.contract.id}` is in no contracts/*{CONTRACT_SUFFIX}"
                hint = "give the contract's file such a name"
                self.problems.append(Problem(Reason.UNKNOWN_REFERENCE, detail, name_below(path, self.root), hint=hint))

    def _taken(self, load_one: Callable[[Path, Path], T], path: Path) -> T | None:
        try:
            return load_one(path, self.root)
        except DocumentError as error:
            # Policies of one contract all meet its faults, which are one file's.
            self.problems.extend(each for each in error.problems if each not in self.problems)
            return None

    def _first(self, seen: dict[tuple[str, str], str], kind: str, name: str, path: Path) -> bool:
        file = name_below(path, self.root)
        first = seen.setdefault((kind, name), file)
        if first == file:
            return True
        hint = f"{first} has it too; ids are unique"
        self.problems.append(Problem(Reason.DUPLICATE_ID, f"two files have the {kind} id `{name}`", file, hint=hint))
        return False

    def pins_of(self, policy: Policy) -> Trusted:
        """The digests that this policy and its contract must have; what is not pinned has none that fits."""
        pins = self.pins or Pins({}, {})
        return Trusted(pins.policies.get(policy.id, NOT_PINNED), pins.contracts.get(policy.contract.id, NOT_PINNED))

    def pin_problems(self, policies: Collection[str]) -> Iterator[Problem]:
        """The pins that are missing or do not match, for these policies and their contracts."""
        pins = self.pins
        if pins is None:
            return  # the file itself is at fault, and is told of
        hint = "look at what changed; then `assisted-benchmark lint --write-pins`"
        wanted = {("policy", name): self.policies[name].digest for name in policies}
        for policy in policies:
            contract = self.policies[policy].contract
            wanted["contract", contract.id] = contract.digest
        for (kind, name), digest in sorted(wanted.items()):
            part = "policies" if kind == "policy" else "contracts"
            pinned = (pins.policies if kind == "policy" else pins.contracts).get(name)
            if pinned is None:
                detail = f"the {kind} `{name}` is not pinned; it is {digest}"
                yield self._pins_problem(Reason.PIN_MISMATCH, (part,), detail, hint)
            elif pinned != digest and not (kind == "policy" and self._only_its_contract_differs(name, pinned)):
                detail = f"the {kind} `{name}` is pinned as {pinned} and is {digest}"
                yield self._pins_problem(Reason.PIN_MISMATCH, (part, name), detail, hint)

    def _only_its_contract_differs(self, name: str, pinned: Digest) -> bool:
        """Whether the policy itself is as pinned: what differs is told of once, at its contract."""
        policy = self.policies[name]
        return pinned == policy.digest_under(self.pins_of(policy).contract)

    def stray_pins(self) -> Iterator[Problem]:
        """Pins of what is not there. Where a file cannot be read, its id is not known, so nothing is said."""
        pins = self.pins
        if pins is None or self.problems:
            return
        for part, kind, pinned, known in (
            ("contracts", "contract", pins.contracts, self.contracts.keys()),
            ("policies", "policy", pins.policies, self.policies.keys()),
        ):
            for name in pinned.keys() - known:
                hint = did_you_mean(name, known) or "remove the line"
                detail = f"no {kind} has the id `{shown(name, 60)}`"
                yield self._pins_problem(Reason.UNKNOWN_REFERENCE, (part, name), detail, hint)

    def _pins_problem(self, reason: Reason, path: tuple[str, ...], detail: str, hint: str) -> Problem:
        if self.pins is None or self.pins.document is None:
            return Problem(reason, detail, PINS_FILE, hint=hint)
        return self.pins.document.problem(reason, path, detail, hint, at_key=True)


class Gathered:
    """The cases of a root's scenario and candidates files, and every problem of every file that was read."""

    def __init__(self, root: Path, paths: Sequence[Path] = ()) -> None:
        self.catalogue = Catalogue(root)
        self.problems = list(self.catalogue.problems)
        self.used: set[str] = set()
        self._root = root
        self._origins: dict[str, Origin] = {}
        self._ids: dict[tuple[str, str], str] = {}
        self._runs: dict[str, Case] = {}
        cases: list[Case] = []
        for path in _scenario_files(root, paths):
            try:
                cases.extend(self._cases(path))
            except DocumentError as error:
                self.problems.extend(error.problems)
        self.cases = tuple(cases)

    def _cases(self, path: Path) -> tuple[Case, ...]:
        data = read(path, self._root)
        document = load(data, name_below(path, self._root))
        flaws: list[Flaw] = []
        candidates = None
        if path.name.endswith(CANDIDATES_SUFFIX):
            candidates = candidates_from(document)
            name, policy = candidates.id, candidates.policy
        else:
            scenario = scenario_from(document)
            name, policy = scenario.id, scenario.policy
        first = self._ids.setdefault((broker_of(document.file), name), document.file)
        if first != document.file:
            flaws.append(Flaw(Reason.DUPLICATE_ID, ("id",), f"another scenario is named `{name}`", f"see {first}"))
        origin = self._origin(policy, flaws)
        found = scenario if candidates is None else None
        if origin is not None and candidates is not None:
            found, more = scenario_of(candidates, origin.policy)
            flaws.extend(more)
        cases: tuple[Case, ...] = ()
        if origin is not None and found is not None:
            cases, more = cases_of(found, evolve(origin, source=digest_of("source@1", data, origin.source.encode())))
            flaws.extend(more)
            flaws.extend(self._shared_runs(cases, document))
        if flaws:
            raise DocumentError(
                document.problem(each.reason, each.path, each.detail, each.hint, at_key=each.at_key) for each in flaws
            )
        return cases

    def _shared_runs(self, cases: Sequence[Case], document: Document) -> Iterator[Flaw]:
        """Cases whose run has another case's name: of a run's groups each is spent once, so the second would fail."""
        for case in cases:
            first = self._runs.setdefault(case.run.run or case.id, case)
            if first.id != case.id:
                name = case.id.rpartition("/")[2]
                detail = f"the run `{case.run.run or case.id}` of the case `{name}` is another case's too"
                hint = f"see `{first.id}` in {first.file}; without `run.run` each case has a run of its own"
                row = document.value.get("cases", {}).get(name, {}) if case.run.run else {}
                path = ("cases", name, "run", "run") if "run" in row else ("run", "run") if case.run.run else ("id",)
                yield Flaw(Reason.DUPLICATE_ID, path, detail, hint)

    def _origin(self, policy_id: str, flaws: list[Flaw]) -> Origin | None:
        catalogue = self.catalogue
        policy = catalogue.policies.get(policy_id)
        if policy is None:
            if not catalogue.problems:  # else the policy's own file is at fault, and is told of
                hint = did_you_mean(policy_id, catalogue.policies) or "it is looked for in contracts/*.policy.yaml"
                detail = f"no policy has the id `{shown(policy_id, 60)}`"
                flaws.append(Flaw(Reason.UNKNOWN_REFERENCE, ("policy",), detail, hint))
            return None
        self.used.add(policy_id)
        if policy_id not in self._origins:
            self._origins[policy_id] = Origin(
                policy=policy,
                pins=catalogue.pins_of(policy),
                folder=str(catalogue.files[policy.contract.id].parent.absolute()),
                source=policy.digest,
            )
        return self._origins[policy_id]


def _files(folder: Path, *suffixes: str) -> list[Path]:
    return sorted(path for path in folder.rglob("*.yaml") if path.name.endswith(suffixes))


def _scenario_files(root: Path, paths: Sequence[Path]) -> list[Path]:
    found: dict[Path, None] = {}
    for path in paths or (root / "fixtures",):
        for each in _files(path, SCENARIO_SUFFIX, CANDIDATES_SUFFIX) if path.is_dir() else (path,):
            found.setdefault(each.absolute())
    return list(found)
