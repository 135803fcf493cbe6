"""Digests: framed, named, pinned, and one text form only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from marks import promise

from assisted_benchmark.kernel.digest import digest_of, framed, parse_digest
from assisted_benchmark.kernel.errors import InputError
from assisted_benchmark.kernel.reasons import Reason

GOOD = "sha256:" + "0123456789abcdef" * 4

# Computed from the definition with hashlib alone; a change of framing or domain changes them.
PINNED = json.loads((Path(__file__).parent.parent / "golden" / "digests.json").read_text(encoding="ascii"))


@promise("K4")
@pytest.mark.parametrize("pinned", PINNED, ids=lambda pinned: f"{pinned['domain']} of {pinned['parts']}")
def test_a_digest_is_the_pinned_one(pinned):
    assert digest_of(pinned["domain"], *map(str.encode, pinned["parts"])) == pinned["digest"]


@promise("K4")
def test_the_frame_is_each_part_after_its_length_in_bytes():
    assert framed("ab@1", b"", "é".encode()) == (
        b"\0\0\0\0\0\0\0\4ab@1" + b"\0\0\0\0\0\0\0\0" + b"\0\0\0\0\0\0\0\2\xc3\xa9"
    )


@promise("K4")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a@1", b"x"), ("b@1", b"x")),
        (("a@1", b"x"), ("a@2", b"x")),
        (("a@1", b"ab", b"c"), ("a@1", b"a", b"bc")),
        (("a@1", b"abc"), ("a@1", b"ab", b"c")),
        (("a@1", b""), ("a@1",)),
        (("a@1", b"", b"x"), ("a@1", b"x", b"")),
        (("a@1x",), ("a@1", b"x")),
    ],
)
def test_other_parts_or_another_domain_give_another_digest(one, other):
    assert digest_of(*one) != digest_of(*other)


@promise("K4")
def test_the_one_text_form_parses_to_itself():
    assert parse_digest(GOOD) == GOOD
    assert parse_digest(digest_of("a@1")) == digest_of("a@1")


@promise("K4")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "sha256:",
        GOOD[:-1],
        GOOD + "0",
        GOOD.upper(),
        GOOD.replace("a", "A"),
        GOOD.replace("sha256:", "SHA256:"),
        GOOD.replace("sha256:", "sha512:"),
        GOOD.replace("sha256:", ""),
        GOOD.replace(":", "="),
        GOOD.replace("f", "g"),
        GOOD.replace("1", "\u0661"),
        f" {GOOD}",
        f"{GOOD}\n",
        GOOD.encode(),
        None,
        7,
    ],
    ids=repr,
)
def test_no_other_form_parses(text):
    with pytest.raises(InputError) as caught:
        parse_digest(text)
    assert caught.value.reason is Reason.MALFORMED_DIGEST
