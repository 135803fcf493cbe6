"""What is fuzzed, and the law that holds on any bytes whatever. A law that is broken raises.

Each target is a function of bytes. None of them knows how the bytes were made: a guided fuzzer, the seeded one beside
this, or a line of the corpus.
"""

from __future__ import annotations

import json
import tempfile
from collections import deque
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

import rfc8785
import yaml

from assisted_benchmark.contract.document import load_contract
from assisted_benchmark.contract.strict_yaml import load
from assisted_benchmark.kernel.canonical import canonical_bytes, parse, parse_telling, plain_bytes
from assisted_benchmark.kernel.clock import Instant
from assisted_benchmark.kernel.errors import CanonicalError, DocumentError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.strict_json import Json, parse_strictly
from assisted_benchmark.ledger.exported import Chain, verify_export
from assisted_benchmark.ledger.memory import MemoryLedger
from assisted_benchmark.ledger.protocol import Draft
from assisted_benchmark.live_policy.states import LIVE_TABLE
from assisted_benchmark.suite.live.transcripts.reading import read_transcript
from assisted_benchmark.wire.channel import Channel
from assisted_benchmark.wire.frames import (
    Bad,
    Notification,
    Request,
    Response,
    Splitter,
    read_frame,
    write_message,
    write_notification,
    write_request,
)
from assisted_benchmark.wire.inbox import Inbox
from assisted_benchmark.wire.outcomes import Limits
from assisted_benchmark.wire.server_session import Call, ServerSession

MOST_BYTES: Final = 1 << 15


class BrokenLawError(AssertionError):
    """Some bytes for which a law does not hold."""


def hold(law: bool, what: str) -> None:
    """Say that a law is broken, unless it holds."""
    if not law:
        raise BrokenLawError(what)


def _admitted(read: Callable[[bytes], Json], data: bytes) -> tuple[Reason | None, bytes]:
    """The reason of a refusal, or the value as `repr` spells it, which tells 1 from 1.0 and True."""
    try:
        return None, repr(read(data)).encode("utf-8", "surrogatepass")
    except CanonicalError as error:
        return error.reason, b""


def fuzz_json(data: bytes) -> None:
    """Both parsers agree; what is admitted is what others read, and its bytes are those of another RFC 8785."""
    quick, strict = _admitted(parse, data), _admitted(parse_strictly, data)
    hold(quick == strict, "the fast parser and the strict one differ")
    if quick[0] is not None:
        return
    value, plain = parse_telling(data)
    hold(repr(json.loads(data)) == repr(value), "the standard library reads another value")
    written = canonical_bytes(value)
    hold(written == rfc8785.dumps(value), "another RFC 8785 writes other bytes")
    hold(not plain or plain_bytes(value) == written, "a value called plain has other plain bytes")
    hold(canonical_bytes(parse(written)) == written, "its bytes are not admitted as themselves")


def fuzz_frames(data: bytes) -> None:
    """However bytes are cut, they are the same lines; every line is a frame; a frame that is written is read again."""
    bound = 512
    whole = Splitter(bound).feed(data)
    pieces = Splitter(bound)
    cut = [line for at in range(0, len(data), 7) for line in pieces.feed(data[at : at + 7])]
    hold(whole == cut, "cut otherwise, the same bytes are other lines")
    for line in whole:
        if isinstance(line, Bad):
            continue
        frame = read_frame(line, bound)
        hold(frame == read_frame(line, bound, parse), "with the fast parser it is another frame")
        if isinstance(frame, Request):
            again = write_request(frame.id, frame.method, frame.params)
        elif isinstance(frame, Notification):
            again = write_notification(frame.method, frame.params)
        elif isinstance(frame, Response):
            said = {"result": frame.result} if frame.error is None else {"error": frame.error}
            again = write_message({"jsonrpc": "2.0", "id": frame.id, **said})
        else:
            continue
        hold(again.endswith(b"\n") and again.count(b"\n") == 1, "a frame is written as more than a line")
        hold(read_frame(again[:-1], 1 << 20) == frame, "a frame that was written is read as another")


class _Server:
    """A server of two tools, one of which tells its progress and looks whether it was cancelled."""

    instructions = "none"
    list_changed = True

    def info(self) -> dict[str, Json]:
        return {"name": "fuzzed", "version": "1"}

    def tools(self) -> list[Json]:
        return [{"name": name, "inputSchema": {"type": "object"}} for name in ("a", "b")]

    def call(self, name: str, arguments: dict[str, Json], ctx: Call) -> dict[str, Json]:
        if name == "b":
            ctx.progress(1, 2, "half")
            ctx.announce_tools()
        return {"content": [{"type": "text", "text": json.dumps(arguments)}], "isError": ctx.cancelled}


def fuzz_server(data: bytes) -> None:
    """A server outlives any bytes, says only frames, and answers no request twice and none that was not made."""
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as said:
        asked.write(data)
        asked.seek(0)
        ServerSession(_Server(), asked.fileno(), said.fileno(), max_bytes=1 << 12).serve()
        said.seek(0)
        lines = said.read().split(b"\n")
    hold(lines.pop() == b"", "the last line has no end")
    frames = [read_frame(line, 1 << 20) for line in lines]
    hold(not any(isinstance(each, Bad | Request) for each in frames), "it said what is no answer and no news")
    answers = [each for each in frames if isinstance(each, Response)]
    hold(len(answers) <= data.count(b"\n") + 1, "it answered more often than there are lines")


class _Channel:
    """What an inbox needs of a channel: lines that came, and a place for what is posted."""

    def __init__(self, lines: list[bytes | Bad]) -> None:
        self.lines = deque(lines)
        self.half = False
        self.posted: list[bytes] = []

    def post(self, frame: bytes) -> bool:
        self.posted.append(frame)
        return True


def fuzz_client(data: bytes) -> None:
    """Whatever a server says, only answers to the awaited request are taken for such, and only frames are posted."""
    channel = _Channel(Splitter(1 << 12).feed(data))
    inbox = Inbox(cast("Channel", channel), Limits())
    for _ in range(3):
        awaited = inbox.new_id()
    inbox.expect(awaited)
    inbox.take_lines()
    hold(all(type(each.id) is int and each.id == awaited for each in inbox.answers), "an answer to another request")
    hold(len(inbox.oddities) <= Limits().oddities, "more oddities than are kept")
    hold(not any(isinstance(read_frame(each[:-1], 1 << 20), Bad) for each in channel.posted), "it posted no frame")


def fuzz_yaml(data: bytes) -> None:
    """A document is refused with places, or is what a YAML 1.1 reader takes it for, and has canonical bytes."""
    try:
        document = load(data, "fuzzed.yaml")
    except DocumentError as error:
        hold(all(each.line >= 0 and each.file == "fuzzed.yaml" for each in error.problems), "a fault without a place")
        hold(bool(error.problems), "a refusal without a fault")
        return
    hold(not document._careful.problems, "the careful reader refuses what was admitted")  # noqa: SLF001 - a law of it
    written = canonical_bytes(document.value)
    try:
        other = yaml.safe_load(data)
    except yaml.YAMLError:  # the reader in Python refuses a tab between a key and its value, and more of that kind
        return
    hold(written == canonical_bytes(other), "a YAML 1.1 reader takes it for another value")


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="fuzz-contracts-"))


def fuzz_contract(data: bytes) -> None:
    """A contract is read or refused as a document; the same bytes give the same digest."""
    path = _folder() / "fuzzed.contract.yaml"
    path.write_bytes(data)
    try:
        contract = load_contract(path, _folder())
    except DocumentError:
        return
    hold(load_contract(path, _folder()).digest == contract.digest, "read twice it has two digests")


@cache
def export() -> tuple[bytes, dict[str, Chain], str]:
    """A small export of two runs, how they end, and the ledger's name."""
    memory = MemoryLedger("ledger-1", LIVE_TABLE)
    at = Instant(1_700_000_000_000_000_000, 5_000_000_000)
    for run in ("run-1", "run-2"):
        memory.open_run(run, b"record", [])
        for number, detail in enumerate(('a "quoted" detail', "plain", "e\u00fc\\")):
            draft = Draft("decision", f"{run}-{number}", at, "not_a_candidate", server="s", tool="t", detail=detail)
            memory.record(run, draft, None)
    lines = [line for run in ("run-1", "run-2") for line in memory.receipts(run)]
    chains = {run: Chain(memory.head(run), LIVE_TABLE) for run in ("run-1", "run-2")}
    return b"\n".join(lines) + b"\n", chains, "ledger-1"


def fuzz_receipts(data: bytes) -> None:
    """Of all bytes only the export itself is sound, with or without its last line end."""
    whole, chains, ledger = export()
    findings = list(verify_export(data, chains, ledger))
    hold((not findings) == (data in (whole, whole[:-1])), "an edit was accepted, or the export itself was not")
    lines = data.count(b"\n") + 1
    hold(all(0 <= each.line <= lines for _, each in findings), "a finding at a line that is none")


def fuzz_transcripts(data: bytes) -> None:
    """A transcript is read, twice the same, or refused as a document."""
    told: list[Any] = []
    for _ in range(2):
        try:
            told.append(read_transcript(data, "fuzzed.json"))
        except DocumentError as error:
            told.append([(each.reason, each.line, each.detail) for each in error.problems])
    hold(told[0] == told[1], "read twice it is two transcripts")


TARGETS: Final[dict[str, Callable[[bytes], None]]] = {
    "json": fuzz_json,
    "frames": fuzz_frames,
    "server": fuzz_server,
    "client": fuzz_client,
    "yaml": fuzz_yaml,
    "contract": fuzz_contract,
    "receipts": fuzz_receipts,
    "transcripts": fuzz_transcripts,
}
