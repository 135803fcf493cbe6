"""Players of the vectors that need no broker: canonical bytes, digests, admission, receipts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from assisted_benchmark.kernel.canonical import Json, canonical_bytes, parse
from assisted_benchmark.kernel.digest import Digest, digest_of
from assisted_benchmark.kernel.errors import CanonicalError
from assisted_benchmark.kernel.strict_json import parse_strictly
from assisted_benchmark.ledger.exported import Chain, verify_export
from assisted_benchmark.ledger.protocol import Head
from assisted_benchmark.ledger.states import TransitionTable
from assisted_benchmark.suite.vectors.vector import bytes_of, bytes_value


def canonical(given: Json, _: Mapping[str, Json]) -> Json:
    """The canonical bytes of a JSON text."""
    return bytes_value(canonical_bytes(parse(bytes_of(given["json"]))))


def digest(given: Json, _: Mapping[str, Json]) -> Json:
    """The digest of parts under a domain."""
    return digest_of(given["domain"], *(bytes_of(each) for each in given["parts"]))


def admission(given: Json, _: Mapping[str, Json]) -> Json:
    """Whether bytes are admitted, by both of our readers: the fast one and the strict one that it stands in for."""
    raw, most = bytes_of(given["bytes"]), given["max_bytes"]
    fast, strict = (_admitted(read, raw, most) for read in (parse, parse_strictly))
    return fast if fast == strict else {"code": f"the readers differ: {fast}, {strict}"}


def _admitted(read: Callable[[bytes, int], Json], raw: bytes, most: int) -> Json:
    try:
        return {"code": "admitted", "canonical": bytes_value(canonical_bytes(read(raw, most)))}
    except CanonicalError as error:
        return {"code": error.reason.value}


def receipts(given: Json, shared: Mapping[str, Json]) -> Json:
    """What is wrong with exported receipts: each finding's code, line and run."""
    chains = {
        each["run"]: Chain(Head(each["length"], Digest(each["digest"])), _table(shared["tables"][each["table"]]))
        for each in given["anchored"]
    }
    found = verify_export(bytes_of(given["receipts"]), chains, given["ledger"])
    return [{"code": each.reason.value, "line": each.line, "run": run} for run, each in found]


def _table(value: Json) -> TransitionTable:
    return TransitionTable(
        name=value["name"],
        initial=value["initial"],
        ready=value["ready"],
        claimed=value["claimed"],
        after_crash=value["after_crash"],
        edges=frozenset((before, after) for before, after in value["edges"]),
    )


def table_value(table: TransitionTable) -> Json:
    """A transition table as plain JSON."""
    return {
        "name": table.name,
        "initial": table.initial,
        "ready": table.ready,
        "claimed": table.claimed,
        "after_crash": dict(table.after_crash),
        "edges": sorted([str(before), str(after)] for before, after in table.edges),
    }
