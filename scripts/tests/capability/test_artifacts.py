"""Artifacts: read in parts by whom their access list allows, verified each time, written nowhere."""

from __future__ import annotations

import hashlib
from base64 import b64decode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from marks import promise
from registry_bench import PULP, PULP_TOOLS

from assisted_benchmark.capability.artifacts import (
    ACL,
    KEPT_FOR_NS,
    ArtifactBounds,
    Artifacts,
    Chunk,
    Denied,
    Origin,
    Reader,
    Standing,
    artifact_id,
)
from assisted_benchmark.capability.lineage import Lineage
from assisted_benchmark.kernel.canonical import MIB
from assisted_benchmark.kernel.clock import ManualClock
from assisted_benchmark.kernel.reasons import Reason

LINEAGE = Lineage("client-1", "registration-1", "grant-1", "publication-1", "dev.pulp.logs/read@1")
ORIGIN = Origin(LINEAGE, "one", "receipt-1")
READER = Reader("client-1", "one", "registration-1", "publication-1")
LIVE = Standing(None, completed=True)
SMALL = ArtifactBounds(chunk=4, blob=20, resource=12, of_operation=2)
DATA = b"0123456789"


def live(_origin):
    return LIVE


class Bench:
    def __init__(self, data=DATA, bounds=SMALL, acl=ACL):
        self.clock = ManualClock()
        self.blobs = {}
        self.store = Artifacts(self.clock, bounds=bounds, acl=acl, blobs=self.blobs)
        self.artifact = self.store.publish(ORIGIN, data, "text/plain")

    def read(self, offset=0, max_bytes=4, reader=READER, standing=live):
        return self.store.read(reader, self.artifact.id, offset, max_bytes, standing)

    def corrupt(self, data):
        self.blobs[self.artifact.sha256] = data


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# --- reading


@promise("C28")
def test_an_artifact_is_read_in_chunks_each_with_its_own_digest():
    bench = Bench()
    assert bench.read(0) == Chunk(bench.artifact.id, b"0123", False, sha(b"0123"))
    assert bench.read(4) == Chunk(bench.artifact.id, b"4567", False, sha(b"4567"))
    assert bench.read(8) == Chunk(bench.artifact.id, b"89", True, sha(b"89"))
    assert bench.read(10) == Chunk(bench.artifact.id, b"", True, sha(b""))
    assert bench.read(3, 2) == Chunk(bench.artifact.id, b"34", False, sha(b"34"))  # across two blocks


@promise("C28")
def test_a_chunk_fits_the_result_of_the_registry_and_says_no_path():
    chunk = Bench().read(0)
    assert PULP_TOOLS.result_faults(PULP.operation("dev.pulp.artifact/read@1"), chunk.value()) is None
    assert b64decode(chunk.value()["chunk_base64"]) == b"0123"
    assert set(chunk.value()) == {"artifact_id", "chunk_base64", "eof", "sha256"}


@promise("C28")
def test_no_chunk_is_longer_than_the_bound_whatever_is_asked_for():
    assert Bench().read(0, 1_000_000).data == b"0123"
    assert ArtifactBounds() == ArtifactBounds(chunk=MIB, blob=16 * MIB, resource=64 * MIB, of_operation=64)


@promise("C28")
@pytest.mark.parametrize(("offset", "max_bytes"), [(-1, 4), (11, 4), (0, 0), (0, -1)])
def test_what_is_no_part_of_the_artifact_is_refused(offset, max_bytes):
    assert Bench().read(offset, max_bytes).reason is Reason.INVALID_REQUEST


@promise("C28", "C29")
def test_a_resource_is_read_whole_up_to_its_bound():
    bench = Bench(data=b"x" * 12)
    assert bench.store.whole(READER, bench.artifact.id, live) == b"x" * 12
    longer = Bench(data=b"x" * 13)
    assert longer.store.whole(READER, longer.artifact.id, live).reason is Reason.TOO_LARGE
    assert bench.store.whole(READER, "artifact-0", live).reason is Reason.NOT_FOUND


# --- publication


@promise("C28")
def test_what_can_be_read_is_listed_for_its_own_instance_and_nobody_elses_authority_is_looked_at():
    bench = Bench()
    other = ORIGIN._replace(instance="two", receipt_id="receipt-2")
    bench.store.publish(other, DATA, "text/plain")
    asked = []

    def standing(origin):
        asked.append(origin)
        return LIVE

    assert bench.store.readable(READER, standing) == (bench.artifact,)
    assert asked == [ORIGIN]


@promise("C28")
def test_an_artifact_says_what_it_is_and_equal_bytes_are_kept_once():
    bench = Bench()
    assert bench.artifact.value() == {
        "artifact_id": artifact_id("receipt-1", sha(DATA)),
        "media_type": "text/plain",
        "byte_size": 10,
        "sha256": sha(DATA),
    }
    assert bench.store.find(bench.artifact.id) is bench.artifact
    other = bench.store.publish(ORIGIN._replace(receipt_id="receipt-2"), DATA, "text/plain")
    assert other.id != bench.artifact.id  # the same bytes, and another's authority
    assert bench.blobs == {sha(DATA): DATA}
    assert artifact_id("receipt-1", sha(DATA)) == "artifact-eed8ea6f04002fe852536efd1f214e4f"


@promise("C28")
def test_what_a_host_says_of_its_bytes_is_held_to_them():
    store = Bench().store
    assert store.publish(ORIGIN, b"other", "text/plain", sha(b"other")).sha256 == sha(b"other")
    refused = store.publish(ORIGIN, b"another", "text/plain", sha(b"other"))
    assert refused.reason is Reason.ARTIFACT_CORRUPT
    assert store.find(artifact_id("receipt-1", sha(b"another"))) is None


@promise("C28")
def test_artifacts_are_bounded_in_bytes_and_in_number():
    bench = Bench()
    assert bench.store.publish(ORIGIN, b"x" * 21, "text/plain").reason is Reason.TOO_LARGE
    assert bench.store.publish(ORIGIN, b"x" * 20, "text/plain").size == 20
    assert bench.store.publish(ORIGIN, b"y", "text/plain").reason is Reason.RESOURCE_EXHAUSTED
    assert bench.store.publish(ORIGIN, DATA, "text/plain").id == bench.artifact.id  # it is there already
    other = bench.store.publish(ORIGIN._replace(receipt_id="receipt-2"), b"y", "text/plain")
    assert other.size == 1


@promise("C28")
def test_an_expired_artifact_is_forgotten_with_its_bytes_once_nobody_else_has_them():
    bench = Bench()
    bench.clock.advance(KEPT_FOR_NS - 1)
    shared = bench.store.publish(ORIGIN._replace(receipt_id="receipt-2"), DATA, "text/plain")
    bench.clock.advance(1)
    assert bench.read().reason is Reason.EXPIRED
    bench.store.publish(ORIGIN._replace(receipt_id="receipt-3"), b"new", "text/plain")
    assert (bench.store.find(bench.artifact.id), bench.store.find(shared.id)) == (None, shared)
    assert bench.blobs.keys() == {sha(DATA), sha(b"new")}
    bench.clock.advance(KEPT_FOR_NS)
    bench.store.publish(ORIGIN._replace(receipt_id="receipt-4"), b"last", "text/plain")
    assert bench.blobs.keys() == {sha(b"last")}


@promise("C28")
def test_an_artifact_is_kept_for_a_day_by_either_clock():
    assert KEPT_FOR_NS == 24 * 3600 * 10**9
    bench = Bench()
    start = bench.clock.now().wall_ns
    bench.clock.advance(KEPT_FOR_NS - 1)
    bench.clock.set_wall(start)
    assert isinstance(bench.read(), Chunk)
    bench.clock.advance(1)
    bench.clock.set_wall(start)
    assert bench.read().reason is Reason.EXPIRED


@promise("C28")
def test_what_is_published_again_is_verified_again_at_its_first_read():
    bench = Bench()
    assert isinstance(bench.read(0), Chunk)
    bench.clock.advance(KEPT_FOR_NS)
    bench.artifact = bench.store.publish(ORIGIN, DATA, "text/plain")
    bench.corrupt(b"0123456788")
    assert bench.read(0).reason is Reason.ARTIFACT_CORRUPT


# --- the access list


REFUSED = [
    ("another client", READER._replace(client="client-2"), LIVE, Reason.NOT_FOUND),
    ("another instance", READER._replace(instance="two"), LIVE, Reason.WRONG_REGISTRATION),
    ("another registration", READER._replace(registration="registration-2"), LIVE, Reason.WRONG_REGISTRATION),
    ("another publication", READER._replace(publication="publication-2"), LIVE, Reason.WRONG_PUBLICATION),
    ("a revoked grant", READER, Standing(Reason.REVOKED, completed=True), Reason.REVOKED),
    ("a grant that ended otherwise", READER, Standing(Reason.NOT_FOUND, completed=True), Reason.REVOKED),
    ("an expired grant", READER, Standing(Reason.EXPIRED, completed=True), Reason.EXPIRED),
    ("an operation that did not complete", READER, Standing(None, completed=False), Reason.NOT_FOUND),
]


@promise("C28")
@pytest.mark.parametrize(("reader", "standing", "reason"), [each[1:] for each in REFUSED], ids=[r[0] for r in REFUSED])
def test_whoever_the_access_list_does_not_allow_reads_nothing(reader, standing, reason):
    bench = Bench()
    assert bench.read(reader=reader, standing=lambda _: standing).reason is reason
    assert bench.store.whole(reader, bench.artifact.id, lambda _: standing).reason is reason


@promise("C28")
@pytest.mark.parametrize("index", range(len(ACL)), ids=[check.reason.value for check in ACL])
def test_a_store_without_one_check_of_its_list_lets_somebody_read(index):
    mutant = Bench(acl=(*ACL[:index], *ACL[index + 1 :]))
    whole = Bench()
    tried = [(reader, standing, 0) for _, reader, standing, _ in REFUSED] + [(READER, LIVE, KEPT_FOR_NS)]
    let_in = 0
    for reader, standing, later in tried:
        for bench in (mutant, whole):
            bench.clock.set_wall(ManualClock().now().wall_ns + later)
        read = mutant.read(reader=reader, standing=lambda _, standing=standing: standing)
        assert isinstance(whole.read(reader=reader, standing=lambda _, standing=standing: standing), Denied)
        let_in += isinstance(read, Chunk)
    assert let_in > 0


@promise("C25", "C28")
@pytest.mark.parametrize("ended", [Reason.REVOKED, Reason.EXPIRED])
def test_authority_that_ends_during_a_read_keeps_the_bytes_back(ended):
    bench = Bench()
    told = iter([LIVE, Standing(ended, completed=True)])
    asked = []

    def standing(origin):
        asked.append(origin)
        return next(told)

    assert bench.read(standing=standing).reason is ended
    assert asked == [ORIGIN, ORIGIN]


@promise("C28")
def test_an_artifact_that_expires_during_a_read_is_kept_back():
    bench = Bench()

    def slow(_origin):
        bench.clock.advance(KEPT_FOR_NS // 2)
        return LIVE

    assert bench.read(standing=slow).reason is Reason.EXPIRED


def test_an_artifact_that_nobody_published_is_not_found():
    store = Bench().store
    assert store.read(READER, "artifact-0", 0, 1, live).reason is Reason.NOT_FOUND


# --- integrity


@promise("C28")
@pytest.mark.parametrize("data", [b"0123456788", b"012345678", b"01234567890", b""])
def test_the_whole_is_verified_at_the_first_read_wherever_it_reads(data):
    bench = Bench()
    bench.corrupt(data)
    assert bench.read(0).reason is Reason.ARTIFACT_CORRUPT
    assert bench.store.whole(READER, bench.artifact.id, live).reason is Reason.ARTIFACT_CORRUPT


@promise("C28")
def test_each_chunk_is_verified_at_each_read():
    bench = Bench()
    assert isinstance(bench.read(0), Chunk)
    bench.corrupt(b"0123456788")  # after the first read
    assert isinstance(bench.read(0), Chunk)
    assert isinstance(bench.read(4), Chunk)
    assert bench.read(8).reason is Reason.ARTIFACT_CORRUPT
    assert bench.read(7, 2).reason is Reason.ARTIFACT_CORRUPT
    del bench.blobs[bench.artifact.sha256]
    assert bench.read(0).reason is Reason.ARTIFACT_CORRUPT
    bench.clock.advance(KEPT_FOR_NS)
    bench.store.publish(ORIGIN._replace(receipt_id="receipt-2"), b"new", "text/plain")
    assert bench.blobs.keys() == {sha(b"new")}


@promise("C28")
@given(data=st.binary(max_size=20), cuts=st.lists(st.integers(1, 6), min_size=1, max_size=5))
def test_however_it_is_cut_the_parts_are_the_whole(data, cuts):
    bench = Bench(data=data)
    parts, offset, index = [], 0, 0
    while True:
        chunk = bench.read(offset, cuts[index % len(cuts)])
        parts.append(chunk.data)
        offset, index = offset + len(chunk.data), index + 1
        if chunk.eof:
            break
    assert b"".join(parts) == data
