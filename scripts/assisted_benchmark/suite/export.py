"""What a run leaves to be verified: every receipt, and an anchor of every case's chain under the run's key."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from assisted_benchmark.kernel.canonical import canonical_bytes
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.errors import DocumentError, InputError, Problem
from assisted_benchmark.kernel.keys import KeyRing, Purpose
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import shown
from assisted_benchmark.ledger.exported import Chain, verify_export
from assisted_benchmark.ledger.protocol import Head
from assisted_benchmark.suite.asked import asked
from assisted_benchmark.suite.brokers import BY_NAME
from assisted_benchmark.suite.journal import Ended
from assisted_benchmark.suite.storage import RunDirectory, read_keys, write_whole

_RESUME: Final = "`run --resume DIR` writes the receipts anew, from the run's own journals"
_ANEW: Final = dict.fromkeys((Reason.TORN_TAIL, Reason.CHAIN_TRUNCATED, Reason.CHAIN_MISSING), _RESUME)
SCHEMA: Final = "assisted-benchmark/heads@3"


def write_export(directory: RunDirectory, ended: Iterable[Ended], ledger_id: str, keys: KeyRing) -> None:
    """Write receipts, their anchor and the durations, in the order of `ended`; older ones are replaced."""
    chains: dict[str, Any] = {}
    receipts, timing = [], []
    for each in ended:
        receipts += [line + b"\n" for line in each.receipts]
        timing.append(orjson.dumps({"case": each.result.id, **each.timing}) + b"\n")
        if each.run:
            head = {
                "case": each.result.id,
                "broker": each.broker,
                "length": each.head.length,
                "digest": each.head.digest,
            }
            chains[each.run] = head
    anchored = {"schema": SCHEMA, "ledger": ledger_id, "chains": chains}
    mac = keys.key(Purpose.LEDGER).mac(*_parts(anchored)).hex()
    write_whole(directory.receipts, b"".join(receipts))
    write_whole(directory.timing, b"".join(timing))
    # The anchor last: it is of the receipts that are there.
    write_whole(directory.heads, orjson.dumps({**anchored, "mac": mac}, option=orjson.OPT_INDENT_2) + b"\n")


def verify_run(path: Path) -> tuple[Problem, ...]:
    """Hold a run's receipts against their anchor. Empty: nothing is wrong.

    Raises:
        MisuseError: there is no run of this version.
    """
    directory = RunDirectory(path)
    asked(directory)
    if not any(os.path.lexists(each) for each in (directory.heads, directory.receipts)):
        hint = "a run that was killed is finished by `run --resume`"
        return (Problem(Reason.CHAIN_MISSING, "the run has no receipts yet", _name(directory.heads), hint=hint),)
    try:
        raw, receipts = directory.read(directory.heads), directory.read(directory.receipts)
    except DocumentError as error:
        return tuple(each._replace(reason=Reason.CHAIN_MISSING, hint=_RESUME) for each in error.problems)
    try:
        keys = read_keys(directory.keys)
    except InputError as error:
        detail = f"without the run's key its receipts cannot be verified: {error.detail}"
        return (Problem(error.reason, detail, _name(directory.keys), hint="put the run's own key file back there"),)
    try:
        heads = orjson.loads(raw)
        if heads["schema"] != SCHEMA:
            raise ValueError(heads["schema"])
        mac, chains, ledger_id = heads.pop("mac"), heads["chains"], heads["ledger"]
        sound = keys.key(Purpose.LEDGER).verify(bytes.fromhex(mac), *_parts(heads))
    except (ValueError, KeyError, TypeError, AttributeError, InputError):
        detail = "this is no anchor of receipts"
        return (Problem(Reason.CHAIN_MISSING, detail, _name(directory.heads), hint=_RESUME),)
    if not sound:
        detail = "the anchor of the receipts was edited, or is of another run's key"
        return (Problem(Reason.CHAIN_BROKEN, detail, _name(directory.heads)),)
    return tuple(_problems(receipts, chains, ledger_id, _name(directory.receipts)))


def _parts(anchored: dict[str, Any]) -> Iterator[bytes]:
    """What the anchor's MAC is over: all of it, in order; as one JSON value many chains would be too large."""
    yield canonical_bytes({key: value for key, value in anchored.items() if key != "chains"})
    for run, head in anchored["chains"].items():
        yield canonical_bytes([run, head])


def _name(path: Path) -> str:
    return shown(str(path))


def _problems(receipts: bytes, anchored: dict[str, Any], ledger_id: str, file: str) -> Iterator[Problem]:
    chains = {
        run: Chain(Head(each["length"], Digest(each["digest"])), BY_NAME[each["broker"]].table)
        for run, each in anchored.items()
    }
    for run, finding in verify_export(receipts, chains, ledger_id):
        detail = f"{anchored[run]['case']}: {finding.detail}" if run else finding.detail
        column = 1 if finding.line else 0
        yield Problem(finding.reason, detail, file, finding.line, column, _ANEW.get(finding.reason, ""))
