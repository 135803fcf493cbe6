"""A synthetic user interface with one decision in it: a test-only MCP server.

A task shows a `reading`, a `limit` and two targets, `approve` and `hold`. One click decides;
after it the task shows no targets. Whether the click was right is never told: right is
`approve` exactly when the reading is not above the limit, and only the oracle says so.

The rule of version 1, from which the oracle recomputes everything by itself:

    root     SHA-256 of the lines `synthetic-ui@1`, seed, task (UTF-8, joined by LF)
    reading  bytes 0-3 of the root, big-endian, modulo 100, plus 1
    limit    bytes 4-7 of the root likewise
    frame 0  `f0-` and bytes 8-13 of the root in hex; targets approve, hold; the state is undecided
    frame 1  `f1-` and the first 6 bytes in hex of SHA-256 over root and target; no targets;
             the state is approved or held
    event n  `e<n>-` and the first 6 bytes in hex of SHA-256 over the link before it and the lines
             n, kind, target (joined by LF); link 0 is the root, link n is that whole digest
    canary   `canary-` and bytes 24-31 of the root in hex; only ever on the oracle's side

Kinds of events are `read`, `click` and `rejected`. The rejected ones change nothing.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from typing import Any, Final, NamedTuple

from assisted_benchmark.kernel.codes import Reason
from assisted_benchmark.kernel.errors import InputError
from assisted_benchmark.kernel.strict_json import SAFE_INTEGER, Json
from assisted_benchmark.workloads.model import Event, text_result

VERSION: Final = 1
TARGETS: Final = ("approve", "hold")

_ENDS: Final = {"approve": "approved", "hold": "held"}
_TASK: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_WORD: Final = {"type": "string", "minLength": 1, "maxLength": 64}
_NUMBER: Final = {"type": "integer", "minimum": 1, "maximum": 100}

# A target is any short word here, not an enumeration: that a word is no candidate is the
# broker's to say, and what it says can be told from arguments of the wrong shape.
TOOLS: Final[tuple[Json, ...]] = (
    {
        "name": "read_task",
        "title": "Read the task",
        "description": "Show the task's frame: a reading, its limit, and the targets that can be clicked.",
        "inputSchema": {
            "type": "object",
            "properties": {"taskId": _WORD},
            "required": ["taskId"],
            "additionalProperties": False,
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "taskId": _WORD,
                "frame": _WORD,
                "reading": _NUMBER,
                "limit": _NUMBER,
                "targets": {"type": "array", "items": {"enum": list(TARGETS)}, "maxItems": 2},
            },
            "required": ["taskId", "frame", "reading", "limit", "targets"],
            "additionalProperties": False,
        },
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    },
    {
        "name": "click_target",
        "title": "Click a target",
        "description": "Click one target of the task's frame. A task takes one click.",
        "inputSchema": {
            "type": "object",
            "properties": {"taskId": _WORD, "targetId": _WORD},
            "required": ["taskId", "targetId"],
            "additionalProperties": False,
        },
        "outputSchema": {
            "type": "object",
            "properties": {"taskId": _WORD, "targetId": _WORD, "frame": _WORD, "accepted": {"const": True}},
            "required": ["taskId", "targetId", "frame", "accepted"],
            "additionalProperties": False,
        },
        "annotations": {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False},
    },
)

_READ_KEYS: Final = {"taskId"}
_CLICK_KEYS: Final = {"taskId", "targetId"}


class Scene(NamedTuple):
    """What a seed makes of a task."""

    root: bytes
    reading: int
    limit: int


def own_sha256() -> Any:
    """SHA-256 from the interpreter itself; `hashlib` loads OpenSSL first, for a tenth of a server's start."""
    for module in ("_sha2", "_sha256"):  # from 3.12 on, and before
        with suppress(ImportError):
            return import_module(module).sha256
    return import_module("hashlib").sha256


sha256: Final = own_sha256()


@lru_cache(maxsize=256)
def scene(seed: int, task: str) -> Scene:
    """The generator: the same scene for the same version, seed and task."""
    root = sha256(f"synthetic-ui@{VERSION}\n{seed}\n{task}".encode()).digest()
    reading, limit = (int.from_bytes(root[at : at + 4], "big") % 100 + 1 for at in (0, 4))
    return Scene(root, reading, limit)


class SyntheticUi:
    """The interface as a model: one task, from its scene to its one decision.

    Raises:
        InputError: wrong_value, if the seed or the task's name cannot be one.
    """

    server_info: Final[Json] = {"name": "synthetic-ui", "version": f"{VERSION}.0.0"}

    def __init__(self, seed: int, task: str) -> None:
        if type(seed) is not int or not 0 <= seed <= SAFE_INTEGER:
            raise InputError(Reason.WRONG_VALUE, f"`{seed!r:.80}` is no seed: a whole number from 0 to 2^53-1")
        if type(task) is not str or _TASK.fullmatch(task) is None:
            raise InputError(Reason.WRONG_VALUE, f"`{task!r:.80}` is no task: 1 to 64 letters, digits, `.`, `_`, `-`")
        self._task = task
        self._scene = scene(seed, task)
        self._link = self._scene.root
        self._frame = "f0-" + self._link[8:14].hex()
        self._canary = "canary-" + self._link[24:].hex()
        self._state = "undecided"
        self.events: list[Event] = []

    def tools(self) -> list[Json]:
        return list(TOOLS)

    def call(self, name: str, arguments: dict[str, Json]) -> Json:
        if name == "read_task" and arguments.keys() == _READ_KEYS:
            return self._read(arguments["taskId"])
        if name == "click_target" and arguments.keys() == _CLICK_KEYS:
            return self._click(arguments["taskId"], arguments["targetId"])
        return self._reject(name, "no such tool with such arguments")

    def _read(self, task: Json) -> Json:
        if task != self._task:
            return self._reject("read_task", "no such task")
        self._happened("read", "read_task", "")
        _, reading, limit = self._scene
        targets = list(TARGETS) if self._state == "undecided" else []
        names = '"approve","hold"' if targets else ""
        return _structured(
            f'{{"taskId":"{task}","frame":"{self._frame}","reading":{reading},"limit":{limit},"targets":[{names}]}}',
            {"taskId": task, "frame": self._frame, "reading": reading, "limit": limit, "targets": targets},
        )

    def _click(self, task: Json, target: Json) -> Json:
        if task != self._task:
            return self._reject("click_target", "no such task")
        if self._state != "undecided" or target not in TARGETS:
            return self._reject("click_target", "no such target in this frame")
        self._state = _ENDS[target]
        self._frame = "f1-" + sha256(self._scene.root + target.encode()).hexdigest()[:12]
        self._happened("click", "click_target", target)
        return _structured(
            f'{{"taskId":"{task}","targetId":"{target}","frame":"{self._frame}","accepted":true}}',
            {"taskId": task, "targetId": target, "frame": self._frame, "accepted": True},
        )

    def _reject(self, tool: str, why: str) -> Json:
        self._happened("rejected", tool, "")
        return text_result(why, failed=True)

    def _happened(self, kind: str, tool: str, target: str) -> None:
        seq = len(self.events) + 1
        self._link = sha256(self._link + f"{seq}\n{kind}\n{target}".encode()).digest()
        facts: dict[str, str | int] = {
            "target": target,
            "state": self._state,
            "frame": self._frame,
            "reading": self._scene.reading,
            "limit": self._scene.limit,
            "canary": self._canary,
        }
        self.events.append(Event(seq, f"e{seq}-{self._link[:6].hex()}", kind, tool, facts))


def _structured(text: str, value: Json) -> Json:
    # The text is the value as JSON, written by hand: every word in it is plain, and that is ten times as fast.
    return {"content": [{"type": "text", "text": text}], "structuredContent": value, "isError": False}


def main() -> int:
    """Serve the interface on standard input and output until the peer closes it."""
    from assisted_benchmark.workloads.process import run

    return run(lambda setup: SyntheticUi(setup.seed, setup.task))


if __name__ == "__main__":
    os._exit(main())  # nothing is buffered, and taking an interpreter apart takes long
