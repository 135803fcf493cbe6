"""Strict YAML with shapes, beside PyYAML's fastest loader, which checks nothing."""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from assisted_benchmark.contract.shape import check
from assisted_benchmark.contract.strict_yaml import load
from assisted_benchmark.suite.live.scenario_shape import SCENARIO_SHAPE
from figures.figure import Figure, at_most, seconds

_FIXTURES = 10_000
_FIXTURE = """\
# yaml-language-server: $schema=../../schemas/scenario.schema.json
schema: assisted-benchmark/scenario@1
id: approve-once-{index}
because: the plain road; one click reaches the UI and nothing else does
policy: ui-decision
run: {{task: t-{index}, seed: 7}}
agent: {{plan: approve}}
expect: {{ends: succeeded, oracle: approved}}
proposals:
  other-task: {{change: {{taskId: t-x}}, refused: arguments_altered}}
  extra-key: {{change: {{force: true}}, refused: arguments_invalid}}
  second-choice: {{after: approve, choose: hold, refused: already_selected}}
"""


def figures() -> Iterator[Figure]:
    """One figure: how much longer our strict load takes than CSafeLoader."""
    texts = [_FIXTURE.format(index=index).encode() for index in range(_FIXTURES)]

    def ours() -> None:
        for text in texts:
            check(SCENARIO_SHAPE, load(text, "fixture.scenario.yaml"))

    def peer() -> None:
        for text in texts:
            yaml.load(text, yaml.CSafeLoader)

    pairs = [(seconds(ours, 1), seconds(peer, 1)) for _ in range(3)]
    mine, theirs = min(pairs, key=lambda pair: pair[0] / pair[1])
    yield at_most(
        "10,000 fixtures loaded strictly", "ratio to CSafeLoader", mine / theirs, 1.0, {"CSafeLoader s": theirs}
    )
