"""The brokers that the suite can drive: whatever is to be added, is added here and in a folder of its own."""

from __future__ import annotations

from typing import Any, Final

from assisted_benchmark.suite.broker import Broker
from assisted_benchmark.suite.capability.entry import CAPABILITY
from assisted_benchmark.suite.live.entry import LIVE
from assisted_benchmark.suite.mutation.entry import MUTATION

BROKERS: Final[tuple[Broker[Any], ...]] = (LIVE, MUTATION, CAPABILITY)
BY_NAME: Final = {each.name: each for each in BROKERS}
BY_SCHEMA: Final = {kind.schema: each for each in BROKERS for kind in each.kinds}
SUFFIXES: Final = tuple(dict.fromkeys(kind.suffix for each in BROKERS for kind in each.kinds))
