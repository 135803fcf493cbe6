"""Artifacts that operations left, kept by the broker: who may read them, in parts, and that they are what they were.

Equal bytes are kept once, and that shares no authority: an artifact is its bytes and what it descends from. The
one rule of who may read it is its access list: the client whose operation made it, on the same registration and
publication of the same instance, while the original grant lives, if the operation completed, until the artifact
expires. It is asked before each read and again after it, since authority can end meanwhile. The whole is hashed at
its publication and at its first read, each block at each read. Nothing is ever written to a path.

For the broker: `publish` what a host's `Ended` carries, before the receipt is settled; it can be read only once
`Standing.completed` says that the receipt is. `artifact_id` is known to the host too, so that a result can name
what it publishes, and `publish` holds the result's own words to the bytes. `standing` is asked twice in a read, and
looks at grants and receipts as they are then.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Callable, MutableMapping
from threading import Lock
from typing import Final, NamedTuple

from attrs import frozen

from assisted_benchmark.capability.admission import Check, first_failure
from assisted_benchmark.capability.lineage import Lineage
from assisted_benchmark.kernel.canonical import MIB, Json
from assisted_benchmark.kernel.clock import SECOND, Clock, Instant
from assisted_benchmark.kernel.digest import digest_of
from assisted_benchmark.kernel.reasons import Reason

KEPT_FOR_NS: Final = 24 * 60 * 60 * SECOND


@frozen(kw_only=True)
class ArtifactBounds:
    """The most bytes of a chunk, of an artifact, of a resource that is read whole; the artifacts of one operation."""

    chunk: int = MIB
    blob: int = 16 * MIB
    resource: int = 64 * MIB
    of_operation: int = 64


class Origin(NamedTuple):
    """What an artifact descends from."""

    lineage: Lineage
    instance: str
    receipt_id: str


class Reader(NamedTuple):
    """Who would read, of which instance as it is registered and published now: the session's word, not the call's."""

    client: str
    instance: str
    registration: str
    publication: str


class Standing(NamedTuple):
    """How an artifact's origin stands now: why its grant has ended, if it has; whether its operation completed."""

    grant_ended: Reason | None
    completed: bool


@frozen
class Artifact:
    """One artifact, without its bytes."""

    id: str
    origin: Origin
    mime_type: str
    sha256: str
    size: int
    expires: Instant

    def expired(self, now: Instant) -> bool:
        """Whether either clock says so; `expires <= now` is expired."""
        return self.expires.wall_ns <= now.wall_ns or self.expires.mono_ns <= now.mono_ns

    def value(self) -> dict[str, Json]:
        """As an operation's result lists it."""
        return {
            "artifact_id": self.id,
            "media_type": self.mime_type,
            "byte_size": self.size,
            "sha256": self.sha256,
        }


@frozen
class Chunk:
    """A part of an artifact; `sha256` is the part's own."""

    artifact_id: str
    data: bytes
    eof: bool
    sha256: str

    def value(self) -> dict[str, Json]:
        """As the result of a read has it."""
        encoded = b64encode(self.data).decode()
        return {"artifact_id": self.artifact_id, "chunk_base64": encoded, "eof": self.eof, "sha256": self.sha256}


@frozen
class Denied:
    """Why nothing was published or read."""

    reason: Reason
    detail: str


class Question(NamedTuple):
    """A read, as the access list is asked about it."""

    artifact: Artifact
    reader: Reader
    standing: Standing
    now: Instant


def _others(q: Question) -> str:
    return "" if q.reader.client == q.artifact.origin.lineage.client else "there is no such artifact of this client's"


def _elsewhere(q: Question) -> str:
    origin = q.artifact.origin
    same = (q.reader.instance, q.reader.registration) == (origin.instance, origin.lineage.registration)
    return "" if same else "the artifact is of another instance, or of another registration of it"


def _republished(q: Question) -> str:
    same = q.reader.publication == q.artifact.origin.lineage.publication
    return "" if same else "the artifact is of an earlier publication"


def _expired(q: Question) -> str:
    return "the artifact has expired" if q.artifact.expired(q.now) else ""


def _revoked(q: Question) -> str:
    # Whatever else ended the grant, it is no longer there to be used.
    return "" if q.standing.grant_ended in (None, Reason.EXPIRED) else "the grant that it came of was revoked"


def _out_of_grant(q: Question) -> str:
    return "the grant that it came of has expired" if q.standing.grant_ended is Reason.EXPIRED else ""


def _unfinished(q: Question) -> str:
    return "" if q.standing.completed else "the operation that it came of has not completed"


# The access list, in order: the first check that fails decides. A store made without one is the mutant of its reason.
ACL: Final[tuple[Check[Question], ...]] = (
    Check(Reason.NOT_FOUND, _others),
    Check(Reason.WRONG_REGISTRATION, _elsewhere),
    Check(Reason.WRONG_PUBLICATION, _republished),
    Check(Reason.REVOKED, _revoked),
    Check(Reason.EXPIRED, _out_of_grant),
    Check(Reason.NOT_FOUND, _unfinished),
    Check(Reason.EXPIRED, _expired),
)


def artifact_id(receipt_id: str, sha256: str) -> str:
    """The id of an artifact with these bytes that the operation of this receipt leaves."""
    return "artifact-" + digest_of("artifact@1", receipt_id.encode(), sha256.encode())[7:39]


@frozen
class _Kept:
    artifact: Artifact
    blocks: tuple[bytes, ...]  # the digest of each block, by its place


class Artifacts:
    """The artifacts of one broker. Threads may share it. `blobs` keeps the bytes, by their SHA-256."""

    def __init__(
        self,
        clock: Clock,
        *,
        bounds: ArtifactBounds | None = None,
        acl: tuple[Check[Question], ...] = ACL,
        blobs: MutableMapping[str, bytes] | None = None,
    ) -> None:
        self._clock = clock
        self._bounds = bounds or ArtifactBounds()
        self._acl = acl
        self._blobs: MutableMapping[str, bytes] = {} if blobs is None else blobs
        self._lock = Lock()
        self._kept: dict[str, _Kept] = {}
        self._seen: set[str] = set()

    def publish(self, origin: Origin, data: bytes, mime_type: str, sha256: str | None = None) -> Artifact | Denied:
        """Keep what an operation made. `sha256` is what its host says the bytes are, if it says so."""
        if len(data) > self._bounds.blob:
            return Denied(Reason.TOO_LARGE, f"{len(data)} bytes where {self._bounds.blob} are allowed")
        found = hashlib.sha256(data).hexdigest()
        if sha256 not in (None, found):
            return Denied(Reason.ARTIFACT_CORRUPT, "the bytes are not those that the host says it published")
        now = self._clock.now()
        expires = Instant(now.wall_ns + KEPT_FOR_NS, now.mono_ns + KEPT_FOR_NS)
        artifact = Artifact(artifact_id(origin.receipt_id, found), origin, mime_type, found, len(data), expires)
        with self._lock:
            self._forget_expired(now)
            of_operation = [each for each in self._kept.values() if each.artifact.origin == origin]
            if artifact.id not in self._kept and len(of_operation) >= self._bounds.of_operation:
                detail = f"more than {self._bounds.of_operation} artifacts of one operation"
                return Denied(Reason.RESOURCE_EXHAUSTED, detail)
            self._blobs.setdefault(found, data)
            self._kept[artifact.id] = _Kept(artifact, self._digests(data))
        return artifact

    def find(self, artifact_id: str) -> Artifact | None:
        """What is kept under this id. To have it is no authority to read it."""
        kept = self._kept.get(artifact_id)
        return None if kept is None else kept.artifact

    def readable(self, reader: Reader, standing: Callable[[Origin], Standing]) -> tuple[Artifact, ...]:
        """All of the reader's instance that the access list allows it to read now, in the order of publication."""
        with self._lock:
            kept = [each.artifact for each in self._kept.values() if each.artifact.origin.instance == reader.instance]
        now = self._clock.now()
        questions = (Question(each, reader, standing(each.origin), now) for each in kept)
        return tuple(each.artifact for each in questions if first_failure(self._acl, each) is None)

    def read(
        self, reader: Reader, artifact_id: str, offset: int, max_bytes: int, standing: Callable[[Origin], Standing]
    ) -> Chunk | Denied:
        """A part of an artifact, of at most one chunk, if its access list allows it, before and after."""
        found = self._allowed(reader, artifact_id, standing)
        if isinstance(found, Denied):
            return found
        if not 0 <= offset <= found.artifact.size or max_bytes < 1:
            return Denied(Reason.INVALID_REQUEST, f"no part of an artifact of {found.artifact.size} bytes")
        data = self._verified(found, offset, offset + min(max_bytes, self._bounds.chunk))
        if data is None:
            return Denied(Reason.ARTIFACT_CORRUPT, "the bytes are not those that were published")
        after = self._allowed(reader, artifact_id, standing)
        if isinstance(after, Denied):
            return after
        eof = offset + len(data) == found.artifact.size
        return Chunk(artifact_id, data, eof, hashlib.sha256(data).hexdigest())

    def whole(self, reader: Reader, artifact_id: str, standing: Callable[[Origin], Standing]) -> bytes | Denied:
        """All of an artifact, as a resource is read: chunk by chunk, each allowed by itself."""
        parts: list[bytes] = []
        size = 0
        while True:
            chunk = self.read(reader, artifact_id, size, self._bounds.chunk, standing)
            if isinstance(chunk, Denied):
                return chunk
            parts.append(chunk.data)
            size += len(chunk.data)
            if size > self._bounds.resource:
                return Denied(Reason.TOO_LARGE, f"a resource has at most {self._bounds.resource} bytes")
            if chunk.eof:
                return b"".join(parts)

    def _allowed(self, reader: Reader, artifact_id: str, standing: Callable[[Origin], Standing]) -> _Kept | Denied:
        kept = self._kept.get(artifact_id)
        if kept is None:
            return Denied(Reason.NOT_FOUND, "there is no such artifact of this client's")
        artifact = kept.artifact
        question = Question(artifact, reader, standing(artifact.origin), self._clock.now())
        failed = first_failure(self._acl, question)
        return kept if failed is None else Denied(failed.reason, failed.detail)

    def _verified(self, kept: _Kept, start: int, end: int) -> bytes | None:
        """The bytes from `start` to `end`, if they are what was published."""
        artifact = kept.artifact
        data = self._blobs.get(artifact.sha256)
        if data is None or len(data) != artifact.size:
            return None
        if artifact.id not in self._seen:
            if hashlib.sha256(data).hexdigest() != artifact.sha256:
                return None
            self._seen.add(artifact.id)
        step = self._bounds.chunk
        for index in range(start // step, -(-min(end, len(data)) // step)):
            if hashlib.sha256(data[index * step : (index + 1) * step]).digest() != kept.blocks[index]:
                return None
        return data[start:end]

    def _digests(self, data: bytes) -> tuple[bytes, ...]:
        step = self._bounds.chunk
        return tuple(hashlib.sha256(data[at : at + step]).digest() for at in range(0, len(data), step))

    def _forget_expired(self, now: Instant) -> None:
        for name in [name for name, kept in self._kept.items() if kept.artifact.expired(now)]:
            sha256 = self._kept.pop(name).artifact.sha256
            self._seen.discard(name)
            if all(kept.artifact.sha256 != sha256 for kept in self._kept.values()):
                self._blobs.pop(sha256, None)
