"""The JSON Schemas of this room's files, as editors read them: written to `schemas/`, and diffed by a test."""

from __future__ import annotations

import json

from assisted_benchmark.contract.contract_shape import CONTRACT_SHAPE
from assisted_benchmark.contract.pins import PINS_SHAPE
from assisted_benchmark.contract.shape import json_schema
from assisted_benchmark.kernel.canonical import Json


def published_schemas() -> dict[str, Json]:
    """File name to schema, of contracts and pins."""
    return {
        "contract.schema.json": json_schema(
            CONTRACT_SHAPE, id="urn:assisted-benchmark:contract@1", title="*.contract.yaml: what servers offer, pinned"
        ),
        "pins.schema.json": json_schema(
            PINS_SHAPE, id="urn:assisted-benchmark:pins@1", title="contracts/pins.yaml: the digests that are trusted"
        ),
    }


def schema_text(schema: Json) -> str:
    """The bytes of a published schema's file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
