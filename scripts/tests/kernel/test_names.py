"""Names are plain ASCII; what only looks like it has a code of its own."""

import pytest

from assisted_benchmark.kernel.errors import InputError
from assisted_benchmark.kernel.names import check_name, name_fault
from assisted_benchmark.kernel.reasons import Reason


@pytest.mark.parametrize("name", ["a", "click_target", "ui/second-choice", "a.b-c", "-x", "9", "A" * 128])
def test_a_plain_name_is_one(name):
    assert name_fault(name) is None
    assert check_name(name) == name


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        pytest.param("", Reason.MALFORMED_NAME, id="empty"),
        pytest.param("a" * 129, Reason.MALFORMED_NAME, id="too long"),
        pytest.param("click target", Reason.MALFORMED_NAME, id="a space"),
        pytest.param("a:b", Reason.MALFORMED_NAME, id="a colon"),
        pytest.param("a\u2215b", Reason.MALFORMED_NAME, id="a sign that looks like a slash"),
        pytest.param("click_target\n", Reason.INVISIBLE_CHARACTER, id="a line break at the end"),
        pytest.param("click\u200btarget", Reason.INVISIBLE_CHARACTER, id="zero width"),
        pytest.param("\u202eclick", Reason.INVISIBLE_CHARACTER, id="direction override"),
        pytest.param("click\U000e0041", Reason.INVISIBLE_CHARACTER, id="a tag character"),
        pytest.param("cl\u0456ck", Reason.CONFUSABLE_NAME, id="a Cyrillic i"),
        pytest.param("\uff43lick", Reason.CONFUSABLE_NAME, id="a full-width c"),
        pytest.param("clické", Reason.CONFUSABLE_NAME, id="an accent"),
        pytest.param("a\u0661", Reason.CONFUSABLE_NAME, id="an Arabic digit"),
    ],
)
def test_another_name_is_refused_with_its_own_code(name, reason):
    assert name_fault(name) is reason
    with pytest.raises(InputError) as caught:
        check_name(name, "tool's name")
    assert caught.value.reason is reason
    assert name.isascii() or name not in caught.value.detail or reason is not Reason.INVISIBLE_CHARACTER
