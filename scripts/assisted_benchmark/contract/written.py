"""A contract as `pin` writes it: what `load_contract` reads back, with marked places for what only a person can say.

Nothing here judges what a tool does. Its effect is said by whoever pins it, or its place is marked and the loader
refuses the file there; the server's own annotations are not even shown beside it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final

from attrs import frozen

from assisted_benchmark.contract.contract_shape import FILL_IN
from assisted_benchmark.contract.json_schema import check_schema
from assisted_benchmark.contract.model import SERVER_SET, Effect, Launch, Remote, tools_digest
from assisted_benchmark.contract.plain_scalar import DoubtError, known_value
from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.errors import InputError, ServerError
from assisted_benchmark.kernel.names import check_name
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import invisible, shown

_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:-")
_ABOUT: Final = 90


@frozen(kw_only=True)
class Said:
    """What a person has said of a tool."""

    effect: Effect
    sensitive: tuple[str, ...] = ()


@frozen(kw_only=True)
class Pinned:
    """What is pinned of one server: its launch or its place, what was declared to it, the raw tools that it listed.

    `said` are the tools whose effect is known. `tools_from` is where `tools_text` will lie, beside the contract.
    """

    id: str
    server: str
    launch: Launch | Remote
    capabilities: Mapping[str, Json]
    tools: tuple[Json, ...]
    said: Mapping[str, Said]
    tools_from: str


def check_tools(tools: Iterable[Json]) -> None:
    """Whether these raw tools can be pinned.

    Raises:
        ServerError: a name that is none, a schema that cannot be pinned (it refers to another document, for example).
    """
    for tool in tools:
        name = tool["name"]
        try:
            check_name(name, "tool's name")
            if type(tool.get("inputSchema")) is not dict or tool["inputSchema"].get("type") != "object":
                raise InputError(Reason.WRONG_VALUE, "`inputSchema` is not a schema of an object")
            for key in ("inputSchema", "outputSchema"):
                if key in tool:
                    check_schema(tool[key])
        except InputError as error:
            raise ServerError(error.reason, f"the tool `{shown(name, 60)}` cannot be pinned: {error.detail}") from error


def contract_text(pinned: Pinned) -> str:
    """The contract file."""
    lines = [
        "# yaml-language-server: $schema=../schemas/contract.schema.json",
        f"schema: {SERVER_SET}",
        f"id: {quoted(pinned.id)}",
        "servers:",
        f"  {quoted(pinned.server)}:",
        *(_remote_lines(pinned.launch) if isinstance(pinned.launch, Remote) else _launch_lines(pinned.launch)),
    ]
    if pinned.capabilities:
        lines.append(f"    capabilities: {_plainly(dict(pinned.capabilities))}")
    lines += [
        f"    tools_from: {quoted(pinned.tools_from)}",
        f"    tools_digest: {quoted(tools_digest(list(pinned.tools)))}",
        "    tools:" if pinned.tools else "    tools: {}",
    ]
    for tool in sorted(pinned.tools, key=lambda each: str(each["name"])):
        lines += _tool_lines(tool, pinned.said.get(tool["name"]))
    return "\n".join(lines) + "\n"


def tools_text(tools: Iterable[Json]) -> str:
    """The raw tool list, a file of its own: as the server sent it, on many lines so that a change can be read."""
    return json.dumps(list(tools), ensure_ascii=False, indent=1) + "\n"


def quoted(text: str) -> str:
    """The text as a YAML scalar that is read as exactly this text."""
    try:
        if set(text) <= _PLAIN and text[:1].isalnum() and text[-1] != ":" and known_value(text) == text:
            return text
    except DoubtError:
        pass
    return _plainly(text)


def _plainly(value: Json) -> str:
    """A value as JSON that is strict YAML as well, with nothing invisible in it."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return "".join(_escaped(each) if invisible(each) else each for each in text)


def _launch_lines(launch: Launch) -> list[str]:
    lines = ["    launch:", f"      argv: [{', '.join(quoted(each) for each in launch.argv)}]"]
    if launch.cwd is not None:
        lines.append(f"      cwd: {quoted(launch.cwd)}")
    for key in ("env", "packages", "files", "in_place"):
        pairs: tuple[tuple[str, str], ...] = getattr(launch, key)
        if pairs:
            lines += [f"      {key}:", *(f"        {quoted(name)}: {quoted(value)}" for name, value in pairs)]
    if launch.unpinned:
        lines.append("      artifacts: unpinned")
    return lines


def _remote_lines(remote: Remote) -> list[str]:
    lines = [f"    url: {quoted(remote.url)}"]
    if remote.tls_sha256 is not None:
        lines.append(f"    tls_sha256: {quoted(remote.tls_sha256)}")
    if remote.headers:
        lines += ["    headers_from_env:", *(f"      {quoted(name)}: {quoted(env)}" for name, env in remote.headers)]
    return lines


def _escaped(char: str) -> str:
    return f"\\U{ord(char):08x}" if ord(char) > 0xFFFF else f"\\u{ord(char):04x}"


def _tool_lines(tool: Json, said: Said | None) -> list[str]:
    name = quoted(tool["name"])
    if said is not None:
        sensitive = f", sensitive: [{', '.join(quoted(each) for each in said.sensitive)}]" if said.sensitive else ""
        return [f"      {name}: {{effect: {said.effect.value}{sensitive}}}"]
    description = tool.get("description")
    about = shown(" ".join(description.split()), _ABOUT) if type(description) is str else "it says nothing of itself"
    return [f"      # {about}", f"      {name}: {{effect: {FILL_IN}}}"]
