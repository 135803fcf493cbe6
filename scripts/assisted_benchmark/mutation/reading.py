"""The read-only catalogue: one request that changes nothing, and the endpoint's answer."""

from __future__ import annotations

from urllib.parse import quote

from attrs import frozen

from assisted_benchmark.kernel.canonical import Canonical, Json, parse
from assisted_benchmark.kernel.clock import Clock, Deadline
from assisted_benchmark.kernel.errors import CanonicalError
from assisted_benchmark.kernel.reasons import REASONS, Reason
from assisted_benchmark.mutation.changes import ChangeContract, Read, accepted
from assisted_benchmark.mutation.compiler import misspelled, problems_in
from assisted_benchmark.mutation.endpoint import EndpointError, entity_of
from assisted_benchmark.mutation.ports import Endpoint, Request
from assisted_benchmark.mutation.template import filled


@frozen(kw_only=True)
class Seen:
    """What came of a read: the endpoint's object, or why there is none."""

    result: dict[str, Json] | None = None
    reason: Reason | None = None
    detail: str = ""
    error: EndpointError | None = None

    @property
    def told(self) -> dict[str, Json]:
        """As an agent hears it: always these keys. `detail` says what is wrong with its arguments."""
        return {
            "refused": None if self.reason is None else REASONS[self.reason].coarse.value,
            "detail": self.detail,
            "result": self.result,
            "endpoint_error": None if self.error is None else self.error.value,
        }


def look(
    contract: ChangeContract, read: Read, raw: bytes, endpoint: Endpoint, clock: Clock, reply_within_ns: int
) -> Seen:
    """Carry out one read with these arguments; nothing is sent unless they fit."""
    try:
        arguments = parse(raw)
    except CanonicalError as error:
        return Seen(reason=error.reason, detail=error.detail)
    found = misspelled(read.checker, arguments) or problems_in(read.checker, read.fields.value, arguments)
    if found:
        return Seen(reason=Reason.ARGUMENTS_INVALID, detail="; ".join(f"{path or '/'}: {why}" for path, why in found))
    answer = endpoint.ask(_request(read, arguments), deadline=Deadline.after(clock, reply_within_ns))
    entity = entity_of(answer, accepted("2xx"), contract.errors)
    if isinstance(entity, EndpointError):
        return Seen(reason=Reason.FAILED, detail=entity.words, error=entity)
    return Seen(result=entity)


def _request(read: Read, arguments: Json) -> Request:
    if read.body is None:
        path = read.path
        for name, value in arguments.items():
            path = path.replace(f"{{{name}}}", quote(str(value), safe=""))
        return Request(read.method, path)
    return Request(read.method, read.path, Canonical.of(filled(read.body.value, arguments)).data)
