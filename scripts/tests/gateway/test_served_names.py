"""What tools are called before an agent: the plain name where it can be read in one way, else one with a digest."""

import pytest
from marks import promise

from assisted_benchmark.gateway import names
from assisted_benchmark.gateway.names import LONGEST, Place, named, served_name
from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.reasons import Reason


@promise("W15")
@pytest.mark.parametrize(
    ("server", "tool", "name"),
    [
        ("lba", "get_benchmark_series", "lba__get_benchmark_series"),
        ("synthetic-ui", "click_target", "synthetic-ui__click_target"),
        ("s" * 31, "t" * 31, "s" * 31 + "__" + "t" * 31),
    ],
)
def test_a_name_of_plain_parts_is_both_parts(server, tool, name):
    assert served_name(Place(server, tool)) == name


@promise("W15")
@pytest.mark.parametrize(
    ("server", "tool", "begins"),
    [
        ("a__b", "c", "a_b__c__"),
        ("a", "b__c", "a__b_c__"),
        ("a_", "b", "a__b__"),
        ("a", "_b", "a__b__"),
        ("git", "status/short", "git__status_short__"),
        ("äpfel", "übel", "pfel__bel__"),
        ("世界", "世界", "x__x__"),
        ("", "", "x__x__"),
        ("\ud800", "b", "x__b__"),
        ("s" * 32, "t" * 31, "s" * 15 + "__" + "t" * 29 + "__"),
    ],
)
def test_any_other_name_ends_in_a_digest_of_both_parts(server, tool, begins):
    name = served_name(Place(server, tool))
    digest = name.removeprefix(begins)
    assert (len(digest), set(digest) <= set("0123456789abcdef"), len(name) <= LONGEST) == (16, True, True)


@promise("W15")
def test_names_that_would_be_joined_to_the_same_are_two():
    places = [Place("a__b", "c"), Place("a", "b__c"), Place("a_", "b__c"), Place("a", "__b__c")]
    assert list(named(places).values()) == places


def test_the_spelling_of_a_digest_name_is_for_good():
    assert served_name(Place("a__b", "c")) == "a_b__c__eed0dd4bfcb4dcbc"


@promise("W15")
def test_two_tools_that_would_have_one_name_are_not_served(monkeypatch):
    monkeypatch.setattr(names, "digest_of", lambda kind, *parts: "sha256:" + "0" * 64)
    with pytest.raises(MisuseError) as caught:
        named([Place("a_", "b"), Place("a", "_b")])
    assert (caught.value.reason, caught.value.detail) == (
        Reason.DUPLICATE_TOOL,
        "`b` of `a_` and `_b` of `a` would both be served as `a__b__0000000000000000`; rename a server",
    )
