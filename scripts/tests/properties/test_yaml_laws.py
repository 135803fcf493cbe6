"""Laws of strict YAML: JSON text is YAML, and what is admitted means the same to every reader."""

import json
import re

import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from marks import promise

from assisted_benchmark.contract.strict_yaml import _CarefulReader, load
from assisted_benchmark.kernel.canonical import SAFE_INTEGER, canonical_bytes
from assisted_benchmark.kernel.errors import DocumentError

# Text as JSON writes it, without what YAML or this project forbids in a file even inside quotes.
FORBIDDEN = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, 0xFEFF, 0xFFFE, 0xFFFF]))
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=FORBIDDEN), max_size=30)
NUMBERS = st.integers(-SAFE_INTEGER, SAFE_INTEGER) | st.floats(-1e6, 1e6).map(lambda x: round(x, 3) + 0.5).filter(
    lambda x: x != int(x)
)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
WORDS = st.text("yesnoftrualYESNO0123456789.-+_:eExobaTZ~=<,/ in", min_size=1, max_size=8)

# The core schema of YAML 1.2.2, chapter 10.3.2: what is not text.
CORE_1_2 = re.compile(
    r"null|Null|NULL|~|true|True|TRUE|false|False|FALSE|[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"
    r"|[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?(\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN|"
)


@promise("H3")
@given(JSON)
def test_json_text_loads_as_itself(value):
    for text in (json.dumps(value, ensure_ascii=False), json.dumps(value, ensure_ascii=False, indent=2)):
        read = load(text.encode(), "a.yaml").value
        assert canonical_bytes(read) == canonical_bytes(value)
        assert json.dumps(read) == json.dumps(value)  # an integer stays one, a float stays one


@promise("H3")
@given(JSON, JSON)
def test_a_restyled_file_has_the_same_canonical_bytes(one, other):
    value = {"one": one, "other": other}
    restyled = yaml.safe_dump(value, sort_keys=True, allow_unicode=True, default_style='"', width=20)
    restyled = re.sub(r'!!(int|float|bool|null) "([^"]*)"', r"\2", restyled)
    read = load(restyled.encode(), "a.yaml").value
    flow = load(json.dumps(dict(reversed(value.items())), ensure_ascii=False).encode(), "a.yaml").value
    assert canonical_bytes(read) == canonical_bytes(flow) == canonical_bytes(value)


@promise("H3")
@given(WORDS)
@example("0x")
@example("1_0")
@example("190:20:30")
def test_an_admitted_plain_word_means_the_same_in_yaml_1_1_and_1_2(word):
    try:
        value = load(f"- {word}\n".encode(), "a.yaml").value
    except DocumentError:
        return
    assert repr(yaml.safe_load(f"- {word}\n")) == repr(value)
    if value == [word.strip()]:
        assert CORE_1_2.fullmatch(word.strip()) is None


@given(st.binary(max_size=60) | st.text("a:-?[]{},&*!|>'\"%@`#\n\t <01.", max_size=40).map(str.encode))
def test_any_bytes_are_a_document_or_a_document_error(data):
    careful = _CarefulReader(data, "a.yaml")
    value = careful.read()
    try:
        document = load(data, "a.yaml")
    except DocumentError as error:
        problems = error.problems
    else:
        # the careful reader agrees with the fast one
        assert canonical_bytes(value) == canonical_bytes(document.value)
        problems = ()
    assert sorted(careful.problems, key=str) == sorted(problems, key=str)
    assert all(problem.line >= 1 and problem.column >= 1 for problem in problems)
