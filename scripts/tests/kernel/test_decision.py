"""A refusal is a value; an agent hears the coarse word of its reason."""

from __future__ import annotations

import pytest
from marks import promise

from assisted_benchmark.kernel.decision import Refused
from assisted_benchmark.kernel.reasons import Coarse, Reason


@promise("K6")
@pytest.mark.parametrize(
    ("reason", "coarse"),
    [
        (Reason.DUPLICATE_KEY, Coarse.MALFORMED),
        (Reason.ARGUMENTS_ALTERED, Coarse.NOT_AUTHORISED),
        (Reason.ALREADY_SELECTED, Coarse.SPENT),
        (Reason.CLOCK_ROLLBACK, Coarse.EXPIRED),
        (Reason.STORE_UNAVAILABLE, Coarse.UNAVAILABLE),
    ],
)
def test_an_agent_hears_only_the_coarse_word(reason, coarse):
    assert Refused(reason, "the argument `targetId` differs").coarse is coarse
