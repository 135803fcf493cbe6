"""Contract files, read into the frozen model: strict YAML, one shape for both schemas, then what spans places.

A tool's raw wire object stands in the contract itself (`definition`), or, for the long list of
a real server, in a JSON file beside it (`tools_from`), as the server sent it. Either way the
contract says of each tool what a call of it does, and no tool goes unsaid.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from assisted_benchmark.contract.contract_shape import CONTRACT_SHAPE
from assisted_benchmark.contract.files import name_below, read
from assisted_benchmark.contract.json_schema import check_schema
from assisted_benchmark.contract.model import (
    Contract,
    Effect,
    Launch,
    Recheck,
    Remote,
    Server,
    Tool,
    tools_digest,
)
from assisted_benchmark.contract.shape import check
from assisted_benchmark.contract.strict_yaml import Document, load
from assisted_benchmark.contract.strict_yaml import Path as Place
from assisted_benchmark.kernel.canonical import MIB, Canonical, Json, parse
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.errors import CanonicalError, DocumentError, InputError, MisuseError, Problem
from assisted_benchmark.kernel.names import check_name
from assisted_benchmark.kernel.origin import parse_url
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown

MAX_TOOL_LIST: Final = 32 * MIB

_PLACEHOLDERS: Final = ("python", "contract", "package")
_PLACEHOLDER: Final = re.compile(r"\{([a-z_]+)\}")
_PINNING: Final = ("packages", "files", "in_place")


def load_contract(path: Path, root: Path) -> Contract:
    """Read one `*.contract.yaml` below `root`.

    Raises:
        DocumentError: with every fault of the first stage that has any: bytes, YAML, shape, meaning.
    """
    document = load(read(path, root), name_below(path, root))
    check(CONTRACT_SHAPE, document)
    return _Reading(document, path.parent, root).contract()


class _Reading:
    """One contract file on its way into the model; gathers what is wrong with its meaning."""

    def __init__(self, document: Document, folder: Path, root: Path) -> None:
        self._document = document
        self._folder = folder
        self._root = root
        self._problems: list[Problem] = []

    def contract(self) -> Contract:
        value = self._document.value
        if "servers" in value:
            servers = [self._server(name, spec, ("servers", name)) for name, spec in value["servers"].items()]
        else:
            servers = [self._server(value["server"]["id"], value["server"], ("server",))]
        if self._problems:
            raise DocumentError(sorted(self._problems, key=lambda each: (each.file, each.line, each.column)))
        # By id: the order of a mapping's keys is style, and a digest is over the value.
        return Contract(
            schema=value["schema"], id=value["id"], servers=tuple(sorted(servers, key=lambda each: each.id))
        )

    def _server(self, server_id: str, spec: Json, place: Place) -> Server:
        self._check_name(server_id, "server's id", place if place[0] == "servers" else (*place, "id"))
        before = len(self._problems)
        tools = self._tools(spec, place)
        pinned = spec.get("tools_digest") if len(self._problems) == before else None
        if pinned is not None and (actual := tools_digest([each.definition.value for each in tools])) != pinned:
            hint = f"the list's digest is {actual}; look at what changed before you pin it"
            self._wrong(Reason.PIN_MISMATCH, (*place, "tools_digest"), "not the digest of this tool list", hint)
        return Server(
            id=server_id,
            launch=self._launch(spec["launch"], (*place, "launch")) if "launch" in spec else self._remote(spec, place),
            tools=tools,
            recheck=Recheck(spec.get("recheck", Recheck.ON_CHANGE)),
            capabilities=Canonical.of(spec.get("capabilities", {})),
        )

    def _launch(self, spec: Json, place: Place) -> Launch:
        env = spec.get("env", {})
        for index, text in enumerate(spec["argv"]):
            self._check_placeholders(text, (*place, "argv", index))
        for name, text in env.items():
            self._check_placeholders(text, (*place, "env", name))
        for key in ("files", "in_place"):
            for file in spec.get(key, ()):
                self._check_placeholders(file, (*place, key, file))
        if "cwd" in spec:
            self._check_placeholders(spec["cwd"], (*place, "cwd"))
            if not spec["cwd"].startswith(("/", "{")):
                detail = f"the folder `{shown(spec['cwd'], 60)}` is not absolute"
                self._wrong(Reason.WRONG_VALUE, (*place, "cwd"), detail, "begin it with / or {contract}/")
        self._check_closure(spec, place)
        return Launch(
            argv=tuple(spec["argv"]),
            env=tuple(sorted(env.items())),
            cwd=spec.get("cwd"),
            packages=tuple(sorted(spec.get("packages", {}).items())),
            files=_digests(spec.get("files", {})),
            in_place=_digests(spec.get("in_place", {})),
            unpinned="artifacts" in spec,
            control=spec.get("control", False),
        )

    def _remote(self, spec: Json, place: Place) -> Remote:
        try:
            origin, _ = parse_url(spec["url"])
            if "tls_sha256" in spec and origin.scheme == "http":
                hint = "write `https`, or leave the pin out"
                detail = "there is no certificate where there is no TLS"
                self._wrong(Reason.WRONG_VALUE, (*place, "tls_sha256"), detail, hint, at_key=True)
        except MisuseError as error:
            self._wrong(Reason.WRONG_VALUE, (*place, "url"), error.detail)
        return Remote(
            url=spec["url"],
            tls_sha256=spec.get("tls_sha256"),
            headers=tuple(sorted(spec.get("headers_from_env", {}).items())),
        )

    def _check_closure(self, spec: Json, place: Place) -> None:
        """The program is named where it stands, and something pins what it runs. The rest is each machine's."""
        program = spec["argv"][0]
        if not program.startswith(("/", "{")):
            detail = f"the program `{shown(program, 60)}` is looked up in a search path"
            self._wrong(Reason.WRONG_VALUE, (*place, "argv", 0), detail, "write its absolute path, or {python}")
        elif program == "{python}" and not (any(map(spec.get, _PINNING)) or "artifacts" in spec):
            hint = "list `packages` or `files`, or say `artifacts: unpinned`"
            self._wrong(Reason.MISSING_KEY, place, "nothing pins what the interpreter runs", hint, at_key=True)
        elif spec.get("packages") and program.startswith(("/", "{contract}", "{package}")):
            hint = "list `files` instead"
            detail = "`packages` are those of {python}, which does not run here"
            self._wrong(Reason.WRONG_VALUE, (*place, "packages"), detail, hint, at_key=True)

    def _tools(self, spec: Json, place: Place) -> tuple[Tool, ...]:
        listed = None
        if "tools_from" in spec:
            listed = self._listed(spec["tools_from"], (*place, "tools_from"))
            if listed is None:
                return ()
        tools = []
        for name, entry in spec["tools"].items():
            at = (*place, "tools", name)
            self._check_name(name, "tool's name", at)
            definition = self._definition(name, entry, listed, at)
            if definition is not None:
                sensitive = tuple(sorted(entry.get("sensitive", ())))
                tools.append(Tool(effect=Effect(entry["effect"]), definition=definition, sensitive=sensitive))
        for name in (listed or {}).keys() - spec["tools"].keys():
            detail = f"the tool `{shown(name, 60)}` is listed and its effect is not declared"
            self._wrong(Reason.MISSING_KEY, (*place, "tools"), detail, "declare the effect of every tool")
        return tuple(sorted(tools, key=lambda tool: tool.name))

    def _definition(self, name: str, entry: Json, listed: dict[str, Json] | None, at: Place) -> Canonical | None:
        raw = entry.get("definition")
        if listed is None and raw is None:
            detail = f"the tool `{shown(name, 60)}` has no definition"
            self._wrong(Reason.MISSING_KEY, at, detail, "write its raw object, or name a file in tools_from")
        elif listed is not None and raw is not None:
            detail = f"the tool `{shown(name, 60)}` is defined here and in tools_from"
            self._wrong(Reason.WRONG_VALUE, (*at, "definition"), detail, "keep one of the two")
            raw = None
        elif listed is not None:
            raw = listed.get(name)
            if raw is None:
                detail = f"the tool `{shown(name, 60)}` is not in the list of tools_from"
                self._wrong(Reason.UNKNOWN_REFERENCE, at, detail, did_you_mean(name, listed), at_key=True)
        if raw is None:
            return None
        under: Place = at if listed is not None else (*at, "definition")
        if raw["name"] != name:
            detail = f"the definition's name `{shown(raw['name'], 60)}` is not its key `{shown(name, 60)}`"
            self._wrong(Reason.WRONG_VALUE, (*under, "name"), detail, "both are the tool's exact name")
        for key in ("inputSchema", "outputSchema"):
            if key in raw:
                self._check_schema(key, raw[key], (*under, key))
        return Canonical.of(raw)

    def _check_schema(self, key: str, schema: Json, place: Place) -> None:
        if type(schema) is not dict or (key == "inputSchema" and schema.get("type") != "object"):
            self._wrong(Reason.WRONG_VALUE, place, f"`{key}` must be a schema of an object", "say `type: object`")
            return
        try:
            check_schema(schema)
        except InputError as error:
            hint = "write what it refers to under $defs" if error.reason is Reason.UNRESOLVABLE_REF else ""
            self._wrong(error.reason, place, f"`{key}`: {error.detail}", hint)

    def _listed(self, relative: str, place: Place) -> dict[str, Json] | None:
        """The raw tools of another file by name; None, with the problem noted, where the file is of no use."""
        path = self._folder / relative
        file = name_below(path, self._root)
        try:
            data = read(path, self._root, MAX_TOOL_LIST)
            raw_tools = parse(data, MAX_TOOL_LIST)
        except DocumentError as error:
            first = error.problems[0]
            self._wrong(first.reason, place, f"`{shown(relative, 100)}`: {first.detail}", first.hint)
            return None
        except CanonicalError as error:
            line = data.count(b"\n", 0, error.offset) + 1 if error.offset >= 0 else 0
            column = error.offset - data.rfind(b"\n", 0, error.offset) if line else 0
            self._problems.append(Problem(error.reason, error.detail, file, line, column))
            return None
        if type(raw_tools) is not list:
            hint = "the file holds a JSON array of tools, as tools/list answers"
            self._problems.append(Problem(Reason.WRONG_VALUE, "expected an array of tools", file, 1, 1, hint))
            return None
        listed: dict[str, Json] = {}
        for index, raw in enumerate(raw_tools):
            if type(raw) is not dict or type(raw.get("name")) is not str or "inputSchema" not in raw:
                detail = f"entry {index} is no tool: an object with `name` and `inputSchema`"
                self._problems.append(Problem(Reason.WRONG_VALUE, detail, file, hint="copy it as the server sent it"))
            elif raw["name"] in listed:
                detail = f"the tool `{shown(raw['name'], 60)}` is listed twice"
                self._problems.append(Problem(Reason.DUPLICATE_TOOL, detail, file, hint="a name is one tool's"))
            else:
                listed[raw["name"]] = raw
        return listed

    def _check_placeholders(self, text: str, place: Place) -> None:
        for found in _PLACEHOLDER.finditer(text):
            if found[1] not in _PLACEHOLDERS:
                hint = f"known are {', '.join(f'{{{each}}}' for each in _PLACEHOLDERS)}"
                self._wrong(Reason.UNKNOWN_REFERENCE, place, f"`{found[0]}` is no placeholder", hint)

    def _check_name(self, name: str, what: str, place: Place) -> None:
        try:
            check_name(name, what)
        except InputError as error:
            self._wrong(error.reason, place, error.detail, at_key=True)

    def _wrong(self, reason: Reason, place: Place, detail: str, hint: str = "", *, at_key: bool = False) -> None:
        self._problems.append(self._document.problem(reason, place, detail, hint, at_key=at_key))


def _digests(spec: dict[str, str]) -> tuple[tuple[str, Digest], ...]:
    return tuple((name, Digest(digest)) for name, digest in sorted(spec.items()))
