"""Attacks on documents: a root of one contract, one policy, its pins and a scenario, with one of them spoiled.

Each is written to a folder of its own and found as any root is. It must be refused before anything of it is used; what
means the same in another style must not, and must have the same digests.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from assisted_benchmark.contract.model import tools_digest
from assisted_benchmark.contract.pins import Pins, pins_text
from assisted_benchmark.contract.strict_yaml import load
from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.catalogue import Catalogue, Gathered
from assisted_benchmark.suite.yaml_out import yaml_of
from assisted_benchmark.workloads.synthetic_ui import TOOLS

CONTRACT: Final = "contracts/ui.contract.yaml"
POLICY: Final = "contracts/ui.policy.yaml"
PINS: Final = "contracts/pins.yaml"
SCENARIO: Final = "fixtures/live/good.scenario.yaml"
_LISTED: Final = "fixtures/live/tools.json"
_ARTIFACT: Final = "fixtures/live/artifact.txt"
_NO_DIGEST: Final = "sha256:" + "0" * 64

Files = dict[str, str]


class Spoiled(NamedTuple):
    """One attack: the threat, the variant, the reason that must be found, and what is done to the files."""

    threat: str
    name: str
    expected: str
    spoil: Callable[[Files], None]


def good_files() -> Files:
    """A root with nothing wrong, but for its pins."""
    tool = dict(TOOLS[0])
    launch = {
        "argv": ["{python}", "-S", "-m", "assisted_benchmark.workloads.synthetic_ui"],
        "env": {"PYTHONPATH": "{package}"},
        "packages": {"assisted-benchmark": "self"},
        "control": True,
    }
    server = {
        "launch": launch,
        "tools_digest": str(tools_digest(list(TOOLS))),
        "tools": {each["name"]: {"effect": "observe", "definition": each} for each in TOOLS},
    }
    contract = {"schema": "projectbuddy/assisted-mcp-server-set@1", "id": "ui", "servers": {"synthetic-ui": server}}
    call = {"server": "synthetic-ui", "tool": tool["name"], "arguments": {"taskId": {"from": "run.task"}}}
    choice = {
        "choose": "decision",
        "server": "synthetic-ui",
        "tool": TOOLS[1]["name"],
        "target": "targetId",
        "candidates": {each: {"taskId": {"from": "run.task"}, "targetId": each} for each in ("approve", "hold")},
    }
    policy = {
        "schema": "assisted-benchmark/policy@1",
        "id": "ui",
        "contract": "ui.contract.yaml",
        "expires_after": "120s",
        "steps": [{"call": call}, choice],
    }
    scenario = {
        "schema": "assisted-benchmark/scenario@1",
        "id": "good",
        "policy": "ui",
        "agent": {"plan": "approve"},
        "cases": {"plain": {"run": {"seed": 7}}},
    }
    return {
        CONTRACT: yaml_of(contract),
        POLICY: yaml_of(policy),
        SCENARIO: yaml_of(scenario),
        _ARTIFACT: "what was pinned\n",
    }


def found_in(files: Files) -> tuple[list[str], dict[str, Digest]]:
    """The reasons of all problems of such a root, the first first; and the digests of what could be read."""
    with tempfile.TemporaryDirectory(prefix="assisted-benchmark-") as folder:
        root = Path(folder)
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("utf-8"))
        gathered = Gathered(root)
        catalogue = gathered.catalogue
        problems = [*gathered.problems, *(catalogue.pin_problems() if PINS in files else ())]
        if not problems:
            problems += list(catalogue.shelves["live"].lint())
        digests = {
            f"{part}/{name}": each for (part, _), known in catalogue.stock().items() for name, each in known.items()
        }
        return [each.reason.value for each in problems], digests


def pinned(files: Files) -> Files:
    """The same root with the pins that it needs."""
    with tempfile.TemporaryDirectory(prefix="assisted-benchmark-") as folder:
        root = Path(folder)
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        stock = Catalogue(root).stock()
    pins = Pins(stock["contracts", "contract"], stock["policies", "policy"])
    return {**files, PINS: pins_text(pins)}


def spoiled() -> Iterator[Spoiled]:
    """Every one that must be refused."""
    yield from _of_yaml()
    yield from _of_meaning()
    yield from _of_tools()


def _of_yaml() -> Iterator[Spoiled]:
    for threat, name, reason, key, text in (
        ("Y02", "no", Reason.IMPLICIT_TYPE, "id", "no"),
        ("Y02", "off", Reason.IMPLICIT_TYPE, "id", "off"),
        ("Y02", "yes", Reason.IMPLICIT_TYPE, "id", "Yes"),
        ("Y03", "octal", Reason.IMPLICIT_TYPE, "id", "0644"),
        ("Y03", "sexagesimal", Reason.IMPLICIT_TYPE, "id", "12:30"),
        ("Y03", "underscore", Reason.IMPLICIT_TYPE, "id", "1_000"),
        ("Y03", "trailing-zero", Reason.IMPLICIT_TYPE, "id", "1.10"),
        ("Y03", "exponent", Reason.IMPLICIT_TYPE, "id", "1e3"),
        ("Y03", "digest", Reason.IMPLICIT_TYPE, "id", "0123456789"),
        ("Y04", "date", Reason.IMPLICIT_TYPE, "id", "2030-01-31"),
        ("Y04", "timestamp", Reason.IMPLICIT_TYPE, "id", "2030-01-31 12:00:00"),
        ("Y05", "alias", Reason.MERGE_FORBIDDEN, "id", "*other"),
        ("Y05", "anchor", Reason.MERGE_FORBIDDEN, "id", "&other ui"),
        ("Y07", "tag", Reason.UNSUPPORTED_YAML, "id", "!!python/name:os.system ui"),
        ("G05", "date", Reason.IMPLICIT_TYPE, "expires_after", "2030-01-31"),
        ("G05", "milliseconds", Reason.WRONG_VALUE, "expires_after", "1900000000000"),
        ("G05", "for-ever", Reason.WRONG_VALUE, "expires_after", "ever"),
    ):
        yield Spoiled(threat, name, reason.value, _set(POLICY, key, text))
    for threat, name, reason, line in (
        ("Y05", "merge", Reason.MERGE_FORBIDDEN, "<<: {id: other}"),
        ("Y07", "second-document", Reason.UNSUPPORTED_YAML, "---\nid: other"),
        ("Y09", "number", Reason.NON_STRING_KEY, "1: one"),
        ("Y09", "truth", Reason.NON_STRING_KEY, "true: one"),
        ("Y09", "null", Reason.NON_STRING_KEY, "null: one"),
        ("Y08", "typing-error", Reason.UNKNOWN_KEY, "expirse_after: 1s"),
    ):
        yield Spoiled(threat, name, reason.value, _add(POLICY, line))
    yield Spoiled("Y07", "bom", Reason.UNSUPPORTED_YAML.value, _replace(POLICY, "schema", "\ufeffschema"))
    yield Spoiled("Y07", "next-line", Reason.UNSUPPORTED_YAML.value, _replace(POLICY, "id: ui", "id: u\u0085i"))
    yield Spoiled("Y08", "expectation", Reason.UNKNOWN_KEY.value, _add(SCENARIO, "expcet: {ends: succeeded}"))


def _of_meaning() -> Iterator[Spoiled]:
    yield Spoiled("Y10", "contract", Reason.PATH_ESCAPE.value, _set(POLICY, "contract", "../../../../etc/hostname"))
    yield Spoiled("Y12", "case", Reason.DUPLICATE_KEY.value, _twice(SCENARIO, "plain:"))
    yield Spoiled("Y12", "scenario", Reason.DUPLICATE_ID.value, _copy(SCENARIO, "fixtures/live/again.scenario.yaml"))
    yield Spoiled(
        "C22", "server", Reason.DUPLICATE_KEY.value, _replace(CONTRACT, "servers:", "servers:\n  synthetic-ui: {}")
    )
    same = _replace(POLICY, "targetId: hold", "targetId: approve")
    yield Spoiled("G19", "candidates", Reason.GROUP_REPEATED.value, same)
    for name, digest in (
        ("capitals", f"SHA256:{'0' * 64}"),
        ("hex-capitals", f"sha256:{'A' * 64}"),
        ("bare", "a" * 64),
        ("short", f"sha256:{'0' * 16}"),
    ):
        yield Spoiled("G09", name, Reason.MALFORMED_DIGEST.value, _pin(f'"{digest}"'))
    yield Spoiled("G12", "policy", Reason.PIN_MISMATCH.value, _set(POLICY, "expires_after", "121s"))


def _of_tools() -> Iterator[Spoiled]:
    def listed(change: Callable[[list[Json]], None]) -> Callable[[Files], None]:
        def spoil(files: Files) -> None:
            tools: list[Json] = [json.loads(json.dumps(each)) for each in TOOLS]
            change(tools)
            files[_LISTED] = json.dumps(tools)
            contract = files[CONTRACT]
            start = contract.index("    tools:")
            files[CONTRACT] = (
                f"{contract[:start]}    tools_from: ../{_LISTED}\n    tools:\n"
                + "\n".join(f"      {each['name']}: {{effect: observe}}" for each in TOOLS)
                + "\n"
            )

        return spoil

    def elsewhere(tools: list[Json]) -> None:
        tools[0]["inputSchema"]["properties"]["taskId"] = {"$ref": "https://example.com/schema.json"}

    yield Spoiled("S06", "reference", Reason.UNRESOLVABLE_REF.value, listed(elsewhere))
    yield Spoiled("S15", "listed", Reason.DUPLICATE_TOOL.value, listed(lambda tools: tools.append(tools[0])))

    def artifact(files: Files) -> None:
        entry = f'launch:\n      files: {{"{{contract}}/../{_ARTIFACT}": "{_NO_DIGEST}"}}'
        files[CONTRACT] = files[CONTRACT].replace("launch:", entry, 1)
        del files[PINS]

    yield Spoiled("C20", "file", Reason.ARTIFACT_DRIFT.value, artifact)


def restyled() -> Iterator[tuple[str, Callable[[Files], None]]]:
    """Ways to write the same documents."""

    def as_json(files: Files) -> None:
        for name in (CONTRACT, POLICY):
            files[name] = json.dumps(_value(files[name]), indent=1)

    def backwards(files: Files) -> None:
        for name in (CONTRACT, POLICY):
            files[name] = yaml_of(dict(reversed(_value(files[name]).items())))

    def with_remarks(files: Files) -> None:
        for name in (CONTRACT, POLICY):
            files[name] = "# why\n\n" + files[name].replace("\n", "   # remark\n").rstrip() + "\n\n"

    def with_returns(files: Files) -> None:
        files[POLICY] = files[POLICY].replace("\n", "\r\n")

    yield from (("json", as_json), ("key-order", backwards), ("remarks", with_remarks), ("line-ends", with_returns))


def _value(text: str) -> dict[str, Json]:
    value: dict[str, Json] = load(text.encode(), "").value
    return value


def _set(file: str, key: str, text: str) -> Callable[[Files], None]:
    def spoil(files: Files) -> None:
        lines = files[file].split("\n")
        files[file] = "\n".join(f"{key}: {text}" if line.startswith(f"{key}:") else line for line in lines)

    return spoil


def _add(file: str, line: str) -> Callable[[Files], None]:
    def spoil(files: Files) -> None:
        files[file] = f"{files[file].rstrip()}\n{line}\n"

    return spoil


def _replace(file: str, text: str, by: str) -> Callable[[Files], None]:
    def spoil(files: Files) -> None:
        files[file] = files[file].replace(text, by, 1)

    return spoil


def _twice(file: str, mark: str) -> Callable[[Files], None]:
    def spoil(files: Files) -> None:
        line = next(line for line in files[file].split("\n") if mark in line)
        files[file] = files[file].replace(line, f"{line}\n{line}", 1)

    return spoil


def _copy(file: str, to: str) -> Callable[[Files], None]:
    def spoil(files: Files) -> None:
        files[to] = files[file]

    return spoil


def _pin(text: str) -> Callable[[Files], None]:
    def spoil(files: Files) -> None:
        start = files[PINS].index("policies:")
        files[PINS] = f"{files[PINS][:start]}policies:\n  ui: {text}\n"

    return spoil
