"""Which bodies the offline Fabric endpoint takes: the public v4 shapes of what can be created there.

Written from the public description of the API and of nothing else: a contract that compiles another shape is
noticed here. Stricter than the public API in one thing: a key that it does not know is refused, not ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, TypeAlias

from assisted_benchmark.kernel.canonical import Json


class Problem(NamedTuple):
    """One thing that is wrong in a body: where, as a path of its keys, and why."""

    property: str
    reason: str


Check: TypeAlias = Callable[[Json, str], Iterator[Problem]]

CONNECTION_TYPES: Final = [
    "EVPL_VC",
    "EPL_VC",
    "EC_VC",
    "IP_VC",
    "ACCESS_EPL_VC",
    "EIA_VC",
    "EVPLAN_VC",
    "EPLAN_VC",
    "EVPTREE_VC",
    "EPTREE_VC",
    "IPWAN_VC",
    "IA_VC",
    "MC_VC",
    "IX_VC",
    "IC_VC",
]
# The asset that an access point of each type names, and where assets of that kind are found.
ASSETS: Final = {
    "COLO": ("port", "ports"),
    "SP": ("profile", "serviceProfiles"),
    "CLOUD_ROUTER": ("router", "routers"),
    "NETWORK": ("network", "networks"),
    "VD": ("virtualDevice", "virtualDevices"),
}
_TOKEN_CONNECTIONS: Final = [
    "EVPL_VC",
    "EPL_VC",
    "EVPLAN_VC",
    "EPLAN_VC",
    "IPWAN_VC",
    "IP_VC",
    "EVPTREE_VC",
    "EPTREE_VC",
]
_NOTICES: Final = [
    "NOTIFICATION",
    "BANDWIDTH_ALERT",
    "CONNECTION_APPROVAL",
    "PROFILE_LIFECYCLE",
    "ALL",
    "SALES_REP_NOTIFICATIONS",
    "TECHNICAL",
    "ORDERING",
]
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_INSTANT: Final = re.compile(
    r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)"
)


def _text(value: Json, path: str) -> Iterator[Problem]:
    if type(value) is not str or not 0 < len(value) <= 255:
        yield Problem(path, "must be a text of 1 to 255 characters")


def _like(pattern: re.Pattern[str], what: str) -> Check:
    def check(value: Json, path: str) -> Iterator[Problem]:
        if type(value) is not str or pattern.fullmatch(value) is None:
            yield Problem(path, f"must be {what}")

    return check


def _word(words: list[str] | tuple[str, ...]) -> Check:
    def check(value: Json, path: str) -> Iterator[Problem]:
        if type(value) is not str or value not in words:
            yield Problem(path, f"must be one of {', '.join(words)}")

    return check


def _whole(least: int, most: int) -> Check:
    def check(value: Json, path: str) -> Iterator[Problem]:
        if type(value) is not int or not least <= value <= most:
            yield Problem(path, f"must be a whole number from {least} to {most}")

    return check


def _flag(value: Json, path: str) -> Iterator[Problem]:
    if type(value) is not bool:
        yield Problem(path, "must be true or false")


def _several(each: Check) -> Check:
    def check(value: Json, path: str) -> Iterator[Problem]:
        if type(value) is not list or not value:
            yield Problem(path, "must be a list that is not empty")
            return
        for index, item in enumerate(value):
            yield from each(item, f"{path}/{index}")

    return check


def _record(required: dict[str, Check], optional: dict[str, Check] | None = None) -> Check:
    known = {**required, **(optional or {})}

    def check(value: Json, path: str) -> Iterator[Problem]:
        if type(value) is not dict:
            yield Problem(path or "/", "must be an object")
            return
        for key in required.keys() - value.keys():
            yield Problem(f"{path}/{key}", "is required")
        for key, item in value.items():
            if key in known:
                yield from known[key](item, f"{path}/{key}")
            else:
                yield Problem(f"{path}/{key}", "is not known")

    return check


_uuid: Final = _like(_UUID, "a UUID")
_reference: Final = _record({"uuid": _uuid})
_asset_of: Final[dict[str, Check]] = {
    "port": _reference,
    "profile": _record({"uuid": _uuid}, {"type": _text}),
    "router": _reference,
    "network": _reference,
    "virtualDevice": _record({"uuid": _uuid}, {"type": _word(["EDGE"])}),
}
_notifications: Final = _several(
    _record({"type": _word(_NOTICES), "emails": _several(_like(_EMAIL, "an email address"))}, {"sendInterval": _text})
)
_project: Final = _record({"projectId": _text})
_location: Final = _record({}, {"metroCode": _like(re.compile(r"[A-Z]{2}"), "two capitals"), "region": _text})
_additional: Final = _several(_record({"key": _text, "value": _text}))
_tag: Final = _whole(2, 4092)
_tags: Final[dict[str, dict[str, Check]]] = {
    "UNTAGGED": {},
    "DOT1Q": {"vlanTag": _tag},
    "QINQ": {"vlanSTag": _tag, "vlanCTag": _tag},
}


def _link_protocol(value: Json, path: str) -> Iterator[Problem]:
    kind = value.get("type") if type(value) is dict else None
    tags = _tags.get(kind, {}) if type(kind) is str else {}
    yield from _record({"type": _word(tuple(_tags)), **tags})(value, path)


def _point(types: tuple[str, ...], more: dict[str, Check]) -> Check:
    """An access point, or the selector of one: exactly the asset that its type names."""

    def check(value: Json, path: str) -> Iterator[Problem]:
        kind = value.get("type") if type(value) is dict else None
        asset = ASSETS[kind][0] if type(kind) is str and kind in types else None
        named: dict[str, Check] = {} if asset is None else {asset: _asset_of[asset]}
        yield from _record({"type": _word(types), **named}, {"linkProtocol": _link_protocol, **more})(value, path)

    return check


_access_point: Final = _point(
    tuple(ASSETS),
    {
        "location": _location,
        "sellerRegion": _text,
        "authenticationKey": _text,
        "peeringType": _word(["PRIVATE", "MICROSOFT", "PUBLIC", "MANUAL"]),
        "role": _word(["LEAF", "ROOT"]),
        "interface": _record({"type": _word(["CLOUD", "NETWORK"])}, {"id": _whole(0, 1000), "uuid": _uuid}),
    },
)
_selector: Final = _point(
    ("COLO", "VD", "NETWORK"), {"interface": _record({"type": _word(["NETWORK"])}, {"uuid": _uuid})}
)


def _one_of(first: str, second: str, check: Check) -> Check:
    """Exactly one of two keys stands there."""

    def checked(value: Json, path: str) -> Iterator[Problem]:
        yield from check(value, path)
        if type(value) is dict and (first in value) is (second in value):
            yield Problem(path, f"must have `{first}` or `{second}`, and not both")

    return checked


_side: Final = _one_of(
    "accessPoint",
    "serviceToken",
    _record({}, {"accessPoint": _access_point, "serviceToken": _reference, "additionalInfo": _additional}),
)
_selectors: Final = _record({"accessPointSelectors": _several(_selector)})

SHAPES: Final[dict[str, Check]] = {
    "connections": _record(
        {
            "type": _word(CONNECTION_TYPES),
            "name": _text,
            "bandwidth": _whole(0, 100_000),
            "notifications": _notifications,
            "aSide": _side,
            "zSide": _side,
        },
        {
            "redundancy": _record({"priority": _word(["PRIMARY", "SECONDARY"])}, {"group": _uuid}),
            "order": _record(
                {}, {"purchaseOrderNumber": _text, "customerReferenceNumber": _text, "termLength": _whole(1, 36)}
            ),
            "project": _project,
            "additionalInfo": _additional,
        },
    ),
    "networks": _record(
        {
            "type": _word(["EVPLAN", "EPLAN", "IPWAN", "EVPTREE", "EPTREE"]),
            "name": _text,
            "scope": _word(["LOCAL", "REGIONAL", "GLOBAL"]),
            "notifications": _notifications,
        },
        {"location": _location, "project": _project},
    ),
    "serviceTokens": _record(
        {
            "type": _word(["VC_TOKEN", "EPL_TOKEN"]),
            "name": _text,
            "expirationDateTime": _like(_INSTANT, "a date and time with its offset"),
            "connection": _one_of(
                "aSide",
                "zSide",
                _record(
                    {"type": _word(_TOKEN_CONNECTIONS)},
                    {
                        "allowRemoteConnection": _flag,
                        "allowCustomBandwidth": _flag,
                        "bandwidthLimit": _whole(0, 100_000),
                        "supportedBandwidths": _several(_whole(0, 100_000)),
                        "aSide": _selectors,
                        "zSide": _selectors,
                    },
                ),
            ),
        },
        {"description": _text, "notifications": _notifications, "project": _project},
    ),
}


def wrong_in(kind: str, body: Json) -> list[Problem]:
    """All that keeps this body from being taken, in the order of its paths."""
    return sorted(SHAPES[kind](body, ""))


def is_uuid(text: str) -> bool:
    """Whether this is a UUID as the endpoint writes them."""
    return _UUID.fullmatch(text) is not None


def access_points(body: Json) -> Iterator[tuple[str, Json]]:
    """Every access point and selector of a body that was taken, with its path."""
    for side in ("aSide", "zSide"):
        if "accessPoint" in body.get(side, {}):
            yield f"/{side}/accessPoint", body[side]["accessPoint"]
        for index, each in enumerate(body.get("connection", {}).get(side, {}).get("accessPointSelectors", ())):
            yield f"/connection/{side}/accessPointSelectors/{index}", each
