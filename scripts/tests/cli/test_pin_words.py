"""What is said to `pin` and `drift`: real servers of installed packages, words that mean nothing, and consent."""

import pytest
from marks import promise
from pin_bench import a_root, drifted, file_of, fill_in, pinned, the_server

from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.reasons import Reason


@pytest.fixture
def root(tmp_path):
    return a_root(tmp_path / "root")


def refused(*arguments):
    with pytest.raises(MisuseError) as caught:
        pinned(*arguments)
    return caught.value.reason


@promise("W11", "W13")
@pytest.mark.parametrize(
    ("module", "distribution", "tools"),
    [("mcp_server_time", "mcp-server-time", 2), ("mcp_server_git", "mcp-server-git", 12)],
)
def test_a_real_server_is_pinned_with_its_packages_and_another_version_is_drift(
    root, module, distribution, tools, capsys
):
    assert pinned(root, "real", ["{python}", "-P", "-m", module], "--env", "TZ=UTC") == 0
    assert fill_in(root, "real") == tools
    packages = dict(the_server(root, "real").launch.packages)
    assert distribution in packages
    assert drifted(root, "real", capsys=capsys)[0] == 0
    file = file_of(root, "real")
    file.write_text(file.read_text().replace(f'{distribution}: "{packages[distribution]}"', f'{distribution}: "1.0.0"'))
    code, (row,) = drifted(root, file, capsys=capsys)
    change = {"pointer": f"/packages/{distribution}", "before": "1.0.0", "after": packages[distribution]}
    assert (code, [{key: each[key] for key in change} for each in row["changes"]]) == (4, [change])


@pytest.mark.parametrize(
    "flags",
    [
        ("--env", "1=2"),
        ("--env", "NOT_SET_ANYWHERE"),
        ("--effect", "get_current_time"),
        ("--effect", "get_current_time=perhaps"),
        ("--effect", "no_such_tool=observe"),
        ("--capability", "elicitation=[]"),
        ("--file", "not-there"),
    ],
)
def test_what_means_nothing_is_refused_and_nothing_is_written(root, flags):
    assert refused(root, "real", ["{python}", "-P", "-m", "mcp_server_time"], *flags) is Reason.MISUSE
    assert not file_of(root, "real").exists()


def test_a_program_or_contract_that_is_not_there_is_said(root, capsys):
    assert refused(root, "real", ["no-such-program-anywhere"]) is Reason.MISUSE
    assert refused(root, "Real", ["{python}"]) is Reason.MISUSE
    with pytest.raises(MisuseError):
        drifted(root, "rael", capsys=capsys)
