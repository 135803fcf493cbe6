"""What a transcript holds: calls, or the turns of a session that was recorded here. Pure.

A model's text is kept as a digest, never as it stands.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from attrs import frozen

from assisted_benchmark.kernel.canonical import Json, canonical_bytes
from assisted_benchmark.kernel.digest import digest_of
from assisted_benchmark.kernel.errors import DocumentError, InputError, Problem
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.case import ADMITTED

MOST: Final = 10_000
SHORTER: Final = "cut it to one session"


class Answer(NamedTuple):
    """What was recorded of the answer to a call. Digests, each empty where it is not known.

    `result` is of the whole result, `text` of its one text.
    """

    failed: bool = False
    result: str = ""
    text: str = ""


class RecordedCall(NamedTuple):
    """One call that an agent made. `arguments` are its own bytes, or a spelling of them where it left none.

    `turn` counts calls from 0. `server` is empty where the transcript names the tool alone, which may
    have the server in its name. `at_ns` is the time since the session began, `said` a digest of what the model said
    with it. `place` is where it stands, for messages.
    """

    tool: str
    arguments: bytes
    turn: int
    server: str = ""
    at_ns: int = 0
    said: str = ""
    answer: Answer | None = None
    place: str = ""


class SessionTurn(NamedTuple):
    """One turn of a session that was recorded here: the proposal's own bytes, and what came of it.

    `word` is `admitted`, a reason, or empty where it was never judged; `result` is the digest of the result, where
    there was one. `malformed` stands in place of a proposal where there was none, `principal` where it was not the
    case's own.
    """

    raw: bytes
    turn: int
    at_ns: int = 0
    word: str = ""
    result: str = ""
    principal: str = ""
    malformed: tuple[Reason, str] | None = None
    said: str = ""


Entry: TypeAlias = RecordedCall | SessionTurn


@frozen(kw_only=True)
class Transcript:
    """A transcript as it was read: `kind` is its format, `receipts` are the recorded run's, where it has them."""

    kind: str
    entries: tuple[Entry, ...]
    agent: str = ""
    receipts: tuple[bytes, ...] = ()


class Was(NamedTuple):
    """What came of a turn when it was recorded; `word` is empty where nobody judged it then."""

    turn: int
    word: str = ""
    answer: Answer | None = None


def parts(was: Was, word: str, result: Json | None) -> bool:
    """Whether what came of a turn now is not what its agent saw: what it did next, it did on other grounds."""
    known = was.answer
    if was.word:
        return word != was.word or (known is not None and known.result != result_digest(result))
    if word != ADMITTED:
        return not (word == Reason.FAILED and known is not None and known.failed)
    if known is None:
        return False
    if known.failed:
        return True
    text = text_of(result)
    return (known.result != "" and known.result != result_digest(result)) or (
        known.text != "" and text is not None and known.text != text_digest(text)
    )


def result_digest(result: Json | None) -> str:
    """The digest of a tool's result, without what only says how it travelled; empty if there is none."""
    if type(result) is not dict:
        return ""
    kept = {key: value for key, value in result.items() if key not in ("_meta", "resultType")}
    try:
        return digest_of("result@1", canonical_bytes(kept))
    except InputError:
        return ""  # no result that a server could give here


def text_digest(text: str) -> str:
    """The digest of a text that nobody need keep."""
    return digest_of("text@1", text.encode("utf-8", "surrogatepass"))


def text_of(result: Json | None) -> str | None:
    """The one text that a result or a message consists of; None if it is not one."""
    content = result.get("content") if type(result) is dict else result
    if type(content) is str:
        return content
    match content:
        case [{"text": str(text)}] | [{"type": "text", "content": str(text)}]:
            return text
    return None


def refused(reason: Reason, detail: str, file: str, line: int = 0, column: int = 0, hint: str = "") -> DocumentError:
    """That a transcript cannot be read, and why."""
    return DocumentError([Problem(reason, detail, file, line, column, hint)])
