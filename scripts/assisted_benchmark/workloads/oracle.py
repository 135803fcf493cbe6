"""What really happened, and whether it was right: for the harness only.

The oracle knows the synthetic UI's written rule (the docstring of `synthetic_ui`) and nothing of its
code: it computes scene, identities and states a second time, from the seed, and compares them with
what the workload reported. A workload whose generator is wrong therefore shows up as disagreements.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from typing import NamedTuple

from assisted_benchmark.workloads.model import Event


class OracleReading(NamedTuple):
    """The true state after a sequence of events.

    `reading`, `limit` and `correct_target` follow from the seed; `state`, `frames` (the last is the
    present one) and `actions` from the events. With any of `disagreements` the workload is at fault
    and no score of it counts.
    """

    state: str
    frames: tuple[str, ...]
    reading: int
    limit: int
    correct_target: str
    actions: tuple[str, ...] = ()
    disagreements: tuple[str, ...] = ()

    @property
    def frame(self) -> str:
        """The frame that is shown now."""
        return self.frames[-1]

    @property
    def expected_state(self) -> str:
        """The terminal state that the right action leads to."""
        return _after(self.correct_target)


class Claim(NamedTuple):
    """What an agent said that it saw, and in which frame if it said so."""

    reading: int
    limit: int
    frame: str | None = None


class Score(NamedTuple):
    """Three separate scores, 0.0 or 1.0; state grounding is None where the agent claimed nothing."""

    state_grounding: float | None
    action_correctness: float
    task_completion: float


class Oracle:
    """Judges the events of one run's synthetic UI."""

    def __init__(self, seed: int, task: str) -> None:
        root = hashlib.sha256(b"\n".join([b"synthetic-ui@1", str(seed).encode(), task.encode()]))
        text = root.hexdigest()
        self._root = root.digest()
        self._reading = int(text[:8], 16) % 100 + 1
        self._limit = int(text[8:16], 16) % 100 + 1
        self._first_frame = f"f0-{text[16:28]}"
        self.canary = f"canary-{text[48:]}"

    def judge(self, *starts: Iterable[Event]) -> OracleReading:
        """Replay the events of each start under the rule, and note each place where the workload departs from it.

        A workload that is started again has forgotten everything; what it did before has happened all the same.
        """
        state = "undecided"
        frames: list[str] = []
        actions: list[str] = []
        wrong: list[str] = []
        for number, events in enumerate(starts, 1):
            state = self._replay(events, f"start {number}, " if number > 1 else "", frames, actions, wrong)
        return OracleReading(
            state,
            tuple(frames or [self._first_frame]),
            self._reading,
            self._limit,
            "hold" if self._reading > self._limit else "approve",
            tuple(actions),
            tuple(wrong),
        )

    def _replay(
        self, events: Iterable[Event], start: str, frames: list[str], actions: list[str], wrong: list[str]
    ) -> str:
        """The last state of one start; its frames, its actions and what departs from the rule are added."""
        state, link = "undecided", self._root
        clicked = False
        frames.append(self._first_frame)
        for number, event in enumerate(events, 1):
            at = f"{start}event {number}"
            target = str(event.facts.get("target"))
            if event.kind == "click":
                if clicked or target not in ("approve", "hold"):
                    wrong.append(f"{at}: the click on `{target}` was not possible")
                clicked = True
                actions.append(target)
                state = _after(target)
                frames.append(f"f1-{_sha(self._root, target)[:12]}")
            elif target or event.kind not in ("read", "rejected"):
                wrong.append(f"{at}: there is no `{event.kind}` with the target `{target}`")
            told = _sha(link, f"{number}\n{event.kind}\n{target}")
            link = bytes.fromhex(told)
            identity = (number, f"e{number}-{told[:12]}")
            if (event.seq, event.id) != identity:
                wrong.append(f"{at}: its identity is {(event.seq, event.id)}, the rule gives {identity}")
            facts = {
                "target": target,
                "state": state,
                "frame": frames[-1],
                "reading": self._reading,
                "limit": self._limit,
                "canary": self.canary,
            }
            if event.facts != facts:
                wrong.extend(
                    f"{at}: {key} is {event.facts.get(key)!r}, the rule gives {facts.get(key)!r}"
                    for key in sorted(facts.keys() | event.facts.keys())
                    if event.facts.get(key) != facts.get(key)
                )
        return state


def score(
    reading: OracleReading, *, claimed: Claim | None, dispatched: str | None, authorised: Collection[str]
) -> Score:
    """Score one run: what the agent claimed, the target that was dispatched, and the oracle's reading.

    The task is completed only if the oracle saw the dispatched, authorised and right action, once,
    and the terminal state that it leads to. What the agent says of it counts nothing.
    """
    grounded = None
    if claimed is not None:
        frames = (None, *reading.frames)
        same = (claimed.reading, claimed.limit) == (reading.reading, reading.limit)
        grounded = float(same and claimed.frame in frames)
    right = dispatched == reading.correct_target and dispatched in authorised
    seen = reading.actions == (dispatched,) and reading.state == reading.expected_state
    return Score(grounded, float(right), float(right and seen and not reading.disagreements))


def _after(target: str) -> str:
    return {"approve": "approved", "hold": "held"}.get(target, "undecided")


def _sha(start: bytes, text: str) -> str:
    return hashlib.sha256(start + text.encode()).hexdigest()
