"""One live instance of the plugin host: who it is, where it is published, its parameters and what else it holds."""

from __future__ import annotations

import hashlib
from typing import Final, NamedTuple

from attrs import define, field

from assisted_benchmark.kernel.strict_json import Json

ADVERTISED: Final = (
    "dev.pulp.authoring/tweaks@1",
    "dev.pulp.diagnostics/read@1",
    "dev.pulp.gpu/health.read@1",
    "dev.pulp.instance/read@1",
    "dev.pulp.logs/read@1",
    "dev.pulp.render/offline@1",
    "dev.pulp.runtime/evaluate@1",
    "dev.pulp.session/control@1",
    "dev.pulp.state/parameter-gesture@1",
    "dev.pulp.state/read@1",
    "dev.pulp.telemetry/subscribe@1",
    "dev.pulp.test/input@1",
    "dev.pulp.trace/control@1",
    "dev.pulp.trace/session-control@1",
    "dev.pulp.ui/capture@1",
    "dev.pulp.ui/observe@1",
)
# An offline job has neither a window nor a person.
OF_A_JOB: Final = tuple(
    f"dev.pulp.{name}@1" for name in ("diagnostics/read", "instance/read", "logs/read", "render/offline", "state/read")
)
SENSITIVE_PARAMETER: Final = 6
SENSITIVE_CHANNEL: Final = "host.account"


class Parameter(NamedTuple):
    """What does not change of a parameter."""

    id: int
    name: str
    kind: str
    least: float
    most: float
    start: float  # normalized
    unit: str = ""
    labels: tuple[str, ...] = ()
    designation: str = "none"
    trigger: bool = False

    def value(self, normalized: float) -> float:
        """The plain value of a normalized one."""
        return round(self.least + normalized * (self.most - self.least), 6)


PARAMETERS: Final = (
    Parameter(1, "gain", "continuous", -60, 12, 0.75, "dB"),
    Parameter(2, "cutoff", "continuous", 20, 20_000, 0.5, "Hz"),
    Parameter(3, "mode", "enum", 0, 2, 0, labels=("low", "band", "high")),
    Parameter(4, "bypass", "toggle", 0, 1, 0, designation="bypass"),
    Parameter(5, "voices", "integer", 1, 16, 0.4),
    Parameter(SENSITIVE_PARAMETER, "licence", "continuous", 0, 1, 1),
    Parameter(7, "mix", "continuous", 0, 100, 1, "%"),
    Parameter(8, "panic", "toggle", 0, 1, 0, designation="reset", trigger=True),
)


class Node(NamedTuple):
    """A node of the view tree, with its place in the window."""

    id: str
    parent: str
    kind: str
    frame: tuple[int, int, int, int]


NODES: Final = (
    Node("root", "", "view", (0, 0, 320, 160)),
    Node("title", "root", "label", (0, 0, 320, 40)),
    Node("panel", "root", "view", (0, 40, 320, 120)),
    *(Node(f"knob-{each.id}", "panel", "knob", (40 * place, 60, 40, 40)) for place, each in enumerate(PARAMETERS)),
)


class Ability(NamedTuple):
    """What an instance says of one operation."""

    operation: str
    built: bool = True
    available: bool = True
    activated: bool = True


@define
class Live:
    """The state of an instance. `secret` is a text that it never shows where it was not asked to."""

    id: str
    kind: str
    registration: str
    publication: str
    secret: str = field(repr=False)
    abilities: tuple[Ability, ...]
    publications: int = 1
    generation: int = 1
    normalized: dict[int, float] = field(factory=lambda: {each.id: each.start for each in PARAMETERS})
    lease: tuple[str, str] | None = None  # whose, and its id
    leases: int = 0
    log: list[str] = field(factory=lambda: ["started", "prepared at 48000 Hz", "editor opened"])
    traces: int = 0
    tracing: set[int] = field(factory=set)
    playhead: int = 0
    session_tracing: bool = False
    input_sequence: int = -1
    tweaks: dict[str, Json] = field(factory=dict)
    reloads: int = 0

    @property
    def place(self) -> list[Json]:
        """Its id, registration and publication."""
        return [self.id, self.registration, self.publication]

    def described(self) -> dict[str, Json]:
        """As the inventory has it."""
        return {
            "id": self.id,
            "registration": self.registration,
            "publication": self.publication,
            "state_generation": self.generation,
            "capabilities": [each._asdict() for each in self.abilities],
        }

    def moved(self, parameter_id: int, normalized: float) -> None:
        """A parameter has another value now."""
        self.normalized[parameter_id] = normalized
        self.generation += 1


def named(kind: str, seed: int, *parts: object) -> str:
    """A name that follows from the seed, and from what it is of."""
    text = "\n".join(["plugin-host@1", kind, str(seed), *map(str, parts)])
    return f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def publication_of(seed: int, registration: str, number: int) -> str:
    """The id of a registration's publication of this number."""
    return named("publication", seed, registration, number)


def first_instances(seed: int) -> list[Live]:
    """What is live when a host starts: a standalone and an offline job."""
    return [
        a_live(seed, "instance-1", "standalone", ADVERTISED),
        a_live(seed, "instance-2", "offline-job", OF_A_JOB),
    ]


def a_live(seed: int, instance: str, kind: str, operations: tuple[str, ...], birth: int = 1) -> Live:
    """An instance that has just been registered and published; `birth` tells registrations of one id apart."""
    registration = named("registration", seed, instance, birth)
    return Live(
        id=instance,
        kind=kind,
        registration=registration,
        publication=publication_of(seed, registration, 1),
        secret=canary_of(seed),
        abilities=tuple(map(Ability, operations)),
    )


def canary_of(seed: int) -> str:
    """The secret that a seed's instances hold. A test's secret, which must show up nowhere else."""
    return named("canary", seed)
