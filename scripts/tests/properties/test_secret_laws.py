"""Laws of what is told: what stands in a place marked as sensitive is in no receipt, refusal or difference."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from live_bench import WORD, a_bench, a_server, a_tool, asking
from marks import promise

from assisted_benchmark.contract.model import SERVER_SET, Contract
from assisted_benchmark.kernel.errors import InputError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.live_policy.matching import differences
from assisted_benchmark.live_policy.policy import Step
from assisted_benchmark.live_policy.proposal import read_proposal

CANARY = "CANARY"
ITEM = {"type": "object", "properties": {"name": WORD, "token": WORD}}
SEND = a_tool(
    "send",
    {
        "name": WORD,
        "items": {"type": "array", "items": ITEM},
        "auth": {"type": ["object", "string"], "properties": {"token": WORD}},
        "vault": {"type": "object", "propertyNames": {"maxLength": 9}, "additionalProperties": {"type": "integer"}},
    },
    sensitive=("/items/0/token", "/items/1/token", "/auth/token", "/vault"),
)
MAIL = Contract(schema=SERVER_SET, id="mail", servers=(a_server("mail", SEND),))
SEALED = {"name": "a", "items": [{"name": "a", "token": "s"}], "auth": {"token": "s"}, "vault": {"a": 1}}

VALUES = st.recursive(
    st.sampled_from([CANARY, "a", 1, 1.0, 1.5, True, None]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from([CANARY, CANARY * 2, "token", "a"]), inner, max_size=2)
    ),
    max_leaves=4,
)
ITEMS = st.lists(st.fixed_dictionaries({"name": st.just("a"), "token": VALUES}), max_size=3)
CHANGES = st.fixed_dictionaries(
    {}, optional={"name": st.sampled_from(["b", 1]), "items": ITEMS | VALUES, "auth": VALUES, "vault": VALUES}
)


@promise("K5")
@settings(max_examples=250, deadline=None)
@given(changes=CHANGES)
@example(changes={"items": [{"name": "a", "token": CANARY}] * 2})
@example(changes={"auth": CANARY})
@example(changes={"auth": {CANARY: 1}})
@example(changes={"vault": {CANARY: 1.0}})
@example(changes={"vault": {CANARY: "x"}})
@example(changes={"vault": {CANARY * 2: 1}})
@example(changes={"vault": {CANARY: 1}})
def test_what_is_proposed_in_a_sensitive_place_is_told_nowhere(changes):
    bench = a_bench(Step.call("mail", "send", SEALED), contract=MAIL)
    raw = asking("mail", "send", {**SEALED, **changes})
    answer = bench.propose(raw)
    plan = bench.broker._known(bench.session.grant).plan
    told = differences(plan.steps[0].candidates[0], read_proposal(raw), SEND.sensitive)
    assert CANARY not in repr(answer)
    assert CANARY not in repr(told)
    assert CANARY not in repr(list(bench.ledger.receipts("run-1")))


@promise("K5")
def test_a_key_that_stands_twice_is_told_nowhere():
    bench = a_bench(Step.call("mail", "send", SEALED), contract=MAIL)
    raw = b'{"server":"mail","tool":"send","arguments":{"vault":{"CANARY":1,"CANARY":2}}}'
    answer = bench.propose(raw)
    malformed = bench.broker.refuse_malformed(bench.session, Reason.DUPLICATE_KEY, "the key `CANARY` stands twice")
    assert answer.reason is malformed.reason is Reason.DUPLICATE_KEY
    assert CANARY not in repr((answer, malformed, list(bench.ledger.receipts("run-1"))))
    with pytest.raises(InputError) as caught:
        read_proposal(raw)
    assert CANARY not in str(caught.value)
