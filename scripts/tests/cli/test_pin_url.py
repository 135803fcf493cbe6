"""A server at a URL is pinned, driven through the live broker, and compared with what it was."""

import pytest
from http_servers import DO, ERAS, Scripted, SdkServer
from marks import promise
from pin_bench import a_root, drifted, file_of, fill_in, results, the_cases, the_server

from assisted_benchmark.cli import pin
from assisted_benchmark.cli.parser import parser
from assisted_benchmark.contract.document import load_contract
from assisted_benchmark.contract.model import Remote
from assisted_benchmark.kernel.errors import DocumentError, HarnessError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.result import Verdict


@pytest.fixture
def root(tmp_path):
    return a_root(tmp_path / "root")


def pinned(root, name, *flags):
    return pin.command(parser().parse_args(["pin", name, "--root", str(root), "--yes", *flags]))


@promise("W11", "W14", "L14")
@pytest.mark.parametrize("era", ERAS)
def test_a_server_at_a_url_is_pinned_filled_in_and_driven_and_each_call_arrives_once(root, tmp_path, era):
    there = SdkServer(tmp_path, era)
    try:
        assert pinned(root, "there", "--url", there.url) == 0
        assert fill_in(root, "there", "act") == 3
        assert the_server(root, "there").launch == Remote(url=there.url)
        cases = the_cases(root, "there", ("do", {"what": "one"}), ("do", {"what": "two"}))
        done = results(cases, "there")
        assert {key: (each.verdict, each.misses) for key, each in done.items()} == {
            "there/again": (Verdict.PASSED, ()),
        }
        assert all("artifacts: remote" in each.stamps for each in done.values())
    finally:
        there.close()
    # The agent made each of its two calls twice.
    assert (there.noted("posts"), there.noted("did")) == (["do", "do"], ["one", "two"])


@promise("W13")
def test_drift_looks_at_a_server_at_a_url_and_tells_what_changed(root, monkeypatch, capsys):
    monkeypatch.setenv("THE_TOKEN", "s3cret-token")
    with Scripted() as server:
        url = f"http://localhost:{server.port}/mcp"
        assert pinned(root, "there", "--url", url, "--header", "Authorization=THE_TOKEN", "--effect", "do=act") == 0
        shown = capsys.readouterr()
        text = file_of(root, "there").read_text()
        assert the_server(root, "there").launch == Remote(url=url, headers=(("authorization", "THE_TOKEN"),))
        assert "s3cret" not in text + shown.out + shown.err
        assert drifted(root, "there", capsys=capsys)[0] == 0
        server.tools = [DO | {"title": "Do"}]
        code, (row,) = drifted(root, "there", capsys=capsys)
        assert (code, row["outcome"], [each["pointer"] for each in row["changes"]]) == (4, "drift", ["/title"])
        monkeypatch.delenv("THE_TOKEN")
        code, (row,) = drifted(root, "there", capsys=capsys)
        assert (code, row["outcome"], row["reason"]) == (3, "could_not_run", Reason.LAUNCH_FAILED.value)
    assert server.calls == 0


def test_whoever_is_asked_and_does_not_agree_has_asked_nothing(root, monkeypatch, capsys):
    class Person:
        def isatty(self):
            return True

        def readline(self):
            return "n\n"

    monkeypatch.setattr("sys.stdin", Person())
    with Scripted() as server:
        argv = ["pin", "there", "--root", str(root), "--url", f"http://127.0.0.1:{server.port}/"]
        assert pin.command(parser().parse_args(argv)) == 1
    assert server.requests == []
    assert "ask it? [y/N] nothing was started or asked" in capsys.readouterr().err
    assert not file_of(root, "there").exists()


SHA = "ab:" * 31 + "ab"


@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["--", "http://127.0.0.1/"],
        ["--header", "a=B", "--", "python"],
        ["--tls-sha256", SHA, "--", "python"],
        ["--url", "http://127.0.0.1/", "--", "python"],
        ["--url", "http://127.0.0.1/", "--cwd", "/"],
        ["--url", "http://example.org/"],
        ["--url", "https://user:word@example.org/"],
        ["--url", "https://example.org/#part"],
        ["--url", "http://127.0.0.1/", "--tls-sha256", SHA],
        ["--url", "https://127.0.0.1/", "--tls-sha256", "ab"],
        ["--url", "http://127.0.0.1/", "--header", "a"],
        ["--url", "http://127.0.0.1/", "--header", "a=b c"],
        ["--url", "http://127.0.0.1/", "--header", "Mcp-Session-Id=A"],
        ["--url", "http://127.0.0.1/", "--header", "Content-Length=A"],
    ],
)
def test_what_means_no_server_is_refused_and_nothing_is_written(root, flags):
    with pytest.raises(HarnessError) as caught:
        pinned(root, "there", *flags)
    assert caught.value.reason is Reason.MISUSE
    assert not file_of(root, "there").exists()


CONTRACT = """\
schema: projectbuddy/assisted-mcp-server-set@1
id: there
servers:
  there:
{server}
    tools: {{}}
"""


def loaded(root, *lines):
    """The place that a contract with these lines names."""
    file_of(root, "there").write_text(CONTRACT.format(server="\n".join(f"    {each}" for each in lines)))
    (server,) = load_contract(file_of(root, "there"), root).servers
    return server.launch


def test_a_contract_names_a_place_with_its_certificate_and_its_headers(root):
    place = loaded(
        root, "url: https://example.org:8443/mcp?v=1", f"tls_sha256: {'ab' * 32}", "headers_from_env: {x-key: KEY}"
    )
    assert place == Remote(url="https://example.org:8443/mcp?v=1", tls_sha256="ab" * 32, headers=(("x-key", "KEY"),))


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["url: http://example.org/"], (Reason.WRONG_VALUE, 5, 10)),
        (["url: https://a:b@example.org/"], (Reason.WRONG_VALUE, 5, 10)),
        (["url: https://example.org/a#b"], (Reason.WRONG_VALUE, 5, 10)),
        (["url: ftp://example.org/"], (Reason.WRONG_VALUE, 5, 10)),
        (["url: https://example.org:99999/"], (Reason.WRONG_VALUE, 5, 10)),
        (["url: http://localhost/", f"tls_sha256: {'ab' * 32}"], (Reason.WRONG_VALUE, 6, 5)),
        (["url: https://example.org/", "tls_sha256: AB"], (Reason.WRONG_VALUE, 6, 17)),
        (["url: https://example.org/", "headers_from_env: {Host: A}"], (Reason.WRONG_VALUE, 6, 24)),
        (["url: https://example.org/", "headers_from_env: {host: A}"], (Reason.WRONG_VALUE, 6, 24)),
        (["url: https://example.org/", "headers_from_env: {mcp-name: A}"], (Reason.WRONG_VALUE, 6, 24)),
        (["url: https://example.org/", "headers_from_env: {a: B C}"], (Reason.WRONG_VALUE, 6, 27)),
        (["url: https://example.org/", "env: {}"], (Reason.UNKNOWN_KEY, 6, 5)),
        (["url: https://example.org/", "launch: {argv: [/bin/true]}"], (Reason.WRONG_VALUE, 5, 5)),
        (["recheck: always"], (Reason.MISSING_KEY, 5, 5)),
    ],
)
def test_what_is_wrong_with_a_place_is_said_where_it_stands(root, lines, expected):
    with pytest.raises(DocumentError) as caught:
        loaded(root, *lines)
    assert [(each.reason, each.line, each.column) for each in caught.value.problems] == [expected]
