"""A server played back from a cassette: it answers with a recorded tool list and recorded replies.

A cassette is one JSON file:

    schema       "assisted-benchmark/cassette@1"
    protocol     the protocol version of the recorded session
    server_info  what the server said of itself
    tools        its tool list, each the raw object as it came over the wire
    replies      by tool name, a list of {arguments?, result}; the first whose arguments are the call's
                 (every value, in any key order) gives the result; without `arguments` it fits any call

A call that no reply fits is answered with `isError`.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
from pathlib import Path
from typing import Final, NamedTuple

from assisted_benchmark.kernel.codes import Reason
from assisted_benchmark.kernel.errors import CanonicalError, DocumentError, Problem
from assisted_benchmark.kernel.strict_json import MIB, Json, parse_strictly
from assisted_benchmark.workloads.model import Event, text_result

SCHEMA: Final = "assisted-benchmark/cassette@1"
MAX_BYTES: Final = 32 * MIB

_KEYS: Final = {"schema": str, "protocol": str, "server_info": dict, "tools": list, "replies": dict}


class Reply(NamedTuple):
    """One recorded reply. `arguments` is the call's in one spelling, or None for any call."""

    arguments: str | None
    result: Json


class Cassette(NamedTuple):
    """A recorded session, as loaded; nobody changes what is in it."""

    protocol: str
    server_info: Json
    tools: tuple[Json, ...]
    replies: dict[str, tuple[Reply, ...]]


def load(path: Path) -> Cassette:
    """Read a cassette.

    Raises:
        DocumentError: unreadable, one of the strict parser's reasons, or every unknown_key, missing_key,
            wrong_value, duplicate_id and unknown_reference in the file.
    """
    try:
        value = parse_strictly(_read(path), MAX_BYTES)
    except OSError as error:
        raise DocumentError(
            [Problem(Reason.UNREADABLE, f"the cassette cannot be read: {error.strerror}", str(path))]
        ) from error
    except CanonicalError as error:
        raise DocumentError([Problem(error.reason, error.detail, str(path))]) from error
    problems = [Problem(reason, detail, str(path)) for reason, detail in _faults_of(value)]
    if problems:
        raise DocumentError(problems)
    replies = {
        name: tuple(
            Reply(_spelling(each["arguments"]) if "arguments" in each else None, each["result"]) for each in takes
        )
        for name, takes in value["replies"].items()
    }
    return Cassette(value["protocol"], value["server_info"], tuple(value["tools"]), replies)


def _read(path: Path) -> bytes:
    """At most one byte more than is allowed; not the file reader of documents, which this server starts without."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return file.read(MAX_BYTES + 1)


class Recorded:
    """A cassette as a model."""

    def __init__(self, cassette: Cassette) -> None:
        self.events: list[Event] = []
        self._cassette = cassette

    @property
    def server_info(self) -> Json:
        return self._cassette.server_info

    def tools(self) -> list[Json]:
        return list(self._cassette.tools)

    def call(self, name: str, arguments: dict[str, Json]) -> Json:
        spelling = None
        for expected, result in self._cassette.replies.get(name, ()):
            if expected is not None and spelling is None:
                spelling = _spelling(arguments)
            if expected in (None, spelling):
                self._happened("replied", name)
                return result
        self._happened("rejected", name)
        return text_result("the cassette has no reply to this call", failed=True)

    def _happened(self, kind: str, tool: str) -> None:
        seq = len(self.events) + 1
        self.events.append(Event(seq, f"e{seq}", kind, tool, {}))


# One text for each JSON value: `1`, `1.0`, `"1"` and `true` are four.
_spelling: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def _faults_of(value: Json) -> list[tuple[Reason, str]]:
    """Everything that is wrong with a cassette's shape, with where."""
    if type(value) is not dict:
        return [(Reason.WRONG_VALUE, "a cassette is one JSON object")]
    found = [(Reason.UNKNOWN_KEY, f"`{key:.80}` is no key of a cassette") for key in value if key not in _KEYS]
    for key, kind in _KEYS.items():
        if key not in value:
            found.append((Reason.MISSING_KEY, f"the key `{key}` is missing"))
        elif type(value[key]) is not kind:
            found.append((Reason.WRONG_VALUE, f"`{key}` is not a {_NAMES[kind]}"))
    if found:
        return found
    if value["schema"] != SCHEMA:
        return [(Reason.WRONG_VALUE, f"`schema` is `{value['schema']:.80}`, not `{SCHEMA}`")]
    names: set[str] = set()
    for index, tool in enumerate(value["tools"]):
        if type(tool) is not dict or type(tool.get("name")) is not str or type(tool.get("inputSchema")) is not dict:
            found.append((Reason.WRONG_VALUE, f"`tools[{index}]` is no tool: an object with name and inputSchema"))
        elif tool["name"] in names:
            found.append((Reason.DUPLICATE_ID, f"`tools[{index}]` has the name `{tool['name']:.80}` a second time"))
        else:
            names.add(tool["name"])
    for name, takes in value["replies"].items():
        if name not in names:
            found.append((Reason.UNKNOWN_REFERENCE, f"`replies` has `{name:.80}`, which is no tool of this cassette"))
        if type(takes) is not list:
            found.append((Reason.WRONG_VALUE, f"`replies.{name:.80}` is not a list"))
            continue
        found.extend(
            (Reason.WRONG_VALUE, f"`replies.{name:.80}[{index}]` is no reply: {{arguments?, result}}, both objects")
            for index, take in enumerate(takes)
            if not _is_reply(take)
        )
    return found


_NAMES: Final = {str: "string", dict: "object", list: "list"}


def _is_reply(value: Json) -> bool:
    return (
        type(value) is dict
        and {"result"} <= value.keys() <= {"arguments", "result"}
        and all(type(part) is dict for part in value.values())
        and type(value["result"].get("content")) is list
    )


def main(argv: list[str]) -> int:
    """Serve the cassette that the one argument names on standard input and output."""
    from assisted_benchmark.workloads.process import run

    if len(argv) != 1:
        sys.stderr.write("recorded: expected one argument, the cassette's file\n")
        return 2
    return run(lambda _: Recorded(load(Path(argv[0]))))


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))  # nothing is buffered, and taking an interpreter apart takes long
