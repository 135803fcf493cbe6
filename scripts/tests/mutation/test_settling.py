"""What a proposal's group and its token can come to that no scenario brings about."""

from marks import promise
from mutation_bench import MutationBench

from assisted_benchmark.kernel.errors import LedgerError
from assisted_benchmark.kernel.reasons import Reason


@promise("M18")
def test_whatever_the_ledger_says_as_it_fails_the_answer_is_that_it_failed(monkeypatch):
    bench = MutationBench()
    token = bench.token()

    def fail(*_):
        raise LedgerError(Reason.ILLEGAL_TRANSITION, "the ledger has lost its mind")

    monkeypatch.setattr(bench.broker._confirmer._sender._ledger, "settle", fail, raising=False)
    came = bench.confirm(token)
    assert (came.reason, came.executed, came.receipt_id) == (Reason.STORE_UNAVAILABLE, None, None)


@promise("M9")
def test_two_proposals_never_share_a_token(monkeypatch):
    bench = MutationBench()
    bench.token()
    monkeypatch.setattr("assisted_benchmark.mutation.store.token_text", lambda *_: "chg-1-" + "0" * 24)
    bench.token()
    assert bench.propose("network").reason is Reason.STORE_UNAVAILABLE
    assert bench.creates == 0
