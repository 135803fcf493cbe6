"""An offline endpoint with the public shapes of Fabric v4: a test-only HTTP API, as a model.

    POST /fabric/v4/{connections,networks,serviceTokens}[?dryRun=true|false]   validate, or create
    GET  /fabric/v4/{connections,networks,serviceTokens}[?offset=&limit=]      list what was created
    GET  /fabric/v4/{connections,networks,serviceTokens}/{uuid}                one of them
    POST /fabric/v4/prices/search                                              the rate card

A dry run answers 200 with the request normalised (defaults and hrefs filled in), without uuid and state; a create
answers 201 (networks: 202) with both. An error is a list of errors with the public codes. Every request needs the
bearer that follows from the seed. The model counts each request before it judges it; a POST is a dry run only if its
`dryRun` is exactly `true`. It has no clock, file, process or chance: uuids and bearer follow from the seed.
"""

from __future__ import annotations

import hashlib
import sys
from typing import Final, NamedTuple
from urllib.parse import parse_qsl
from uuid import UUID

from assisted_benchmark.kernel.canonical import Json, canonical_bytes, parse
from assisted_benchmark.kernel.errors import CanonicalError, InputError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.strict_json import SAFE_INTEGER
from assisted_benchmark.workloads.fabric_api_faults import Act
from assisted_benchmark.workloads.fabric_api_prices import search
from assisted_benchmark.workloads.fabric_api_shapes import ASSETS, Problem, access_points, is_uuid, wrong_in
from assisted_benchmark.workloads.model import Event

ROOT: Final = "/fabric/v4"
KINDS: Final = ("connections", "networks", "serviceTokens")
MAX_BODY: Final = 1 << 16

_STATES: Final = {"connections": "PROVISIONING", "networks": "ACTIVE", "serviceTokens": "INACTIVE"}
_CREATED: Final = {"connections": 201, "networks": 202, "serviceTokens": 201}
_NO_DRY_RUN: Final = frozenset({"IX_VC", "IC_VC", "MC_VC"})
# Status, public code and text of each error.
_ERRORS: Final = {
    "invalid": (400, "EQ-3142501", "Invalid input"),
    "duplicate": (400, "EQ-3142102", "Connection has duplicate buyer-side VLAN ID for port"),
    "no_dry_run": (400, "EQ-3142411", "Dry run is not supported for this connection type"),
    "bad_search": (400, "EQ-3038010", "Validation failure"),
    "no_user": (401, "EQ-3000039", "User not found in request or invalid."),
    "forbidden": (403, "EQ-3045003", "Operation not allowed"),
    "unknown": (404, "EQ-3045811", "uuid not found"),
    "method": (405, "EQ-3142569", "Method not supported, Please check the URL passed"),
    "large": (413, "EQ-3142501", "Invalid input"),
    "media": (415, "EQ-3040016", "Unsupported media type"),
    "internal": (500, "EQ-3045004", "Internal Server Error"),
}
_BY_STATUS: Final = {status: (code, text) for status, code, text in reversed(_ERRORS.values())}


class Asked(NamedTuple):
    """A request as it arrived. `target` is path and query."""

    method: str
    target: str
    body: bytes = b""
    media: str = "application/json"
    authorization: str = ""


class Answered(NamedTuple):
    """An answer as it goes out."""

    status: int
    body: bytes
    media: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


class Call(NamedTuple):
    """What a request asks for: an act on a kind (`prices` for the search), and of one thing if it names one."""

    act: Act
    kind: str = ""
    uuid: str = ""

    @property
    def name(self) -> str:
        """What it is counted as."""
        return f"{self.kind}.{self.act}" if self.kind else str(self.act)


def bearer_of(seed: int) -> str:
    """The bearer that a seed's endpoint wants. A test's secret, which must show up nowhere else."""
    return f"fabric-{hashlib.sha256(f'fabric-api@1 bearer {seed}'.encode()).hexdigest()[:32]}"


def call_of(asked: Asked) -> Call:
    """What a request asks for, by its method and target alone."""
    path, _, query = asked.target.partition("?")
    match path.removeprefix(ROOT).split("/") if path.startswith(f"{ROOT}/") else ():
        case ["", "prices", "search"] if asked.method == "POST":
            return Call(Act.SEARCH, "prices")
        case ["", kind] if kind in KINDS and asked.method == "POST":
            return Call(Act.DRY_RUN if query == "dryRun=true" else Act.CREATE, kind)
        case ["", kind] if kind in KINDS and asked.method == "GET":
            return Call(Act.LIST, kind)
        case ["", kind, uuid] if kind in KINDS and asked.method == "GET":
            return Call(Act.GET, kind, uuid)
    return Call(Act.OTHER)


class FabricApi:
    """The endpoint as a model.

    `received` counts the requests by what they asked for (`connections.create`, `other`); `events` is what came of
    them, in order: the oracle's view.

    Raises:
        InputError: wrong_value, if the seed cannot be one.
    """

    def __init__(self, seed: int) -> None:
        if type(seed) is not int or not 0 <= seed <= SAFE_INTEGER:
            raise InputError(Reason.WRONG_VALUE, f"`{seed!r:.80}` is no seed: a whole number from 0 to 2^53-1")
        self.events: list[Event] = []
        self.received: dict[str, int] = {}
        self._seed = seed
        self._authorization = f"Bearer {bearer_of(seed)}"
        self._kept: dict[str, dict[str, Json]] = {kind: {} for kind in KINDS}
        self._vlans: set[Json] = set()

    def arrive(self, asked: Asked) -> Call:
        """Count a request."""
        call = call_of(asked)
        self.received[call.name] = self.received.get(call.name, 0) + 1
        return call

    def answer(self, asked: Asked, call: Call, *, wants_more: bool = False) -> Answered:
        """Judge a request that arrived, and act. With `wants_more` a project is needed that no shape asks for."""
        refused = self._unread(asked, call)
        if refused is not None:
            return refused
        if call.act is Act.LIST:
            return self._list(asked, call)
        if call.act is Act.GET:
            return self._get(call)
        try:
            body = parse(asked.body)
        except CanonicalError as error:
            return self._no("invalid", call, Problem("/", f"not JSON as it should be: {error.reason}"))
        if call.act is Act.SEARCH:
            return self._search(body, call)
        return self._post(asked, call, body, wants_more)

    def error(self, call: Call, status: int) -> Answered:
        """An error of this status, whatever was asked."""
        code, text = _BY_STATUS.get(status, _BY_STATUS[500])
        return self._error(call, status, code, text, ())

    def _unread(self, asked: Asked, call: Call) -> Answered | None:
        """What is refused before the body is read, if anything is."""
        if asked.authorization != self._authorization:
            return self._no("no_user", call)
        query = asked.target.partition("?")[2]
        if call.act is Act.OTHER:
            known = any(call_of(asked._replace(method=method)).kind for method in ("GET", "POST"))
            return self._no("method" if known else "unknown", call)
        if call.act in (Act.DRY_RUN, Act.CREATE) and query not in ("", "dryRun=true", "dryRun=false"):
            return self._no("invalid", call, Problem("queryParam:dryRun", "must be true or false"))
        if call.act in (Act.GET, Act.SEARCH) and query:
            return self._no("invalid", call, Problem("queryParam", "there is none"))
        if call.act in (Act.LIST, Act.GET):
            return None
        if len(asked.body) > MAX_BODY:
            return self._no("large", call, Problem("/", f"more than {MAX_BODY} bytes"))
        if asked.media.partition(";")[0].strip().lower() != "application/json":
            return self._no("media", call, Problem("contentType", "must be application/json"))
        return None

    def _post(self, asked: Asked, call: Call, body: Json, wants_more: bool) -> Answered:
        wrong = wrong_in(call.kind, body)
        if not wrong and wants_more and "project" not in body:
            wrong = [Problem("/project", "is required")]
        if wrong:
            return self._no("invalid", call, *wrong)
        if call.act is Act.DRY_RUN and body["type"] in _NO_DRY_RUN:
            return self._no("no_dry_run", call, Problem("queryParam:dryRun", "not supported"))
        vlans = _vlans(body) if call.kind == "connections" else []
        for index, (path, vlan) in enumerate(vlans):
            if vlan in self._vlans or vlan in [other for _, other in vlans[:index]]:
                return self._no("duplicate", call, Problem(path, "the VLAN is in use on this port"))
        normal = _normal(call.kind, body)
        digest = hashlib.sha256(asked.body).hexdigest()
        if call.act is Act.DRY_RUN:
            self._happened("dry_run", call, {"status": 200, "body": digest})
            return _json(200, normal)
        self._vlans.update(vlan for _, vlan in vlans)
        uuid = self._uuid(call.kind, len(self._kept[call.kind]) + 1)
        made = {**normal, "href": f"{ROOT}/{call.kind}/{uuid}", "uuid": uuid, "state": _STATES[call.kind]}
        self._kept[call.kind][uuid] = made
        status = _CREATED[call.kind]
        facts: dict[str, str | int] = {"status": status, "body": digest, "uuid": uuid}
        self._happened("created", call, facts | {"object": canonical_bytes(made).decode()})
        return _json(status, made)

    def _search(self, body: Json, call: Call) -> Answered:
        rows = search(body)
        if rows and isinstance(rows[0], Problem):
            return self._no("bad_search", call, *rows)
        self._happened("read", call, {"status": 200})
        return _json(200, {"pagination": {"offset": 0, "limit": 100, "total": len(rows)}, "data": rows})

    def _list(self, asked: Asked, call: Call) -> Answered:
        page = {"offset": "0", "limit": "20"}
        given = parse_qsl(asked.target.partition("?")[2], keep_blank_values=True)
        numbers = page | dict(given)
        sound = numbers.keys() == page.keys() and len(dict(given)) == len(given)
        if not (sound and all(text.isascii() and text.isdigit() and len(text) < 6 for text in numbers.values())):
            return self._no("invalid", call, Problem("queryParam", "must be offset and limit, whole numbers"))
        offset, limit = int(numbers["offset"]), int(numbers["limit"])
        if not 1 <= limit <= 100:
            return self._no("invalid", call, Problem("queryParam:limit", "must be a whole number from 1 to 100"))
        kept = list(self._kept[call.kind].values())
        self._happened("read", call, {"status": 200})
        pagination = {"offset": offset, "limit": limit, "total": len(kept)}
        return _json(200, {"pagination": pagination, "data": kept[offset : offset + limit]})

    def _get(self, call: Call) -> Answered:
        made = self._kept[call.kind].get(call.uuid)
        if made is None:
            return self._no("unknown", call, Problem("uuid", "not found" if is_uuid(call.uuid) else "is no UUID"))
        self._happened("read", call, {"status": 200})
        return _json(200, made)

    def _no(self, which: str, call: Call, *problems: Problem) -> Answered:
        return self._error(call, *_ERRORS[which], problems)

    def _error(self, call: Call, status: int, code: str, text: str, problems: tuple[Problem, ...]) -> Answered:
        self._happened("rejected", call, {"status": status, "code": code})
        error = {
            "errorCode": code,
            "errorMessage": text,
            "correlationId": self._uuid("error", len(self.events)),
            "details": problems[0].reason if problems else "",
            "help": "",
            "additionalInfo": [each._asdict() for each in problems],
        }
        return _json(status, [error])

    def _uuid(self, kind: str, number: int) -> str:
        seed = f"fabric-api@1 {kind} {self._seed} {number}".encode()
        return str(UUID(bytes=hashlib.sha256(seed).digest()[:16], version=4))

    def _happened(self, what: str, call: Call, facts: dict[str, str | int]) -> None:
        seq = len(self.events) + 1
        self.events.append(Event(seq, f"e{seq}", what, call.name, facts))


def _normal(kind: str, body: Json) -> Json:
    """The body as the endpoint understood it: defaults, and where what it names is found."""
    normal: Json = parse(canonical_bytes(body))  # a copy
    if kind == "connections":
        normal.setdefault("redundancy", {"priority": "PRIMARY"})
    if kind == "serviceTokens":
        normal["connection"].setdefault("allowRemoteConnection", False)
        normal["connection"].setdefault("allowCustomBandwidth", False)
    for _, point in access_points(normal):
        asset, place = ASSETS[point["type"]]
        point[asset]["href"] = f"{ROOT}/{place}/{point[asset]['uuid']}"
    return normal


def _vlans(body: Json) -> list[tuple[str, Json]]:
    """The VLANs of ports that a connection would take, with the path that asks for each."""
    taken: list[tuple[str, Json]] = []
    for path, point in access_points(body):
        tags = dict(point.get("linkProtocol", {}))
        if point["type"] == "COLO" and tags.pop("type", "UNTAGGED") != "UNTAGGED":
            taken.append((f"{path}/linkProtocol", (point["port"]["uuid"], *sorted(tags.items()))))
    return taken


def _json(status: int, value: Json) -> Answered:
    return Answered(status, canonical_bytes(value))


def main() -> int:
    """Serve the endpoint on a port of loopback until the harness that set it up is gone."""
    from assisted_benchmark.workloads import fabric_api_server

    return fabric_api_server.main()


if __name__ == "__main__":
    sys.exit(main())
