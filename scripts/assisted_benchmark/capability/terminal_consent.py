"""The operator at a terminal, as the broker's own person; and what the operator consented to when starting it.

The terminal is the one that the process was started from, and no stream that the agent's client has. Where there is
none, or where the process is not in front of it, nobody can be asked: the prompt is `unavailable`. Whoever holds the
terminal decides: what cannot be known from here is who that is.
"""

from __future__ import annotations

import os
import select
import termios
from contextlib import suppress
from threading import Event
from typing import Final

from assisted_benchmark.capability.grants import DEFAULT_TTL_NS
from assisted_benchmark.capability.ports import Answer, Prompt, Verdict, Wanted
from assisted_benchmark.capability.registry import Registry
from assisted_benchmark.kernel.clock import SECOND, Deadline
from assisted_benchmark.kernel.text import shown

_WORD: Final = b"approve"
_LONGEST: Final = 256  # of an answer; what is longer is no approval
_LOOK: Final = 0.2  # seconds after which it is seen that nobody waits for the answer any more
_ID: Final = 256
_MINUTES: Final = DEFAULT_TTL_NS // (60 * SECOND)


class TerminalConsent:
    """Asks at `terminal`; `standing` are the operations that need no question. Threads may share it."""

    def __init__(
        self, registry: Registry, *, standing: frozenset[str] = frozenset(), terminal: str = "/dev/tty"
    ) -> None:
        self._registry = registry
        self._standing = standing
        self._terminal = terminal
        self._closed = Event()

    def standing(self, wanted: Wanted, *, deadline: Deadline) -> bool:  # noqa: ARG002 - it is known without waiting
        return self._standing.issuperset(wanted.operations)

    def ask(self, prompt: Prompt, *, deadline: Deadline) -> Answer | None:
        try:
            verdict = self._asked(prompt, deadline)
        except (OSError, termios.error):
            verdict = Verdict.UNAVAILABLE
        return Answer(prompt.id, verdict)

    def close(self) -> None:
        """Nobody waits for an answer any more: the open question and all later ones are unavailable. Idempotent."""
        self._closed.set()

    def _asked(self, prompt: Prompt, deadline: Deadline) -> Verdict:
        fd = os.open(self._terminal, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not os.isatty(fd) or _in_background(fd):
                return Verdict.UNAVAILABLE
            # What was typed before the question was shown answers nothing.
            termios.tcflush(fd, termios.TCIFLUSH)
            verdict = Verdict.TIMED_OUT
            if self._write(fd, self._question(prompt.wanted, deadline), deadline):
                verdict = self._read(fd, deadline)
            termios.tcflush(fd, termios.TCIFLUSH)
            with suppress(OSError):  # the decision stands, whether or not the terminal takes the word for it
                os.write(fd, f"  {verdict.value}\r\n".encode())
            return verdict
        finally:
            os.close(fd)

    def _question(self, wanted: Wanted, deadline: Deadline) -> bytes:
        lines = [
            "",
            "An agent asks for authority over a live instance.",
            f"  client       {shown(wanted.client, _ID)}",
            f"  instance     {shown(wanted.instance, _ID)}",
            f"  publication  {shown(wanted.publication, _ID)}",
            f"  authority    {shown(wanted.authority, _ID)}",
            *map(self._told, wanted.operations),
            f"Type `{_WORD.decode()}` to consent to this for {_MINUTES} minutes; anything else refuses it. "
            f"There are {deadline.remaining_ns() // SECOND} seconds.",
            "> ",
        ]
        # A client may have set the terminal so that a line feed alone does not begin a line.
        return "\r\n".join(lines).encode()

    def _told(self, operation_id: str) -> str:
        operation = self._registry.operation(operation_id)
        known = "" if operation is None else f" ({operation.risk}) {shown(operation.about, 400)}"
        return f"    {shown(operation_id, _ID)}{known}"

    def _read(self, fd: int, deadline: Deadline) -> Verdict:
        """The answer: one line, typed whole and in time."""
        typed = b""
        while len(typed) <= _LONGEST:
            if not self._ready(fd, deadline, writing=False):
                return Verdict.UNAVAILABLE if self._closed.is_set() else Verdict.TIMED_OUT
            piece = os.read(fd, _LONGEST)
            typed += piece
            line, end, _ = typed.replace(b"\r", b"\n").partition(b"\n")
            if end or not piece:
                return Verdict.APPROVED if end and line == _WORD else Verdict.DENIED
        return Verdict.DENIED

    def _write(self, fd: int, text: bytes, deadline: Deadline) -> bool:
        """Write the whole text, which a terminal that was stopped does not take; whether it was taken in time."""
        while text:
            if not self._ready(fd, deadline, writing=True):
                return False
            text = text[os.write(fd, text) :]
        return True

    def _ready(self, fd: int, deadline: Deadline, *, writing: bool) -> bool:
        while not self._closed.is_set() and not deadline.passed:
            within = min(deadline.remaining_ns() / SECOND, _LOOK)
            reads, writes = ([], [fd]) if writing else ([fd], [])
            # Not `poll`, which some systems do not have for terminals.
            if any(select.select(reads, writes, [], within)):
                return True
        return False


def _in_background(fd: int) -> bool:
    """Whether to read from the terminal would stop this process instead."""
    try:
        return os.tcgetpgrp(fd) != os.getpgrp()
    except OSError:
        return False  # it is not the terminal that this process belongs to, which alone could stop it
