"""Which tools a session serves: what the operator named, and without that only what reads."""

import pytest
from agent_peers import OK, a_tool
from marks import promise

from assisted_benchmark.gateway.tools import ToolRegistration, select_tools
from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.reasons import Reason

TOOLS = (
    a_tool("list", toolset="design"),
    a_tool("propose", toolset="mutate", read_only=False),
    a_tool("prices", toolset="pricing"),
    a_tool("look", toolset="mutate"),
)


def names(selection):
    return [tool.name for tool in select_tools(TOOLS, selection)]


@promise("M1")
@pytest.mark.parametrize("selection", [None, "", " ", ",", " , "])
def test_nothing_named_means_the_sets_that_only_read(selection):
    assert names(selection) == ["list", "prices"]


@promise("M1")
@pytest.mark.parametrize(
    ("selection", "served"),
    [
        ("design,mutate", ["list", "propose", "look"]),
        ("mutate , design,", ["list", "propose", "look"]),
        ("mutate", ["propose", "look"]),
        ("pricing,pricing", ["prices"]),
    ],
)
def test_sets_that_are_named_compose(selection, served):
    assert names(selection) == served


@promise("M1")
@pytest.mark.parametrize(
    ("selection", "hint"), [("mutat", "did you mean `mutate`?"), ("xyz", "the toolsets are design, mutate, pricing")]
)
def test_an_unknown_set_is_refused_and_the_near_one_named(selection, hint):
    with pytest.raises(MisuseError) as caught:
        select_tools(TOOLS, f"design,{selection}")
    assert (caught.value.reason, caught.value.detail) == (
        Reason.MISUSE,
        f"there is no toolset `{selection}`; {hint}",
    )


def test_two_tools_of_one_name_are_refused_even_if_one_is_not_served():
    with pytest.raises(MisuseError) as caught:
        select_tools([*TOOLS, a_tool("list", toolset="other")], "design")
    assert caught.value.reason is Reason.DUPLICATE_TOOL


@pytest.mark.parametrize("annotations", [None, {}, {"readOnlyHint": "true"}, {"readOnlyHint": 1}, []])
def test_a_tool_that_does_not_say_that_it_only_reads_does_not(annotations):
    tool = ToolRegistration({"name": "x", "inputSchema": {}, "annotations": annotations}, "odd", lambda call: OK)
    assert not tool.read_only
    assert select_tools([tool]) == ()
