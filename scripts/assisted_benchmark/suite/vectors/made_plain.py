"""Vectors that are written by hand: canonical bytes, digests, and what is admitted from raw bytes."""

from __future__ import annotations

from typing import Final

from assisted_benchmark.kernel.canonical import MAX_DEPTH, MAX_NODES, MIB, Json
from assisted_benchmark.kernel.strict_json import MAX_DIGITS
from assisted_benchmark.suite.vectors.vector import bytes_value

_CANONICAL: Final = (
    ("empty-object", "the least there is", "{}"),
    ("literals", "the three literals stay as they are", "[null, true, false]"),
    ("keys-by-utf-16", "keys are sorted by UTF-16 code units, not by code points", '{"\\ud83d\\ude00":1,"\\ufb33":2}'),
    ("keys-nested", "at every depth", '{"b":{"d":1,"c":2},"a":[{"z":1,"y":2}]}'),
    ("keys-prefix", "a key sorts before the one that it begins", '{"ab":1,"a":2,"":3}'),
    ("blanks", "blanks between tokens mean nothing", '{ "a" :\t[ 1 ,\n2 ] }'),
    (
        "escapes",
        "only what has to be escaped is, each in its shortest form",
        '"\\u0008\\u0009\\u000a\\u000c\\u000d\\u0022\\u005c\\u002f\\u001f\\u007f"',
    ),
    ("not-normalised", "Unicode normal forms are different texts", '["\\u00e9","e\\u0301"]'),
    ("separators", "the line and paragraph separators are plain characters", '"\\u2028\\u2029"'),
    ("zero", "there is one zero", "[0, -0, 0.0, -0.0, 0e5]"),
    ("integers", "the largest and the least", "[9007199254740991, -9007199254740991]"),
    ("one-number", "equal doubles have one spelling", "[1, 1.0, 1e0, 10e-1, 0.1e1]"),
    (
        "fractions",
        "the shortest digits that give the double back",
        "[0.1, 0.30000000000000004, 333333333.33333329, 1e-7, 1.5e300]",
    ),
    (
        "small-and-large",
        "where the exponent begins",
        "[1e21, 123e19, 1e-6, 0.000001, 0.0000001, 5e-324, 1.7976931348623157e308]",
    ),
)

_DIGESTS: Final[tuple[tuple[str, str, str, tuple[bytes, ...]], ...]] = (
    ("no-parts", "a domain alone", "tools@1", ()),
    ("one-empty-part", "no part and an empty part are different", "tools@1", (b"",)),
    ("two-parts", "parts are framed by their length in bytes", "candidate@1", (b"ab", b"c")),
    ("other-cut", "so that another cut of the same bytes has another digest", "candidate@1", (b"a", b"bc")),
    ("bytes", "lengths are of bytes, not of characters", "candidate@1", ("é".encode(), b"\x00\xff")),
    (
        "host-identity",
        "another domain has other digests of the same parts",
        "projectbuddy/host-identity@1",
        (b"ab", b"c"),
    ),
)

# id, why, bytes as a file has them, flags; each goes under a bound of 1 MiB.
_ADMISSION: Final[tuple[tuple[str, str, Json, str], ...]] = (
    (
        "object",
        "a proposal, as an agent may write it",
        {"text": '{"server":"ui","tool":"click","arguments":{"id":1}}'},
        "good",
    ),
    (
        "spelling",
        "blanks, escapes and the order of keys are the writer's own",
        {"text": ' {"b":"\\u0061","a":1.50}\r\n'},
        "good",
    ),
    ("scalar", "a document need not be an object", {"text": "7"}, "good"),
    ("largest-integer", "2^53-1 and its negative", {"text": "[9007199254740991,-9007199254740991]"}, "good"),
    (
        "deepest",
        "as deep as is allowed",
        {"pieces": [{"text": "[", "times": MAX_DEPTH}, {"text": "]", "times": MAX_DEPTH}]},
        "good",
    ),
    (
        "most-digits",
        "as many digits as are allowed",
        {"pieces": [{"text": "0."}, {"text": "3", "times": MAX_DIGITS - 1}]},
        "good",
    ),
    ("pair-of-surrogates", "an escaped pair is one character", {"text": '"\\ud83d\\ude00"'}, "good"),
    ("same-key-elsewhere", "the same key in two objects is two keys", {"text": '{"a":{"a":1},"b":{"a":1}}'}, "good"),
    ("empty", "no bytes are no document", {"text": ""}, "bytes"),
    ("half", "a document that is cut off", {"text": '{"a":'}, "bytes"),
    ("two-documents", "bytes behind the document", {"text": "{} {}"}, "bytes"),
    ("trailing-comma", "JSON has none", {"text": "[1,]"}, "bytes"),
    ("single-quotes", "JSON has none", {"text": "{'a':1}"}, "bytes"),
    ("leading-zero", "no JSON number", {"text": "[01]"}, "number"),
    ("plus", "no JSON number", {"text": "[+1]"}, "number"),
    ("hex", "no JSON number", {"text": "[0x10]"}, "number"),
    ("raw-newline", "a control character within a string", {"text": '"a\nb"'}, "text"),
    ("nul-byte", "a NUL between tokens", bytes_value(b"[1,\x00 2]"), "text"),
    ("nul-escaped", "a NUL within a string", {"text": '"a\\u0000b"'}, "text"),
    ("nul-in-a-key", "a NUL within a key", {"text": '{"a\\u0000":1}'}, "text"),
    ("not-utf-8", "a byte that no UTF-8 text has", bytes_value(b'"\xff"'), "text"),
    ("overlong", "a character in more bytes than it needs", bytes_value(b'"\xc0\xaf"'), "text"),
    ("surrogate-in-utf-8", "a surrogate written as UTF-8", bytes_value(b'"\xed\xa0\x80"'), "text"),
    ("byte-order-mark", "a mark at the start", bytes_value(b"\xef\xbb\xbf{}"), "text"),
    ("utf-16", "another encoding", bytes_value('{"a":1}'.encode("utf-16-le")), "text"),
    ("lone-surrogate", "half of a pair, escaped", {"text": '"\\ud83d"'}, "text"),
    ("lone-surrogate-key", "half of a pair in a key", {"text": '{"\\udc00":1}'}, "text"),
    ("duplicate-key", "one key twice in an object", {"text": '{"a":1,"a":1}'}, "keys"),
    ("duplicate-key-escaped", "one key twice, spelled in two ways", {"text": '{"a":1,"\\u0061":2}'}, "keys"),
    ("duplicate-key-deep", "at whatever depth", {"text": '[[{"x":{"k":1,"k":2}}]]'}, "keys"),
    ("unsafe-integer", "2^53: another integer has the same double", {"text": "[9007199254740992]"}, "number"),
    ("unsafe-negative", "its negative", {"text": "[-9007199254740992]"}, "number"),
    ("unsafe-long", "an integer of twenty digits", {"text": "[12345678901234567890]"}, "number"),
    ("unsafe-as-a-double", "the same value, spelled with a point", {"text": "[9007199254740993.0]"}, "number"),
    ("unsafe-exponent", "the same with an exponent", {"text": "[1e20]"}, "number"),
    ("nan", "no JSON, though some readers take it", {"text": "[NaN]"}, "number"),
    ("infinity", "no JSON, though some readers take it", {"text": "[-Infinity]"}, "number"),
    ("overflow", "a number beyond every double", {"text": "[1e400]"}, "number"),
    (
        "too-deep",
        "one level more than is allowed",
        {"pieces": [{"text": "[", "times": MAX_DEPTH + 1}, {"text": "]", "times": MAX_DEPTH + 1}]},
        "size",
    ),
    (
        "far-too-deep",
        "so deep that a recursive reader would fall",
        {"pieces": [{"text": '{"a":', "times": 20_000}, {"text": "1"}, {"text": "}", "times": 20_000}]},
        "size",
    ),
    (
        "too-many-digits",
        "one digit more than is allowed",
        {"pieces": [{"text": "0."}, {"text": "3", "times": MAX_DIGITS}]},
        "size",
    ),
    (
        "too-many-values",
        "more values than are allowed, in few bytes",
        {"pieces": [{"text": "[1"}, {"text": ",1", "times": MAX_NODES}, {"text": "]"}]},
        "size",
    ),
    (
        "too-many-strings",
        "the same, of strings",
        {"pieces": [{"text": '[""'}, {"text": ',""', "times": MAX_NODES}, {"text": "]"}]},
        "size",
    ),
    (
        "too-many-keys",
        "the same, of an object's members and of arrays within",
        {"pieces": [{"text": "["}, {"text": "[1],", "times": MAX_NODES // 2}, {"text": "1]"}]},
        "size",
    ),
    (
        "too-large",
        "one byte more than the bound",
        {"pieces": [{"text": '"'}, {"text": "a", "times": MIB - 1}, {"text": '"'}]},
        "size",
    ),
)


def canonical_vectors() -> list[Json]:
    """JSON texts to be written canonically."""
    return [_vector(name, why, ("canonical",), {"json": {"text": text}}) for name, why, text in _CANONICAL]


def digest_vectors() -> list[Json]:
    """Parts to be digested under a domain."""
    return [
        _vector(name, why, ("digest",), {"domain": domain, "parts": [bytes_value(each) for each in parts]})
        for name, why, domain, parts in _DIGESTS
    ]


def admission_vectors() -> list[Json]:
    """Bytes to be admitted or refused."""
    return [_vector(name, why, (flag,), {"bytes": raw, "max_bytes": MIB}) for name, why, raw, flag in _ADMISSION]


def _vector(name: str, why: str, flags: tuple[str, ...], given: Json) -> Json:
    return {"id": name, "comment": why, "flags": list(flags), "given": given}
