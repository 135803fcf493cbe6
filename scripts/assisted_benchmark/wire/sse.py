"""The events of a stream, as a server sends them: what each one's data is. Bounded, and in linear time."""

from __future__ import annotations

from typing import Final

from assisted_benchmark.kernel.codes import Reason
from assisted_benchmark.wire.frames import INVALID_REQUEST, Bad, Splitter

_BOM: Final = b"\xef\xbb\xbf"
_ROOM: Final = 64  # of a line, for what stands before its data


class Events:
    """Bytes in, the data of whole events out. What is no message, or begun and not ended, says nothing."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._splitter = Splitter(max_bytes + _ROOM)
        self._first = True
        self._data: list[bytes] = []
        self._size = 0
        self._message = True
        self._too_large = False

    def feed(self, chunk: bytes) -> list[bytes | Bad]:
        """The messages that end in this chunk, in order."""
        found: list[bytes | Bad] = []
        for line in self._splitter.feed(chunk):
            if isinstance(line, Bad):
                self._clear()
                found.append(line)
                continue
            if self._first:
                self._first = False
                line = line.removeprefix(_BOM)
            for each in line.removesuffix(b"\r").split(b"\r"):
                self._take(each, found)
        return found

    def _take(self, line: bytes, found: list[bytes | Bad]) -> None:
        if not line:
            if self._data and self._message:
                found.append(b"\n".join(self._data))
            self._clear()
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._size += len(value) + 1
            if self._size > self._max_bytes + 1:
                self._data.clear()
                if not self._too_large:
                    self._too_large = True
                    found.append(
                        Bad(Reason.TOO_LARGE, INVALID_REQUEST, f"an event of more than {self._max_bytes} bytes")
                    )
            elif value or self._data:
                self._data.append(value)
        elif name == b"event":
            self._message = value == b"message"

    def _clear(self) -> None:
        self._data = []
        self._size = 0
        self._message = True
        self._too_large = False
