"""What a plugin host says that is not so, and the progress that it reports: each a change of one true answer."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final, NamedTuple

from assisted_benchmark.kernel.canonical import canonical_bytes, parse
from assisted_benchmark.kernel.strict_json import Json
from assisted_benchmark.workloads.plugin_host import CANCELLED, FAILED, Asked, Said
from assisted_benchmark.workloads.plugin_host_faults import HostFaultKind
from assisted_benchmark.workloads.plugin_host_task import Made

HUGE: Final = (16 << 20) + 1  # bytes of a huge artifact
MANY: Final = 65
FLOOD: Final = 2000

_STEPS: Final = 4
_RENDER: Final = "dev.pulp.render/offline@1"
_NOBODYS: Final = "receipt-of-nobody"
_K = HostFaultKind


class HostError(NamedTuple):
    """A step is answered with an error. `ended` says that the session is over."""

    message: str
    ended: bool = False


class Answered(NamedTuple):
    """What is told of a step: its progress, the artifacts that it made, and then its answer or an error."""

    result: dict[str, Json]
    error: HostError | None = None
    progress: tuple[Json, ...] = ()
    made: tuple[bytes, ...] = ()


def told(asked: Asked, said: Said, kind: HostFaultKind | None, secret: str) -> Answered:
    """A word on a request as it goes out, with whatever is wrong with it."""
    lie = _LIES.get(kind) if kind is not None else None
    if lie is not None:
        said = lie(said)
    if kind is _K.LEAK:
        said = said._replace(code=secret, explanation=f"it is {secret}")
    result: dict[str, Json] = {
        "receipt_id": _NOBODYS if kind is _K.CROSSED else asked.receipt_id,
        "word": said.word,
        "result": said.result,
        "code": said.code,
        "explanation": said.explanation,
        "artifacts": [
            {"mime_type": each.mime_type, "byte_count": len(each.data), "sha256": hashlib.sha256(each.data).hexdigest()}
            for each in said.made
        ],
    }
    made = tuple(each.data for each in said.made)
    if kind is _K.OTHER_BYTES:
        made = tuple(data[:-1] + bytes([data[-1] ^ 1]) for data in made)
    return Answered(result, None, observed(asked.operation, kind), made)


def observed(operation: str, kind: HostFaultKind | None) -> tuple[Json, ...]:
    """The progress of a request. A render reports it without being told to."""
    if kind is _K.PROGRESS_FLOOD:
        return tuple(_event(number, number, FLOOD) for number in range(1, FLOOD + 1))
    if operation != _RENDER and kind not in _PROGRESSING:
        return ()
    events = [_event(number, number, _STEPS) for number in range(1, _STEPS + 1)]
    if kind is _K.PROGRESS_BACK:
        events[2] = events[0]
    if kind is _K.PROGRESS_TOTAL:
        events[2] = _event(3, 3, _STEPS + 1)
    return tuple(events)


_PROGRESSING: Final = frozenset({_K.PROGRESS, _K.PROGRESS_BACK, _K.PROGRESS_TOTAL, _K.PROGRESS_STRAY, _K.PROGRESS_LATE})


def _event(sequence: int, current: int, total: int) -> Json:
    return {"sequence": sequence, "current": current, "total": total, "message": f"step {current}"}


def _result(change: Callable[[dict[str, Json]], dict[str, Json]]) -> Callable[[Said], Said]:
    def lie(said: Said) -> Said:
        return said._replace(result=canonical_bytes(change(parse(said.result.encode()))).decode())

    return lie


def _other_generation(result: dict[str, Json]) -> dict[str, Json]:
    return {key: value + 7 if key in ("generation", "state_generation") else value for key, value in result.items()}


def _made(change: Callable[[tuple[Made, ...]], tuple[Made, ...]]) -> Callable[[Said], Said]:
    return lambda said: said._replace(made=change(said.made))


_LIES: Final[dict[HostFaultKind, Callable[[Said], Said]]] = {
    _K.FAIL_AFTER: lambda said: said._replace(word=FAILED, code="internal", explanation="something went wrong"),
    _K.CANCELLED_AFTER: lambda said: said._replace(word=CANCELLED),
    _K.UNKNOWN_WORD: lambda said: said._replace(word="perhaps"),
    _K.FALSE_SCHEMA: _result(lambda result: result | {"unexpected": 1}),
    _K.NO_JSON: lambda said: said._replace(result="{no JSON"),
    _K.WRONG_GENERATION: _result(_other_generation),
    _K.OTHER_RECEIPT: _result(lambda result: {k: _NOBODYS if k == "receipt_id" else v for k, v in result.items()}),
    _K.OTHER_ARTIFACT: _made(lambda made: tuple(each._replace(data=each.data + b"\0") for each in made)),
    _K.NO_ARTIFACT: _made(lambda _: ()),
    _K.HUGE_ARTIFACT: _made(lambda _: (Made("application/octet-stream", bytes(HUGE)),)),
    _K.MANY_ARTIFACTS: _made(lambda _: tuple(Made("text/plain", b"%d" % number) for number in range(MANY))),
}
