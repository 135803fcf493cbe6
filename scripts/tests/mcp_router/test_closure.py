"""A launch's closure: every way to code is pinned or hashed, or the contract says that it is open."""

import shutil
import sys

import pytest
from attrs import evolve
from marks import promise

from assisted_benchmark.contract.model import Launch
from assisted_benchmark.kernel.errors import ServerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.mcp_router import closure, identity, launch
from assisted_benchmark.mcp_router.closure import is_pinned_module, modules_in
from assisted_benchmark.mcp_router.identity import Artifacts, sha256_of

CAT = shutil.which("cat")
SERVER = "{contract}/server.py"
FILES = ((SERVER, sha256_of(b"")),)
OURS = (("assisted-benchmark", "self"),)
OWN_SERVER = ("{python}", "-S", "-m", "assisted_benchmark.workloads.synthetic_ui")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "server.py").write_text("")
    (tmp_path / "lib" / "package").mkdir(parents=True)
    (tmp_path / "lib" / "helper.py").write_text("WHO = 1\n")
    (tmp_path / "lib" / "package" / "deep.py").write_text("WHO = 1\n")
    return tmp_path


def resolved(template, folder):
    return launch.resolve(template, folder, Artifacts())


def refusal(template, folder):
    with pytest.raises(ServerError) as caught:
        resolved(template, folder)
    return caught.value.reason


def path(value):
    return (("PYTHONPATH", value),)


OPEN = {
    "module in a named folder": Launch(argv=("{python}", "-m", "server"), cwd="{contract}", files=FILES),
    "script that is not declared": Launch(argv=("{python}", "{contract}/other.py"), files=FILES),
    "folder as a script": Launch(argv=("{python}", "{contract}"), files=FILES),
    "code": Launch(argv=("{python}", "-c", "import server"), files=FILES),
    "code behind options": Launch(argv=("{python}", "-S", "-Bc", "import server"), files=FILES),
    "standard input": Launch(argv=("{python}", "-", SERVER), files=FILES),
    "relative search": Launch(argv=("{python}", SERVER), env=path("lib"), cwd="{contract}", files=FILES),
    "working folder searched": Launch(argv=("{python}", SERVER), env=path("/lib:"), files=FILES),
    "another home": Launch(argv=("{python}", SERVER), env=(("PYTHONHOME", "/lib"),), files=FILES),
    "preloaded": Launch(argv=(CAT,), env=(("LD_PRELOAD", "/lib/x.so"),)),
    "search of another program": Launch(argv=(CAT,), env=path("{contract}/lib")),
    "argument of another program": Launch(argv=(CAT, "{contract}/server.py")),
    "option of another program": Launch(argv=(CAT, "-u", SERVER), files=FILES),
    "module of no package": Launch(argv=("{python}", "-m", "pytest"), packages=OURS),
    "module named as a folder above": Launch(argv=("{python}", "-m", "lib"), packages=OURS),
}


@promise("W10")
@pytest.mark.parametrize("template", OPEN.values(), ids=OPEN)
def test_a_way_to_code_that_nothing_pins_is_refused_unless_the_contract_says_so(template, folder):
    assert refusal(template, folder) is Reason.LAUNCH_FAILED
    said = evolve(template, unpinned=True)
    assert resolved(said, folder).changed() == ()
    assert launch.stamps(said) == ("artifacts: unpinned",)


CLOSED = {
    "declared script": Launch(argv=("{python}", "-S", SERVER, "-c", "any"), cwd="{contract}", files=FILES),
    "module of a safe path": Launch(argv=("{python}", "-SP", "-m", "json.tool"), cwd="{contract}", files=FILES),
    "own module": Launch(argv=OWN_SERVER, env=path("{package}"), packages=OURS),
    "module that is hashed": Launch(argv=("{python}", "-m", "helper"), env=path("{contract}/lib"), packages=OURS),
    "package that is hashed": Launch(
        argv=("{python}", "-m", "package.deep"), env=path("{contract}/lib"), packages=OURS
    ),
    "search that is ignored": Launch(argv=("{python}", "-E", "-S", SERVER), env=path("lib"), files=FILES),
    "program alone": Launch(argv=(CAT,)),
    "program of a declared script": Launch(argv=(CAT, SERVER, "-u"), files=FILES),
    "module without a name": Launch(argv=("{python}", "-m"), packages=OURS),
}


@promise("W10")
@pytest.mark.parametrize("template", CLOSED.values(), ids=CLOSED)
def test_what_is_pinned_or_hashed_passes_as_closed(template, folder):
    assert resolved(template, folder).changed() == ()


def test_another_program_with_a_script_is_stamped_for_nobody_knows_what_it_imports():
    assert launch.stamps(Launch(argv=(CAT, SERVER), files=FILES)) == ("imports: unpinned",)
    assert launch.stamps(Launch(argv=(CAT,))) == ()


@promise("W10", "W11")
@pytest.mark.parametrize("name", ["helper.py", "package/deep.py"])
def test_a_module_where_pythonpath_leads_is_another_launch_once_it_is_replaced(folder, name):
    template = Launch(argv=("{python}", SERVER), env=path("{contract}/lib"), files=FILES)
    before = resolved(template, folder)
    (folder / "lib" / name).write_text("WHO = 2, replaced\n")
    assert before.changed() == (str(folder / "lib" / name),)
    assert resolved(template, folder).digest != before.digest


@promise("W10")
def test_a_module_that_is_added_below_pythonpath_is_another_launch(folder):
    template = Launch(argv=("{python}", SERVER), env=path("{contract}/lib"), files=FILES)
    before = resolved(template, folder)
    (folder / "lib" / "package" / "json.py").write_text("")
    (folder / "lib" / "package" / "__pycache__").mkdir()
    (folder / "lib" / "package" / "__pycache__" / "deep.pyc").write_text("")
    assert before.changed() == (str(folder / "lib" / "package" / "json.py"),)
    assert resolved(template, folder).digest != before.digest


@promise("W10")
@pytest.mark.parametrize("limit", ["MAX_ENTRIES", "MAX_BYTES"])
def test_more_than_can_be_hashed_is_open(folder, monkeypatch, limit):
    template = Launch(argv=("{python}", SERVER), env=path("{contract}/lib"), files=FILES)
    before = resolved(template, folder)
    monkeypatch.setattr(closure, limit, 2)
    assert before.changed() == (f"{folder}/lib/package/deep.py",)  # the other one is found by its name as well
    assert refusal(template, folder) is Reason.LAUNCH_FAILED
    assert resolved(evolve(template, unpinned=True), folder).searched == ()


def test_an_archive_is_hashed_as_it_is(folder):
    (folder / "lib.zip").write_bytes(b"PK")
    assert modules_in(f"{folder}/lib.zip") == (f"{folder}/lib.zip",)
    assert modules_in(f"{folder}/nothing") == ()


def test_beside_our_own_package_only_it_is_hashed_and_only_for_its_own_servers(folder, monkeypatch):
    own = resolved(Launch(argv=OWN_SERVER, env=path("{package}"), packages=OURS), folder)
    assert own.searched == ()
    assert str(identity.PACKAGE / "mcp_router" / "launch.py") in {each.path for each in own.watched}
    monkeypatch.setattr(closure, "MAX_ENTRIES", 0)
    for template in (
        Launch(argv=("{python}", SERVER), env=path("{package}"), files=FILES, packages=OURS),
        Launch(argv=OWN_SERVER, env=path("{package}"), files=FILES),
    ):
        assert refusal(template, folder) is Reason.LAUNCH_FAILED


def test_a_module_lies_where_the_interpreter_finds_it(monkeypatch):
    monkeypatch.setattr(sys, "path", ["", "/site"])
    assert is_pinned_module("json.tool", (), ())
    assert is_pinned_module("a.b", ("/site/a/b.py",), ())
    assert is_pinned_module("a", ("/lib/a.py",), ("/lib",))
    assert not is_pinned_module("a", ("/other/a.py", "/site/b/a.py"), ())


def test_an_open_launch_is_told_of_without_starting_it_and_only_if_nothing_else_is_wrong(folder):
    template = Launch(argv=("{python}", "-c", "import server", "{contract}"), files=FILES)
    [(where, error)] = launch.faults(template, folder, Artifacts())
    assert (where, error.reason) == (("argv",), Reason.LAUNCH_FAILED)
    assert list(launch.faults(evolve(template, unpinned=True), folder, Artifacts())) == []
    (folder / "server.py").write_text("other\n")
    assert [where for where, _ in launch.faults(template, folder, Artifacts())] == [("files", SERVER)]
