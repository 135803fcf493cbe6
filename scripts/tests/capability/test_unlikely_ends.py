"""Ends of artifacts, grants and records that no call of a scenario comes to."""

import pytest
from capability_bench import CapabilityBench
from marks import promise

from assisted_benchmark.capability.artifacts import KEPT_FOR_NS, Artifacts, Origin, Reader, Standing
from assisted_benchmark.capability.lineage import Lineage
from assisted_benchmark.capability.reading import _standing
from assisted_benchmark.kernel.clock import ManualClock
from assisted_benchmark.kernel.errors import IntegrityError
from assisted_benchmark.kernel.reasons import Reason

LINEAGE = Lineage("client-1", "registration-1", "grant-1", "publication-1", "dev.pulp.logs/read@1")
ORIGIN = Origin(LINEAGE, "one", "receipt-1")
READER = Reader("client-1", "one", "registration-1", "publication-1")


@promise("C28")
@pytest.mark.parametrize(
    ("later", "completed", "reason"),
    [(KEPT_FOR_NS, True, Reason.EXPIRED), (0, False, Reason.NOT_FOUND)],
    ids=["a day later", "of what did not complete"],
)
def test_an_artifact_is_nobodys_after_a_day_or_if_nothing_was_completed(later, completed, reason):
    clock = ManualClock()
    store = Artifacts(clock)
    artifact = store.publish(ORIGIN, b"bytes", "text/plain")
    clock.advance(later)
    assert store.read(READER, artifact.id, 0, 1, lambda _: Standing(None, completed)).reason is reason


@promise("C28")
def test_what_came_of_a_forgotten_grant_stands_as_if_that_had_been_revoked():
    bench = CapabilityBench()
    assert _standing(bench.broker._parts)(ORIGIN).grant_ended is Reason.REVOKED


@promise("C23")
def test_an_operation_whose_group_is_gone_is_not_read():
    bench = CapabilityBench()
    bench.ask("dev.pulp.state/read@1")
    ((identity, _),) = bench.ledger.groups("run-1")
    with pytest.raises(IntegrityError) as raised:
        bench.broker._parts.operations._read(identity, None)
    assert raised.value.reason is Reason.LEDGER_MALFORMED
