"""A sealed grant as somebody edited it on its way: under the old seal, another one, or all anew. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from attrs import evolve

from assisted_benchmark.kernel.canonical import Canonical, Json, canonical_bytes
from assisted_benchmark.kernel.keys import KeyRing, Purpose
from assisted_benchmark.live_policy.grant import SealedGrant
from assisted_benchmark.suite.live.faults import Edits


class EditedGrant(NamedTuple):
    """The bytes that are presented; and the grant that they are, where they are one under a name of its own."""

    raw: bytes
    sealed: SealedGrant | None = None


def edited_grant(grant: SealedGrant, how: Edits, keys: KeyRing) -> EditedGrant:
    """What comes of the grant. Of those that are computed anew somebody held the key."""
    key = keys.key(Purpose.GRANT)
    if how in _CONTENT:
        content: Json = Canonical(grant.content).value
        _CONTENT[how](content)
        edited = canonical_bytes(content)
        if how is Edits.UNSEALED:
            unsealed = evolve(grant, content=edited)
            return EditedGrant(unsealed.data, unsealed)
        resealed = SealedGrant.seal(edited, key)
        return EditedGrant(resealed.data, resealed)
    if how is Edits.OTHER_PURPOSE:
        return EditedGrant(SealedGrant.seal(grant.content, keys.key(Purpose.OPERATOR)).data)
    if how is Edits.RESPELLED:
        return EditedGrant(grant.data.replace(b":", b": ", 1))
    whole: Json = Canonical(grant.data).value
    _ENVELOPE[how](whole)
    return EditedGrant(canonical_bytes(whole))


def _edit_plan(content: Json) -> None:
    candidates = content["plan"]["steps"][-1]["candidates"]
    name = next(iter(candidates))
    candidates[name] = {**candidates[name], "edited": "by somebody"}


def _drop_candidate(content: Json) -> None:
    candidates = content["plan"]["steps"][-1]["candidates"]
    del candidates[next(iter(candidates))]


def _set(*path: str, to: Json) -> Callable[[Json], None]:
    def edit(value: Json) -> None:
        *way, last = path
        for step in way:
            value = value[step]
        value[last] = to

    return edit


def _flip(whole: Json) -> None:
    mac = bytearray.fromhex(whole["mac"])
    mac[-1] ^= 1
    whole["mac"] = mac.hex()


def _halve(whole: Json) -> None:
    whole["mac"] = whole["mac"][:32]


def _copy_plan(whole: Json) -> None:
    whole["plan"] = whole["grant"]["plan"]


_CONTENT: Final[dict[Edits, Callable[[Json], None]]] = {
    Edits.UNSEALED: _edit_plan,
    Edits.RESEALED: _edit_plan,
    Edits.LONGER: _set("header", "expires_at", to="253402300799000000000"),
    Edits.TIMELESS: _set("header", "expires_at", to="9999-12-31T23:59:59"),
    Edits.NARROWER: _drop_candidate,
    Edits.OTHER_RUN: _set("header", "run", to="another-run"),
    Edits.OTHER_VM: _set("header", "vm", to="00000000-0000-4000-8000-000000000000"),
    Edits.OTHER_CONTRACT: _set("plan", "contract", to="sha256:" + "0" * 64),
}
_ENVELOPE: Final[dict[Edits, Callable[[Json], None]]] = {
    Edits.MAC_BIT: _flip,
    Edits.MAC_CUT: _halve,
    Edits.MAC_EMPTY: _set("mac", to=""),
    Edits.MAC_NONE: lambda whole: whole.pop("mac"),
    Edits.OTHER_KEY: _set("key", to="another-key"),
    Edits.ALGORITHM: _set("alg", to="none"),
    Edits.TYPED: _set("payloadType", to="application/vnd.in-toto+json"),
    Edits.UNSIGNED: _copy_plan,
}
