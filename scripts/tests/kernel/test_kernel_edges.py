"""Values at the very edge of a bound, and words that are public: each is the one that is written here."""

import time
from pathlib import Path

import pytest
import rfc8785

from assisted_benchmark.kernel import canonical, clock
from assisted_benchmark.kernel.canonical import (
    MAX_DEPTH,
    MAX_NODES,
    MIB,
    NOT_PLAIN,
    canonical_bytes,
    canonical_texts,
    parse,
    parse_telling,
    plain_strings,
)
from assisted_benchmark.kernel.clock import Deadline, ManualClock, SystemClock
from assisted_benchmark.kernel.errors import CanonicalError, LedgerError, Problem
from assisted_benchmark.kernel.names import MAX_NAME, name_fault
from assisted_benchmark.kernel.pointers import steps_of
from assisted_benchmark.kernel.reasons import Coarse, Layer, Reason, Severity
from assisted_benchmark.kernel.strict_json import check, is_crowded, parse_strictly, strings_in
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


PLAIN = [
    b'{"a":"b"}',
    b'{"":0}',
    b'"x"',
    b"[]",
    b"{}",
    b"null",
    b'["a",{"b":["c","d"]},true,{"e":{"f":-1}}]',
    '{"\u00e9":"\U0001f600"}'.encode(),
    b'["\\"\\\\"]',
    b"[%d,-%d]" % (2**53 - 1, 2**53 - 1),
    b"[" * MAX_DEPTH + b"]" * MAX_DEPTH,
]


@pytest.mark.parametrize("raw", PLAIN, ids=range(len(PLAIN)))
def test_a_plain_value_is_called_plain_and_goes_the_fast_way_in_and_out(monkeypatch, raw):
    def never(*_):
        raise AssertionError

    for name in ("parse_strictly", "check"):
        monkeypatch.setattr(canonical, name, never)
    monkeypatch.setattr(rfc8785, "dumps", never)
    value, plain = parse_telling(raw)
    assert plain is True
    assert canonical_bytes(value) == raw


def test_texts_go_the_fast_way_unless_a_key_may_be_ordered_otherwise(monkeypatch):
    asked = []
    monkeypatch.setattr(canonical, "canonical_bytes", lambda texts: asked.append(texts) or b"slow")
    assert canonical_texts({"b": "x", "a": ["y"]}) == b'{"a":["y"],"b":"x"}'
    assert asked == []
    assert canonical_texts({"\u00e9": "x"}) == b"slow"


def test_texts_have_their_keys_in_the_order_of_utf_16():
    texts = {"\uffff": "1", "\U0001f600": "2"}
    assert canonical_texts(texts) == rfc8785.dumps(texts) == '{"\U0001f600":"2","\uffff":"1"}'.encode()
    assert plain_strings(texts) == NOT_PLAIN
    assert plain_strings({"\uffff": "\U0001f600"}) == 2


@pytest.mark.parametrize("texts", [{"a": "\x00"}, ["\x00"], {"\x00": "a"}])
def test_texts_with_a_nul_have_no_bytes(texts):
    with pytest.raises(CanonicalError) as caught:
        canonical_texts(texts)
    assert caught.value.reason is Reason.MALFORMED_UNICODE


@pytest.mark.parametrize("begin", [b'["', b'["\\u00e9'], ids=["plain", "with an escape"])
def test_a_larger_bound_holds_on_every_way_in(begin):
    raw = begin + b"x" * MIB + b'"]'
    assert len(parse(raw, len(raw))[0]) >= MIB
    for wrong, bound, reason in (
        (raw, len(raw) - 1, Reason.TOO_LARGE),
        (raw[:-1], 2 * MIB, Reason.MALFORMED_CALL),
    ):
        with pytest.raises(CanonicalError) as caught:
            parse(wrong, bound)
        assert caught.value.reason is reason


def test_as_many_values_as_are_allowed_are_plain_and_one_more_is_not(monkeypatch):
    monkeypatch.setattr(canonical, "MAX_NODES", 5)
    assert [plain_strings([0] * count) for count in (4, 5)] == [0, NOT_PLAIN]
    assert [plain_strings(dict.fromkeys("abcde"[:count])) for count in (4, 5)] == [4, NOT_PLAIN]
    assert [plain_strings([["a"], {"b": inner}]) for inner in (1, [1])] == [2, NOT_PLAIN]


def test_as_many_values_as_are_allowed_pass_the_check_and_one_more_does_not():
    check([[1], 2], max_nodes=4)
    check({"a": {"b": 1}}, max_nodes=3)
    for value, most in (([[1], 2], 3), ({"a": {"b": 1}}, 2)):
        with pytest.raises(CanonicalError) as caught:
            check(value, max_nodes=most)
        assert caught.value.reason is Reason.TOO_LARGE


def test_the_largest_safe_integer_is_admitted_in_any_spelling():
    for raw in (b"9007199254740991", b"9007199254740991.0", b"-9007199254740991e0"):
        assert canonical_bytes(parse_strictly(raw)) == canonical_bytes(parse(raw)) == raw.split(b".")[0].split(b"e")[0]


def test_integers_are_plain_up_to_the_safe_ones():
    assert [plain_strings(sign * (2**53 - 1)) for sign in (1, -1)] == [0, 0]
    assert [plain_strings(sign * 2**53) for sign in (1, -1)] == [NOT_PLAIN, NOT_PLAIN]
    assert [plain_strings(value) for value in (True, False, None, 1.0)] == [0, 0, 0, NOT_PLAIN]


def test_a_value_is_plain_down_to_the_greatest_depth():
    def nested(levels, inner):
        return inner if not levels else [nested(levels - 1, inner)]

    assert plain_strings(nested(MAX_DEPTH - 1, "x")) == 1
    assert plain_strings(nested(MAX_DEPTH + 1, "x")) == NOT_PLAIN


def test_the_boot_is_named_by_what_the_system_calls_it(monkeypatch):
    files = {Path("/proc/sys/kernel/random/boot_id"): "the-boot\n"}

    def read(path, encoding):
        if path not in files:
            raise FileNotFoundError(path)
        return files[path]

    monkeypatch.setattr(Path, "read_text", read)
    assert SystemClock().boot_id == "the-boot"
    files.clear()
    assert SystemClock().boot_id.startswith("boot-minute-")


def test_a_long_file_name_is_told_whole():
    assert str(Problem(Reason.UNREADABLE, "no", "a" * 4096)) == f"no (unreadable) at {'a' * 4096}"


def test_an_error_has_its_reason_and_detail_as_its_arguments():
    assert LedgerError(Reason.LEDGER_MISSING, "no ledger").args == (Reason.LEDGER_MISSING, "no ledger")


@pytest.mark.parametrize(
    ("raw", "strings"),
    [
        pytest.param(b"[1]", 0, id="none"),
        pytest.param(b'{"a":"b"}', 2, id="a key and a value"),
        pytest.param(rb'["\"\"", "x"]', 2, id="escaped quotes"),
        pytest.param(rb'["\\", "\\"]', 2, id="escaped backslashes at the end"),
        pytest.param(rb'["\\\"\\\"", "x"]', 2, id="both"),
        pytest.param(rb'["\n", "x"]', 2, id="another escape"),
    ],
)
def test_the_strings_of_a_text_are_counted_without_reading_it(raw, strings):
    assert strings_in(raw) == strings


@pytest.mark.parametrize(
    ("piece", "times"),
    [
        pytest.param(b",", MAX_NODES, id="commas"),
        pytest.param(b"[", MAX_NODES, id="lists"),
        pytest.param(b"{", MAX_NODES, id="objects"),
        pytest.param(b"[{", MAX_NODES // 2, id="lists and objects"),
        pytest.param(b'"",', MAX_NODES, id="strings, and a comma after each"),
        pytest.param(b'""', 2 * MAX_NODES, id="strings alone"),
    ],
)
def test_a_text_is_crowded_from_one_value_too_many_on(piece, times):
    assert is_crowded(piece * times)
    assert not is_crowded(piece * (times - 1))


def test_what_stands_within_a_string_crowds_nothing():
    for inner in (b",", b"[", b"{"):
        assert not is_crowded(b'["' + inner * MAX_NODES + b'"]')


def test_a_nul_is_the_reason_only_where_it_stands():
    for raw, reason in ((b"\x00", Reason.MALFORMED_UNICODE), (b"x\x00", Reason.MALFORMED_CALL)):
        with pytest.raises(CanonicalError) as caught:
            parse_strictly(raw)
        assert (caught.value.reason, caught.value.offset) == (reason, 0)


def test_the_monotonic_clock_is_the_one_that_counts_suspension_where_there_is_one():
    assert getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC) == clock._BOOT


def test_a_deadline_anew_is_on_the_same_clock_from_now_on():
    manual = ManualClock()
    first = Deadline.after(manual, 5)
    manual.advance(4)
    assert (first.remaining_ns(), first.anew(7).remaining_ns()) == (1, 7)
    manual.advance(3)
    assert first.remaining_ns() == 0


def test_a_pointer_has_its_slashes_and_tildes_back():
    assert steps_of("/a~1b/m~0n/~01") == ("a/b", "m~n", "~1")
