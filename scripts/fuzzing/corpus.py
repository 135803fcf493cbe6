"""The corpus: for each target the inputs that reach what others do not, one JSON text of bytes a line."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent / "corpus"

_TOKENS: Final = (
    b"\x00", b"\n", b"\r\n", b"\xef\xbb\xbf", b"\xc3\xa9", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"\xe2\x80\xa8",
    b"\\u0000", b"\\ud800", b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"null", b"true", b"1.0", b"1e400",
    b"-0", b"9007199254740993", b"NaN", b'"id":1,', b'"jsonrpc":"2.0"', b"- ", b"  ", b"# ", b"&a ", b"*a", b"<<: ",
    b"!!str ", b"---\n",
)  # fmt: skip


def read(target: str) -> list[bytes]:
    """The inputs of a target, in order."""
    path = FOLDER / f"{target}.jsonl"
    lines = path.read_text("ascii").splitlines() if path.exists() else []
    return [json.loads(line).encode("latin-1") for line in lines]


def write(target: str, inputs: list[bytes]) -> None:
    """Make these the inputs of a target."""
    unique = sorted(set(inputs), key=lambda each: (len(each), each))
    lines = [json.dumps(each.decode("latin-1")) + "\n" for each in unique]
    (FOLDER / f"{target}.jsonl").write_text("".join(lines), encoding="ascii")


def edited(inputs: list[bytes], seed: int, most_bytes: int) -> Iterator[bytes]:
    """Endless edits of the inputs, the same ones for a seed."""
    chance = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
    while True:
        data = bytearray(chance.choice(inputs))
        for _ in range(1 << chance.randrange(4)):
            at = chance.randrange(len(data) + 1)
            kind = chance.randrange(6)
            if kind == 0 and data:
                data[at % len(data)] ^= 1 << chance.randrange(8)
            elif kind == 1:
                del data[at : at + 1 + chance.randrange(8)]
            elif kind == 2:
                data[at:at] = chance.choice(_TOKENS)
            elif kind == 3:
                end = at + chance.randrange(32)
                data[at:at] = data[at:end]
            elif kind == 4:
                other = chance.choice(inputs)
                begin = chance.randrange(len(other) + 1)
                data[at:at] = other[begin : begin + chance.randrange(64)]
            else:
                data[at : at + 1] = bytes([chance.randrange(256)])
        yield bytes(data[:most_bytes])
