"""What is reused from call to call: a client's session with the host, and the grants that were got for it.

A session is used for four minutes and then opened anew, as it is after the host said that it is over. An
automatic grant lives for fifteen minutes and is used for fourteen of them, so that it does not end under way;
it is forgotten as soon as anything under it went other than well.
"""

from __future__ import annotations

from threading import Lock
from typing import Final, NamedTuple

from assisted_benchmark.capability.ports import Enrolled, Host, Session, Unavailable
from assisted_benchmark.kernel.clock import SECOND, Clock, Deadline

REUSED_FOR_NS: Final = 4 * 60 * SECOND
GRANT_REUSED_FOR_NS: Final = 14 * 60 * SECOND


class _Open(NamedTuple):
    enrolled: Enrolled
    until_ns: int


class Sessions:
    """The open sessions, one a client. Threads may share them."""

    def __init__(self, host: Host, clock: Clock) -> None:
        self._host = host
        self._clock = clock
        self._lock = Lock()
        self._open: dict[Session, _Open] = {}

    def obtain(self, session: Session, *, deadline: Deadline) -> Enrolled | Unavailable:
        """The open session of this client, or a new one."""
        with self._lock:
            held = self._open.get(session)
        now = self._clock.now().mono_ns
        if held is not None and now < held.until_ns:
            return held.enrolled
        enrolled = self._host.connect(session, deadline=deadline)
        if isinstance(enrolled, Enrolled):
            with self._lock:
                self._open[session] = _Open(enrolled, now + REUSED_FOR_NS)
        return enrolled

    def live(self, session: Session, enrolled: Enrolled) -> bool:
        """Whether this is still the client's session."""
        with self._lock:
            held = self._open.get(session)
            return held is not None and held.enrolled == enrolled

    def ended(self, session: Session, enrolled: Enrolled) -> None:
        """The host said that this session is over; one that was opened since stays."""
        with self._lock:
            held = self._open.get(session)
            if held is not None and held.enrolled == enrolled:
                del self._open[session]


class GrantKey(NamedTuple):
    """What an automatic grant is good for."""

    client: str
    instance: str
    publication: str
    authority: str


class GrantCache:
    """The automatic grants that may be used again: their ids, for a while. Threads may share it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = Lock()
        self._held: dict[GrantKey, tuple[str, int]] = {}

    def get(self, key: GrantKey) -> str | None:
        """The id of the grant to use again, if there is one."""
        with self._lock:
            grant, until_ns = self._held.get(key, ("", 0))
        return grant if self._clock.now().mono_ns < until_ns else None

    def put(self, key: GrantKey, grant: str) -> None:
        """A grant that was just issued automatically."""
        with self._lock:
            now = self._clock.now().mono_ns
            self._held = {each: held for each, held in self._held.items() if now < held[1]}
            self._held[key] = (grant, now + GRANT_REUSED_FOR_NS)

    def forget(self, grant: str) -> None:
        """The grant was revoked, or something under it did not complete."""
        with self._lock:
            self._held = {key: held for key, held in self._held.items() if held[0] != grant}
