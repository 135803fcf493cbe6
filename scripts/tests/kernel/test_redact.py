"""The one redactor."""

from marks import promise

from assisted_benchmark.kernel.pointers import pointer
from assisted_benchmark.kernel.redact import REDACTED, holds_sensitive, is_sensitive, redact, told_path


@promise("K5")
def test_marked_values_and_all_within_them_are_replaced_and_the_rest_is_copied():
    value = {"pin": "1234", "list": [{"pin": 1}, {"pin": 2}], "deep": {"a/b": {"secret": 1}, "open": 2}}
    assert redact(value, ("/pin", "/list/1/pin", "/deep/a~1b")) == {
        "pin": REDACTED,
        "list": [{"pin": 1}, {"pin": REDACTED}],
        "deep": {"a/b": REDACTED, "open": 2},
    }
    assert redact(value, ()) == value
    assert redact(value, ()) is not value


def test_a_pointer_marks_what_it_names_and_what_is_below_and_nothing_beside():
    assert is_sensitive("/pin", ["/pin"])
    assert is_sensitive("/pin/0", ["/pin"])
    assert not is_sensitive("/pins", ["/pin"])
    assert not is_sensitive("", ["/pin"])


@promise("K5")
def test_a_plain_value_where_a_marked_one_should_be_within_is_replaced():
    assert redact({"auth": "1234", "list": "1234", "open": 1}, ("/auth/pin", "/list/0")) == {
        "auth": REDACTED,
        "list": REDACTED,
        "open": 1,
    }


def test_a_value_of_another_shape_may_hold_what_is_marked_at_or_below_it_or_above():
    assert holds_sensitive("/auth", ["/auth/pin"])
    assert holds_sensitive("/auth/pin", ["/auth/pin"])
    assert holds_sensitive("/auth/pin/0", ["/auth/pin"])
    assert not holds_sensitive("/aut", ["/auth/pin"])


def test_keys_within_a_marked_value_are_not_told():
    assert told_path("/auth/secret/0", ["/pin", "/auth"]) == "/auth"
    assert told_path("/auth", ["/auth"]) == "/auth"
    assert told_path("/open/key", ["/auth"]) == "/open/key"


def test_a_pointer_escapes_its_steps():
    assert pointer(pointer("", "a/b~c"), 3) == "/a~1b~0c/3"
