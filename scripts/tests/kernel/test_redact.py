"""What a contract marks as sensitive is shown nowhere."""

from __future__ import annotations

import pytest
from marks import promise

from assisted_benchmark.kernel.redact import is_sensitive, pointer, redact

VALUE = {"token": "s3cret", "who": {"name": "Ann", "pins": [1, 2]}, "a/b": {"~": "s3cret"}}


@promise("K5")
@pytest.mark.parametrize(
    ("sensitive", "shown"),
    [
        ((), VALUE),
        (("/token",), {**VALUE, "token": "[redacted]"}),
        (("/who",), {**VALUE, "who": "[redacted]"}),
        (("/who/pins/1",), {**VALUE, "who": {"name": "Ann", "pins": [1, "[redacted]"]}}),
        (("/a~1b/~0",), {**VALUE, "a/b": {"~": "[redacted]"}}),
        (("/to", "/who/nam", "/who/pins/01"), VALUE),
        (("",), "[redacted]"),
    ],
)
def test_a_marked_value_and_all_that_it_holds_is_redacted(sensitive, shown):
    assert redact(VALUE, sensitive) == shown


@promise("K5")
def test_the_original_is_left_as_it_is():
    before = repr(VALUE)
    redact(VALUE, ("/token",))["who"]["pins"].append(3)
    assert repr(VALUE) == before


@promise("K5")
def test_a_pointer_escapes_what_its_own_syntax_needs():
    assert pointer(pointer("", "a/b~c"), 0) == "/a~1b~0c/0"
    assert is_sensitive("/a~1b/0", ["/a~1b"])
    assert not is_sensitive("/a~1bc", ["/a~1b"])
