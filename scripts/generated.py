"""The files that are written from the code: `scripts/generate` writes them, a test compares them."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from assisted_benchmark.capability import registry_document
from assisted_benchmark.capability.states import CAPABILITY_TABLE
from assisted_benchmark.contract import published
from assisted_benchmark.contract.shape import Shape, json_schema
from assisted_benchmark.kernel.reasons import REASONS, Layer
from assisted_benchmark.ledger.states import TransitionTable, drawn
from assisted_benchmark.live_policy import policy_document
from assisted_benchmark.live_policy.states import LIVE_TABLE
from assisted_benchmark.mutation import changes_document
from assisted_benchmark.mutation.states import MUTATION_TABLE
from assisted_benchmark.report.attacks import SHAPE as ATTACKS_SHAPE
from assisted_benchmark.report.record import SHAPE as REPORT_SHAPE
from assisted_benchmark.suite.brokers import BROKERS
from assisted_benchmark.suite.matrix.explained import SHAPE as GUARDS_SHAPE
from assisted_benchmark.suite.vectors.making import vector_files

ROOT = Path(__file__).resolve().parent.parent

_SCHEMAS: dict[str, tuple[Shape, str]] = {
    **{kind.schema[19:-2]: (kind.shape, kind.title) for broker in BROKERS for kind in broker.kinds},
    "report": (REPORT_SHAPE, "report.json: what came of a run"),
    "guards": (GUARDS_SHAPE, "guards.yaml: the guards that no case misses, and what does instead"),
    "attacks": (ATTACKS_SHAPE, "attack --json: what came of generated attacks"),
}

# From the highest room to the lowest, as the linter contract has them.
_ROOMS = (
    "cli",
    "report",
    "suite",
    "gateway",
    "workloads",
    "mcp_router",
    "live_policy",
    "mutation",
    "capability",
    "ledger",
    "contract",
    "wire",
    "kernel",
)


def files() -> dict[Path, str]:
    """Every generated file and its whole text."""
    rooms = (published, policy_document, changes_document, registry_document)
    schemas = {name: schema for room in rooms for name, schema in room.published_schemas().items()}
    for name, (shape, title) in _SCHEMAS.items():
        schemas[f"{name}.schema.json"] = json_schema(shape, id=f"urn:assisted-benchmark:{name}@1", title=title)
    texts = {ROOT / "schemas" / name: published.schema_text(schema) for name, schema in schemas.items()}
    texts[ROOT / "docs" / "reasons.md"] = _reasons()
    texts |= {ROOT / name: text for name, text in vector_files(ROOT).items()}
    architecture = ROOT / "docs" / "architecture.md"
    text = _put(architecture.read_text(encoding="utf-8"), "rooms", _rooms())
    for table in (LIVE_TABLE, MUTATION_TABLE, CAPABILITY_TABLE):
        text = _put(text, f"{table.name} states", _states(table))
    texts[architecture] = text
    return texts


def _put(text: str, name: str, made: str) -> str:
    """`text` with `made` between the marks of that name."""
    begin, end = f"<!-- generated: {name} -->\n", "<!-- end -->\n"
    before, _, rest = text.partition(begin)
    return before + begin + made + end + rest.partition(end)[2]


def _rooms() -> str:
    rows = ["| room | what it is | files |", "|---|---|---|"]
    for room in _ROOMS:
        folder = ROOT / "scripts" / "assisted_benchmark" / room
        about = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
        rows.append(f"| `{room}` | {about.splitlines()[0]} | {_names(folder)} |")
    return "\n".join(rows) + "\n"


def _names(folder: Path, under: str = "") -> str:
    """The modules of a folder, then each folder in it with its own, by its way from the room."""
    modules = under + ", ".join(sorted(path.stem for path in folder.glob("[!_]*.py")))
    inner = [each.parent for each in sorted(folder.glob("*/__init__.py"))]
    return "; ".join((modules, *(_names(each, f"{under.rstrip(': ')}{each.name}/: ") for each in inner)))


def _reasons() -> str:
    lines = [
        "# Reasons",
        "",
        "Every refusal, failure and fault carries one of these codes. The list is closed; a code is added or retired,",
        "never reworded. The agent hears only the coarse word. Written by `scripts/generate`.",
    ]
    for layer in Layer:
        lines += ["", f"## Layer `{layer.value}`"]
        for reason, info in sorted(REASONS.items()):
            if info.layer is layer:
                lines += ["", f"### {reason.value}", "", f"{info.text[0].upper()}{info.text[1:]}.", ""]
                lines += [
                    f"Agents hear `{info.coarse.value}`; SARIF rule `{info.rule}`, level `{info.severity.value}`."
                ]
    return "\n".join(lines) + "\n"


def _states(table: TransitionTable) -> str:
    def kind(state: str) -> str:
        words = {table.initial: "the start", table.claimed: "the durable marker"}
        crash = f"after a crash `{table.after_crash[state]}`" if state in table.after_crash else ""
        said = [word for word in (words.get(state, ""), crash) if word]
        return "the end" if state in table.terminal else "; ".join(said) or "on its way"

    rows = ["| state | may become | which is |", "|---|---|---|"]
    for state in sorted(table.states, key=lambda each: (each in table.terminal, each != table.initial, each)):
        after = ", ".join(f"`{end}`" for start, end in sorted(table.edges) if start == state) or "nothing"
        rows.append(f"| `{state}` | {after} | {kind(state)} |")
    return "\n".join(rows) + f"\n\n```mermaid\n{drawn(table)}```\n"


def stale() -> list[Path]:
    """The generated files that are not what the code says."""
    return [path for path, text in files().items() if not path.exists() or path.read_text(encoding="utf-8") != text]


def main() -> int:
    """Write what is stale, or with `--check` only say so."""
    paths = stale()
    check = sys.argv[1:] == ["--check"]
    if not check:
        texts = files()
        for path in paths:
            path.parent.mkdir(exist_ok=True)
            path.write_text(texts[path], encoding="utf-8")
    for path in paths:
        sys.stdout.write(f"{'is stale' if check else 'written'}: {path.relative_to(ROOT)}\n")
    return int(check and bool(paths))


if __name__ == "__main__":
    sys.exit(main())
