"""A bell: a descriptor that a waiting thread polls beside its others, and that any thread can make readable."""

from __future__ import annotations

import contextlib
import os
from typing import Final

_RINGS: Final = 4096


class Bell:
    """Owns a pipe. `fd` is what to poll, -1 once it is closed; it becomes readable when somebody rings."""

    def __init__(self) -> None:
        self.fd, self._ringing = os.pipe()
        for fd in (self.fd, self._ringing):
            os.set_blocking(fd, False)

    def ring(self) -> None:
        """Wake a thread that waits; from any thread."""
        try:
            os.write(self._ringing, b"\0")
        except OSError:
            return  # it rings already, or nobody waits any more

    def silence(self) -> None:
        """It was heard."""
        with contextlib.suppress(OSError):
            os.read(self.fd, _RINGS)

    def close(self) -> None:
        """Let go of the pipe. Idempotent."""
        if self.fd >= 0:
            closed = self._ringing, self.fd
            self._ringing = self.fd = -1  # before the numbers can be somebody else's
            for fd in closed:
                os.close(fd)
