"""A transcript's entries as an agent's proposals under one plan. Pure."""

from __future__ import annotations

import json
from typing import Final

from attrs import evolve

from assisted_benchmark.contract.model import Contract
from assisted_benchmark.kernel.errors import DocumentError, InputError, Problem
from assisted_benchmark.live_policy.policy import Plan
from assisted_benchmark.suite.live.agents import Shot
from assisted_benchmark.suite.live.shots import ready
from assisted_benchmark.suite.live.transcripts.calls import Answer, Entry, RecordedCall, Transcript, Was
from assisted_benchmark.suite.live.transcripts.naming import Names

# Of which server a call is that no server of the contract has: it is proposed all the same, and refused.
_NOWHERE: Final = "unknown-server"


def shots_of(transcript: Transcript, plan: Plan) -> tuple[Shot, ...]:
    """The proposals, in order.

    Raises:
        DocumentError: duplicate_tool, for each name that could mean two tools.
    """
    raws = proposals_of(transcript, plan.policy.contract)
    return tuple(_shot(entry, raw, plan) for entry, raw in zip(transcript.entries, raws, strict=True))


def proposals_of(transcript: Transcript, contract: Contract) -> tuple[bytes, ...]:
    """The bytes of each proposal.

    Raises:
        DocumentError: duplicate_tool, for each name that could mean two tools.
    """
    names = Names(contract)
    problems: list[Problem] = []
    raws = []
    for each in transcript.entries:
        try:
            raws.append(_raw(each, names))
        except InputError as error:
            raws.append(b"")
            problem = Problem(error.reason, error.detail, each.place if isinstance(each, RecordedCall) else "")
            problems.append(problem)
    if problems:
        raise DocumentError(problems)
    return tuple(raws)


def _raw(entry: Entry, names: Names) -> bytes:
    if not isinstance(entry, RecordedCall):
        return entry.raw
    place = names.find(entry.server, entry.tool)
    server, tool = place or (entry.server or _NOWHERE, entry.tool)
    if not _is_one_value(entry.arguments):
        return entry.arguments  # no JSON: beside other bytes it could become some
    texts = (json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass") for text in (server, tool))
    return b'{"arguments":%b,"server":%b,"tool":%b}' % (entry.arguments, *texts)


def _is_one_value(raw: bytes) -> bool:
    try:
        json.loads(raw.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return False
    return True


def _shot(entry: Entry, raw: bytes, plan: Plan) -> Shot:
    shot = ready(raw, plan)
    if isinstance(entry, RecordedCall):
        return evolve(shot, at_ns=entry.at_ns, was=Was(entry.turn, answer=entry.answer))
    answer = Answer(result=entry.result) if entry.word or entry.result else None
    return evolve(
        shot,
        expected=entry.word,
        at_ns=entry.at_ns,
        principal=entry.principal,
        malformed=entry.malformed,
        was=Was(entry.turn, entry.word, answer),
    )
