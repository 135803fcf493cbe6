"""The question that a person sees: the golden texts, every field whole, and nothing that could pose as the broker."""

import json
from pathlib import Path

import pytest
from marks import promise
from mutation_bench import FABRIC, ORCHARD, MutationBench, spec_of

from assisted_benchmark.kernel.clock import SECOND
from assisted_benchmark.kernel.text import invisible
from assisted_benchmark.mutation.prompt import price_text

GOLDEN = Path(__file__).parent.parent / "golden" / "mutation"


def asked(change, contract=FABRIC, **more):
    bench = MutationBench(contract)
    token = bench.token(change, **more)
    bench.clock.advance(12 * SECOND)
    return bench.begin(token).message


@promise("M15")
@pytest.mark.parametrize("change", [each.name for each in FABRIC.changes])
def test_the_question_is_the_golden_text(change):
    assert asked(change) == (GOLDEN / f"{change}.txt").read_text(encoding="utf-8")


@promise("M15")
def test_the_question_of_another_product_is_the_golden_text():
    spec = {"species": 'pear: "Conference"', "count": 2, "gate": {"pin": "4711"}, "labels": {"a b": "x", "row": "1"}}
    bench = MutationBench(ORCHARD)
    token = bench.token("plant", spec)
    assert bench.begin(token).message == (GOLDEN / "plant.txt").read_text(encoding="utf-8")


def leaves(value):
    if isinstance(value, dict):
        for each in value.values():
            yield from leaves(each)
    elif isinstance(value, list):
        for each in value:
            yield from leaves(each)
    else:
        yield value


@promise("M15")
@pytest.mark.parametrize("change", [each.name for each in FABRIC.changes])
def test_every_value_of_the_request_stands_whole_on_a_line_of_its_own(change):
    lines = asked(change).split("\n")
    values = [line.partition(": ")[2] for line in lines if line.startswith("  ")]
    assert sorted(values) == sorted(json.dumps(each) for each in leaves(spec_of(change)))


@promise("M15")
def test_a_long_value_is_not_cut():
    text = "ab" * 1000
    assert f'  what.species: "{text}"\n' in asked("plant", ORCHARD, species=text)


@promise("M15")
def test_a_value_cannot_pose_as_a_line_of_the_question():
    posing = 'x"\\n\\nAccept with `confirm` set: nothing happens.'
    text = asked("plant", ORCHARD, species=posing)
    assert text.count("\nAccept with") == 2
    assert f"  what.species: {json.dumps(posing)}\n" in text
    named = asked("plant", ORCHARD, labels={'row: "1" and species': "x"})
    assert '  labels."row: \\"1\\" and species": "x"\n' in named
    assert not any(invisible(char) for char in text.replace("\n", ""))


@promise("M15")
def test_what_is_empty_is_shown_as_empty():
    assert "  gate: {}\n" in asked("plant", ORCHARD, gate={})


@promise("M15", "M8")
def test_the_price_is_the_one_that_the_proposal_reported():
    bench = MutationBench()
    sealed = bench.propose("connection")
    message = bench.begin(sealed.token).message
    assert f"Price: {price_text(sealed.price)}\n" in message
    assert price_text(sealed.price) == (
        "350.5 USD every month and 0 USD once (not a quote; from POST /fabric/v4/prices/search)"
    )
    once = {**sealed.price, "monthly": None, "non_recurring": 5}
    assert price_text(once).startswith("5 USD once (")
    assert price_text({"unpriced": "why"}) == "not known: why"


@promise("M15")
def test_the_digest_that_is_shown_is_the_one_that_the_token_is_bound_to():
    bench = MutationBench()
    sealed = bench.propose("network")
    assert f"\nRequest: {sealed.request}\n" in bench.begin(sealed.token).message
