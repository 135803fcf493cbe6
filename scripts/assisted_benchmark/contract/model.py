"""What servers may offer, pinned: the frozen nouns. Pure; reading files is `document.py`'s part."""

from __future__ import annotations

from enum import StrEnum, unique
from functools import cached_property
from typing import Final

from attrs import field, frozen

from assisted_benchmark.kernel.canonical import Canonical, Json, canonical_bytes
from assisted_benchmark.kernel.digest import Digest, digest_of

SERVER_SET: Final = "projectbuddy/assisted-mcp-server-set@1"
LEGACY: Final = "projectbuddy/assisted-mcp-contract@1"


@unique
class Effect(StrEnum):
    """What a call of a tool does. Declared by the contract; server annotations never change it."""

    OBSERVE = "observe"
    ACT = "act"
    PLAN_ONLY = "plan_only"
    EXTERNAL = "external"


@unique
class Recheck(StrEnum):
    """When a server's live identity and tool list are compared with the pin, beyond connecting."""

    ALWAYS = "always"
    ON_CHANGE = "on_change"


def tools_digest(definitions: list[Json]) -> Digest:
    """The digest of a raw tool list: RFC 8785 over the wire objects, sorted by name (code points).

    Unknown keys count; the list's order, key order and number spelling do not.
    """
    return digest_of("tools@1", canonical_bytes(sorted(definitions, key=lambda each: str(each["name"]))))


@frozen(kw_only=True, slots=False)
class Tool:
    """One pinned tool: its raw wire object and what the contract says of it.

    `sensitive` are JSON pointers into the arguments whose values never reach a receipt,
    log or report.
    """

    effect: Effect
    definition: Canonical
    sensitive: tuple[str, ...] = ()

    @cached_property
    def name(self) -> str:
        return str(self.definition.value["name"])

    @cached_property
    def input_schema(self) -> Json:
        return self.definition.value["inputSchema"]

    @cached_property
    def output_schema(self) -> Json | None:
        return self.definition.value.get("outputSchema")


@frozen(kw_only=True)
class Launch:
    """How a server is started: a portable template, resolved on each machine by the router.

    `argv`, `env`, `cwd` and the paths of `files` may use placeholders: `{python}` is the interpreter that runs the
    harness, `{contract}` the contract file's folder, `{package}` the folder that holds the harness package, wherever
    it is installed, so that `PYTHONPATH: "{package}"` is always right, and enough where `-S` leaves out all else.
    `argv[0]` is an absolute path and no script with a `#!` line. `env` is all that the server gets, values
    included, besides a fresh HOME.

    `packages` are (distribution, version) pairs whose installed files are the closure of the imports of
    `{python}`, so they need it; all that they require is listed too. The harness's own package is
    `("assisted-benchmark", "self")`. `files` are (path, digest) pairs, a relative path being the contract
    folder's and a digest plain SHA-256 as `sha256sum` has it; the server runs private copies of them, in
    the places they have to each other. `in_place` are such pairs of what is used where it stands: files, and whole
    folders (`mcp_router.trees`). `unpinned` says that the closure is open. `control` asks for the
    harness-only channel of a test workload.
    """

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    cwd: str | None = None
    packages: tuple[tuple[str, str], ...] = ()
    files: tuple[tuple[str, Digest], ...] = ()
    in_place: tuple[tuple[str, Digest], ...] = ()
    unpinned: bool = False
    control: bool = False

    def value(self) -> Json:
        """The JSON value that the contract digest covers."""
        return {
            "argv": list(self.argv),
            "env": dict(self.env),
            "cwd": self.cwd,
            "packages": dict(self.packages),
            "files": dict(self.files),
            **({"in_place": dict(self.in_place)} if self.in_place else {}),
            "unpinned": self.unpinned,
            "control": self.control,
        }


@frozen(kw_only=True)
class Remote:
    """Where a server is that others run: one URL over Streamable HTTP. Requests go to its origin and nowhere else.

    `tls_sha256` is the SHA-256 of the one certificate (DER) that is taken, in hex. `headers` are (header, name of an
    environment variable) pairs: the values are each machine's, and in no digest.
    """

    url: str
    tls_sha256: str | None = None
    headers: tuple[tuple[str, str], ...] = ()

    def value(self) -> Json:
        """The JSON value that the contract digest covers."""
        return {"url": self.url, "tls_sha256": self.tls_sha256, "headers_from_env": dict(self.headers)}


@frozen(kw_only=True, slots=False)
class Server:
    """One server of a contract: its identity (how it is started or where it is, and its list) and its tools by name."""

    id: str
    launch: Launch | Remote
    tools: tuple[Tool, ...]
    recheck: Recheck = Recheck.ON_CHANGE
    capabilities: Canonical = field(factory=lambda: Canonical(b"{}"))

    @cached_property
    def tools_digest(self) -> Digest:
        return tools_digest([tool.definition.value for tool in self.tools])

    @cached_property
    def digest(self) -> Digest:
        """The server's pinned identity: launch template or place, declared client capabilities, tools and effects."""
        return digest_of(
            "server@1",
            self.id.encode(),
            canonical_bytes(self.launch.value()),
            self.capabilities.data,
            self.tools_digest.encode(),
            canonical_bytes({tool.name: [tool.effect.value, list(tool.sensitive)] for tool in self.tools}),
            self.recheck.value.encode(),
        )

    @cached_property
    def _by_name(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in self.tools}

    def tool(self, name: str) -> Tool | None:
        """The tool of that exact name, if the contract has it."""
        return self._by_name.get(name)


@frozen(kw_only=True, slots=False)
class Contract:
    """A set of servers (or, legacy, one); its digest covers every pinned value of every server."""

    schema: str
    id: str
    servers: tuple[Server, ...]

    @cached_property
    def legacy(self) -> bool:
        """Whether this is a single-server contract, which allows no choice group."""
        return self.schema == LEGACY

    @cached_property
    def digest(self) -> Digest:
        return digest_of(
            "contract@1", self.schema.encode(), self.id.encode(), *(s.digest.encode() for s in self.servers)
        )

    @cached_property
    def _by_id(self) -> dict[str, Server]:
        return {server.id: server for server in self.servers}

    def server(self, server_id: str) -> Server | None:
        """The server of that exact id, if the contract has it."""
        return self._by_id.get(server_id)
