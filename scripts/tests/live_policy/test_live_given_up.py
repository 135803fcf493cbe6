"""A call that its agent gives up before it is claimed."""

from live_bench import APPROVE, a_choice, choosing
from marks import promise

from assisted_benchmark.kernel.decision import Refused
from assisted_benchmark.kernel.reasons import Reason


class GivenUp:
    can_ask = False
    cancelled = True

    def progress(self, current, total, message):
        raise AssertionError

    def on_cancel(self, stop):
        raise AssertionError

    def ask(self, message, requested_schema, within_ns):
        raise AssertionError


@promise("W5")
def test_a_call_that_its_agent_cancelled_before_the_claim_is_not_claimed():
    bench = a_choice()
    refused = bench.broker.propose(bench.session, choosing(APPROVE), GivenUp())
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.CANCELLED
    assert (bench.states(), bench.calls) == (("sealed",), {"synthetic-ui": 0, "lba": 0})
    assert bench.propose(choosing(APPROVE)).reason is None
