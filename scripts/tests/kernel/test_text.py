"""Text from outside is shown with nothing hidden in it."""

from __future__ import annotations

import pytest

from assisted_benchmark.kernel.text import did_you_mean, invisible, shown

HIDDEN = {
    "NUL": "\x00",
    "escape": "\x1b",
    "line end": "\n",
    "delete": "\x7f",
    "next line": "\x85",
    "soft hyphen": "\u00ad",
    "combining grapheme joiner": "\u034f",
    "a note head that draws nothing": "\U0001d159",
    "a filler of a small script": "\U00016fe4",
    "Arabic letter mark": "\u061c",
    "Hangul filler": "\u115f",
    "Khmer inherent vowel": "\u17b4",
    "Mongolian variation selector": "\u180b",
    "zero width space": "\u200b",
    "right-to-left override": "\u202e",
    "line separator": "\u2028",
    "isolate": "\u2066",
    "blank braille": "\u2800",
    "Hangul filler of another block": "\u3164",
    "variation selector": "\ufe0f",
    "byte order mark": "\ufeff",
    "halfwidth filler": "\uffa0",
    "private use": "\ue000",
    "lone surrogate": "\ud800",
    "unassigned": "\uffff",
    "tag letter": "\U000e0041",
    "variation selector of plane 14": "\U000e0100",
}


@pytest.mark.parametrize("char", HIDDEN.values(), ids=HIDDEN.keys())
def test_a_character_without_a_shape_is_invisible_and_shown_as_an_escape(char):
    assert invisible(char)
    escape = f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"
    assert shown(f"a{char}b") == f"a{escape}b"


@pytest.mark.parametrize("char", [*'aZ0 é_-.`"\\€語', "\u0301", "\U0001f600"])
def test_a_character_with_a_shape_is_shown_as_it_is(char):
    assert not invisible(char)
    assert shown(char) == char


def test_a_long_text_is_cut_and_says_by_how_much():
    assert shown("a" * 200) == "a" * 200
    assert shown("a" * 203) == "a" * 200 + "… (+3 characters)"
    assert shown("\n\n\n", limit=2) == "\\u000a\\u000a… (+1 characters)"


def test_a_near_word_is_suggested_and_a_far_one_is_not():
    assert did_you_mean("tol", ["tool", "server"]) == "did you mean `tool`?"
    assert did_you_mean("zebra", ["tool", "server"]) == ""
    assert did_you_mean("tool", []) == ""
