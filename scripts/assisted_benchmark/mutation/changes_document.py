"""Change contracts (`*.changes.yaml`), read into the model: strict YAML, one shape, then what spans places."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from assisted_benchmark.contract.closed_schema import closed_schema_faults
from assisted_benchmark.contract.files import name_below, read
from assisted_benchmark.contract.json_schema import Checker
from assisted_benchmark.contract.shape import (
    NAME,
    ByKey,
    ByKind,
    Fault,
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
from assisted_benchmark.contract.strict_yaml import load
from assisted_benchmark.kernel.canonical import Canonical, Json
from assisted_benchmark.kernel.errors import DocumentError
from assisted_benchmark.kernel.pointers import steps_of
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean
from assisted_benchmark.mutation.changes import (
    ANY_SUCCESS,
    MUTATE,
    ChangeContract,
    ChangeType,
    ErrorShape,
    PriceRule,
    Read,
    accepted,
)
from assisted_benchmark.mutation.compiler import problems_in, unshowable
from assisted_benchmark.mutation.fields import declared, unused
from assisted_benchmark.mutation.template import Where, is_reference, references

CHANGES: Final = "assisted-benchmark/changes@1"
CHANGES_SUFFIX: Final = ".changes.yaml"

_PARAMETER: Final = re.compile(r"\{([A-Za-z0-9_]+)\}")
_PATH: Final = Text(r"(?:/[A-Za-z0-9_.~-]+)+", "a path such as `/v1/things`", 200)
_POINTER: Final = Text(r"(?:/(?:[^~/]|~[01])*)+", "a JSON pointer such as `/data`", 256)
_PLAIN: Final = Text(r"[ -~]+", "plain text", 200)
_KEY: Final = Text(what="a key", limit=128)
_TOOL: Final = Text(r"[a-z][a-z0-9_]{0,63}", "a name of lower-case letters, digits and `_`", 64)
_STATUSES: Final = ByKind((Word((ANY_SUCCESS,)), ListOf(Integer(200, 299), least=1, most=100)))
_OPEN: Final = Record({}, "an object", open=True)
_FIELDS: Final = must(_OPEN, "JSON Schema (2020-12), closed: every object lists its properties and takes no others.")
_BODY: Final = (
    "The request's body. `{from: a.b}` stands for a field, `{text_of: a.b}` for it as text; what has only absent "
    "fields drops out."
)
_EXAMPLE: Final = must(_OPEN, "A value of the fields that is complete and right; it is checked.")

_PRICE: Final = Record(
    {
        "path": must(_PATH, "Where a price is asked for, by a POST."),
        "accepts": must(_STATUSES, "The statuses of an answer that can be read."),
        "body": must(_OPEN, _BODY),
        "rows": must(_POINTER, "The list of prices in the answer; only one price is an estimate."),
        "currency": must(_POINTER, "In a price: its currency."),
        "charges": must(_POINTER, "In a price: the list of its charges."),
        "kind": must(_POINTER, "In a charge: its kind."),
        "amount": must(_POINTER, "In a charge: its amount."),
        "monthly": must(_PLAIN, "The kind of the charge that comes every month."),
        "non_recurring": must(_PLAIN, "The kind of the charge that comes once."),
    },
    "a price rule",
)
_COMMON: Final = {
    "title": must(_PLAIN, "What it does, as a person is told."),
    "path": must(_PATH, "Where the create is posted."),
    "accepts": must(
        Record(
            {
                "dry_run": must(_STATUSES, "Of a dry run that passed."),
                "create": must(_STATUSES, "Of a create that was done, or taken on."),
            },
            "the accepted statuses",
        ),
        "The answers' statuses that mean success: a list, or 2xx for any.",
    ),
    "fields": _FIELDS,
    "body": must(_OPEN, _BODY),
    "prompt": must(ListOf(_KEY, least=1), "The body's keys, in the order in which a person sees them."),
    "sensitive": may(
        ListOf(_POINTER), "JSON pointers into the fields whose values no receipt, log or report may hold."
    ),
    "example": _EXAMPLE,
}
_CHANGE: Final = ByKey(
    {
        "price": Record({**_COMMON, "price": must(_PRICE, "How its price is estimated.")}, "a change with a price"),
        "unpriced": Record(
            {**_COMMON, "unpriced": must(_PLAIN, "Why no price can be said.")}, "a change without a price"
        ),
    }
)
_READ_COMMON: Final = {
    "title": must(_PLAIN, "What it reads."),
    "toolset": must(_TOOL, f"The toolset it belongs to; not `{MUTATE}`."),
    "fields": must(_OPEN, "JSON Schema of its arguments, closed as the fields of a change are."),
    "example": must(_OPEN, "Arguments that are complete and right; they are checked."),
}
_READ_PATH: Final = Text(r"(?:/(?:[A-Za-z0-9_.~-]+|\{[A-Za-z0-9_]+\}))+", "a path such as `/v1/things/{id}`", 200)
_READ: Final = ByKey(
    {
        "get": Record(
            {**_READ_COMMON, "get": must(_READ_PATH, "The path of the GET; `{field}` is one of its arguments.")},
            "a read by GET",
        ),
        "search": Record(
            {
                **_READ_COMMON,
                "search": must(_PATH, "The path of a POST that only searches."),
                "body": must(_OPEN, _BODY),
            },
            "a read by a search",
        ),
    }
)
CHANGES_SHAPE: Final = Record(
    {
        "schema": must(Word((CHANGES,)), "The kind and version of this file."),
        "id": must(Text(r"[a-z][a-z0-9_]{0,31}", "a short lower-case word", 32), "Its tools' names begin with it."),
        "endpoint": must(_PLAIN, "What a person is told the target is."),
        "dry_run": must(
            Text(r"[A-Za-z0-9_.~-]+=[A-Za-z0-9_.~-]+", "a query such as `dryRun=true`", 100),
            "The query that makes a create a dry run.",
        ),
        "errors": must(
            Record(
                {
                    "code": must(_KEY, "The key of an error's code."),
                    "message": must(_KEY, "The key of its sentence."),
                    "id": may(_KEY, "The key of the id by which the endpoint finds it again."),
                    "places": may(_KEY, "The key of the list that says what is wrong where."),
                },
                "the errors' shape",
            ),
            "How the endpoint tells of errors: a list of objects with these keys.",
        ),
        "changes": must(MapOf(_CHANGE, NAME, least=1), "Each change type: one create request."),
        "reads": may(MapOf(_READ, _TOOL), "Requests that change nothing, served beside the changes."),
    },
    "a change contract",
)


def published_schemas() -> dict[str, Json]:
    """File name to JSON Schema, of change contracts."""
    title = "*.changes.yaml: what changes an API offers, and how each is asked for"
    return {"changes.schema.json": json_schema(CHANGES_SHAPE, id="urn:assisted-benchmark:changes@1", title=title)}


def load_changes(path: Path, root: Path) -> ChangeContract:
    """Read one `*.changes.yaml` below `root`.

    Raises:
        DocumentError: with every fault of the first stage that has any: bytes, YAML, shape, meaning.
    """
    document = load(read(path, root), name_below(path, root))
    check(CHANGES_SHAPE, document)
    faults = list(meaning_faults(document.value))
    if faults:
        problems = [
            document.problem(each.reason, each.path, each.detail, each.hint, at_key=each.at_key) for each in faults
        ]
        raise DocumentError(sorted(problems, key=lambda each: (each.line, each.column)))
    return contract_of(document.value)


def contract_of(value: Json) -> ChangeContract:
    """The model of a value that has the shape and no faults of meaning."""
    errors = value["errors"]
    return ChangeContract(
        id=value["id"],
        endpoint=value["endpoint"],
        dry_run=value["dry_run"],
        errors=ErrorShape(**errors),
        changes=tuple(_change(name, each) for name, each in sorted(value["changes"].items())),
        reads=tuple(_read(name, each) for name, each in sorted(value.get("reads", {}).items())),
        source=Canonical.of(value),
    )


def _change(name: str, value: Json) -> ChangeType:
    price = value.get("price")
    return ChangeType(
        name=name,
        title=value["title"],
        path=value["path"],
        dry_run_accepts=accepted(value["accepts"]["dry_run"]),
        create_accepts=accepted(value["accepts"]["create"]),
        fields=Canonical.of(value["fields"]),
        body=Canonical.of(value["body"]),
        prompt=tuple(value["prompt"]),
        price=None
        if price is None
        else PriceRule(
            **{**price, "accepts": accepted(price["accepts"]), "body": Canonical.of(price["body"])},
        ),
        unpriced=value.get("unpriced", ""),
        sensitive=tuple(sorted(value.get("sensitive", ()))),
        example=Canonical.of(value["example"]),
    )


def _read(name: str, value: Json) -> Read:
    get = value.get("get")
    return Read(
        name=name,
        title=value["title"],
        toolset=value["toolset"],
        method="POST" if get is None else "GET",
        path=value["search"] if get is None else get,
        fields=Canonical.of(value["fields"]),
        body=Canonical.of(value["body"]) if get is None else None,
        example=Canonical.of(value["example"]),
    )


def meaning_faults(value: Json) -> Iterator[Fault]:
    """What is wrong beyond the shape: open fields, references to nothing, fields that come to nothing, bad examples."""
    for name, change in value["changes"].items():
        at: Where = ("changes", name)
        yield from _sound(change, at, ("body",))
        if "price" in change:
            yield from _bad_references(change["price"]["body"], change["fields"], (*at, "price", "body"))
        yield from _bad_order(change, at)
        for index, each in enumerate(change.get("sensitive", ())):
            if declared(change["fields"], steps_of(each)) is None:
                yield Fault(Reason.UNKNOWN_REFERENCE, (*at, "sensitive", index), f"no field stands at `{each}`")
    for name, each in value.get("reads", {}).items():
        at = ("reads", name)
        if each["toolset"] == MUTATE:
            detail = f"a read cannot be in the toolset `{MUTATE}`"
            yield Fault(Reason.WRONG_VALUE, (*at, "toolset"), detail, "name another")
        yield from _sound(each, at, ("body",) if "body" in each else ("get",))


def _sound(value: Json, at: Where, request: Where) -> Iterator[Fault]:
    """The fields, the request made of them and the example, of a change or a read."""
    faults = [
        Fault(f.reason, (*at, "fields", *f.path), f.detail, f.hint, f.at_key)
        for f in closed_schema_faults(value["fields"])
    ]
    yield from faults
    if faults:
        return  # what is said below would follow from these
    template = value[request[0]]
    used: set[tuple[str, ...]] = set()
    if type(template) is str:
        for name in _PARAMETER.findall(template):
            used.add((name,))
            if not _is_segment(value["fields"], name):
                hint = "declare it as a string with a pattern, and as required"
                detail = f"`{{{name}}}` cannot be put into a path"
                yield Fault(Reason.UNKNOWN_REFERENCE, (*at, *request), detail, hint)
    else:
        used.update(path for _, path in references(template))
        yield from _bad_references(template, value["fields"], (*at, *request))
    for path in unused(value["fields"], frozenset(used)):
        hint = "refer to it in the body, or take it out"
        places = tuple(step for name in path for step in ("properties", name))
        detail = f"the field `{'.'.join(path)}` comes to nothing"
        yield Fault(Reason.UNKNOWN_REFERENCE, (*at, "fields", *places), detail, hint, at_key=True)
    example = value["example"]
    found = unshowable(example) or problems_in(Checker(value["fields"]), value["fields"], example)
    for pointer, detail in found:
        yield Fault(Reason.WRONG_VALUE, (*at, "example"), f"{pointer or '/'}: {detail}", "write one that fits")


def _is_segment(fields: Json, name: str) -> bool:
    schema = declared(fields, (name,)) or {}
    return schema.get("type") == "string" and "pattern" in schema and name in fields.get("required", ())


def _bad_references(template: Json, fields: Json, at: Where) -> Iterator[Fault]:
    for where, path in references(template):
        if declared(fields, path) is None:
            hint = did_you_mean(path[0], fields.get("properties", {})) if len(path) == 1 else ""
            detail = f"no field is called `{'.'.join(path)}`"
            yield Fault(Reason.UNKNOWN_REFERENCE, (*at, *where), detail, hint)


def _bad_order(change: Json, at: Where) -> Iterator[Fault]:
    body, prompt = change["body"], change["prompt"]
    if is_reference(body):
        yield Fault(Reason.WRONG_VALUE, (*at, "body"), "the body is a reference as a whole", "write its keys")
    elif sorted(body) != sorted(prompt):
        hint = f"name each of {', '.join(body)} once"
        yield Fault(Reason.WRONG_VALUE, (*at, "prompt"), "not the keys of the body, each once", hint)
