"""Laws of the names that tools are served under: no two tools share one, and every client can take it."""

import re

from hypothesis import given
from hypothesis import strategies as st
from marks import promise

from assisted_benchmark.gateway.names import Place, named, served_name

# Mostly what collides: short parts of letters, hyphens and underscores; and some of anything.
PARTS = st.text("ab_-", max_size=5) | st.text("a_", min_size=20, max_size=70) | st.text(max_size=5)
PLACES = st.builds(Place, PARTS, PARTS)


@promise("W15")
@given(st.lists(PLACES, unique=True, max_size=30))
def test_tools_and_their_names_are_one_to_one(places):
    table = named(places)
    assert len(table) == len(places)
    assert {served_name(place): place for place in places} == table


@promise("W15")
@given(PLACES)
def test_every_name_is_one_that_clients_take(place):
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", served_name(place))


@promise("W15")
@given(PLACES)
def test_a_name_with_one_joint_is_both_parts(place):
    name = served_name(place)
    if name.count("__") == 1:
        assert tuple(name.split("__")) == place
    else:
        assert name != "__".join(place)
