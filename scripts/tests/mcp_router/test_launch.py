"""A launch template, resolved on this machine: what runs, and what its digest covers."""

import base64
import hashlib
import os
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest
from attrs import evolve
from marks import promise
from router_bench import a_launch, a_script

from assisted_benchmark.contract.model import Launch
from assisted_benchmark.kernel.errors import ServerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.mcp_router import identity, templates
from assisted_benchmark.mcp_router.identity import Artifacts, sha256_of
from assisted_benchmark.mcp_router.launch import resolve, stamps

CAT = shutil.which("cat")


def resolved(template, folder=Path("/nowhere")):
    return resolve(template, folder, Artifacts())


def refusal(template, folder=Path("/nowhere")):
    with pytest.raises(ServerError) as caught:
        resolved(template, folder)
    return caught.value.reason


def open_python(*argv, **more):
    return Launch(argv=("{python}", *argv), unpinned=True, **more)


@promise("W10")
def test_placeholders_stand_for_the_interpreter_the_contracts_folder_and_our_package(tmp_path):
    found = resolved(
        open_python("{contract}/x", env=(("WHERE", "{package}/a"), ("JSON", '{"a":{}}')), cwd="{contract}"), tmp_path
    )
    assert found.argv == (sys.executable, f"{tmp_path}/x")
    assert dict(found.env) == {"WHERE": f"{identity.PACKAGE.parent}/a", "JSON": '{"a":{}}'}
    assert found.cwd == str(tmp_path)


def test_our_package_is_named_by_its_folder_where_the_interpreter_would_find_it_by_itself_as_well(monkeypatch):
    site = sysconfig.get_path("purelib")
    monkeypatch.setattr(templates, "PACKAGE", Path(site) / "assisted_benchmark")
    assert resolved(open_python(env=(("PYTHONPATH", "{package}"),))).env == (("PYTHONPATH", site),)


@promise("W10")
def test_what_an_interpreter_runs_by_itself_is_watched_unless_its_first_option_forbids_that():
    site = sysconfig.get_path("purelib")
    pth = next(os.path.join(site, name) for name in os.listdir(site) if name.endswith(".pth"))
    for argv, runs in (((), True), (("-S", "-m", "x"), False), (("-E", "-S"), True), (("-m", "x", "-S"), True)):
        found = resolved(open_python(*argv))
        assert (pth in found.found, any(each.path == pth for each in found.files)) == (runs, runs)


@promise("W10")
def test_the_program_keeps_its_own_path_and_its_links_are_recorded(tmp_path):
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to(CAT)
    found = resolved(Launch(argv=(f"{tmp_path}/one",)))
    assert found.argv == (f"{tmp_path}/one",)
    assert found.links == (f"{tmp_path}/one", f"{tmp_path}/two", CAT, *_real(CAT))
    assert found.executable.path == os.path.realpath(CAT)
    assert found.executable.digest == sha256_of(Path(CAT).read_bytes())


def _real(path):
    return (os.path.realpath(path),) if os.path.realpath(path) != path else ()


@promise("W10")
def test_a_link_that_leads_elsewhere_is_another_launch_even_to_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        shutil.copy(CAT, tmp_path / name)
    link = tmp_path / "link"
    link.symlink_to("a")
    before = resolved(Launch(argv=(str(link),)))
    assert before.changed() == ()
    link.unlink()
    link.symlink_to("b")
    assert before.changed() == (str(link),)
    assert resolved(Launch(argv=(str(link),))).digest != before.digest


@promise("W11")
@pytest.mark.parametrize(
    "other",
    [
        {"argv": ("{python}", "other")},
        {"env": (("A", "1"),)},
        {"env": (("B", "2"),)},
        {"env": ()},
        {"cwd": "/"},
        {"control": True},
    ],
    ids=["argument", "value", "name", "fewer", "cwd", "control"],
)
def test_the_digest_covers_everything_that_is_launched(other):
    template = open_python("one", env=(("A", "2"),))
    assert resolved(template).digest == resolved(template).digest
    assert resolved(evolve(template, **other)).digest != resolved(template).digest


@promise("W10")
def test_the_digest_covers_programs_that_are_named_by_their_path(tmp_path):
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    template = open_python(env=(("HELPER", str(program)),))
    unmarked = resolved(template)
    assert str(program) not in {each.path for each in unmarked.watched}
    program.chmod(0o700)
    marked = resolved(template)
    program.write_text("#!/bin/sh\ntrue\n")
    assert len({unmarked.digest, marked.digest, resolved(template).digest}) == 3
    assert marked.changed() == (str(program),)


@promise("W10")
def test_what_lies_where_python_looks_first_is_part_of_the_launch(tmp_path):
    template = open_python(env=(("PYTHONPATH", f"{tmp_path}:/not/there"),))
    before = resolved(template)
    (tmp_path / "json.py").write_text("")
    assert before.changed() == (f"{tmp_path}/json.py",)
    assert resolved(template).digest != before.digest


@pytest.mark.parametrize(
    "template",
    [
        Launch(argv=("cat",)),
        Launch(argv=("./cat",)),
        Launch(argv=("/not/there",)),
        Launch(argv=("/",)),
        Launch(argv=("{contract}/plain",)),
        Launch(argv=("{contract}/script",)),
        Launch(argv=("{contract}/round",)),
        Launch(argv=("{contract}/pipe",)),
        open_python("{pyhton}"),
        open_python("a\0b"),
        open_python(env=(("A=B", "1"),)),
        open_python(env=(("", "1"),)),
        open_python(cwd="here"),
        Launch(argv=("{python}",)),
        Launch(argv=(CAT,), packages=(("attrs", "1"),)),
        Launch(argv=("{python}",), files=(("missing.py", sha256_of(b"")),)),
        Launch(argv=("{python}",), packages=(("no-such-package", "1"),)),
    ],
    ids=[
        "searched",
        "relative",
        "missing",
        "folder",
        "not executable",
        "script",
        "endless links",
        "pipe",
        "placeholder",
        "nul",
        "equals sign in a name",
        "empty name",
        "relative folder",
        "nothing pinned",
        "packages without python",
        "missing file",
        "missing package",
    ],
)
@promise("W10")
def test_what_cannot_be_started_as_it_stands_is_refused(template, tmp_path):
    shutil.copyfile(CAT, tmp_path / "plain")
    (tmp_path / "script").write_text("#!/bin/sh\n")
    (tmp_path / "script").chmod(0o700)
    (tmp_path / "round").symlink_to("round")
    os.mkfifo(tmp_path / "pipe", 0o700)
    assert refusal(template, tmp_path) is Reason.LAUNCH_FAILED


@promise("W10")
def test_a_file_that_is_not_the_pinned_one_is_drift(tmp_path):
    script = a_script(tmp_path)
    template = a_launch(tmp_path, script=script)
    assert resolved(template).copied[0].path == str(script)
    script.write_text("pass\n")
    assert refusal(template) is Reason.ARTIFACT_DRIFT


def test_a_relative_file_is_the_contract_folders(tmp_path):
    script = a_script(tmp_path)
    template = Launch(argv=("{python}", "{contract}/server.py"), files=(("server.py", sha256_of(script.read_bytes())),))
    assert resolved(template, tmp_path).copied[0].path == str(script)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Two distributions, one of which needs the other, and things that are not there."""
    _install(tmp_path, "thing", "Other_Thing>=1", "absent; sys_platform == 'none'", "tool; extra == 'x'", "?")
    _install(tmp_path, "other_thing")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def _install(folder, name, *needs):
    (folder / f"{name}.py").write_text("value = 1\n")
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    head = ("Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0", *(f"Requires-Dist: {need}" for need in needs))
    (info / "METADATA").write_text("\n".join(head) + "\n")
    digest = base64.urlsafe_b64encode(hashlib.sha256(b"value = 1\n").digest()).rstrip(b"=").decode()
    files = (
        f"{name}.py,sha256={digest},10",
        f"{info.name}/METADATA,,",
        f"{info.name}/RECORD,,",
        f"__pycache__/{name}.pyc,,",
    )
    (info / "RECORD").write_text("\n".join(files) + "\n")


BOTH = (("other-thing", "1.0"), ("thing", "1.0"))


@promise("W10")
def test_a_packages_files_are_in_the_closure(installed):
    found = resolved(Launch(argv=("{python}",), packages=BOTH))
    ours = {Path(each.path).name for each in found.watched if each.path.startswith(str(installed))}
    assert ours == {"thing.py", "other_thing.py", "METADATA", "RECORD"}


@promise("W10")
def test_a_package_of_another_version_is_drift(installed):
    template = Launch(argv=("{python}",), packages=(("other-thing", "1.1"),))
    assert refusal(template) is Reason.ARTIFACT_DRIFT


@promise("W10")
def test_a_package_that_was_edited_after_it_was_installed_is_drift(installed):
    (installed / "thing.py").write_text("value = 2\n")
    assert refusal(Launch(argv=("{python}",), packages=BOTH)) is Reason.ARTIFACT_DRIFT


@promise("W10")
def test_an_open_closure_is_refused_unless_the_contract_says_so(installed):
    template = Launch(argv=("{python}",), packages=(("thing", "1.0"),))
    assert refusal(template) is Reason.LAUNCH_FAILED
    assert resolved(evolve(template, unpinned=True)).changed() == ()
    assert stamps(template) == ()
    assert stamps(evolve(template, unpinned=True)) == ("artifacts: unpinned",)


FILES = (("server.py", "sha256:" + "0" * 64),)
ELSEWHERE = (("PYTHONPATH", "/elsewhere"),)


@pytest.mark.parametrize(
    ("argv", "more", "stamped"),
    [
        (("{python}", "server.py"), {}, True),
        (("{python}", "-E", "-u", "server.py", "-S"), {}, True),
        (("{python}", "-S", "server.py"), {}, False),
        (("{python}", "-u", "-IS", "server.py"), {"env": ELSEWHERE}, False),
        (("{python}", "-S", "server.py"), {"env": ELSEWHERE}, True),
        (("{python}", "-S", "-E", "server.py"), {"env": ELSEWHERE}, False),
        (("{python}", "server.py"), {"packages": (("thing", "1.0"),)}, False),
        (("/bin/server",), {}, False),
    ],
)
def test_a_server_of_files_alone_that_could_import_from_elsewhere_is_stamped(argv, more, stamped):
    template = Launch(argv=argv, files=FILES, **more)
    assert stamps(template) == (("imports: unpinned",) if stamped else ())
    assert stamps(evolve(template, unpinned=True)) == ("artifacts: unpinned",)


def test_a_package_without_a_list_of_its_files_is_refused(installed):
    (installed / "thing-1.0.dist-info" / "RECORD").unlink()
    assert refusal(Launch(argv=("{python}",), packages=BOTH)) is Reason.LAUNCH_FAILED


def test_our_own_package_is_its_folder_and_has_no_version():
    found = resolved(Launch(argv=("{python}",), packages=(("assisted-benchmark", "self"),)))
    assert str(identity.PACKAGE / "mcp_router" / "launch.py") in {each.path for each in found.watched}
    assert refusal(Launch(argv=("{python}",), packages=(("assisted-benchmark", "0"),))) is Reason.ARTIFACT_DRIFT


def test_a_launch_that_did_not_change_is_not_resolved_again(launcher, tmp_path):
    script = a_script(tmp_path)
    template = a_launch(tmp_path, script=script)
    first = launcher.resolve(template, tmp_path)
    assert launcher.resolve(template, tmp_path) is first
    script.write_text("pass\n")
    with pytest.raises(ServerError):
        launcher.resolve(template, tmp_path)
