"""The capability broker watched: each call as it is read, each admission's facts, each request that is admitted."""

from __future__ import annotations

from typing import Any, Final

from assisted_benchmark.capability.call import Unfit
from assisted_benchmark.capability.calling import _Steps
from assisted_benchmark.capability.projection import Projection
from assisted_benchmark.capability.reaching import Refusal
from assisted_benchmark.suite.vectors.capability import facts_of
from assisted_benchmark.suite.vectors.vector import bytes_value
from assisted_benchmark.suite.vectors.watching import Method, Tell, Watch


def _read(whole: Method, tell: Tell) -> Method:
    def read(self: Projection, name: str, arguments: bytes) -> Any:
        came = whole(self, name, arguments)
        given = {"call": {"tool": name, "arguments": bytes_value(arguments)}}
        tell(given, self.registry, came.reason.value if isinstance(came, Unfit) else "admitted")
        return came

    return read


def _late(whole: Method, tell: Tell) -> Method:
    def late(self: Any, checks: Any, question: Any) -> None:
        code = "admitted"
        try:
            whole(self, checks, question)
        except Refusal as no:
            code = no.reason.value
            raise
        finally:
            tell({"facts": facts_of(question)}, None, code)

    return late


def _admit(whole: Method, tell: Tell) -> Method:
    def admit(self: Any, asked: Any, *more: Any) -> Any:
        request = {
            "lineage": asked.lineage._asdict(),
            "key": asked.key,
            "version": asked.version,
            "expected_state_generation": asked.expected,
            "parameters": asked.parameters.decode(),
        }
        tell({"request": request}, None, "")
        return whole(self, asked, *more)

    return admit


CAPABILITY: Final[tuple[Watch, ...]] = (
    (Projection, "read", _read),
    (_Steps, "_late", _late),
    (_Steps, "_admit", _admit),
)
