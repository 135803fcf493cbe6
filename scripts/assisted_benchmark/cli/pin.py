"""`pin`: a live server becomes a contract, as far as a machine can say it; the effects are a person's to fill in."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from assisted_benchmark.cli import exits
from assisted_benchmark.cli.place import command_line, root_of
from assisted_benchmark.contract.contract_shape import FILL_IN, HEADER
from assisted_benchmark.contract.document import load_contract
from assisted_benchmark.contract.files import write
from assisted_benchmark.contract.model import Effect, Launch, Remote, Tool
from assisted_benchmark.contract.shape import Fault
from assisted_benchmark.contract.written import Pinned, Said, check_tools, contract_text, tools_text
from assisted_benchmark.kernel.canonical import Canonical, Json, parse
from assisted_benchmark.kernel.clock import SECOND, Deadline, SystemClock
from assisted_benchmark.kernel.errors import CanonicalError, DocumentError, MisuseError
from assisted_benchmark.kernel.origin import parse_url
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown
from assisted_benchmark.mcp_router.launch import stamps
from assisted_benchmark.mcp_router.looking import look
from assisted_benchmark.mcp_router.pinning import Words, template
from assisted_benchmark.mcp_router.process import Launcher
from assisted_benchmark.mcp_router.remote import reach

_ID: Final = re.compile(r"[a-z0-9]+([._-][a-z0-9]+)*")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WAIT_NS: Final = 60 * SECOND


def command(arguments: argparse.Namespace) -> int:
    """Write contracts/ID.contract.yaml and its tool list, once the server was seen and somebody agreed to start it."""
    root = root_of(arguments)
    for what, text in (("id", arguments.id), ("server's id", arguments.server or arguments.id)):
        if len(text) > 100 or _ID.fullmatch(text) is None:
            raise MisuseError(Reason.MISUSE, f"`{shown(text)}` is no {what}; use lower-case words joined by `-`")
    folder = root / "contracts"
    file, tools_file = (folder / f"{arguments.id}.{ending}" for ending in ("contract.yaml", "tools.json"))
    if not arguments.force:
        for path in (file, tools_file):
            if path.exists():
                raise MisuseError(Reason.DUPLICATE_ID, f"`{path}` is there already; choose another id, or say --force")
    said = dict(map(_effect, arguments.effect))
    capabilities = dict(map(_capability, arguments.capability))
    with Launcher() as launcher:
        launch = _place(arguments) if arguments.url is not None else _template(arguments, folder, launcher)
        _show(arguments, launch, capabilities, file)
        if not arguments.yes and not _agreed("ask" if arguments.url is not None else "start"):
            print("nothing was started or asked, nothing written", file=sys.stderr)
            return exits.FAILED
        clock = SystemClock()
        seen = look(launch, folder, capabilities, launcher, clock, Deadline.after(clock, _WAIT_NS))
    check_tools(seen.tools)
    names = {tool["name"]: tool for tool in seen.tools}
    for name in said.keys() - names.keys():
        hint = did_you_mean(name, names)
        raise MisuseError(Reason.MISUSE, f"the server lists no tool `{shown(name)}`{'; ' + hint if hint else ''}")
    said = {**_earlier(file, root, arguments, names), **said}
    pinned = Pinned(
        id=arguments.id,
        server=arguments.server or arguments.id,
        launch=launch,
        capabilities=capabilities,
        tools=seen.tools,
        said=said,
        tools_from=tools_file.name,
    )
    folder.mkdir(exist_ok=True)
    write(tools_file, tools_text(seen.tools).encode())
    text = contract_text(pinned)
    write(file, text.encode())
    info = seen.connected.server_info
    label = info.get("name") if type(info) is dict else None
    print(f"seen:    {len(names)} tools; it speaks {seen.connected.version} and calls itself `{shown(str(label), 60)}`")
    print(f"written: {file}\nwritten: {tools_file}")
    for stamp in stamps(launch):
        print(f"stamped: {stamp}")
    _next_steps(arguments, file, text)
    return exits.OK


def _next_steps(arguments: argparse.Namespace, file: Path, text: str) -> None:
    open_lines = [number for number, line in enumerate(text.splitlines(), 1) if line.endswith(f"effect: {FILL_IN}}}")]
    if open_lines:
        words = ", ".join(each.value for each in Effect)
        print(
            f"now say what each of {len(open_lines)} tools does ({words}), from {os.path.relpath(file)}:{open_lines[0]}"
        )
    print(f"then:    {command_line(arguments, 'lint', '--write-pins')}")


def _template(arguments: argparse.Namespace, folder: Path, launcher: Launcher) -> Launch:
    if not arguments.words:
        raise MisuseError(Reason.MISUSE, "nothing says which server; say -- PROGRAM ARG…, or --url URL")
    if arguments.tls_sha256 is not None or arguments.header:
        raise MisuseError(Reason.MISUSE, "--tls-sha256 and --header are of a server at --url")
    launch = template(_words(arguments), folder, launcher.artifacts)
    launcher.resolve(launch, folder)
    return launch


def _place(arguments: argparse.Namespace) -> Remote:
    """Where the server is that others run."""
    given = ("words", "env", "cwd", "package", "file", "in_place", "unpinned")
    if any(getattr(arguments, each) for each in given):
        raise MisuseError(Reason.MISUSE, "a server at --url is not started: leave out the program, and what is for one")
    origin, _ = parse_url(arguments.url)
    pin = arguments.tls_sha256
    if pin is not None:
        pin = pin.replace(":", "").lower()
        if _SHA256.fullmatch(pin) is None or origin.scheme != "https":
            raise MisuseError(Reason.MISUSE, "--tls-sha256 is 64 hex digits, of the certificate of an https server")
    remote = Remote(url=arguments.url, tls_sha256=pin, headers=tuple(sorted(map(_header, arguments.header))))
    reach(remote)
    return remote


def _header(text: str) -> tuple[str, str]:
    """`NAME=VARIABLE`."""
    name, _, variable = text.partition("=")
    faults: list[Fault] = []
    HEADER.look(name.lower(), (), faults)
    if faults or _NAME.fullmatch(variable) is None:
        raise MisuseError(Reason.MISUSE, f"`{shown(text)}` is no HEADER=VARIABLE, or the header is the protocol's own")
    return name.lower(), variable


def _words(arguments: argparse.Namespace) -> Words:
    return Words(
        argv=tuple(arguments.words),
        env=tuple(map(_variable, arguments.env)),
        cwd=arguments.cwd,
        packages=tuple(arguments.package),
        files=tuple(arguments.file),
        in_place=tuple(arguments.in_place),
        unpinned=arguments.unpinned,
    )


def _variable(text: str) -> tuple[str, str]:
    """`NAME=VALUE`, or `NAME` with the value that it has here."""
    name, equals, value = text.partition("=")
    if _NAME.fullmatch(name) is None:
        raise MisuseError(Reason.MISUSE, f"`{shown(name)}` is no variable's name; say --env NAME or --env NAME=VALUE")
    if not equals:
        if name not in os.environ:
            raise MisuseError(Reason.MISUSE, f"the variable `{name}` is not set here; say --env {name}=VALUE")
        value = os.environ[name]
    return name, value


def _effect(text: str) -> tuple[str, Said]:
    """`TOOL=EFFECT`."""
    name, _, word = text.rpartition("=")
    words = [each.value for each in Effect]
    if not name or word not in words:
        raise MisuseError(Reason.MISUSE, f"`{shown(text)}` is no TOOL=EFFECT; effects are {', '.join(words)}")
    return name, Said(effect=Effect(word))


def _capability(text: str) -> tuple[str, Json]:
    """`NAME`, or `NAME=JSON` with what the capability holds."""
    name, equals, value = text.partition("=")
    try:
        held = parse(value.encode()) if equals else {}
    except CanonicalError as error:
        raise MisuseError(error.reason, f"what follows `{shown(name)}=` is not JSON: {error.detail}") from error
    if not name.isascii() or not name.isalnum() or type(held) is not dict:
        raise MisuseError(Reason.MISUSE, f"`{shown(text)}` is no client capability; say NAME or NAME={{…}}")
    return name, held


def _show(arguments: argparse.Namespace, launch: Launch | Remote, capabilities: dict[str, Json], file: Path) -> None:
    """What is about to be done, on standard error. Values of variables are not shown, only written."""
    rows = [
        ("pin", f"`{arguments.server or arguments.id}`, into {os.path.relpath(file)}"),
        *(_reached_rows(launch) if isinstance(launch, Remote) else _started_rows(launch)),
        ("declare", ", ".join(capabilities) or "no client capability"),
        *(("stamp", each) for each in stamps(launch)),
    ]
    for name, value in rows:
        print(f"{name + ':':<9}{value}", file=sys.stderr)


def _reached_rows(remote: Remote) -> list[tuple[str, str]]:
    headers = ", ".join(f"{name} from ${variable}" for name, variable in remote.headers)
    return [
        ("ask", shown(remote.url, 300)),
        ("tls", remote.tls_sha256 or "whom this machine trusts"),
        ("headers", f"{headers} (the contract will hold the names)" if headers else "none"),
    ]


def _started_rows(launch: Launch) -> list[tuple[str, str]]:
    pinned = [
        f"{len(pairs)} {what}{'' if len(pairs) == 1 else 's'}"
        for what, pairs in (("package", launch.packages), ("file", launch.files))
        if pairs
    ]
    return [
        ("run", " ".join(shown(each, 300) for each in launch.argv)),
        (
            "env",
            f"{', '.join(name for name, _ in launch.env)} (the contract will hold the values)"
            if launch.env
            else "none",
        ),
        ("cwd", shown(launch.cwd, 300) if launch.cwd is not None else "a fresh folder"),
        (
            "files",
            ", ".join([*pinned, *(f"{shown(name, 300)} where it stands" for name, _ in launch.in_place)]) or "none",
        ),
    ]


def _agreed(what: str) -> bool:
    if not sys.stdin.isatty():
        raise MisuseError(Reason.MISUSE, "nobody can be asked here whether this may be done; say --yes")
    print(f"{what} it? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _earlier(file: Path, root: Path, arguments: argparse.Namespace, names: dict[str, Json]) -> dict[str, Said]:
    """What was said in the contract that is replaced, of the tools that are still exactly what they were."""
    if not file.exists():
        return {}
    try:
        server = load_contract(file, root).server(arguments.server or arguments.id)
    except DocumentError:
        return {}
    return dict(_same(server.tools, names)) if server is not None else {}


def _same(tools: tuple[Tool, ...], names: dict[str, Json]) -> Iterator[tuple[str, Said]]:
    for tool in tools:
        if tool.name in names and Canonical.of(names[tool.name]) == tool.definition:
            yield tool.name, Said(effect=tool.effect, sensitive=tool.sensitive)
