"""A digest says what it is of: SHA-256 over a named, versioned domain and length-framed parts."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import NewType

from assisted_benchmark.kernel.errors import InputError
from assisted_benchmark.kernel.reasons import Reason

# The text form `sha256:<64 lower-case hex>`; nothing else parses.
Digest = NewType("Digest", str)

_TEXT = re.compile(r"sha256:[0-9a-f]{64}")


def framed(kind: str, *parts: bytes) -> bytes:
    """The bytes a digest or MAC of `kind` covers: each part after its length (8 bytes, big-endian)."""
    return _domain(kind) + b"".join([len(part).to_bytes(8, "big") + part for part in parts])


@lru_cache(maxsize=256)
def _domain(kind: str) -> bytes:
    name = kind.encode("ascii")
    return len(name).to_bytes(8, "big") + name


def digest_of(kind: str, *parts: bytes) -> Digest:
    """The digest of `parts` under the domain `kind` (ASCII, with its version, such as `grant@1`)."""
    return Digest("sha256:" + hashlib.sha256(framed(kind, *parts)).hexdigest())


def parse_digest(text: str) -> Digest:
    """The one text form, or InputError(malformed_digest)."""
    if type(text) is not str or _TEXT.fullmatch(text) is None:
        raise InputError(Reason.MALFORMED_DIGEST, f"`{text!s:.80}` is not sha256: and 64 lower-case hex digits")
    return Digest(text)
