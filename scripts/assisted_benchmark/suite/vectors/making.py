"""The files of public vectors, made of the real code and the shipped cases. `scripts/generate` writes them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from assisted_benchmark.contract.files import name_below, read
from assisted_benchmark.contract.strict_yaml import load
from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.suite.case import Case
from assisted_benchmark.suite.runner import discover
from assisted_benchmark.suite.vectors.live import contract_value, policy_of, policy_value
from assisted_benchmark.suite.vectors.made_calls import call_vectors
from assisted_benchmark.suite.vectors.made_live import opening_vectors
from assisted_benchmark.suite.vectors.made_plain import admission_vectors, canonical_vectors, digest_vectors
from assisted_benchmark.suite.vectors.made_receipts import receipt_vectors
from assisted_benchmark.suite.vectors.players import PLAYERS
from assisted_benchmark.suite.vectors.vector import FOLDER, SCHEMA, published_schema
from assisted_benchmark.suite.vectors.watching import Seen, Watch, plays_here, seen_in
from assisted_benchmark.suite.vectors.watching_capability import CAPABILITY
from assisted_benchmark.suite.vectors.watching_live import LIVE
from assisted_benchmark.suite.vectors.watching_mutation import MUTATION

# So many decisions with one code are vectors, of other scenarios first.
_OF_A_CODE: Final = 4

_FLAGS: Final[Mapping[str, Mapping[str, str]]] = {
    "canonical": {"canonical": "the bytes that RFC 8785 gives"},
    "digest": {"digest": "SHA-256 over the domain and every part, each after its length in bytes (8, big-endian)"},
    "admission": {
        "good": "has to be admitted",
        "bytes": "is no JSON document",
        "text": "is no clean UTF-8 text",
        "keys": "says one thing twice",
        "number": "has a number that not all readers take for the same",
        "size": "is larger, deeper or more crowded than is allowed",
    },
    "receipts": {
        "good": "is sound",
        "edited": "something was changed",
        "moved": "something stands elsewhere, twice or not at all",
        "truncated": "the end is missing, or cut off",
        "foreign": "something is of another run or ledger",
        "inconsistent": "the chain holds, and what it tells cannot be",
    },
}
_DECISION_FLAGS: Final = {"admitted": "has to be admitted", "refused": "has to be refused, for this very reason"}
_ABOUT: Final[Mapping[str, str]] = {
    "canonical": "A JSON text, and its one canonical spelling.",
    "digest": "Bytes under a domain, and their digest.",
    "admission": "Raw bytes, and whether they are admitted as one JSON document; if so, its canonical spelling.",
    "receipts": "Exported receipts and what was anchored of their runs; expected is everything that is wrong.",
    "live": "One decision of the broker of sealed grants: the grant is opened, then the proposal is decided on.",
    "mutation": "One proposal of a change, or one confirmation of what was proposed.",
    "capability": "A call against a registry, the facts of a call against the admission, or the hash of a request.",
}


def vector_files(root: Path) -> dict[str, str]:
    """The name and text of every file below `vectors/` that is made."""
    plain = {"canonical": canonical_vectors(), "digest": digest_vectors(), "admission": admission_vectors()}
    receipts, shared = receipt_vectors()
    cases = [case for case in discover(root) if plays_here(case)]
    made = {
        **{kind: _file(kind, vectors, {}) for kind, vectors in plain.items()},
        "receipts": _file("receipts", receipts, shared),
        "live": _live([case for case in cases if case.broker == "live"]),
        "mutation": _mutation([case for case in cases if case.broker == "mutation"]),
        "capability": _capability([case for case in cases if case.broker == "capability"], root),
    }
    texts = {f"{kind}.json": _text(value) for kind, value in made.items()}
    texts["vectors.schema.json"] = _text(published_schema())
    return {f"{FOLDER}/{name}": text for name, text in texts.items()}


def _text(value: Json) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def _file(kind: str, vectors: Sequence[Json], shared: Json) -> Json:
    """A whole file; what each vector expects is what this implementation answers."""
    return {
        "schema": SCHEMA,
        "kind": kind,
        "about": _ABOUT[kind],
        "flags": dict(_FLAGS.get(kind, _DECISION_FLAGS)),
        **({"shared": shared} if shared else {}),
        "vectors": [{**each, "expected": PLAYERS[kind](each["given"], shared)} for each in vectors],
    }


def _live(cases: Sequence[Case]) -> Json:
    shared: dict[str, Any] = {"contracts": {}, "policies": {}}
    vectors = []
    for seen in _chosen(cases, LIVE):
        policy = seen.authority
        name = _named(shared["policies"], policy.id, policy_value(policy))
        _named(shared["contracts"], policy.contract.id, contract_value(policy.contract))
        vectors.append(_vector(seen, {"policy": name, **seen.given}))
    kept = _kept("live", vectors, shared)
    sound = next(each["given"] for each in kept if each["flags"] == ["admitted"])
    policy = policy_of(shared["policies"][sound["policy"]], shared["contracts"])
    return _file("live", [*kept, *opening_vectors(sound, policy)], shared)


def _mutation(cases: Sequence[Case]) -> Json:
    shared: dict[str, Any] = {"contracts": {}}
    vectors = []
    for seen in _chosen(cases, MUTATION):
        contract = seen.authority
        name = _named(shared["contracts"], contract.id, contract.source.value)
        vectors.append(_vector(seen, {"contract": name, **seen.given}))
    return _file("mutation", _kept("mutation", vectors, shared), shared)


def _capability(cases: Sequence[Case], root: Path) -> Json:
    shared: dict[str, Any] = {"registries": {}}
    for path in sorted((root / "contracts").glob("*.registry.yaml")):
        value = load(read(path, root), name_below(path, root)).value
        shared["registries"][value["id"]] = value
    vectors = [_vector(seen, {"registry": seen.case.policy, **seen.given}) for seen in _chosen(cases, CAPABILITY)]
    return _file("capability", [*_kept("capability", vectors, shared), *call_vectors()], shared)


def _named(known: dict[str, Json], name: str, value: Json) -> str:
    """The name under which a value is shared; another value of the same name gets one of its own."""
    number, free = 1, name
    while free in known and known[free] != value:
        number += 1
        free = f"{name}-{number}"
    known[free] = value
    return free


def _chosen(cases: Sequence[Case], watches: Sequence[Watch]) -> Iterator[Seen]:
    """A few decisions with each code, of as many scenarios as there are."""
    groups: dict[tuple[str, str], list[Seen]] = {}
    for seen in seen_in(cases, watches):
        groups.setdefault((seen.code, _sort(seen.given)), []).append(seen)
    for group in groups.values():
        first = {seen.case.file: seen for seen in reversed(group)}
        others = [seen for seen in group if seen is not first[seen.case.file]]
        yield from [*reversed(first.values()), *others]


def _vector(seen: Seen, given: Json) -> Json:
    flag = "admitted" if seen.code in ("admitted", "") else "refused"
    return {
        "id": seen.case.id.partition("/")[2],
        "comment": seen.case.because or "as the scenario plays it",
        "flags": [flag],
        "given": given,
        "code": seen.code,
    }


def _kept(kind: str, vectors: Sequence[Json], shared: Json) -> list[Json]:
    """Those whose player comes to the code of the case, a few of each code; ids are told apart by number."""
    kept: list[Json] = []
    counts: Counter[tuple[str, str]] = Counter()
    ids: Counter[str] = Counter()
    said: set[str] = set()
    for vector in vectors:
        code = vector.pop("code")
        key = (code, _sort(vector["given"]))
        same = json.dumps(vector["given"], sort_keys=True)
        if counts[key] == _OF_A_CODE or same in said:
            continue
        if code and PLAYERS[kind](vector["given"], shared)["code"] != code:
            continue
        said.add(same)
        counts[key] += 1
        ids[vector["id"]] += 1
        number = ids[vector["id"]]
        kept.append({**vector, "id": vector["id"] if number == 1 else f"{vector['id']}/{number}"})
    return sorted(kept, key=lambda each: each["id"])


def _sort(given: Json) -> str:
    """Which kind of question it is, of a file that has several."""
    name = next((name for name in ("call", "facts", "request") if name in given), "")
    return str(given["call"]) if given.get("call") in ("propose", "confirm") else name
