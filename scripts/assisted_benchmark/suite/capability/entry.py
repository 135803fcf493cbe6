"""The capability broker, as the suite has it."""

from __future__ import annotations

from typing import Final

from assisted_benchmark.capability.states import CAPABILITY_TABLE
from assisted_benchmark.suite.broker import SCENARIO_SUFFIX, Broker, Kind
from assisted_benchmark.suite.capability.scenario import BROKER, CapabilityCase
from assisted_benchmark.suite.capability.scenario_shape import CAPABILITY_SCENARIO, CAPABILITY_SHAPE
from assisted_benchmark.suite.capability.shelf import CapabilityShelf
from assisted_benchmark.suite.capability.stage import CapabilityStage

_TITLE: Final = "*.scenario.yaml: operations that are asked of live instances, and what must come of them"

CAPABILITY: Final[Broker[CapabilityCase]] = Broker(
    name=BROKER,
    kinds=(Kind(CAPABILITY_SCENARIO, SCENARIO_SUFFIX, CAPABILITY_SHAPE, _TITLE),),
    table=CAPABILITY_TABLE,
    shelf=CapabilityShelf,
    stage=CapabilityStage,
)
