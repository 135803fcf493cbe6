"""One operation at one live instance of the plugin host: what it is given, and what can come of it."""

from __future__ import annotations

import hashlib
from typing import Final, NamedTuple

from assisted_benchmark.capability.telemetry import Owner, Telemetry
from assisted_benchmark.kernel.clock import Clock
from assisted_benchmark.kernel.codes import Reason
from assisted_benchmark.kernel.digest import digest_of
from assisted_benchmark.kernel.strict_json import Json
from assisted_benchmark.workloads.plugin_host_instance import Live

_MILLISECOND: Final = 1_000_000


class Made(NamedTuple):
    """An artifact, whole."""

    mime_type: str
    data: bytes


class Failed(NamedTuple):
    """Why nothing was done."""

    code: str
    explanation: str


class Done(NamedTuple):
    """What was done: the result, and the artifact if the operation makes one."""

    result: dict[str, Json]
    made: Made | None = None


class Task(NamedTuple):
    """One operation at one instance, with what it needs of its host. `input` is the parsed input object."""

    live: Live
    input: dict[str, Json]
    receipt_id: str
    owner: Owner
    telemetry: Telemetry
    clock: Clock

    @property
    def now_ms(self) -> int:
        return self.clock.now().wall_ns // _MILLISECOND

    def receipt(self, **result: Json) -> Done:
        """What an operation answers that changed something, which it has done by now."""
        self.live.generation += 1
        return Done({"receipt_id": self.receipt_id, **result})

    def artifact(self, mime_type: str, data: bytes, **result: Json) -> Done:
        """What an operation answers that made something; the id is the one that the broker will give it."""
        sha256 = hashlib.sha256(data).hexdigest()
        named = {"artifact_id": artifact_id(self.receipt_id, sha256), "mime_type": mime_type, "sha256": sha256}
        return Done({**named, "byte_count": len(data), **result}, Made(mime_type, data))


def artifact_id(receipt_id: str, sha256: str) -> str:
    """The id that a broker gives an artifact with these bytes of the operation with this receipt."""
    return "artifact-" + digest_of("artifact@1", receipt_id.encode(), sha256.encode())[7:39]


def invalid(detail: str) -> Failed:
    """The input is none that the operation takes."""
    return Failed(Reason.ARGUMENTS_INVALID.value, detail)
