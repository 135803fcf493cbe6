"""Values at the very edge of a bound, and words that are public: each is the one that is written here."""

import pytest

from assisted_benchmark.kernel.canonical import canonical_texts
from assisted_benchmark.kernel.errors import CanonicalError
from assisted_benchmark.kernel.names import MAX_NAME, name_fault
from assisted_benchmark.kernel.reasons import Coarse, Layer, Reason, Severity
from assisted_benchmark.kernel.text import invisible


def test_the_longest_name_is_as_long_as_the_bound_says():
    assert name_fault("a" * MAX_NAME) is None
    assert name_fault("a" * (MAX_NAME + 1)) is Reason.MALFORMED_NAME


def test_the_words_that_an_agent_and_a_tool_may_hear_are_these():
    assert list(Coarse) == ["malformed", "not_authorised", "spent", "expired", "unavailable"]
    assert list(Severity) == ["error", "note"]
    assert " ".join(Layer) == (
        "bytes call grant group server proposal confirmation capability consent operation dispatch ledger receipt "
        "document suite"
    )


def test_a_paragraph_separator_is_invisible():
    assert invisible("\u2029")


@pytest.mark.parametrize("texts", [{"a": "\ud800"}, ["\udfff"], {"\ud800": "a"}, "\ud800"])
def test_texts_with_a_lone_surrogate_have_no_bytes(texts):
    with pytest.raises(CanonicalError) as caught:
        canonical_texts(texts)
    assert caught.value.reason is Reason.MALFORMED_UNICODE
