"""Registry files: read into the frozen model, or refused with every fault and its place."""

from __future__ import annotations

import json

import jsonschema_rs
import pytest
from attrs import asdict, evolve
from attrs.exceptions import FrozenInstanceError
from marks import promise
from registry_bench import LAMP, LAMP_TEXT, PULP, ROOT, changed, faults_of, place_of, registry_of

from assisted_benchmark.capability.registry import (
    RESULT_FIELDS,
    Authority,
    Bounds,
    ConsentRule,
    Registry,
    ResultKind,
    Risk,
)
from assisted_benchmark.capability.registry_document import REGISTRY_SHAPE, load_registry, published_schemas
from assisted_benchmark.contract.pins import load_pins
from assisted_benchmark.contract.published import schema_text
from assisted_benchmark.contract.shape import check
from assisted_benchmark.contract.strict_yaml import load
from assisted_benchmark.kernel.errors import DocumentError

EMPTY = {"type": "object", "additionalProperties": False, "properties": {}}


@promise("C1")
def test_a_registry_is_read_whole_and_frozen():
    assert (LAMP.id, LAMP.namespace, LAMP.prefix, LAMP.scheme) == ("lamp", "org.lamp.", "lamp_", "lamp")
    assert LAMP.profiles == ("look", "touch")
    assert (LAMP.retired, LAMP.outside) == ((("lamp_toggle", "lamp_light_set"),), ("lamp_paint",))
    assert LAMP.bounds == Bounds(
        parameters_bytes=200, envelope_bytes=2000, id_length=8, timeout_ms=500, default_timeout_ms=50
    )
    assert [each.id for each in LAMP.operations] == [
        "org.lamp.bulb/Blow-Up@1",
        "org.lamp.bulb/melt@1",
        "org.lamp.light/read@1",
        "org.lamp.light/set@1",
    ]
    blow, melt, read, set_ = LAMP.operations
    assert (read.risk, read.result, read.authority) == (Risk.OBSERVE, ResultKind.RESPONSE, Authority.GRANT)
    assert (read.profiles, read.consent, read.publication_bound) == (("look", "touch"), (), False)
    assert (read.idempotency, read.max_bytes, read.version) == (None, (), 1)
    assert read.input.value == EMPTY
    assert (set_.publication_bound, set_.idempotency, set_.max_bytes) == (True, "once", (("note", 4),))
    assert blow.consent == (ConsentRule.INTERACTIVE_ONLY, ConsentRule.ONE_SHOT)
    assert (blow.interactive_only, blow.one_shot) == (True, True)
    assert (set_.interactive_only, set_.one_shot) == (False, False)
    assert (melt.about, melt.risk) == ("Not to be had.", Risk.HIGH_RISK)
    with pytest.raises(FrozenInstanceError):
        read.authority = Authority.NONE


def test_an_operation_is_found_by_its_exact_id():
    assert LAMP.operation("org.lamp.light/read@1") is LAMP.operations[2]
    for near in ("org.lamp.light/read", "org.lamp.light/Read@1", "light/read@1", "org.lamp.light/read@2"):
        assert LAMP.operation(near) is None


@promise("C3", "C20")
def test_where_authority_can_come_from_is_the_registrys_word():
    told = {each.id: (each.advertised, each.grantable, each.automatic) for each in LAMP.operations}
    assert told == {
        "org.lamp.light/read@1": (True, True, True),
        "org.lamp.light/set@1": (True, True, True),
        "org.lamp.bulb/Blow-Up@1": (True, True, False),
        "org.lamp.bulb/melt@1": (False, False, False),
    }
    reading = PULP.operation("dev.pulp.artifact/read@1")
    assert (reading.advertised, reading.grantable, reading.automatic) == (True, False, False)


@promise("C22")
def test_a_profile_covers_the_operations_that_name_it_and_no_other():
    assert LAMP.of_profile("look") == {"org.lamp.light/read@1"}
    assert LAMP.of_profile("touch") == {"org.lamp.light/read@1", "org.lamp.light/set@1"}
    assert LAMP.of_profile("nobody") == frozenset()


# --- the digest


@promise("C1", "H3")
def test_a_digest_is_over_the_values_and_style_never_changes_it():
    restyled = json.dumps(load(LAMP_TEXT.encode(), "x").value, indent=3, sort_keys=True)
    assert registry_of(restyled).digest == LAMP.digest
    assert registry_of(changed("profiles: [touch, look]", "profiles: [look, touch]")).digest == LAMP.digest
    assert registry_of(changed("[one-shot, interactive-only]", "[interactive-only, one-shot]")).digest == LAMP.digest
    spelled = changed("    risk: observe\n", "    risk: observe\n    publication_bound: false\n")
    assert registry_of(spelled).digest == LAMP.digest
    assert registry_of(changed("timeout_ms: 500,", "artifacts: 64, timeout_ms: 500,")).digest == LAMP.digest


@promise("C1")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("id: lamp\n", "id: lamps\n"),
        ("prefix: lamp_\n", "prefix: bulb_\n"),
        ("scheme: lamp\n", "scheme: bulb\n"),
        ("profiles: [look, touch]\n", "profiles: [look, touch, more]\n"),
        ("id_length: 8", "id_length: 7"),
        ("outside: [lamp_paint]", "outside: []"),
        ("{lamp_toggle: lamp_light_set}", "{lamp_switch: lamp_light_set}"),
        ("about: Break it.", "about: Break it!"),
        ("risk: high-risk", "risk: control"),
        ("    result: response\n    authority: none", "    result: stream\n    authority: none"),
        ("profiles: [touch]\n", "profiles: [look]\n"),
        ("[one-shot, interactive-only]", "[interactive-only]"),
        ("publication_bound: true", "publication_bound: false"),
        ("idempotency: once", "idempotency: note"),
        ("{note: 4}", "{note: 5}"),
        ("maximum: 100", "maximum: 101"),
        ("{level: {type: integer}}}", "{level: {type: number}}}"),
        ("org.lamp.bulb/melt@1", "org.lamp.bulb/burn@1"),
    ],
)
def test_a_digest_covers_every_value(before, after):
    text = changed(before, after)
    if "stream" in after:
        text = text.replace(
            "output: {type: object, additionalProperties: false, properties: {}}",
            "output: {type: object, additionalProperties: false, required: [stream_id], "
            "properties: {stream_id: {type: string, maxLength: 8}}}",
        )
    if "bulb_" in after:
        text = text.replace("lamp_light_set", "bulb_light_set")
    assert registry_of(text).digest != LAMP.digest


@promise("C1")
def test_the_digest_of_the_lamp_is_the_one_of_the_first_release():
    assert LAMP.digest == "sha256:7d82fa42c4dd184389ee106bb415ddc28ebf8f30fcb6bc40fea1dfd8b09d5da8"


def test_the_default_time_may_be_the_most():
    assert registry_of(changed("default_timeout_ms: 50}", "default_timeout_ms: 500}")).bounds.default_timeout_ms == 500


# --- refusals


WRONG = [
    # the shape
    ("an unknown key", ("scheme: lamp\n", "scheme: lamp\ncolour: red\n"), "unknown_key", "colour"),
    ("a missing key", ("    risk: observe\n", ""), "missing_key", "about: Read"),
    ("an unknown risk", ("risk: observe", "risk: harmless"), "wrong_value", "harmless"),
    (
        "an unknown result",
        ("risk: control\n    result: receipt", "risk: control\n    result: bill"),
        "wrong_value",
        "bill\n",
    ),
    ("a bound beyond the protocol's", ("parameters_bytes: 200", "parameters_bytes: 524289"), "wrong_value", "524289"),
    ("a namespace without its point", ("namespace: org.lamp.", "namespace: org.lamp"), "wrong_value", "org.lamp\n"),
    ("a prefix without its stroke", ("prefix: lamp_", "prefix: lamp"), "wrong_value", "lamp\nscheme"),
    # the file's meaning
    ("a default beyond the most", ("timeout_ms: 500", "timeout_ms: 49"), "wrong_value", "{parameters_bytes"),
    ("a profile twice", ("profiles: [look, touch]", "profiles: [look, look, touch]"), "duplicate_id", "look, touch"),
    ("a tool outside twice", ("[lamp_paint]", "[lamp_paint, lamp_paint]"), "duplicate_id", "lamp_paint]"),
    ("an unknown profile", ("profiles: [touch]\n", "profiles: [torch]\n"), "unknown_reference", "torch"),
    ("a foreign id", ("org.lamp.bulb/melt@1", "com.lamp.bulb/melt@1"), "malformed_name", "com.lamp.bulb"),
    ("another version", ("org.lamp.bulb/melt@1", "org.lamp.bulb/melt@2"), "malformed_name", "org.lamp.bulb/melt@2"),
    ("no version", ("org.lamp.bulb/melt@1", "org.lamp.bulb/melt"), "malformed_name", "org.lamp.bulb/melt:"),
    ("a nameless id", ("org.lamp.bulb/melt@1", "org.lamp.@1"), "malformed_name", "org.lamp.@1"),
    ("a foreign letter", ("org.lamp.bulb/melt@1", "org.lamp.bulb/mélt@1"), "malformed_name", "org.lamp.bulb/mélt"),
    ("an overlapping id", ("org.lamp.bulb/melt@1", "org.lamp@1"), "malformed_name", "org.lamp@1"),
    # authority
    ("a grant by no profile", ("    profiles: [touch]\n", ""), "missing_key", "grant\n    publication"),
    (
        "a profile without a grant",
        ("authority: none", "authority: none\n    profiles: [look]"),
        "wrong_value",
        "profiles: [look]\n    input",
    ),
    (
        "consent where nothing is granted",
        ("authority: none", "authority: none\n    consent: [one-shot]"),
        "wrong_value",
        "consent: [one-shot]\n",
    ),
    (
        "a critical operation without a person",
        ("[one-shot, interactive-only]", "[one-shot]"),
        "wrong_value",
        "critical",
    ),
    (
        "a critical operation of a profile",
        ("authority: operation-grant", "authority: grant\n    profiles: [look]"),
        "wrong_value",
        "critical",
    ),
    ("an access list without a chunk", ("authority: none", "authority: artifact-acl"), "wrong_value", "artifact-acl"),
    # fields
    ("an unknown idempotency field", ("idempotency: once", "idempotency: onec"), "unknown_reference", "onec"),
    (
        "an idempotency field that is no text",
        ("idempotency: once", "idempotency: level"),
        "unknown_reference",
        "level\n    max",
    ),
    ("bytes of no text", ("{note: 4}", "{notes: 4}"), "unknown_reference", "4}"),
    # names
    (
        "two operations with one tool",
        ("org.lamp.bulb/melt@1", "org.lamp.light.set@1"),
        "duplicate_tool",
        "org.lamp.light/set@1",
    ),
    (
        "two that differ in case",
        ("org.lamp.bulb/melt@1", "org.lamp.bulb/blow-up@1"),
        "duplicate_tool",
        "org.lamp.bulb/blow-up@1",
    ),
    (
        "the tool of a management task",
        ("org.lamp.bulb/melt@1", "org.lamp.grant/request@1"),
        "duplicate_tool",
        "org.lamp.grant",
    ),
    ("a retired tool", ("org.lamp.bulb/melt@1", "org.lamp.toggle@1"), "duplicate_tool", "org.lamp.toggle"),
    ("a tool that is outside", ("org.lamp.bulb/melt@1", "org.lamp.paint@1"), "duplicate_tool", "org.lamp.paint"),
    ("a name too long", ("org.lamp.bulb/melt@1", f"org.lamp.{'m' * 124}@1"), "malformed_name", "org.lamp.mmm"),
    (
        "a successor that is nobody",
        ("lamp_toggle: lamp_light_set", "lamp_toggle: lamp_light_sett"),
        "unknown_reference",
        "lamp_light_sett",
    ),
    (
        "a successor that is not to be had",
        ("lamp_toggle: lamp_light_set", "lamp_toggle: lamp_bulb_melt"),
        "unknown_reference",
        "lamp_bulb_melt",
    ),
]


@promise("C1", "C2", "C8", "H3")
@pytest.mark.parametrize(("change", "reason", "mark"), [each[1:] for each in WRONG], ids=[each[0] for each in WRONG])
def test_a_registry_that_is_wrong_is_refused_at_the_place(change, reason, mark):
    text = changed(*change)
    assert faults_of(text) == [(reason, *place_of(text, mark))]


@pytest.mark.parametrize("name", ["receipt_id", "artifact_id", "mime_type", "sha256", "byte_count", "stream_id", "eof"])
def test_a_result_of_a_kind_has_the_fields_of_that_kind(name):
    kind = next(
        each for each in PULP.operations if name in each.output.value.get("required", ()) or name == "stream_id"
    )
    if name == "stream_id":
        kind = PULP.operation("dev.pulp.telemetry/subscribe@1")
    value = load((ROOT / "contracts" / "pulp.registry.yaml").read_bytes(), "pulp").value
    output = value["operations"][kind.id]["output"]
    places = output.get("oneOf", [output])
    places[-1]["required"].remove(name)
    text = json.dumps(value, indent=1)
    line, column = place_of(text, '"output"', list(value["operations"]).index(kind.id))
    assert faults_of(text) == [("missing_key", line, column + len('"output": '))]


@promise("H3")
def test_all_that_is_wrong_with_a_registry_is_told_at_once():
    text = changed("idempotency: once", "idempotency: onec").replace("profiles: [touch]\n", "profiles: [torch]\n")
    text = text.replace("org.lamp.bulb/melt@1", "org.lamp.toggle@1").replace("maximum: 100", "maximun: 100")
    assert faults_of(text) == [
        ("unknown_reference", *place_of(text, "torch")),
        ("unknown_key", *place_of(text, "maximun")),
        ("duplicate_tool", *place_of(text, "org.lamp.toggle")),
    ]


@promise("H3")
def test_a_registry_file_is_read_below_its_root_and_named_from_it(tmp_path):
    path = tmp_path / "contracts" / "lamp.registry.yaml"
    path.parent.mkdir()
    path.write_text(LAMP_TEXT)
    assert load_registry(path, tmp_path) == LAMP
    path.write_text(LAMP_TEXT + "more: {}\n")
    with pytest.raises(DocumentError) as caught:
        load_registry(path, tmp_path)
    assert [(each.reason.value, each.file, each.line) for each in caught.value.problems] == [
        ("unknown_key", "contracts/lamp.registry.yaml", LAMP_TEXT.count("\n") + 1)
    ]


# --- what is shipped


@promise("C1", "H3")
def test_the_shipped_registry_is_pinned():
    assert load_pins(ROOT / "contracts" / "pins.yaml", ROOT).registries == {PULP.id: PULP.digest}


@promise("H4")
def test_the_published_schema_is_that_of_the_code_and_the_shipped_file_fits_it():
    assert published_schemas().keys() == {"registry.schema.json"}
    schema = published_schemas()["registry.schema.json"]
    assert (ROOT / "schemas" / "registry.schema.json").read_text() == schema_text(schema)
    path = ROOT / "contracts" / "pulp.registry.yaml"
    assert path.read_text().startswith("# yaml-language-server: $schema=../schemas/registry.schema.json\n")
    document = load(path.read_bytes(), path.name)
    check(REGISTRY_SHAPE, document)
    assert list(jsonschema_rs.Draft7Validator(schema).iter_errors(document.value)) == []


def keys_of(schema) -> set[str]:
    own = set(schema.get("properties", {}))
    below = [*schema.get("properties", {}).values(), schema.get("additionalProperties")]
    return own.union(*(keys_of(each) for each in below if isinstance(each, dict)))


@promise("H4")
def test_the_readme_explains_every_key_and_every_word():
    text = (ROOT / "contracts" / "README.md").read_text()
    section = text[text.index("## `*.registry.yaml`") : text.index("## `pins.yaml`")]
    words = {each.value for words in (Risk, ResultKind, Authority, ConsentRule) for each in words}
    fields = {name for names in RESULT_FIELDS.values() for name in names}
    wanted = keys_of(published_schemas()["registry.schema.json"]) | words | fields
    assert sorted(word for word in wanted if f"`{word}`" not in section) == []
    bounds = asdict(Bounds())
    assert [name for name, most in bounds.items() if f"`{name}` ({most})" not in section] == []


@promise("H4")
def test_a_registry_that_the_loader_refuses_is_underlined_in_an_editor():
    schema = jsonschema_rs.Draft7Validator(published_schemas()["registry.schema.json"])
    for before, after in (
        ("risk: observe", "risk: harmless"),
        ("scheme: lamp", "skeme: lamp"),
        ("{note: 4}", "{note: 0}"),
    ):
        assert not schema.is_valid(load(changed(before, after).encode(), "x").value)


def test_two_registries_with_the_same_values_are_the_same():
    again = registry_of(LAMP_TEXT)
    assert isinstance(again, Registry)
    assert (again, again.digest) == (LAMP, LAMP.digest)
    assert evolve(LAMP, scheme="other").digest != LAMP.digest
