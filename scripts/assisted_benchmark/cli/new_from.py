"""`new --from TRANSCRIPT`: a transcript's calls are sealed into a policy, played, and attacked. No YAML, no model."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from attrs import evolve

from assisted_benchmark.cli import exits
from assisted_benchmark.cli.place import root_of
from assisted_benchmark.cli.run import coloured, commands, report
from assisted_benchmark.cli.serving import say
from assisted_benchmark.contract.document import load_contract
from assisted_benchmark.contract.files import name_below, read, write
from assisted_benchmark.contract.pins import Pins, load_pins, pins_text
from assisted_benchmark.contract.strict_yaml import load
from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.errors import DocumentError, IntegrityError, MisuseError, ServerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown
from assisted_benchmark.live_policy.compiler import compile_plan
from assisted_benchmark.live_policy.policy import Policy
from assisted_benchmark.live_policy.policy_document import load_policy
from assisted_benchmark.suite.case import ADMITTED
from assisted_benchmark.suite.catalogue import PINS_FILE, Catalogue
from assisted_benchmark.suite.files import Files
from assisted_benchmark.suite.live.recording import SESSION_SUFFIX, SUFFIX
from assisted_benchmark.suite.live.sealing import policy_text, scenario_text, sealed, session_text
from assisted_benchmark.suite.live.shelf import CONTRACT_SUFFIX, POLICY_SUFFIX
from assisted_benchmark.suite.live.transcripts.reading import MAX_BYTES, read_transcript
from assisted_benchmark.suite.replay import played_again
from assisted_benchmark.suite.result import Verdict
from assisted_benchmark.suite.runner import discover, new_run_directory, plan_for, run

_FOLDER: Final = "fixtures/recorded"
_HERE: Final = "{contract}/"
_WORDS: Final = re.compile(r"[^a-z0-9]+")


def new_from(arguments: argparse.Namespace) -> int:
    """Write policy, pins and scenario, run the scenario's cases and report them as `run` does."""
    transcript: Path = arguments.transcript
    source, contract_file = _contract(arguments)
    root = arguments.output if arguments.output is not None else source
    name = arguments.id or _WORDS.sub("-", transcript.name.partition(".")[0].lower()).strip("-")
    if not name:
        raise MisuseError(Reason.MISUSE, f"no id can be made of `{shown(transcript.name)}`; give one")
    policy = root / "contracts" / f"{name}{POLICY_SUFFIX}"
    scenario = root / _FOLDER / f"{name}{SUFFIX}"
    session = root / _FOLDER / f"{name}{SESSION_SUFFIX}"
    for each in (policy, scenario, session):
        if os.path.lexists(each):
            raise MisuseError(Reason.DUPLICATE_ID, f"`{shown(str(each))}` is there already; choose another id")
    data = read(transcript, transcript.absolute().parent, MAX_BYTES)
    found = read_transcript(data, str(transcript), arguments.sample or "")
    contract = load_contract(contract_file, source)
    calls = sealed(found, contract)
    for line in calls.left_out:
        say(f"left out: {line}")
    if not calls.calls:
        detail = f"`{shown(str(transcript))}` has no call that the contract `{contract.id}` could seal"
        raise MisuseError(Reason.NOTHING_SELECTED, f"{detail}; pin the servers that its tools are of")
    about = f"{transcript.name} ({found.kind})"
    for each in (policy, scenario):
        each.parent.mkdir(parents=True, exist_ok=True)
    contract_name = _brought(source, contract_file, root)
    write(policy, policy_text(name, contract_name, calls, about).encode())
    loaded = load_policy(policy, root)
    _pin(root, loaded)
    write(session, session_text(calls, found.agent))
    plan = compile_plan(loaded, calls.task)
    text = partial(scenario_text, name, session.name, calls, about, plan)
    write(scenario, text([], "").encode())
    (case,) = (each for each in discover(root, [scenario], real=True) if each.id.endswith("/as-planned"))
    came = played_again(case, 0).result
    if came.verdict is Verdict.COULD_NOT_RUN:
        raise ServerError(
            Reason.COULD_NOT_RUN, f"the plan cannot be played: {came.detail}; what was written is in {root}"
        )
    refused = [reason for reason, _ in came.refusals]
    decisions = [ADMITTED] * (came.proposed - len(refused)) + refused
    write(scenario, text(decisions, came.ends).encode())
    print(f"sealed:  {len(calls.calls)} calls, in {policy}")
    print(f"written: {scenario}")
    result = run(discover(root, [scenario], real=True), plan_for(directory := new_run_directory(root)))
    arguments.root = arguments.output or arguments.root
    return exits.worst(report(result, directory, commands(result, arguments, []), colour=coloured()))


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
        if not _is_below(new, root):
            continue  # it stands elsewhere on this machine, and its pin says so
        if old.is_file() and not new.exists():
            new.parent.mkdir(parents=True, exist_ok=True)
            write(new, read(old, source, MAX_BYTES))
    return contract.name


def _named(contract: Json) -> Iterator[str]:
    """The paths, relative to the contract, of the files that it names."""
    servers = contract["servers"].values() if "servers" in contract else (contract["server"],)
    for server in servers:
        launch = server["launch"]
        texts = [*launch["argv"], *launch.get("env", {}).values(), *launch.get("files", {})]
        yield from (text.removeprefix(_HERE) for text in texts if text.startswith(_HERE))
        yield from (text for text in launch.get("files", {}) if not text.startswith(("/", "{")))
        if "tools_from" in server:
            yield server["tools_from"]


def _is_below(path: Path, root: Path) -> bool:
    return os.path.abspath(path).startswith(os.path.abspath(root) + os.sep)


def _same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _pin(root: Path, policy: Policy) -> None:
    """Pin the new policy, and its contract where that is not pinned yet.

    Raises:
        IntegrityError: the contract is pinned as another.
    """
    path = root / PINS_FILE
    pins = load_pins(path, root) if path.exists() else Pins({}, {})
    contract = policy.contract
    if pins.contracts.get(contract.id, contract.digest) != contract.digest:
        detail = f"the contract `{contract.id}` is {contract.digest} and is pinned as {pins.contracts[contract.id]}"
        raise IntegrityError(Reason.PIN_MISMATCH, f"{detail}; look at what changed, then `lint --write-pins`")
    pinned = evolve(
        pins,
        contracts={**pins.contracts, contract.id: contract.digest},
        policies={**pins.policies, policy.id: policy.digest},
    )
    write(path, pins_text(pinned).encode())
