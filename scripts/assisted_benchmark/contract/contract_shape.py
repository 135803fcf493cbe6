"""What a contract file may look like: one shape for both schemas, for the check and the published JSON Schema."""

from __future__ import annotations

from typing import Final

from assisted_benchmark.contract.model import LEGACY, SERVER_SET, Effect, Recheck
from assisted_benchmark.contract.shape import (
    DIGEST,
    NAME,
    AnyJson,
    ByKey,
    Fault,
    Field,
    Flag,
    ListOf,
    MapOf,
    Record,
    Text,
    Word,
    may,
    must,
)
from assisted_benchmark.contract.strict_yaml import Path as Place
from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import shown

# Stands for the effect of a tool in a contract that was just pinned, until a person has said it.
FILL_IN: Final = "FILL_IN"

_OURS: Final = (
    "host|connection|content-length|content-type|content-encoding|transfer-encoding|te|trailer|upgrade|expect|accept"
    "|accept-encoding|user-agent"
)
HEADER: Final = Text(rf"(?!mcp-|(?:{_OURS})$)[a-z0-9-]+", "a header in lower case, and none of the protocol's", 128)
_KEY: Final = Text(what="a name", limit=256)  # names are judged with a reason of their own, below


class _EffectWord(Word):
    """The effect of a tool: a person's word, so a place that waits for it is told of as that."""

    def look(self, value: Json, path: Place, faults: list[Fault]) -> None:
        if value == FILL_IN:
            detail = f"what a call of `{shown(str(path[-2]), 60)}` does is not filled in yet"
            faults.append(Fault(Reason.MISSING_KEY, path, detail, f"write {', '.join(self.words)}"))
        else:
            super().look(value, path, faults)


_LAUNCH: Final = Record(
    {
        "argv": must(
            ListOf(Text(), least=1),
            "The program and its arguments. {python} is the interpreter that runs the harness, {contract} this "
            "file's folder, {package} the folder that holds the harness package.",
        ),
        "env": may(
            MapOf(Text(), Text(r"[A-Za-z_][A-Za-z0-9_]*", "the name of an environment variable", 256)),
            "The whole environment of the server: nothing is inherited.",
        ),
        "cwd": may(Text(), "The working directory; without it, a fresh one that nobody shares."),
        "packages": may(
            MapOf(Text(what="a version", limit=128)),
            "Distributions and versions whose installed files the server imports; the harness's own code is "
            "`assisted-benchmark: self`.",
        ),
        "files": may(
            MapOf(DIGEST, Text(what="a path", limit=4096)), "Paths and digests of files that it runs or reads."
        ),
        "in_place": may(
            MapOf(DIGEST, Text(what="a path", limit=4096)),
            "Paths and digests of programs and of whole folders that it uses where they stand.",
        ),
        "artifacts": may(
            Word(("unpinned",)), "Says that what the server will import is not all pinned; the report repeats it."
        ),
        "control": may(Flag(), "Ask a test workload for the channel that only the harness and its oracle read."),
    },
    "a launch template",
)
_TOOL: Final = Record(
    {
        "effect": must(
            _EffectWord(tuple(each.value for each in Effect)),
            "What a call does: observe reads, act changes, plan_only answers with text for people, external "
            "reaches beyond the run. The server's own annotations never change it.",
        ),
        "sensitive": may(
            ListOf(Text(r"(?:/(?:[^~/]|~[01])*)+", "a JSON pointer such as `/pin`", 256)),
            "JSON pointers into the arguments whose values no receipt, log or report may hold.",
        ),
        "definition": may(
            Record(
                {
                    "name": must(Text(), "The tool's name, equal to the key above."),
                    "inputSchema": must(AnyJson(), "JSON Schema of the arguments, 2020-12 unless it says another."),
                    "outputSchema": may(AnyJson(), "JSON Schema of the structured result."),
                },
                "a tool definition",
                open=True,
            ),
            "The tool's raw object, as the server lists it; every key counts.",
        ),
    },
    "a tool",
)
_SERVER_FIELDS: Final = {
    "recheck": may(
        Word(tuple(each.value for each in Recheck)),
        "When the live tool list is compared with this pin, beyond connecting: always (before each call), or "
        "on_change (the default; after list_changed or a restart). A choice group compares in any case.",
    ),
    "capabilities": may(
        Record({}, "client capabilities", open=True),
        "Client capabilities declared while pinning; some servers list other tools for other clients.",
    ),
    "tools_from": may(
        Text(r"[^/\x00][^\x00]*", "a relative path", 1024),
        "A JSON file, relative to this one, with the raw tool list; the tools below then need no definition.",
    ),
    "tools_digest": may(DIGEST, "The digest that the raw tool list must have."),
    "tools": must(MapOf(_TOOL, _KEY), "Every tool the server lists, by name."),
}
_STARTED: Final = {"launch": must(_LAUNCH, "How the server is started: what it is, whatever it says of itself.")}
_REACHED: Final = {
    "url": must(
        Text(limit=2048),
        "Where the server is that others run, over Streamable HTTP: https://host/path; http only on this machine. "
        "Requests go to this origin alone, by no proxy, and no redirect is followed.",
    ),
    "tls_sha256": may(
        Text(r"[0-9a-f]{64}", "a SHA-256 in hex", 64),
        "The one certificate that is taken, by the SHA-256 of its DER form; without it, whom this machine trusts.",
    ),
    "headers_from_env": may(
        MapOf(
            Text(r"[A-Za-z_][A-Za-z0-9_]*", "the name of an environment variable", 256),
            HEADER,
            most=16,
        ),
        "Headers of each request, and the environment variables that hold their values.",
    ),
}
_ID: Final = {"id": must(Text(), "The server's id.")}


def _server_shape(more: dict[str, Field]) -> ByKey:
    """A server that is started, or one that is reached."""
    return ByKey(
        {
            "launch": Record({**more, **_STARTED, **_SERVER_FIELDS}, "a server"),
            "url": Record({**more, **_REACHED, **_SERVER_FIELDS}, "a server over HTTP"),
        }
    )


CONTRACT_SHAPE: Final = ByKey(
    {
        "servers": Record(
            {
                "schema": must(Word((SERVER_SET,)), "The kind and version of this file."),
                "id": must(NAME, "The contract's name."),
                "servers": must(MapOf(_server_shape({}), _KEY, least=1), "The servers, each under its id."),
            },
            "a contract",
        ),
        "server": Record(
            {
                "schema": must(Word((LEGACY,)), "The kind and version of this file."),
                "id": must(NAME, "The contract's name."),
                "server": must(
                    _server_shape(_ID),
                    "The one server; such a contract allows no choice group.",
                ),
            },
            "a single-server contract",
        ),
    }
)
