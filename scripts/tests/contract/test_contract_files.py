"""Contract files: read into the frozen model, or refused with every fault and its place."""

import json
import os
from pathlib import Path

import pytest
from marks import promise

from assisted_benchmark.contract.document import load_contract
from assisted_benchmark.contract.files import name_below, read, write
from assisted_benchmark.contract.model import LEGACY, SERVER_SET, Effect, Launch, Recheck, tools_digest
from assisted_benchmark.contract.pins import PINS, Pins, load_pins, pins_text
from assisted_benchmark.contract.strict_yaml import load as load_yaml
from assisted_benchmark.contract.written import Pinned, contract_text
from assisted_benchmark.kernel.errors import DocumentError

DIGEST = "sha256:" + "ab" * 32
OTHER = "sha256:" + "cd" * 32

CONTRACT = """\
schema: projectbuddy/assisted-mcp-server-set@1
id: pair
servers:
  ui:
    launch:
      argv: ["{python}", -m, mine.server, "{contract}/data.json"]
      env: {B: two, A: "{package}"}
      cwd: "{contract}"
      packages: {mine: "1.0"}
      files: {"{contract}/data.json": DIGEST}
      control: true
    recheck: always
    capabilities: {elicitation: {}}
    tools:
      click:
        effect: act
        sensitive: [/pin, /a~1b]
        definition:
          name: click
          inputSchema: {type: object, properties: {pin: {type: string}}}
          outputSchema: {type: object}
          x-own: [1, {z: 2}]
      aim: {effect: observe, definition: {name: aim, inputSchema: {type: object}}}
  peer:
    launch: {argv: [/bin/peer], artifacts: unpinned}
    tools_from: peer.json
    tools: {look: {effect: plan_only}}
""".replace("DIGEST", DIGEST)
PEER = [{"name": "look", "inputSchema": {"type": "object"}}]


def written(root: Path, text: str, peer: object = PEER) -> Path:
    path = root / "contracts" / "pair.contract.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    (path.parent / "peer.json").write_text(peer if isinstance(peer, str) else json.dumps(peer))
    return path


def faults_of(root: Path, text: str, peer: object = PEER) -> list[tuple[str, int, int]]:
    with pytest.raises(DocumentError) as caught:
        load_contract(written(root, text, peer), root)
    assert all(each.file.startswith("contracts/") for each in caught.value.problems)
    return [(each.reason.value, each.line, each.column) for each in caught.value.problems]


@promise("L1")
def test_a_server_set_is_read_whole(tmp_path):
    contract = load_contract(written(tmp_path, CONTRACT), tmp_path)
    assert (contract.schema, contract.id, contract.legacy) == (SERVER_SET, "pair", False)
    assert [server.id for server in contract.servers] == ["peer", "ui"]
    ui = contract.server("ui")
    assert ui.recheck is Recheck.ALWAYS
    assert ui.capabilities.value == {"elicitation": {}}
    assert ui.launch.value() == {
        "argv": ["{python}", "-m", "mine.server", "{contract}/data.json"],
        "env": {"A": "{package}", "B": "two"},
        "cwd": "{contract}",
        "packages": {"mine": "1.0"},
        "files": {"{contract}/data.json": DIGEST},
        "unpinned": False,
        "control": True,
    }
    assert [tool.name for tool in ui.tools] == ["aim", "click"]
    click = ui.tool("click")
    assert (click.effect, click.sensitive) == (Effect.ACT, ("/a~1b", "/pin"))
    assert click.definition.value["x-own"] == [1, {"z": 2}]  # unknown keys are kept
    assert click.output_schema == {"type": "object"}
    peer = contract.server("peer")
    assert (peer.recheck, peer.launch.unpinned, peer.launch.cwd) == (Recheck.ON_CHANGE, True, None)
    assert peer.tool("look").definition.value == PEER[0]


def legacy(text: str = CONTRACT) -> str:
    one = text[text.index("    launch") : text.index("  peer:")].replace("\n  ", "\n")[2:]
    return f"schema: {LEGACY}\nid: one\nserver:\n  id: ui\n{one}"


@promise("L1")
def test_a_single_server_contract_pins_the_same_server(tmp_path):
    whole = load_contract(written(tmp_path, CONTRACT), tmp_path)
    one = load_contract(written(tmp_path, legacy()), tmp_path)
    assert (one.schema, one.legacy, len(one.servers)) == (LEGACY, True, 1)
    assert one.servers[0] == whole.server("ui")
    assert one.servers[0].digest == whole.server("ui").digest
    assert one.digest != whole.digest


@promise("H3", "L1")
def test_restyling_a_contract_never_changes_its_digest(tmp_path):
    contract = load_contract(written(tmp_path, CONTRACT), tmp_path)
    value = {
        "servers": {name: dict(reversed(server.items())) for name, server in reversed(read_value(tmp_path).items())},
        "id": "pair",
        "schema": SERVER_SET,
    }
    restyled = "# another style\n" + json.dumps(value, indent=1)
    assert load_contract(written(tmp_path, restyled), tmp_path).digest == contract.digest


def read_value(root: Path) -> dict:
    from assisted_benchmark.contract.strict_yaml import load

    return load(read(root / "contracts" / "pair.contract.yaml", root), "x").value["servers"]


@promise("L1")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("id: pair", "id: pare"),
        ("  ui:", "  ux:"),
        ("mine.server", "your.server"),
        ("B: two", "B: three"),
        ('cwd: "{contract}"', "cwd: /tmp"),
        ('mine: "1.0"', 'mine: "1.1"'),
        (DIGEST, OTHER),
        ("control: true", "control: false"),
        ("recheck: always", "recheck: on_change"),
        ("elicitation: {}", "sampling: {}"),
        ("effect: act", "effect: external"),
        ("[/pin,", "["),
        ("x-own", "y-own"),
        ("artifacts: unpinned", "control: false"),
    ],
)
def test_every_pinned_value_is_in_the_digest(tmp_path, old, new):
    contract = load_contract(written(tmp_path, CONTRACT), tmp_path)
    assert old in CONTRACT
    assert load_contract(written(tmp_path, CONTRACT.replace(old, new)), tmp_path).digest != contract.digest


REFUSED = [
    pytest.param("id: pair", "id: pa ir", [("wrong_value", 2, 5)], id="a contract's name"),
    pytest.param("id: pair\n", "", [("missing_key", 1, 1)], id="no id"),
    pytest.param("set@1", "set@2", [("wrong_value", 1, 9)], id="another version"),
    pytest.param("  ui:", '  "u\\u0131":', [("confusable_name", 4, 3)], id="a confusable server id"),
    pytest.param("recheck: always", "recheck: never", [("wrong_value", 12, 14)], id="a recheck"),
    pytest.param("effect: act", "effect: write", [("wrong_value", 16, 17)], id="an unknown effect"),
    pytest.param("effect: act\n", "efect: act\n", [("unknown_key", 16, 9), ("missing_key", 16, 9)], id="a typo"),
    pytest.param("[/pin,", "[pin,", [("wrong_value", 17, 21)], id="a pointer"),
    pytest.param('["{python}", -m, mine.server, "{contract}/data.json"]', "[]", [("wrong_value", 6, 13)], id="no argv"),
    pytest.param('"{python}", ', "python3, ", [("wrong_value", 6, 14)], id="a program to be looked up"),
    pytest.param('"{python}", ', '"{pyton}", ', [("unknown_reference", 6, 14)], id="no such placeholder"),
    pytest.param('A: "{package}"', 'A: "{home}"', [("unknown_reference", 7, 24)], id="a placeholder in env"),
    pytest.param('cwd: "{contract}"', 'cwd: "{tmp}"', [("unknown_reference", 8, 12)], id="a placeholder in cwd"),
    pytest.param('{"{contract}/d', '{"{here}/d', [("unknown_reference", 10, 35)], id="a placeholder in files"),
    pytest.param('cwd: "{contract}"', "cwd: work", [("wrong_value", 8, 12)], id="a relative folder"),
    pytest.param(
        f'      packages: {{mine: "1.0"}}\n      files: {{"{{contract}}/data.json": {DIGEST}}}\n',
        "      packages: {}\n",
        [("missing_key", 5, 5)],
        id="nothing that pins what runs",
    ),
    pytest.param('"{python}", ', "/bin/x, ", [("wrong_value", 9, 7)], id="packages of another program"),
    pytest.param("{B: two", "{B-2: two", [("wrong_value", 7, 13)], id="a variable's name"),
    pytest.param(DIGEST, DIGEST[:-1], [("malformed_digest", 10, 39)], id="a digest too short"),
    pytest.param(DIGEST, DIGEST.upper(), [("malformed_digest", 10, 39)], id="a digest in capitals"),
    pytest.param("      click:", "      klick:", [("wrong_value", 19, 17)], id="a key that is not the name"),
    pytest.param(
        "      click:", '      "cl\\u0456ck":', [("confusable_name", 15, 7), ("wrong_value", 19, 17)], id="homoglyph"
    ),
    pytest.param(
        "      click:", '      "click\\u200b":', [("invisible_character", 15, 7), ("wrong_value", 19, 17)], id="hidden"
    ),
    pytest.param("      click:", '      "cl ick":', [("malformed_name", 15, 7), ("wrong_value", 19, 17)], id="a space"),
    pytest.param("      aim:", "      click:", [("duplicate_key", 23, 7)], id="a tool twice"),
    pytest.param(
        "{type: object, properties: {pin: {type: string}}}",
        "{type: object, properties: {pin: {$ref: https://x.invalid/y}}}",
        [("unresolvable_ref", 20, 24)],
        id="an external ref",
    ),
    pytest.param(
        "outputSchema: {type: object}",
        "outputSchema: {items: {$ref: other.json}}",
        [("unresolvable_ref", 21, 25)],
        id="an external ref in the output",
    ),
    pytest.param(
        "{type: object, properties", "{type: objekt, properties", [("wrong_value", 20, 24)], id="not of an object"
    ),
    pytest.param("outputSchema: {type: object}", "outputSchema: []", [("wrong_value", 21, 25)], id="no schema"),
    pytest.param("{type: string}", "{type: text}", [("wrong_value", 20, 24)], id="an invalid schema"),
    pytest.param(
        ", definition: {name: aim, inputSchema: {type: object}}", "", [("missing_key", 23, 12)], id="no definition"
    ),
    pytest.param(
        "{effect: plan_only}",
        "{effect: plan_only, definition: {name: look, inputSchema: {type: object}}}",
        [("wrong_value", 27, 51)],
        id="two definitions",
    ),
    pytest.param(
        "{look:", "{lok:", [("missing_key", 27, 12), ("unknown_reference", 27, 13)], id="a tool that is not listed"
    ),
    pytest.param("peer.json", "../../peer.json", [("path_escape", 26, 17)], id="out of the root"),
    pytest.param("peer.json", "none.json", [("unreadable", 26, 17)], id="no such file"),
    pytest.param("peer.json", "/etc/hosts", [("wrong_value", 26, 17)], id="an absolute path"),
    pytest.param(
        "    recheck: always", f"    tools_digest: {DIGEST}", [("pin_mismatch", 12, 19)], id="another tools digest"
    ),
]


@promise("H3")
@pytest.mark.parametrize(("old", "new", "expected"), REFUSED)
def test_a_fault_of_a_contract_is_refused_with_its_code_and_place(tmp_path, old, new, expected):
    assert CONTRACT.count(old) >= 1
    assert faults_of(tmp_path, CONTRACT.replace(old, new, 1)) == expected


def test_what_runs_may_be_pinned_by_packages_or_by_files_or_be_said_to_be_open(tmp_path):
    packages, files = 'packages: {mine: "1.0"}', f'files: {{"{{contract}}/data.json": {DIGEST}}}'
    for kept in (packages, files, "artifacts: unpinned"):
        text = CONTRACT.replace(f"      {packages}\n      {files}\n", f"      {kept}\n")
        assert load_contract(written(tmp_path, text), tmp_path).server("ui") is not None


@promise("W9")
def test_an_external_reference_is_refused_when_it_is_pinned_from_a_list_too(tmp_path):
    peer = [PEER[0] | {"outputSchema": {"$ref": "https://x.invalid/y"}}]
    assert faults_of(tmp_path, CONTRACT, peer) == [("unresolvable_ref", 27, 19)]


@promise("W12")
@pytest.mark.parametrize(
    ("peer", "expected"),
    [
        pytest.param(PEER * 2, [("duplicate_tool", 0, 0)], id="a tool twice"),
        pytest.param({"tools": PEER}, [("wrong_value", 1, 1)], id="no array"),
        pytest.param([*PEER, {"name": "x"}], [("wrong_value", 0, 0)], id="no schema"),
        pytest.param([*PEER, {"name": 3, "inputSchema": {}}], [("wrong_value", 0, 0)], id="a name that is none"),
        pytest.param('[\n{"a": 1,\n "a": 2}]', [("duplicate_key", 0, 0)], id="a key twice"),
        pytest.param('[\n {"a" 1}]', [("malformed_call", 2, 7)], id="no JSON"),
        pytest.param("[NaN]", [("non_finite_number", 0, 0)], id="NaN"),
    ],
)
def test_a_recorded_tool_list_is_read_as_strictly_as_a_wire(tmp_path, peer, expected):
    assert faults_of(tmp_path, CONTRACT, peer) == expected


def test_a_list_that_cannot_be_read_is_not_called_another_list(tmp_path):
    stated = CONTRACT.replace("    tools_from", f"    tools_digest: {DIGEST}\n    tools_from")
    assert faults_of(tmp_path, stated) == [("pin_mismatch", 26, 19)]
    assert faults_of(tmp_path, stated, "[") == [("malformed_call", 1, 2)]


def test_a_listed_tool_whose_effect_is_unsaid_is_refused(tmp_path):
    pay = {"name": "pay", "inputSchema": {"type": "object"}}
    assert faults_of(tmp_path, CONTRACT, [*PEER, pay]) == [("missing_key", 27, 12)]


def test_the_pinned_digest_of_a_tool_list_may_be_stated(tmp_path):
    stated = CONTRACT.replace("    tools_from", f"    tools_digest: {tools_digest(PEER)}\n    tools_from")
    stated_contract = load_contract(written(tmp_path, stated), tmp_path)
    assert stated_contract.digest == load_contract(written(tmp_path, CONTRACT), tmp_path).digest


@promise("H3")
def test_faults_of_two_servers_are_all_shown(tmp_path):
    text = CONTRACT.replace("/bin/peer", "peer").replace("{python}", "{pyton}").replace("name: aim", "name: aimed")
    assert faults_of(tmp_path, text) == [
        ("unknown_reference", 6, 14),
        ("wrong_value", 23, 49),
        ("wrong_value", 25, 21),
    ]


def test_a_single_server_contract_checks_its_servers_name_too(tmp_path):
    assert faults_of(tmp_path, legacy().replace("  id: ui", '  id: "u i"')) == [("malformed_name", 4, 3)]


def test_both_kinds_at_once_are_none(tmp_path):
    assert faults_of(tmp_path, CONTRACT + "server: {}\n") == [("wrong_value", 1, 1)]


# --- the edge


def refusal(path: Path, root: Path, max_bytes: int = 1000) -> str:
    with pytest.raises(DocumentError) as caught:
        read(path, root, max_bytes)
    (problem,) = caught.value.problems
    assert problem.hint
    return problem.reason.value


@promise("H3")
def test_a_regular_file_below_the_root_is_read(tmp_path):
    (tmp_path / "a.yaml").write_bytes(b"x" * 1000)
    assert read(tmp_path / "a.yaml", tmp_path, 1000) == b"x" * 1000
    (tmp_path / "empty.yaml").touch()
    assert read(tmp_path / "empty.yaml", tmp_path) == b""
    linked_root = tmp_path.parent / (tmp_path.name + "-link")
    linked_root.symlink_to(tmp_path)
    assert read(linked_root / "a.yaml", linked_root, 1000) == b"x" * 1000


@promise("H3")
def test_what_is_no_such_file_is_refused_and_never_waited_for(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "outside.yaml").write_text("a: 1")
    (root / "inside.yaml").write_text("a: 1")
    (root / "huge.yaml").write_bytes(b"x" * 1001)
    (root / "out.yaml").symlink_to(tmp_path / "outside.yaml")
    (root / "in.yaml").symlink_to(root / "inside.yaml")
    (root / "loop.yaml").symlink_to(root / "loop.yaml")
    (root / "up").symlink_to(tmp_path)
    (root / "folder").mkdir()
    os.mkfifo(root / "fifo.yaml")
    assert refusal(root / "missing.yaml", root) == "unreadable"
    assert refusal(root / "inside.yaml" / "x", root) == "unreadable"
    assert refusal(root / "folder", root) == "unreadable"
    assert refusal(root / "..", root) == "unreadable"
    assert refusal(root / "fifo.yaml", root) == "unreadable"
    assert refusal(root / "huge.yaml", root) == "too_large"
    assert refusal(root / "in.yaml", root) == "unreadable"
    assert refusal(root / "loop.yaml", root) == "unreadable"
    assert refusal(root / "a\0b.yaml", root) == "unreadable"
    assert refusal(root / "out.yaml", root) == "path_escape"
    assert refusal(root / "up" / "outside.yaml", root) == "path_escape"
    assert refusal(root / ".." / "outside.yaml", root) == "path_escape"
    assert refusal(Path("/etc/hosts"), root) == "path_escape"


@promise("H3")
def test_a_folder_that_becomes_a_link_out_of_the_root_is_noticed(tmp_path):
    for place in ("root/a", "outside"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "x.yaml").write_text(place)
    root = tmp_path / "root"
    assert read(root / "a" / "x.yaml", root) == b"root/a"
    (root / "a").rename(root / "b")
    (root / "a").symlink_to(tmp_path / "outside")
    assert refusal(root / "a" / "x.yaml", root) == "path_escape"
    (root / "a").unlink()
    (root / "a").symlink_to(root / "b")
    assert read(root / "a" / "x.yaml", root) == b"root/a"


def test_relative_paths_are_read_from_where_we_are(tmp_path, monkeypatch):
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "x.yaml").write_text(place)
        monkeypatch.chdir(tmp_path / place)
        assert read(Path("x.yaml"), Path(".")) == place.encode()
        assert name_below(Path("x.yaml"), Path(".")) == "x.yaml"


def test_a_refusal_leaves_no_file_open(tmp_path):
    before = len(os.listdir("/dev/fd"))
    for _ in range(20):
        assert refusal(tmp_path / "..", tmp_path) == "unreadable"
    assert len(os.listdir("/dev/fd")) == before


def test_files_are_named_from_the_root(tmp_path):
    assert name_below(tmp_path / "a" / "b.yaml", tmp_path) == "a/b.yaml"
    assert name_below(Path("/etc/hosts"), tmp_path) == "/etc/hosts"


# --- pins


def test_pins_are_read_and_written(tmp_path):
    pins = Pins({"pair": DIGEST, "on": DIGEST, "1.10": OTHER}, {"ui-decision": OTHER})
    path = tmp_path / "pins.yaml"
    path.write_text(pins_text(pins))
    assert load_pins(path, tmp_path) == pins
    path.write_text(pins_text(Pins({}, {})))
    assert load_pins(path, tmp_path) == Pins({}, {})


@promise("H3")
def test_a_malformed_pin_is_refused_with_its_place(tmp_path):
    path = tmp_path / "pins.yaml"
    path.write_text(f"schema: {PINS}\npolicies:\n  a: {DIGEST}\n  b: sha256:12\n  c d: {DIGEST}\nx: 1\n")
    with pytest.raises(DocumentError) as caught:
        load_pins(path, tmp_path)
    assert [(each.reason.value, each.line, each.column) for each in caught.value.problems] == [
        ("malformed_digest", 4, 6),
        ("wrong_value", 5, 3),
        ("unknown_key", 6, 1),
    ]


def test_a_file_is_written_whole_in_place_of_a_link_or_not_at_all(tmp_path):
    other, link = tmp_path / "other", tmp_path / "link"
    other.write_bytes(b"kept")
    link.symlink_to(other)
    write(link, b"new")
    assert (other.read_bytes(), link.read_bytes(), link.is_symlink()) == (b"kept", b"new", False)
    (tmp_path / ".link.draft").symlink_to(other)
    write(link, b"new")
    assert (other.read_bytes(), link.read_bytes(), link.is_symlink()) == (b"kept", b"new", False)
    (tmp_path / ".link.draft").mkdir()
    with pytest.raises(OSError):
        write(link, b"newer")
    assert link.read_bytes() == b"new"


def test_capabilities_are_pinned_as_they_were_declared(tmp_path):
    declared = {"elicitation": {"😀\u2028": ["\U0001d173", "\x85", {"a: b": "- #"}]}}
    pinned = Pinned(
        id="seen",
        server="seen",
        launch=Launch(argv=("{python}", "-m", "seen"), unpinned=True),
        capabilities=declared,
        tools=(),
        said={},
        tools_from="seen.tools.json",
    )
    read_back = load_yaml(contract_text(pinned).encode(), "seen").value
    assert read_back["servers"]["seen"]["capabilities"] == declared
