"""The contracts and policies of a root, by id, and the cases of scenarios and candidates under them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from attrs import evolve

from assisted_benchmark.contract.document import load_contract
from assisted_benchmark.contract.files import name_below, read
from assisted_benchmark.contract.model import Contract, Launch, Server
from assisted_benchmark.contract.pins import Pins
from assisted_benchmark.contract.shape import Fault as Flaw
from assisted_benchmark.contract.strict_yaml import Document, load
from assisted_benchmark.kernel.digest import Digest, digest_of
from assisted_benchmark.kernel.errors import DocumentError, Problem
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown
from assisted_benchmark.live_policy.policy import Policy
from assisted_benchmark.live_policy.policy_document import load_policy
from assisted_benchmark.live_policy.trust import Pins as Trusted
from assisted_benchmark.mcp_router.identity import Artifacts
from assisted_benchmark.mcp_router.launch import faults
from assisted_benchmark.suite.broker import Found, Pinned
from assisted_benchmark.suite.files import Files
from assisted_benchmark.suite.live.candidates import scenario_of
from assisted_benchmark.suite.live.expand import Origin, cases_of
from assisted_benchmark.suite.live.in_process import cassette_of
from assisted_benchmark.suite.live.scaffold import scaffold
from assisted_benchmark.suite.live.scenario import LiveCase, Scenario, Transcribed
from assisted_benchmark.suite.live.scenario_document import candidates_from, scenario_from
from assisted_benchmark.suite.live.scenario_shape import CANDIDATES
from assisted_benchmark.suite.live.transcripts.calls import Transcript
from assisted_benchmark.suite.live.transcripts.reading import MAX_BYTES, read_transcript
from assisted_benchmark.suite.result import CaseResult
from assisted_benchmark.workloads.recorded import load as load_cassette

CONTRACT_SUFFIX: Final = ".contract.yaml"
POLICY_SUFFIX: Final = ".policy.yaml"

NOT_PINNED: Final = Digest("sha256:" + "0" * 64)


class LiveShelf:
    """The contracts and policies of a root, and the problems of their files."""

    def __init__(self, root: Path, pins: Pins | None) -> None:
        files = Files(root)
        self.problems = files.problems
        self.contracts: dict[str, Contract] = {}
        self.policies: dict[str, Policy] = {}
        self._root = root
        self._pins = pins or Pins({}, {})
        self._files: dict[str, Path] = {}
        self._used: set[str] = set()
        self._origins: dict[str, Origin] = {}
        for path, contract in files.all("contract", CONTRACT_SUFFIX, load_contract):
            self.contracts[contract.id] = contract
            self._files[contract.id] = path
        for path, policy in files.all("policy", POLICY_SUFFIX, load_policy):
            if policy.contract.id in self.contracts:
                self.policies[policy.id] = policy
            else:
                detail = f"its contract `{policy.contract.id}` is in no contracts/*{CONTRACT_SUFFIX}"
                hint = "give the contract's file such a name"
                self.problems.append(Problem(Reason.UNKNOWN_REFERENCE, detail, name_below(path, root), hint=hint))

    @property
    def stock(self) -> Mapping[tuple[str, str], Mapping[str, Digest]]:
        return {
            ("contracts", "contract"): {name: each.digest for name, each in self.contracts.items()},
            ("policies", "policy"): {name: each.digest for name, each in self.policies.items()},
        }

    def pins_of(self, policy: Policy) -> Trusted:
        """The digests that this policy and its contract must have; what is not pinned has none that fits."""
        pins = self._pins
        return Trusted(pins.policies.get(policy.id, NOT_PINNED), pins.contracts.get(policy.contract.id, NOT_PINNED))

    def pinned(self, *, used: bool) -> Iterator[Pinned]:
        for name in self._used if used else self.policies:
            policy = self.policies[name]
            yield Pinned("policy", "policies", name, policy.digest, partial(self._only_its_contract_differs, policy))
            yield Pinned("contract", "contracts", policy.contract.id, policy.contract.digest)

    def _only_its_contract_differs(self, policy: Policy, pinned: Digest) -> bool:
        """Whether the policy itself is as pinned: what differs is told of once, at its contract."""
        return pinned == policy.digest_under(self.pins_of(policy).contract)

    def found(self, document: Document, data: bytes) -> Found[LiveCase]:
        flaws: list[Flaw] = []
        candidates = scenario = None
        if document.value["schema"] == CANDIDATES:
            candidates = candidates_from(document)
            name, policy = candidates.id, candidates.policy
        else:
            scenario = scenario_from(document)
            name, policy = scenario.id, scenario.policy
        origin = self._origin(policy, flaws)
        if origin is not None and candidates is not None:
            scenario, more = scenario_of(candidates, origin.policy)
            flaws.extend(more)
        cases: tuple[LiveCase, ...] = ()
        if origin is not None and scenario is not None:
            texts, transcripts = self._transcripts(scenario)
            source = digest_of("source@1", data, origin.source.encode(), *texts)
            cases, more = cases_of(scenario, evolve(origin, source=source, transcripts=transcripts))
            flaws.extend(more)
        return Found(name, cases, flaws)

    def _transcripts(self, scenario: Scenario) -> tuple[list[bytes], dict[Transcribed, Transcript]]:
        """The bytes of each transcript that agents of this scenario play, and what they hold.

        Raises:
            DocumentError: one cannot be read, or leads out of the scenario's folder.
        """
        folder = (self._root / scenario.file).parent
        rows = [*scenario.cases, *(row for axis in scenario.matrix for row in axis)]
        wanted = [scenario.agent, *(row.agent for _, row in rows)]
        specs = dict.fromkeys(each for each in wanted if isinstance(each, Transcribed))
        texts = []
        found = {}
        for spec in specs:
            path = folder / spec.file
            texts.append(read(path, folder, MAX_BYTES))
            found[spec] = read_transcript(texts[-1], name_below(path, self._root), spec.sample)
        return texts, found

    def _origin(self, policy_id: str, flaws: list[Flaw]) -> Origin | None:
        policy = self.policies.get(policy_id)
        if policy is None:
            if not self.problems:  # else the policy's own file is at fault, and is told of
                hint = did_you_mean(policy_id, self.policies) or "it is looked for in contracts/*.policy.yaml"
                detail = f"no policy has the id `{shown(policy_id, 60)}`"
                flaws.append(Flaw(Reason.UNKNOWN_REFERENCE, ("policy",), detail, hint))
            return None
        self._used.add(policy_id)
        if policy_id not in self._origins:
            self._origins[policy_id] = Origin(
                policy=policy,
                pins=self.pins_of(policy),
                folder=self._folder(policy),
                source=policy.digest,
            )
        return self._origins[policy_id]

    def _folder(self, policy: Policy) -> str:
        return str(self._files[policy.contract.id].parent.absolute())

    def lint(self) -> Iterator[Problem]:
        """What this machine's files contradict in the contracts' launches, at the key that says otherwise."""
        artifacts = Artifacts()
        for name, contract in self.contracts.items():
            path = self._files[name]
            document = load(read(path, self._root), name_below(path, self._root))
            for server in contract.servers:
                place = ("server",) if contract.legacy else ("servers", server.id)
                if isinstance(server.launch, Launch):
                    for where, error in faults(server.launch, path.parent, artifacts):
                        yield document.problem(error.reason, (*place, "launch", *where), error.detail, at_key=True)
                yield from self._cassette_problems(server, path.parent)

    def _cassette_problems(self, server: Server, folder: Path) -> Iterator[Problem]:
        cassette = cassette_of(server, str(folder.absolute()))
        if cassette is not None:
            try:
                load_cassette(cassette)
            except DocumentError as error:
                yield from (each._replace(file=shown(name_below(cassette, self._root))) for each in error.problems)

    def scaffold(
        self, scenario_id: str, policy: str, candidate: str | None, play: Callable[[LiveCase], CaseResult]
    ) -> str:
        found = self.policies[policy]
        return scaffold(scenario_id, found, self._document(policy), self._folder(found), candidate, play)

    def _document(self, policy: str) -> Document:
        """The policy's file as it is written: a policy itself keeps no order of candidates."""
        paths = sorted((self._root / "contracts").rglob(f"*{POLICY_SUFFIX}"))
        documents = (load(read(path, self._root), name_below(path, self._root)) for path in paths)
        return next(each for each in documents if each.value["id"] == policy)
