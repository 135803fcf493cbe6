"""What a dying server says, as people may read it."""

import pytest

from assisted_benchmark.mcp_router.last_words import LINES, last_words, secrets_of


@pytest.mark.parametrize(
    ("status", "tail", "said"),
    [
        (None, b"", ""),
        (0, b" \n\n", "; it exited with status 0"),
        (-9, b"", "; it was ended by SIGKILL"),
        (-200, b"", "; it was ended by signal 200"),
        (None, b"\xff\n", "; its standard error ends: \N{REPLACEMENT CHARACTER}"),
    ],
)
def test_an_exit_and_the_end_of_standard_error_are_told_where_there_is_something_to_tell(status, tail, said):
    assert last_words(status, tail, (), cut=False) == said


def test_only_the_last_lines_are_told():
    tail = "\n".join(str(number) for number in range(100)).encode()
    assert last_words(None, tail, (), cut=True) == "; its standard error ends: " + " | ".join(
        str(number) for number in range(100 - LINES, 100)
    )


def test_values_of_the_environment_are_secret_unless_they_are_short_or_a_place():
    template = (
        ("HOME", "{contract}"),
        ("A", "long and secret"),
        ("B", "abc"),
        ("C", "{contract}/key=1"),
        ("D", "four"),
    )
    filled = (("HOME", "/place"), ("A", "long and secret"), ("B", "abc"), ("C", "/place/key=1"), ("D", "four"))
    secrets = secrets_of(template, filled)
    assert secrets == ("long and secret", "/place/key=1", "four")
    tail = b"/place abc four\n/place/key=1 long and secret"
    assert last_words(1, tail, secrets, cut=False) == (
        "; it exited with status 1; its standard error ends: /place abc [redacted] | [redacted] [redacted]"
    )


def test_of_a_value_that_the_tails_beginning_cuts_no_part_is_told():
    tail = b"ong and secret" + b"." * 20 + b"the end"
    told = last_words(None, tail, ("long and secret",), cut=True)
    assert told.endswith("the end")
    assert "secret" not in told
