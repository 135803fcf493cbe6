"""The live broker, as the suite has it."""

from __future__ import annotations

from typing import Final

from assisted_benchmark.live_policy.states import LIVE_TABLE
from assisted_benchmark.suite.broker import SCENARIO_SUFFIX, Broker, Kind
from assisted_benchmark.suite.live.scenario import BROKER, LiveCase
from assisted_benchmark.suite.live.scenario_shape import CANDIDATES, CANDIDATES_SHAPE, SCENARIO, SCENARIO_SHAPE
from assisted_benchmark.suite.live.shelf import LiveShelf
from assisted_benchmark.suite.live.stage import LiveStage

LIVE: Final[Broker[LiveCase]] = Broker(
    name=BROKER,
    kinds=(
        Kind(
            SCENARIO,
            SCENARIO_SUFFIX,
            SCENARIO_SHAPE,
            "*.scenario.yaml: one agent, one policy, and what must come of it",
        ),
        Kind(CANDIDATES, ".candidates.yaml", CANDIDATES_SHAPE, "*.candidates.yaml: a choice group filled for one task"),
    ),
    table=LIVE_TABLE,
    shelf=LiveShelf,
    stage=LiveStage,
)
