"""`contracts/pins.yaml`: the digest that each kind of contract and each policy must have for the runner to trust it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from attrs import field, frozen

from assisted_benchmark.contract.files import name_below, read
from assisted_benchmark.contract.plain_scalar import DoubtError, known_value
from assisted_benchmark.contract.shape import DIGEST, MapOf, Record, Word, check, may, must
from assisted_benchmark.contract.strict_yaml import Document, load
from assisted_benchmark.kernel.digest import Digest

PINS: Final = "assisted-benchmark/pins@1"
PARTS: Final = ("contracts", "policies", "changes", "registries")
PINS_SHAPE: Final = Record(
    {
        "schema": must(Word((PINS,)), "The kind and version of this file."),
        "contracts": may(MapOf(DIGEST), "Contract ids and the digests of what they pin."),
        "policies": may(MapOf(DIGEST), "Policy ids and their digests."),
        "changes": may(MapOf(DIGEST), "Change contract ids and their digests."),
        "registries": may(MapOf(DIGEST), "Registry ids and their digests."),
    },
    "the pins",
)


@frozen
class Pins:
    """The pinned digests, by id, and the file they were read from. What is not here is not trusted."""

    contracts: dict[str, Digest]
    policies: dict[str, Digest]
    changes: dict[str, Digest] = field(factory=dict)
    registries: dict[str, Digest] = field(factory=dict)
    document: Document | None = field(default=None, eq=False, repr=False)


def load_pins(path: Path, root: Path) -> Pins:
    """Read the pins.

    Raises:
        DocumentError: with every fault, in file order.
    """
    document = load(read(path, root), name_below(path, root))
    check(PINS_SHAPE, document)
    parts: dict[str, dict[str, Digest]] = {part: document.value.get(part, {}) for part in PARTS}
    return Pins(**parts, document=document)


def pins_text(pins: Pins) -> str:
    """The file that `load_pins` reads back as these pins."""
    lines = ["# yaml-language-server: $schema=../schemas/pins.schema.json", f"schema: {PINS}"]
    for part in PARTS:
        digests: dict[str, Digest] = getattr(pins, part)
        if digests:
            lines += [f"{part}:", *(f"  {_key(name)}: {digest}" for name, digest in sorted(digests.items()))]
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    """The name, quoted where YAML could read it as something else."""
    try:
        return name if known_value(name) == name else f'"{name}"'
    except DoubtError:
        return f'"{name}"'
