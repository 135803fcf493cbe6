"""Messages of model APIs: OpenAI (Chat Completions, Responses), Anthropic, and AgentDojo's logs.

What a call looks like tells them apart, so that a file that mixes them is read as well:

    {"function": {"name": ..., "arguments": "<JSON text>"}}       in `tool_calls`: OpenAI, Chat Completions
    {"type": "function_call", "name": ..., "arguments": "..."}    an item: OpenAI, Responses; `mcp_call` has a server
    {"type": "tool_use", "name": ..., "input": {...}}             in `content`: Anthropic; `mcp_tool_use` has a server
    {"function": "name", "args": {...}}                           in `tool_calls`: AgentDojo
    {"function": "name", "arguments": {...}}                      in `tool_calls`: Inspect

Where arguments are a text, its bytes are the call's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.suite.live.transcripts.calls import Answer, RecordedCall, Transcript, text_digest, text_of
from assisted_benchmark.suite.live.transcripts.spelling import spelled

OPENAI: Final = "openai"
ANTHROPIC: Final = "anthropic"
AGENTDOJO: Final = "agentdojo"
INSPECT: Final = "inspect"

# Where one JSON value holds its messages or items.
_LISTS: Final = ("messages", "output", "input", "items", "content")


class _Call(NamedTuple):
    kind: str
    key: str
    tool: str
    arguments: Json
    server: str = ""


def transcript(rows: Sequence[tuple[Json, int]], file: str) -> Transcript | None:
    """The calls of the model, in order; None if this holds no messages."""
    found = [(message, line) for value, line in rows for message in _messages(value)]
    if not found:
        return None
    return read(found, file)


def read(found: Sequence[tuple[Json, int]], file: str) -> Transcript:
    """The calls in a list of messages, each with its line."""
    kind = ""
    calls: list[RecordedCall] = []
    places: dict[str, int] = {}
    for number, (message, line) in enumerate(found, 1):
        said = text_of(message) if message.get("role") == "assistant" else None
        place = f"{file}:{line}" if line else f"{file}, message {number}"
        for each in _calls(message):
            kind = kind or each.kind
            places[each.key] = len(calls)
            text = each.arguments
            raw = text.encode("utf-8", "surrogatepass") if type(text) is str else spelled(text)
            told = text_digest(said) if said else ""
            calls.append(RecordedCall(each.tool, raw, len(calls), each.server, said=told, place=place))
        for key, answer in _answers(message):
            if (at := places.get(key)) is not None:
                calls[at] = calls[at]._replace(answer=answer)
    return Transcript(kind=kind or "messages", entries=tuple(calls))


def _messages(value: Json) -> Iterator[Json]:
    """Every message and item in a value."""
    match value:
        case list():
            yield from (each for each in value if _is_message(each))
        case {"choices": list() as choices}:
            yield from (each["message"] for each in choices if type(each) is dict and _is_message(each.get("message")))
        case dict() if _is_message(value):
            yield value
        case dict():
            for key in _LISTS:
                if type(value.get(key)) is list:
                    yield from _messages(value[key])


def _is_message(value: Json) -> bool:
    return type(value) is dict and (
        type(value.get("role")) is str or _item_call(value) is not None or _is_output(value)
    )


def _is_output(value: Json) -> bool:
    return bool(value.get("type") == "function_call_output")


def _calls(message: Json) -> Iterator[_Call]:
    item = _item_call(message)
    if item is not None:
        yield item
    if message.get("role") != "assistant":
        return
    for call in _list(message, "tool_calls"):
        made = _tool_call(call)
        if made is not None:
            yield made
    for block in _list(message, "content"):
        match block:
            case {"type": "tool_use" | "mcp_tool_use", "name": str(name), "input": given}:
                server = block.get("server_name", "")
                yield _Call(ANTHROPIC, str(block.get("id")), name, given, server if type(server) is str else "")


def _tool_call(call: Json) -> _Call | None:
    match call:
        case {"function": {"name": str(name), "arguments": given}}:
            return _Call(OPENAI, str(call.get("id")), name, given)
        case {"function": str(name), "args": dict(given)}:
            return _Call(AGENTDOJO, str(call.get("id")), name, given)
        case {"function": str(name), "arguments": given} if not call.get("parse_error"):
            return _Call(INSPECT, str(call.get("id")), name, given)
    return None


def _item_call(item: Json) -> _Call | None:
    match item:
        case {"type": "function_call", "name": str(name), "arguments": str(given)}:
            return _Call(OPENAI, str(item.get("call_id")), name, given)
        case {"type": "mcp_call", "server_label": str(server), "name": str(name), "arguments": str(given)}:
            return _Call(OPENAI, str(item.get("id")), name, given, server)
    return None


def _answers(message: Json) -> Iterator[tuple[str, Answer]]:
    match message:
        case {"role": "tool", "tool_call_id": str(key)}:
            yield key, _answer(message, failed=bool(message.get("error")))
        case {"type": "function_call_output", "call_id": str(key)}:
            yield key, _answer(message.get("output"), failed=False)
        case {"type": "mcp_call", "id": str(key)}:
            yield key, _answer(message.get("output"), failed=bool(message.get("error")))
        case {"content": list(blocks)}:
            for block in blocks:
                match block:
                    case {"type": "tool_result" | "mcp_tool_result", "tool_use_id": str(key)}:
                        yield key, _answer(block, failed=block.get("is_error") is True)


def _answer(told: Json, *, failed: bool) -> Answer:
    text = text_of(told)
    return Answer(failed=failed, text="" if text is None else text_digest(text))


def _list(value: Json, key: str) -> Sequence[Json]:
    found = value.get(key)
    return found if type(found) is list else ()
