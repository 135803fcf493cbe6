"""The one redactor."""

from marks import promise

from assisted_benchmark.kernel.redact import REDACTED, is_sensitive, pointer, redact


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


def test_a_pointer_escapes_its_steps():
    assert pointer(pointer("", "a/b~c"), 3) == "/a~1b~0c/3"
