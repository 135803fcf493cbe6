"""Chance is handed in, like time: ids and nonces come from here and nowhere else."""

from __future__ import annotations

import hashlib
import itertools
import os
from typing import Protocol


class Chance(Protocol):
    """A source of unpredictable (or, in scenarios, reproducible) bytes."""

    def token(self, size: int) -> bytes:
        """`size` bytes that were not given before."""


class SystemChance:
    """The operating system's generator."""

    def token(self, size: int) -> bytes:
        return os.urandom(size)


class SeededChance:
    """The same bytes for the same seed, so that a run can be repeated to the byte."""

    def __init__(self, seed: str) -> None:
        self._seed = hashlib.sha256(seed.encode()).digest()
        self._count = itertools.count(1)  # its next() is atomic, so that no two threads get the same token

    def token(self, size: int) -> bytes:
        return hashlib.shake_128(self._seed + next(self._count).to_bytes(8, "big")).digest(size)
