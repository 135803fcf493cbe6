"""What `pin` refuses, asks and writes, and what `drift` takes for a change."""

import json

import pytest
from cli_bench import command
from marks import promise
from pin_bench import a_root, drifted, file_of, fill_in, pinned, the_server

from assisted_benchmark.contract.strict_yaml import load
from assisted_benchmark.contract.written import check_tools, quoted
from assisted_benchmark.kernel.errors import MisuseError, ServerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.mcp_router.identity import sha256_of

TOOLS = [
    {"name": "b", "inputSchema": {"type": "object", "properties": {"n": {"maximum": 10}}}, "x-unknown": 1},
    {"name": "a", "annotations": {"readOnlyHint": True}, "inputSchema": {"type": "object"}},
]
PAGES = """\
import json, sys
pages = {pages}
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    if request["method"] == "initialize":
        answer = '{{"protocolVersion": "2025-11-25", "capabilities": {{"tools": {{}}}}, "serverInfo": {{"name": "s"}}}}'
    elif request["method"] == "tools/list":
        answer = pages[int(request.get("params", {{}}).get("cursor", "0"))]
    else:
        error = '{{"jsonrpc":"2.0","id":%s,"error":{{"code":-32601,"message":"no"}}}}'
        print(error % json.dumps(request["id"]), flush=True)
        continue
    print('{{"jsonrpc":"2.0","id":%s,"result":%s}}' % (json.dumps(request["id"]), answer), flush=True)
"""


def serving(path, *pages):
    """A server whose tool list has these pages, as raw JSON."""
    path.write_text(PAGES.format(pages=list(pages)))
    return "{python}", "-S", "-E", path


@pytest.fixture
def root(tmp_path):
    return a_root(tmp_path / "root")


@pytest.fixture
def server(root):
    return serving(root / "server.py", json.dumps({"tools": TOOLS}))


@promise("W12")
def test_no_effect_is_guessed_and_the_raw_tools_are_kept_whole(root, server):
    assert pinned(root, "hand", server, "--effect", "b=act") == 0
    assert fill_in(root, "hand", "external") == 1
    hand = the_server(root, "hand")
    assert [(tool.name, tool.effect.value) for tool in hand.tools] == [("a", "external"), ("b", "act")]
    assert sorted((tool.definition.value for tool in hand.tools), key=lambda tool: tool["name"]) == TOOLS[::-1]


def test_a_place_that_is_not_filled_in_is_refused_with_file_and_line(root, server):
    assert pinned(root, "hand", server, "--effect", "b=act") == 0
    code, _, err = command(root, "lint")
    assert code == 2
    line = file_of(root, "hand").read_text().splitlines().index("      a: {effect: FILL_IN}") + 1
    assert f"(missing_key) at contracts/hand.contract.yaml:{line}:19" in err


def test_nothing_is_overwritten_unless_forced_and_what_was_said_of_the_same_tool_stays(root, server):
    assert pinned(root, "hand", server) == 0
    fill_in(root, "hand", "act")
    with pytest.raises(MisuseError):
        pinned(root, "hand", server)
    changed = [{**TOOLS[0], "description": "new"}, TOOLS[1]]
    serving(root / "server.py", json.dumps({"tools": changed}))
    assert pinned(root, "hand", server, "--force") == 0
    assert fill_in(root, "hand") == 1
    assert [tool.effect.value for tool in the_server(root, "hand").tools] == ["act", "observe"]


def test_where_nobody_can_be_asked_nothing_is_started(root, server):
    code, _, err = command(root, "pin", "hand", "--", *server)
    assert (code, file_of(root, "hand").exists()) == (2, False)
    assert "run:     {python} -S -E" in err


@promise("W9")
@pytest.mark.parametrize(
    ("tool", "reason"),
    [
        ({"name": "a", "inputSchema": {"type": "object", "$ref": "https://example.org/x"}}, Reason.UNRESOLVABLE_REF),
        ({"name": "a b", "inputSchema": {"type": "object"}}, Reason.MALFORMED_NAME),
        ({"name": "a", "inputSchema": {"type": "array"}}, Reason.WRONG_VALUE),
    ],
    ids=["reference", "name", "no object"],
)
def test_a_tool_that_cannot_be_pinned_is_refused(tool, reason):
    with pytest.raises(ServerError) as caught:
        check_tools([tool])
    assert caught.value.reason is reason


@promise("W12", "W13")
def test_rewriting_is_no_drift_and_a_value_is(root, server, capsys):
    assert pinned(root, "hand", server) == 0
    fill_in(root, "hand")
    pinned_file = the_server(root, "hand").launch.files
    assert [name for name, _ in pinned_file] == ["{contract}/../server.py"]
    rewritten = [
        '{"nextCursor": "1", "tools": [{"inputSchema": {"type": "object"},'
        ' "annotations": {"readOnlyHint": true}, "name": "a"}]}',
        '{"tools": [{"x-unknown": 1.0, "name": "b",'
        ' "inputSchema": {"properties": {"n": {"maximum": 1e1}}, "type": "object"}}]}',
    ]
    old = the_digest(root)
    serving(root / "server.py", *rewritten)
    code, (row,) = drifted(root, "hand", capsys=capsys)
    assert (code, [each["pointer"] for each in row["changes"]]) == (4, ["/files/{contract}~1..~1server.py"])
    renew(root, old)
    assert drifted(root, "hand", capsys=capsys)[0] == 0
    old = the_digest(root)
    serving(root / "server.py", json.dumps({"tools": TOOLS}).replace("10", "11"))
    renew(root, old)
    code, (row,) = drifted(root, "hand", capsys=capsys)
    change = {"tool": "b", "pointer": "/inputSchema/properties/n/maximum", "before": "10", "after": "11"}
    assert (code, row["changes"]) == (4, [change])


def test_a_server_that_cannot_be_looked_at_is_no_drift(root, server, capsys):
    assert pinned(root, "hand", server) == 0
    fill_in(root, "hand")
    old = the_digest(root)
    (root / "server.py").write_text("raise SystemExit(3)")
    renew(root, old)
    code, (row,) = drifted(root, "hand", capsys=capsys)
    assert (code, row["outcome"]) == (3, "could_not_run")
    file = file_of(root, "hand")
    file.write_text(file.read_text().replace('"{python}"', '"/nowhere/\\e[2J"'))
    code, out, err = command(root, "drift", "hand")
    assert (code, "\x1b" in out + err, "could not be looked at" in out) == (3, False, True), out + err


@pytest.mark.parametrize(
    "text", ["", "yes", "1.10", "a: b", "-x", "sha256:ab", "a:", "\u200b\U0001f600", '"\\', "\x7f"]
)
def test_a_text_is_written_so_that_it_is_read_as_itself(text):
    assert load(f"k: {quoted(text)}\n".encode(), "x").value == {"k": text}


def the_digest(root):
    return the_server(root, "hand").launch.files[0][1]


def renew(root, old):
    """The script's digest put anew by hand, so that the tools alone are compared."""
    file = file_of(root, "hand")
    file.write_text(file.read_text().replace(old, sha256_of((root / "server.py").read_bytes())))
