"""Folders that are pinned where they stand: what their digest covers, what is refused, and what is noticed later."""

import os
import shutil
from pathlib import Path

import pytest
from attrs import evolve
from marks import promise
from router_bench import HAND, a_contract, claimed, soon

from assisted_benchmark.contract.model import Launch
from assisted_benchmark.kernel.canonical import canonical_bytes
from assisted_benchmark.kernel.clock import SECOND, SystemClock
from assisted_benchmark.kernel.digest import digest_of
from assisted_benchmark.kernel.errors import ServerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.live_policy.ports import Replied, Unavailable
from assisted_benchmark.mcp_router import trees
from assisted_benchmark.mcp_router.identity import Artifacts, sha256_of
from assisted_benchmark.mcp_router.launch import faults, resolve
from assisted_benchmark.mcp_router.router import Router
from assisted_benchmark.mcp_router.trees import tree_of


@pytest.fixture
def tree(tmp_path):
    folder = tmp_path / "installed"
    (folder / "lib" / "__pycache__").mkdir(parents=True)
    (folder / "lib" / "code.js").write_text("1")
    (folder / "lib" / "__pycache__" / "code.pyc").write_text("cache")
    (folder / "main.js").symlink_to("lib/code.js")
    (folder / "empty").mkdir()
    return folder


def digest(folder):
    return tree_of(str(folder), Artifacts()).digest


@promise("W10")
def test_a_folders_digest_is_over_the_paths_bytes_and_links_below_it(tree):
    held = {"lib/code.js": sha256_of(b"1"), "main.js": "-> lib/code.js"}
    assert digest(tree) == digest_of("tree@1", canonical_bytes(held))


def another_link(tree):
    (tree / "main.js").unlink()
    (tree / "main.js").symlink_to("./lib/code.js")


@promise("W10")
@pytest.mark.parametrize(
    ("change", "noticed"),
    [
        (lambda tree: (tree / "lib" / "code.js").write_text("2"), "lib/code.js"),
        (lambda tree: (tree / "empty" / "more.js").write_text(""), "empty/more.js"),
        (lambda tree: (tree / "lib" / "code.js").rename(tree / "code.js"), "code.js"),
        (another_link, "main.js"),
        (shutil.rmtree, ""),
    ],
    ids=["bytes", "added", "moved", "link", "gone"],
)
def test_any_change_below_is_noticed_by_name(tree, change, noticed):
    before = tree_of(str(tree), Artifacts())
    assert before.changed() == ()
    change(tree)
    assert os.path.normpath(tree / noticed) in {os.path.normpath(each) for each in before.changed()}


def test_bytecode_caches_do_not_count(tree):
    before = tree_of(str(tree), Artifacts())
    (tree / "lib" / "__pycache__" / "more.pyc").write_text("cache")
    assert before.changed() == ()
    assert digest(tree) == before.digest


def test_what_cannot_be_pinned_whole_is_refused(tree, monkeypatch):
    def refusal():
        with pytest.raises(ServerError) as caught:
            digest(tree)
        return caught.value.reason

    for leads in ("/etc/passwd", "..", "../installed-elsewhere", "nowhere/../../x"):
        (tree / "out").symlink_to(leads)
        assert refusal() is Reason.LAUNCH_FAILED
        (tree / "out").unlink()
    os.mkfifo(tree / "pipe")
    assert refusal() is Reason.LAUNCH_FAILED
    (tree / "pipe").unlink()
    monkeypatch.setattr(trees, "MAX_ENTRIES", 1)
    assert refusal() is Reason.LAUNCH_FAILED


def test_a_name_that_no_json_can_hold_is_refused(tree, monkeypatch):
    # Not every file system takes such a name, so only a link is said to lead to one.
    real = os.readlink
    monkeypatch.setattr(os, "readlink", lambda path: os.fsdecode(b"\xff") if path.endswith("main.js") else real(path))
    with pytest.raises(ServerError) as caught:
        digest(tree)
    assert caught.value.reason is Reason.LAUNCH_FAILED


def a_template(tree, script, **more):
    return Launch(argv=(shutil.which("cat"), str(script)), in_place=((str(tree), digest(tree)),), **more)


@promise("W10")
def test_a_script_in_a_pinned_folder_is_closed_and_one_beside_it_is_not(tree):
    template = a_template(tree, tree / "lib" / "code.js")
    found = resolve(template, tree, Artifacts())
    assert [each.path for each in found.trees] == [str(tree)]
    assert str(tree / "lib" / "code.js") in {each.path for each in found.files}
    for outside in (tree / ".." / "beside.js", tree, f"{tree}-not/x.js"):
        with pytest.raises(ServerError) as caught:
            resolve(evolve(template, argv=(template.argv[0], str(outside))), tree, Artifacts())
        assert caught.value.reason is Reason.LAUNCH_FAILED
    program = str(Path(shutil.which("cat")).resolve())
    one_file = ((program, sha256_of(Path(program).read_bytes())),)
    assert program in {
        each.path for each in resolve(Launch(argv=(program,), in_place=one_file), tree, Artifacts()).watched
    }


@promise("W10")
def test_a_folder_or_program_that_is_not_the_pinned_one_is_drift_and_lint_says_where(tree):
    template = a_template(tree, tree / "lib" / "code.js")
    assert list(faults(template, tree, Artifacts())) == []
    before = resolve(template, tree, Artifacts())
    (tree / "lib" / "code.js").write_text("2")
    assert before.changed() == (str(tree / "lib" / "code.js"),)
    with pytest.raises(ServerError) as caught:
        resolve(template, tree, Artifacts())
    assert caught.value.reason is Reason.ARTIFACT_DRIFT
    ((where, error),) = faults(template, tree, Artifacts())
    assert (where, error.reason) == (("in_place", str(tree)), Reason.ARTIFACT_DRIFT)
    renewed = evolve(template, in_place=((str(tree), digest(tree)),))
    assert resolve(renewed, tree, Artifacts()).digest != before.digest


@promise("W10")
def test_a_server_runs_from_its_pinned_folder_and_is_not_restarted_from_another_one(launcher, tmp_path):
    folder = tmp_path / "server"
    folder.mkdir()
    script = folder / "server.py"
    script.write_text(HAND.read_text())
    pinned = ((str(folder), digest(folder)),)
    launch = Launch(argv=("{python}", "-S", "-E", "-B", str(script), str(tmp_path)), in_place=pinned)
    router = Router(a_contract(hand=launch), tmp_path, SystemClock(), launcher, grace_ns=SECOND // 4)
    assert router.observe("hand", fresh=False, deadline=soon()).drift == ()
    reply = router.send(claimed("hello"), gate=lambda: True, deadline=soon())
    assert isinstance(reply, Replied)
    (folder / "json.py").write_text("")
    seen = router.observe("hand", fresh=True, deadline=soon())
    assert isinstance(seen, Unavailable)
    assert seen.reason is Reason.ARTIFACT_DRIFT
    assert router.calls == {"hand": 1}
    router.close()
