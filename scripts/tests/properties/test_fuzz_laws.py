"""The laws of the edges where bytes come in, on the fuzzer's corpus and on seeded edits of it."""

from itertools import islice

import pytest

from fuzzing import corpus
from fuzzing.targets import MOST_BYTES, TARGETS, BrokenLawError, export

pytestmark = pytest.mark.no_cover  # long loops over little code, which other tests cover

EDITS = {"json": 3000, "frames": 2000, "server": 400, "client": 1200, "yaml": 600, "contract": 60, "receipts": 1500}


@pytest.mark.parametrize("target", TARGETS)
def test_the_laws_of_a_target_hold_on_its_corpus_and_on_edits_of_it(target):
    inputs = corpus.read(target)
    assert inputs
    for data in [*inputs, *islice(corpus.edited(inputs, 1, MOST_BYTES), EDITS.get(target, 600))]:
        TARGETS[target](data)


@pytest.mark.parametrize("target", TARGETS)
def test_the_corpus_of_a_target_is_small_sorted_and_names_nothing_twice(target):
    inputs = corpus.read(target)
    assert inputs == sorted(set(inputs), key=lambda each: (len(each), each))
    assert sum(map(len, inputs)) < 1 << 17


def test_a_verifier_that_lets_one_edit_through_is_noticed(monkeypatch):
    monkeypatch.setattr("fuzzing.targets.verify_export", lambda *_: iter(()))
    with pytest.raises(BrokenLawError):
        TARGETS["receipts"](export()[0].replace(b"plain", b"other", 1))


def test_a_parser_that_admits_other_bytes_than_the_strict_one_is_noticed(monkeypatch):
    monkeypatch.setattr("fuzzing.targets.parse", lambda _: {"a": 2})
    with pytest.raises(BrokenLawError):
        TARGETS["json"](b'{"a":1,"a":2}')


def test_edits_of_a_corpus_are_the_same_for_a_seed():
    first, again, other = (list(islice(corpus.edited([b"abc", b"[1]"], seed, 99), 50)) for seed in (1, 1, 2))
    assert first == again
    assert first != other
