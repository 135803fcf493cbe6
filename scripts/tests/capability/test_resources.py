"""Addresses of resources: one spelling each, of exact instances and artifacts, and of nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from marks import promise

from assisted_benchmark.capability.resources import ArtifactAddress, InstanceAddress, read_address, templates, written


@promise("C29")
def test_an_instance_and_an_artifact_have_an_address():
    assert written("pulp-control", InstanceAddress("one")) == "pulp-control://instance/one"
    assert written("lamp", ArtifactAddress("a/b", "x y")) == "lamp://artifact/a%2Fb/x%20y"
    assert read_address("pulp-control", "pulp-control://instance/one", 128) == InstanceAddress("one")
    assert read_address("lamp", "lamp://artifact/a%2Fb/x%20y", 128) == ArtifactAddress("a/b", "x y")


@promise("C29")
@pytest.mark.parametrize(
    "uri",
    [
        "",
        "pulp-control",
        "pulp-control://",
        "pulp-control://instance",
        "pulp-control://instance/",
        "pulp-control://instance/one/",
        "pulp-control://instance/one/two",
        "pulp-control://instance/one?newest",
        "pulp-control://instance/one#part",
        "pulp-control://instance/%6Fne",
        "pulp-control://instance/a%2fb",
        "pulp-control://instance/%C3%A9",
        "pulp-control://instance/é",
        "pulp-control://instance/..%2f",
        "pulp-control://artifact/one",
        "pulp-control://artifact/one/",
        "pulp-control://artifact/one/two/three",
        "pulp-control://artifact//two",
        "pulp-control://grant/one",
        "PULP-CONTROL://instance/one",
        "lamp://instance/one",
        "file:///etc/passwd",
        "pulp-control://instance/123456789",
    ],
)
def test_anything_else_names_nothing(uri):
    assert read_address("pulp-control", uri, 8) is None


@promise("C29")
@given(
    st.lists(
        st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=9), min_size=1, max_size=2
    )
)
def test_every_address_is_read_back_as_itself(parts):
    address = InstanceAddress(*parts) if len(parts) == 1 else ArtifactAddress(*parts)
    assert read_address("x", written("x", address), 9) == address


@promise("C29")
def test_the_templates_are_of_the_products_scheme():
    assert [each["uriTemplate"] for each in templates("lamp")] == [
        "lamp://instance/{instance_id}",
        "lamp://artifact/{instance_id}/{artifact_id}",
    ]
