"""The mutation broker, as the suite has it."""

from __future__ import annotations

from typing import Final

from assisted_benchmark.mutation.states import MUTATION_TABLE
from assisted_benchmark.suite.broker import SCENARIO_SUFFIX, Broker, Kind
from assisted_benchmark.suite.mutation.scenario import BROKER, MutationCase
from assisted_benchmark.suite.mutation.scenario_shape import MUTATION_SCENARIO, MUTATION_SHAPE
from assisted_benchmark.suite.mutation.shelf import MutationShelf
from assisted_benchmark.suite.mutation.stage import MutationStage

_TITLE: Final = "*.scenario.yaml: changes that are proposed and confirmed, and what must come of them"

MUTATION: Final[Broker[MutationCase]] = Broker(
    name=BROKER,
    kinds=(Kind(MUTATION_SCENARIO, SCENARIO_SUFFIX, MUTATION_SHAPE, _TITLE),),
    table=MUTATION_TABLE,
    shelf=MutationShelf,
    stage=MutationStage,
)
