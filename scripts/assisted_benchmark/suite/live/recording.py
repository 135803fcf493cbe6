"""A session with a case becomes a scenario: what was proposed and when, and what came of it.

The session is played as a case of the scenario that it becomes, so that ids and nonces, which follow from a case's
name, are the same ever after.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from attrs import evolve

from assisted_benchmark.contract.files import name_below, read
from assisted_benchmark.contract.scalar import NAME
from assisted_benchmark.contract.strict_yaml import load
from assisted_benchmark.contract.written import quoted
from assisted_benchmark.kernel.canonical import Canonical, Json
from assisted_benchmark.kernel.clock import SECOND
from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import shown
from assisted_benchmark.suite.broker import SCENARIO_SUFFIX
from assisted_benchmark.suite.case import folder_of
from assisted_benchmark.suite.live.expand import usual_servers
from assisted_benchmark.suite.live.faults import ANY_TURN, USUAL, At, Fault
from assisted_benchmark.suite.live.scenario import BROKER, LiveCase, Reveal, Transcribed
from assisted_benchmark.suite.live.scenario_document import scenario_from
from assisted_benchmark.suite.live.scenario_shape import FAULTS
from assisted_benchmark.suite.live.served import ServedTurn
from assisted_benchmark.suite.live.transcripts.calls import SessionTurn, result_digest
from assisted_benchmark.suite.live.transcripts.reading import MAX_BYTES, read_transcript
from assisted_benchmark.suite.live.transcripts.session import written
from assisted_benchmark.suite.result import CaseResult
from assisted_benchmark.suite.tables import PLAIN
from assisted_benchmark.suite.yaml_out import flow, run_keys_of

SESSION_SUFFIX: Final = ".session.jsonl"
_UNITS: Final = (("h", 3600 * SECOND), ("m", 60 * SECOND), ("s", SECOND), ("ms", SECOND // 1000))
_BECAUSE: Final = 280
# A recording has its run's own name from the case's.
_RUN_KEYS: Final = ("task", "seed", "vm", "session", "host")


def named_as(case: LiveCase, path: Path, root: Path) -> LiveCase:
    """The case as it is named in the scenario that is to be written to `path`.

    Raises:
        MisuseError: it is no place for a scenario.
    """
    name = path.name.removesuffix(SCENARIO_SUFFIX)
    if not NAME.fits(name) or not path.name.endswith(SCENARIO_SUFFIX):
        raise MisuseError(Reason.MISUSE, f"`{shown(str(path))}` is no scenario's file; write NAME{SCENARIO_SUFFIX}")
    for each in (path, session_file(path)):
        if os.path.lexists(each):
            raise MisuseError(Reason.DUPLICATE_ID, f"`{shown(str(each))}` is there already; choose another name")
    file = name_below(path, root)
    if os.path.isabs(file):
        raise MisuseError(Reason.PATH_ESCAPE, f"`{shown(file)}` is not below {shown(str(root))}; write it to fixtures/")
    run = evolve(case.run, run="")
    return evolve(case, id=f"{folder_of(file, BROKER)}/{name}/{PLAIN}", file=file, run=run)


def session_file(path: Path) -> Path:
    """The file of the session that a scenario plays."""
    return path.with_name(path.name.removesuffix(SCENARIO_SUFFIX) + SESSION_SUFFIX)


def session_bytes(agent: str, turns: Sequence[ServedTurn], receipts: Sequence[bytes]) -> bytes:
    """The session's file."""
    kept = (
        SessionTurn(
            raw=each.raw,
            turn=number,
            at_ns=each.at_ns,
            word=each.word,
            result=result_digest(Canonical(each.result).value) if each.result else "",
            principal=each.principal,
            malformed=each.malformed,
        )
        for number, each in enumerate(turns)
    )
    return written(agent, tuple(kept), receipts)


def scenario_text(case: LiveCase, result: CaseResult, turns: Sequence[ServedTurn], came_from: str, schemas: str) -> str:
    """The scenario's file: `result` is what the session came to, `schemas` the folder of the schemas from there."""
    return "\n".join(_lines(case, result, turns, came_from, schemas)) + "\n"


def _lines(
    case: LiveCase, result: CaseResult, turns: Sequence[ServedTurn], came_from: str, schemas: str
) -> Iterator[str]:
    name = case.id.split("/")[1]
    yield f"# yaml-language-server: $schema={schemas}/scenario.schema.json"
    yield "schema: assisted-benchmark/scenario@1"
    yield f"id: {quoted(name)}"
    because = shown(f"a session of {result.agent} with {came_from}, as it was recorded", _BECAUSE)
    yield f"because: {quoted(because)}"
    yield f"policy: {quoted(case.policy)}"
    run = run_keys_of(case.run, _RUN_KEYS)
    if run:
        yield f"run: {flow(run)}"
    yield f"agent: {flow({'transcript': name + SESSION_SUFFIX})}"
    if case.servers is not usual_servers(case.plan):
        yield f"servers: {case.servers.value}"
    if case.reveal is not Reveal.COARSE:
        yield f"reveal: {case.reveal.value}"
    if case.tags:
        yield f"tags: {flow(list(case.tags))}"
    faults = [_fault(each, most) for each in case.faults if (most := _turn(each, case)) <= len(turns)]
    if faults:
        yield f"faults: {flow(faults)}"
    expect: dict[str, Json] = {"ends": result.ends, "calls": dict(result.calls)}
    seen = [each.text for each in result.timeline if each.kind == "oracle"]
    if seen:
        expect["oracle"] = seen[-1]
    yield f"expect: {flow({**expect, 'receipts': result.receipts})}"


def _turn(fault: Fault, case: LiveCase) -> int:
    """At which turn a fault strikes; 0 if at any."""
    if fault.at in ANY_TURN:
        return 0
    return fault.turn or len(case.agent.shots) or len(case.agent.plan)


def _fault(fault: Fault, turn: int) -> Json:
    value = _duration(fault.value) if fault.kind in FAULTS.durations else fault.value
    written = {fault.kind.value: value}
    if fault.at is not USUAL.get(fault.kind, At.PROPOSE):
        written["at"] = fault.at.value
    return {**written, "turn": turn} if turn else written


def _duration(ns: int) -> str:
    return next(f"{ns // unit}{name}" for name, unit in _UNITS if ns % unit == 0)


def receipts_of(path: Path, root: Path) -> tuple[bytes, ...]:
    """The receipts that were recorded with a scenario's session; none where it plays no recorded session.

    Raises:
        DocumentError: the scenario or the session cannot be read.
    """
    agent = scenario_from(load(read(path, root), name_below(path, root))).agent
    if not isinstance(agent, Transcribed):
        return ()
    place = path.parent / agent.file
    return read_transcript(read(place, path.parent, MAX_BYTES), name_below(place, root), agent.sample).receipts
