"""Vectors of presented grants that nobody in a scenario makes: another spelling, other pins, another run's header."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from assisted_benchmark.kernel.canonical import Canonical, Json, canonical_bytes
from assisted_benchmark.kernel.digest import digest_of
from assisted_benchmark.kernel.keys import KeyRing, Purpose
from assisted_benchmark.live_policy.grant import SealedGrant
from assisted_benchmark.live_policy.policy import Policy
from assisted_benchmark.suite.vectors.vector import bytes_of, bytes_value

_ANOTHER: Final = digest_of("vectors@1", b"another")


def opening_vectors(sound: Json, policy: Policy) -> Iterator[Json]:
    """What becomes of a vector whose decision is admitted, if only the grant or what the runner trusts is another."""
    raw = bytes_of(sound["grant"])
    yield _vector("grant/no-grant", "bytes that are no sealed grant", sound, grant={"text": "{}"})
    yield _vector("grant/no-json", "bytes that are no document", sound, grant={"text": '{"grant":'})
    spelled = raw.replace(b'":', b'": ', 1)
    yield _vector("grant/another-spelling", "the same value in other bytes", sound, grant=bytes_value(spelled))
    pins = {
        "policy": {**sound["pins"], "policy": _ANOTHER},
        "contract": {"policy": policy.digest_under(_ANOTHER), "contract": _ANOTHER},
    }
    for part, pinned in pins.items():
        yield _vector(f"pins/another-{part}", f"the runner has pinned another {part}", sound, pins=pinned)
    launches = dict.fromkeys(sound["launches"], _ANOTHER)
    yield _vector("pins/another-launch", "servers resolve to something else by now", sound, launches=launches)
    for name, key, value in (
        ("run", "run", "another-run"),
        ("session", "principal", "somebody"),
        ("vm", "vm", "00000000-0000-4000-8000-000000000000"),
        ("host", "host", _ANOTHER),
        ("lifetime", "expires_at", "253402300799000000000"),
    ):
        resealed = _resealed(sound, key, value)
        yield _vector(
            f"grant/another-{name}",
            f"the grant names another {name}, and every digest and the MAC were computed anew",
            sound,
            grant=bytes_value(resealed.data),
            opened_by={**sound["opened_by"], "grant": resealed.digest},
        )


def _resealed(sound: Json, key: str, value: str) -> SealedGrant:
    keys = KeyRing(sound["key"]["id"], bytes.fromhex(sound["key"]["master"]))
    content: Json = Canonical(SealedGrant.read(bytes_of(sound["grant"])).content).value
    content["header"][key] = value
    return SealedGrant.seal(canonical_bytes(content), keys.key(Purpose.GRANT))


def _vector(name: str, why: str, sound: Json, **changed: Json) -> Json:
    return {"id": name, "comment": why, "flags": ["refused"], "given": {**sound, **changed}}
