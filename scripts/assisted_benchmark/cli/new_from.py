"""`new --from TRANSCRIPT`: a transcript's calls are sealed into a policy, played, and attacked. No YAML, no model."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from attrs import evolve

from assisted_benchmark.cli import exits
from assisted_benchmark.cli.place import root_of
from assisted_benchmark.cli.run import coloured, commands, report
from assisted_benchmark.cli.serving import say
from assisted_benchmark.contract.document import load_contract
from assisted_benchmark.contract.files import check_below, name_below, read, write
from assisted_benchmark.contract.model import Contract
from assisted_benchmark.contract.pins import Pins, load_pins, pins_text
from assisted_benchmark.contract.strict_yaml import load
from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.errors import DocumentError, IntegrityError, MisuseError, ServerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown
from assisted_benchmark.live_policy.compiler import compile_plan
from assisted_benchmark.live_policy.policy import Plan
from assisted_benchmark.live_policy.policy_document import load_policy
from assisted_benchmark.suite.attacks.attacking import attack_case, attackable
from assisted_benchmark.suite.attacks.engine import Came
from assisted_benchmark.suite.broker import SCENARIO_SUFFIX
from assisted_benchmark.suite.case import ADMITTED, Case
from assisted_benchmark.suite.catalogue import PINS_FILE, Catalogue
from assisted_benchmark.suite.files import Files
from assisted_benchmark.suite.live.recording import SESSION_SUFFIX
from assisted_benchmark.suite.live.sealing import Sealed, policy_text, scenario_text, sealed, session_text
from assisted_benchmark.suite.live.shelf import CONTRACT_SUFFIX, POLICY_SUFFIX
from assisted_benchmark.suite.live.transcripts.reading import MAX_BYTES, read_transcript
from assisted_benchmark.suite.replay import played_again
from assisted_benchmark.suite.result import Verdict
from assisted_benchmark.suite.runner import discover, new_run_directory, plan_for, run

_FOLDER: Final = "fixtures/recorded"
_HERE: Final = "{contract}/"
_WORDS: Final = re.compile(r"[^a-z0-9]+")


class _New(NamedTuple):
    """Where all of it goes, in `root`."""

    root: Path
    name: str
    policy: Path
    scenario: Path
    session: Path


def new_from(arguments: argparse.Namespace) -> int:
    """Write policy, pins and scenario, run the scenario's cases, report them as `run` does, and attack the plan."""
    source, contract_file = _contract(arguments)
    new = _new(arguments, source)
    data = read(arguments.transcript, arguments.transcript.absolute().parent, MAX_BYTES)
    found = read_transcript(data, str(arguments.transcript), arguments.sample or "")
    contract = load_contract(contract_file, source)
    pins = _pins(new.root, contract)
    calls = sealed(found, contract)
    for line in calls.left_out:
        say(f"left out: {shown(line, 1000)}")
    if not calls.calls:
        detail = f"`{shown(str(arguments.transcript))}` has no call that the contract `{contract.id}` could seal"
        raise MisuseError(Reason.NOTHING_SELECTED, f"{detail}; pin the servers that its tools are of")
    about = f"{arguments.transcript.name} ({found.kind})"
    try:
        for each in (new.policy, new.session):
            each.parent.mkdir(parents=True, exist_ok=True)
        plan = _sealed(new, calls, _brought(source, contract_file, new.root), about, pins)
        write(new.session, session_text(calls, found.agent))
        cases = _tried(new, calls, plan, about)
    except BaseException:
        for each in (new.policy, new.scenario, new.session):
            each.unlink(missing_ok=True)
        raise
    print(f"sealed:  {len(calls.calls)} calls, in {new.policy}")
    print(f"written: {new.scenario}")
    directory = new_run_directory(new.root)
    result = run(cases, plan_for(directory))
    arguments.root = arguments.output or arguments.root
    codes = report(result, directory, commands(result, arguments, []), colour=coloured())
    return exits.worst([*codes, *_attacked(_planned(cases))])


def _new(arguments: argparse.Namespace, source: Path) -> _New:
    root: Path = arguments.output if arguments.output is not None else source
    file = arguments.transcript.name
    name = arguments.id or _WORDS.sub("-", file.partition(".")[0].lower()).strip("-")
    if not name:
        raise MisuseError(Reason.MISUSE, f"no id can be made of `{shown(file)}`; give one")
    recorded = root / _FOLDER
    policy = root / "contracts" / f"{name}{POLICY_SUFFIX}"
    new = _New(root, name, policy, recorded / f"{name}{SCENARIO_SUFFIX}", recorded / f"{name}{SESSION_SUFFIX}")
    for each in new[2:]:
        check_below(each, root)
        if os.path.lexists(each):
            raise MisuseError(Reason.DUPLICATE_ID, f"`{shown(str(each))}` is there already; choose another id")
    return new


def _sealed(new: _New, calls: Sealed, contract: str, about: str, pins: Pins) -> Plan:
    """The policy written, pinned and compiled."""
    write(new.policy, policy_text(new.name, contract, calls, about).encode())
    policy = load_policy(new.policy, new.root)
    plan = compile_plan(policy, calls.task)
    pinned = evolve(
        pins,
        contracts={**pins.contracts, policy.contract.id: policy.contract.digest},
        policies={**pins.policies, policy.id: policy.digest},
    )
    write(new.root / PINS_FILE, pins_text(pinned).encode())
    return plan


def _tried(new: _New, calls: Sealed, plan: Plan, about: str) -> tuple[Case, ...]:
    """The scenario written, once its plan was played: the cases of it.

    Raises:
        ServerError: the plan cannot be played.
    """
    text = partial(scenario_text, new.name, new.session.name, calls, about, plan)
    write(new.scenario, text([], "").encode())
    came = played_again(_planned(discover(new.root, [new.scenario])), 0).result
    if came.verdict is Verdict.COULD_NOT_RUN:
        raise ServerError(Reason.COULD_NOT_RUN, f"the plan cannot be played: {came.detail}")
    refused = [reason for reason, _ in came.refusals]
    decisions = [ADMITTED] * (came.proposed - len(refused)) + refused
    write(new.scenario, text(decisions, came.ends).encode())
    return discover(new.root, [new.scenario])


def _planned(cases: Sequence[Case]) -> Case:
    return next(each for each in cases if each.id.endswith("/as-planned"))


def _attacked(case: Case) -> Iterator[int]:
    """Attack the plan's calls, where that can be done, and say what came of it; the exit codes that hold."""
    if not attackable(case):
        print("not attacked: a server has no model to attack, or a call of the plan fails")
        return
    found = attack_case(case)
    counts = {came: found.count(came) for came in Came}
    wrong = ", ".join(f"{counts[came]} {came.value.replace('_', ' ')}" for came in Came if came is not Came.RIGHT)
    print(f"attacked: {found.tried} times, {counts[Came.RIGHT]} came to what they must, {wrong}")
    if counts[Came.NO_VERDICT]:
        yield exits.COULD_NOT_RUN
    if not found.sound:
        yield exits.FAILED


def _contract(arguments: argparse.Namespace) -> tuple[Path, Path]:
    """The root and the file of the contract: of a file, or of the one of the root with that id."""
    path = Path(arguments.contract)
    if path.is_file():
        folder = path.absolute().parent
        return (folder.parent if folder.name == "contracts" else folder), path.absolute()
    root = root_of(arguments)
    catalogue = Catalogue(root)
    if catalogue.problems:
        raise DocumentError(catalogue.problems)
    files = {contract.id: file for file, contract in Files(root).all("contract", CONTRACT_SUFFIX, load_contract)}
    if arguments.contract not in files:
        hint = did_you_mean(arguments.contract, files) or f"there are {', '.join(sorted(files)) or 'none'}"
        detail = f"`{shown(arguments.contract, 60)}` is neither a file nor a contract of {shown(str(root))}"
        raise MisuseError(Reason.UNKNOWN_REFERENCE, f"{detail}; {hint}")
    return root, files[arguments.contract]


def _brought(source: Path, contract: Path, root: Path) -> str:
    """The contract's file from the policies of `root`, where it is brought with what it names, unless it is there."""
    if _same(source, root):
        return os.path.relpath(contract, root / "contracts")
    document = load(read(contract, source), name_below(contract, source))
    wanted = {contract.name, *_named(document.value)}
    for each in sorted(wanted):
        old, new = contract.parent / each, root / "contracts" / each
        if os.path.isabs(name_below(new, root)):
            continue  # it stands elsewhere on this machine, and its pin says so
        if old.is_file() and not new.exists():
            new.parent.mkdir(parents=True, exist_ok=True)
            write(new, read(old, source, MAX_BYTES))
    return contract.name


def _named(contract: Json) -> Iterator[str]:
    """The paths, relative to the contract, of the files that it names."""
    servers = contract["servers"].values() if "servers" in contract else (contract["server"],)
    for server in servers:
        launch = server.get("launch", {"argv": []})  # what others run has a place, and no files
        texts = [*launch["argv"], *launch.get("env", {}).values(), *launch.get("files", {})]
        yield from (text.removeprefix(_HERE) for text in texts if text.startswith(_HERE))
        yield from (text for text in launch.get("files", {}) if not text.startswith(("/", "{")))
        if "tools_from" in server:
            yield server["tools_from"]


def _same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _pins(root: Path, contract: Contract) -> Pins:
    """The root's pins.

    Raises:
        IntegrityError: the contract is pinned as another.
    """
    path = root / PINS_FILE
    pins = load_pins(path, root) if path.exists() else Pins({}, {})
    pinned = pins.contracts.get(contract.id, contract.digest)
    if pinned != contract.digest:
        detail = f"the contract `{contract.id}` is {contract.digest} and is pinned as {pinned}"
        raise IntegrityError(Reason.PIN_MISMATCH, f"{detail}; look at what changed, then `lint --write-pins`")
    return pins
