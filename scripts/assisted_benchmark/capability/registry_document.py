"""Registry files, read into the frozen model: strict YAML, one shape, then what a shape cannot say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from assisted_benchmark.capability.registry import (
    MANAGEMENT,
    REGISTRY,
    RESULT_FIELDS,
    VERSION_SUFFIX,
    Authority,
    Bounds,
    ConsentRule,
    Operation,
    Registry,
    ResultKind,
    Risk,
)
from assisted_benchmark.contract.closed_schema import always_has, closed_schema_faults, texts_of
from assisted_benchmark.contract.files import name_below, read
from assisted_benchmark.contract.shape import (
    NAME,
    Flag,
    Integer,
    ListOf,
    MapOf,
    Record,
    Text,
    Word,
    check,
    json_schema,
    may,
    must,
)
from assisted_benchmark.contract.strict_yaml import Document, load
from assisted_benchmark.contract.strict_yaml import Path as Place
from assisted_benchmark.kernel.canonical import Canonical, Json
from assisted_benchmark.kernel.errors import DocumentError, Problem
from assisted_benchmark.kernel.names import MAX_NAME
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown

_DEFAULTS: Final = Bounds()
_CORE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_PROFILE: Final = Text(r"[a-z][a-z0-9-]{0,63}", "a profile's name", 64)
_TOOL: Final = Text(r"[a-z][a-z0-9_]{0,127}", "the name of a tool", MAX_NAME)
_SCHEMA: Final = Record({}, "a JSON Schema", open=True)


def _bound(name: str, doc: str) -> tuple[str, Integer, str]:
    most = getattr(_DEFAULTS, name)
    return name, Integer(1, most), f"{doc}; {most} unless said."


_BOUNDS: Final = Record(
    {
        name: may(shape, doc)
        for name, shape, doc in (
            _bound("parameters_bytes", "UTF-8 bytes of an operation's input"),
            _bound("envelope_bytes", "UTF-8 bytes of a whole call"),
            _bound("id_length", "characters of an id"),
            _bound("artifacts", "artifacts of one operation"),
            _bound("explanation_length", "characters of an explanation"),
            _bound("progress_events", "progress events of one operation"),
            _bound("timeout_ms", "the longest time a call may ask for"),
            _bound("default_timeout_ms", "the time of a call that asks for none"),
        )
    },
    "bounds",
)
_OPERATION: Final = Record(
    {
        "about": must(Text(what="a sentence", limit=400), "What it does, for whoever chooses a tool."),
        "risk": must(Word(tuple(each.value for each in Risk)), "How much it can disclose or change."),
        "result": must(
            Word(tuple(each.value for each in ResultKind)),
            "What it answers with: a response, a receipt of what was applied, an artifact, a stream or a chunk.",
        ),
        "authority": must(
            Word(tuple(each.value for each in Authority)),
            "grant: of a profile or of the operation by name; operation-grant: by name alone; artifact-acl: the "
            "broker's list of who may read an artifact; none: nothing authorises it, so it is not advertised.",
        ),
        "profiles": may(ListOf(_PROFILE, least=1), "The profiles whose grants cover it."),
        "consent": may(
            ListOf(Word(tuple(each.value for each in ConsentRule)), least=1),
            "interactive-only: no standing policy consents; one-shot: an interactive consent admits one fresh "
            "identity, then only its replay.",
        ),
        "publication_bound": may(Flag(), "Whether its grant ends with the publication it was issued for."),
        "idempotency": may(NAME, "The input's property that carries the idempotency key."),
        "max_bytes": may(
            MapOf(Integer(least=1), NAME, least=1), "Texts of the input and the UTF-8 bytes that each may have."
        ),
        "input": must(_SCHEMA, "Closed, bounded JSON Schema (2020-12) of the input."),
        "output": must(_SCHEMA, "Closed, bounded JSON Schema (2020-12) of the result."),
    },
    "an operation",
)
REGISTRY_SHAPE: Final = Record(
    {
        "schema": must(Word((REGISTRY,)), "The kind and version of this file."),
        "id": must(NAME, "The registry's name."),
        "namespace": must(
            Text(r"[a-z][a-z0-9.-]{0,62}\.", "a namespace such as `dev.pulp.`", 64, after="."),
            "What every operation id begins with; a tool's name leaves it out.",
        ),
        "prefix": must(
            Text(r"[a-z][a-z0-9_]{0,62}_", "a prefix such as `pulp_control_`", 64, after="_"),
            "What every tool's name begins with.",
        ),
        "scheme": must(
            Text(r"[a-z][a-z0-9+.-]{0,63}", "the scheme of an address, such as `pulp-control`", 64),
            "The scheme of its resources' addresses.",
        ),
        "profiles": must(ListOf(_PROFILE, least=1, most=64), "The profiles that a grant may be asked for."),
        "bounds": may(_BOUNDS, "The most that an envelope may hold, where it is less than the protocol's own bound."),
        "retired": may(MapOf(_TOOL, _TOOL), "Tools of earlier days, which stay absent, and what took their place."),
        "outside": may(ListOf(_TOOL), "Tools whose target is no live instance: they are never projected."),
        "operations": must(
            MapOf(_OPERATION, Text(what="an operation's id", limit=256), least=1, most=1000),
            "Every operation under its id, namespace and version included.",
        ),
    },
    "a registry",
)


def published_schemas() -> dict[str, Json]:
    """File name to JSON Schema, of registries."""
    title = "*.registry.yaml: what may be asked of a live instance, and what authorises it"
    return {"registry.schema.json": json_schema(REGISTRY_SHAPE, id="urn:assisted-benchmark:registry@1", title=title)}


def load_registry(path: Path, root: Path) -> Registry:
    """Read one `*.registry.yaml` below `root`.

    Raises:
        DocumentError: with every fault of the first stage that has any: bytes, YAML, shape, meaning.
    """
    return registry_from(load(read(path, root), name_below(path, root)))


def registry_from(document: Document) -> Registry:
    """The registry that a document holds; DocumentError as `load_registry`."""
    check(REGISTRY_SHAPE, document)
    return _Reading(document).registry()


class _Reading:
    """One registry file on its way into the model; gathers what is wrong with its meaning."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._value = document.value
        self._problems: list[Problem] = []

    def registry(self) -> Registry:
        value = self._value
        self._no_doubles("profiles")
        self._no_doubles("outside")
        bounds = Bounds(**value.get("bounds", {}))
        if bounds.default_timeout_ms > bounds.timeout_ms:
            detail = f"the default of {bounds.default_timeout_ms} ms is more than a call may ask for"
            self._wrong(Reason.WRONG_VALUE, ("bounds",), detail, f"at most `timeout_ms`, {bounds.timeout_ms}")
        registry = Registry(
            id=value["id"],
            namespace=value["namespace"],
            prefix=value["prefix"],
            scheme=value["scheme"],
            profiles=tuple(sorted(value["profiles"])),
            operations=tuple(self._operation(name, spec) for name, spec in sorted(value["operations"].items())),
            bounds=bounds,
            retired=tuple(sorted(value.get("retired", {}).items())),
            outside=tuple(sorted(value.get("outside", ()))),
        )
        self._check_names(registry)
        if self._problems:
            raise DocumentError(sorted(self._problems, key=lambda each: (each.line, each.column)))
        return registry

    def _operation(self, operation_id: str, spec: Json) -> Operation:
        at: Place = ("operations", operation_id)
        operation = Operation(
            id=operation_id,
            about=spec["about"],
            risk=Risk(spec["risk"]),
            result=ResultKind(spec["result"]),
            authority=Authority(spec["authority"]),
            input=Canonical.of(spec["input"]),
            output=Canonical.of(spec["output"]),
            profiles=tuple(sorted(spec.get("profiles", ()))),
            consent=tuple(ConsentRule(each) for each in sorted(spec.get("consent", ()))),
            publication_bound=spec.get("publication_bound", False),
            idempotency=spec.get("idempotency"),
            max_bytes=tuple(sorted(spec.get("max_bytes", {}).items())),
        )
        self._check_authority(operation, at)
        before = len(self._problems)
        for key in ("input", "output"):
            self._check_schema(spec[key], (*at, key))
        if len(self._problems) == before:
            self._check_fields(operation, spec, at)
        return operation

    def _check_authority(self, operation: Operation, at: Place) -> None:
        for index, profile in enumerate(operation.profiles):
            if profile not in self._value["profiles"]:
                hint = did_you_mean(profile, self._value["profiles"]) or "the registry's `profiles` lists them"
                detail = f"the registry has no profile `{shown(profile, 60)}`"
                self._wrong(Reason.UNKNOWN_REFERENCE, (*at, "profiles", index), detail, hint)
        by_profile = operation.authority is Authority.GRANT
        if by_profile and not operation.profiles:
            hint = "name `profiles`, or write `operation-grant` if only its own name grants it"
            self._wrong(Reason.MISSING_KEY, (*at, "authority"), "no profile grants the operation", hint)
        elif operation.profiles and not by_profile:
            detail = f"an operation with the authority `{operation.authority}` is in no profile"
            self._wrong(Reason.WRONG_VALUE, (*at, "profiles"), detail, "leave `profiles` out", at_key=True)
        if operation.consent and not operation.grantable:
            detail = "nobody is asked for consent where nothing can be granted"
            self._wrong(Reason.WRONG_VALUE, (*at, "consent"), detail, "leave `consent` out", at_key=True)
        critical = operation.risk is Risk.CRITICAL and operation.grantable
        if critical and (by_profile or not operation.interactive_only):
            hint = "write `authority: operation-grant` and `consent: [interactive-only]`"
            self._wrong(
                Reason.WRONG_VALUE, (*at, "risk"), "a critical operation is granted by name and in person", hint
            )
        if (operation.authority is Authority.ARTIFACT_ACL) != (operation.result is ResultKind.CHUNK):
            detail = "the authority `artifact-acl` and the result `chunk` belong together"
            self._wrong(
                Reason.WRONG_VALUE, (*at, "authority"), detail, "an artifact's list says who may read its chunks"
            )

    def _check_schema(self, schema: Json, at: Place) -> None:
        for fault in closed_schema_faults(schema):
            self._wrong(fault.reason, (*at, *fault.path), fault.detail, fault.hint, at_key=fault.at_key)

    def _check_fields(self, operation: Operation, spec: Json, at: Place) -> None:
        output = spec["output"]
        for name in RESULT_FIELDS[operation.result]:
            if not always_has(output, name, output.get("$defs", {})):
                detail = f"a result of the kind `{operation.result}` always has `{name}`"
                self._wrong(Reason.MISSING_KEY, (*at, "output"), detail, "require it, in each branch")
        texts = texts_of(spec["input"], spec["input"].get("$defs", {}))
        named: list[tuple[str, Place]] = [(name, (*at, "max_bytes", name)) for name, _ in operation.max_bytes]
        if operation.idempotency is not None:
            named.append((operation.idempotency, (*at, "idempotency")))
        for name, place in named:
            if name not in texts:
                hint = did_you_mean(name, texts) or "name a text of the input"
                detail = f"the input has no text `{shown(name, 60)}`"
                self._wrong(Reason.UNKNOWN_REFERENCE, place, detail, hint)

    def _check_names(self, registry: Registry) -> None:
        taken = {registry.management_tool(each): "a tool that every registry has" for each in MANAGEMENT}
        taken |= {name: "the name of a retired tool" for name, _ in registry.retired}
        taken |= dict.fromkeys(registry.outside, "the name of a tool that is outside")
        for operation in registry.operations:
            self._check_id(operation.id, registry.namespace)
            name = registry.tool_name(operation.id)
            at: Place = ("operations", operation.id)
            if len(name) > MAX_NAME:
                detail = f"its tool would have a name of {len(name)} characters"
                self._wrong(Reason.MALFORMED_NAME, at, detail, f"a name has at most {MAX_NAME}", at_key=True)
            if name in taken:
                detail = f"its tool would be `{name}`, which is {taken[name]}"
                self._wrong(Reason.DUPLICATE_TOOL, at, detail, "give the operation another id", at_key=True)
            taken.setdefault(name, f"the tool of `{operation.id}`")
        advertised = {registry.tool_name(each.id) for each in registry.operations if each.advertised}
        for name, successor in registry.retired:
            if successor not in advertised:
                hint = did_you_mean(successor, advertised) or "name the tool of an advertised operation"
                detail = f"no advertised operation has the tool `{shown(successor, 60)}`"
                self._wrong(Reason.UNKNOWN_REFERENCE, ("retired", name), detail, hint)

    def _check_id(self, operation_id: str, namespace: str) -> None:
        at: Place = ("operations", operation_id)
        core = operation_id.removeprefix(namespace).removesuffix(VERSION_SUFFIX)
        whole = f"{namespace}{core}{VERSION_SUFFIX}" == operation_id
        if not whole or _CORE.fullmatch(core) is None:
            detail = f"the id `{shown(operation_id, 80)}` is not {namespace}NAME{VERSION_SUFFIX}"
            hint = "NAME is of ASCII letters, digits and `_ - . /`, and begins with a letter"
            self._wrong(Reason.MALFORMED_NAME, at, detail, hint, at_key=True)

    def _no_doubles(self, key: str) -> None:
        seen: set[str] = set()
        for index, name in enumerate(self._value.get(key, ())):
            if name in seen:
                self._wrong(Reason.DUPLICATE_ID, (key, index), f"`{name}` stands twice", "keep one")
            seen.add(name)

    def _wrong(self, reason: Reason, place: Place, detail: str, hint: str = "", *, at_key: bool = False) -> None:
        self._problems.append(self._document.problem(reason, place, detail, hint, at_key=at_key))
