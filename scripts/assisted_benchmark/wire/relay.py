"""What passes between a call in flight and whoever made it: its progress, a server's questions, a change of mind."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, unique
from typing import Final, Protocol, TypeAlias

from assisted_benchmark.kernel.canonical import Json


@unique
class Silence(Enum):
    """Why a question has no answer. No text: a raw answer never equals one of these."""

    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"  # the call that asked was cancelled, or the question was taken back
    FAILED = "failed"  # the client answered with an error or is gone


Heard: TypeAlias = Callable[[Json | Silence], None]
"""Hears the raw answer to a question, or why there is none: once, from any thread."""


class Relay(Protocol):
    """One call's way back to the agent that made it. What goes this way is the agent's: by its own ids and tokens."""

    @property
    def cancelled(self) -> bool:
        """Whether the agent has cancelled the call, or is gone so that nobody would hear of its end."""

    @property
    def wants_progress(self) -> bool:
        """Whether the agent gave a token for the call's progress."""

    @property
    def can_ask(self) -> bool:
        """Whether the agent's client declared that it can show a person a form."""

    def on_cancel(self, stop: Callable[[], None]) -> None:
        """Have `stop` called once, from any thread, when the agent cancels the call; now, if it has."""

    def progress(self, current: float, total: float | None = None, message: str = "") -> None:
        """Tell the agent how far the call is, if it asked for that and `current` has grown."""

    def question(self, message: str, requested_schema: dict[str, Json], heard: Heard) -> Callable[[], None]:
        """Ask a person at the agent's client, and do not wait: `heard` hears what comes of it.

        What is returned ends the question, answered or not: whoever asked calls it once, by a time of its own.
        """


class _NoRelay:
    """The relay of an agent that is there for nothing but its proposals."""

    cancelled: Final = False
    wants_progress: Final = False
    can_ask: Final = False

    def on_cancel(self, stop: Callable[[], None]) -> None:
        """It never changes its mind."""

    def progress(self, current: float, total: float | None = None, message: str = "") -> None:
        """It does not care."""

    def question(self, message: str, requested_schema: dict[str, Json], heard: Heard) -> Callable[[], None]:  # noqa: ARG002 - nobody is asked
        """It has no person to ask."""
        heard(Silence.FAILED)
        return lambda: None


NO_RELAY: Final[Relay] = _NoRelay()


def shows_forms(capabilities: Json) -> bool:
    """Whether a client declared that it can show a form: `elicitation: {}` means that it can, url alone does not."""
    declared = capabilities.get("elicitation")
    if type(declared) is not dict:
        return False
    return type(declared.get("form")) is dict if "form" in declared else "url" not in declared
