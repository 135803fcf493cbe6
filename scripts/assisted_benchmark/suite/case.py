"""What every case is to the suite, whichever broker it drives: found, selected, told apart, played, reported."""

from __future__ import annotations

from enum import StrEnum, unique
from typing import Final, Protocol

from assisted_benchmark.kernel.digest import Digest

# What is expected of a proposal that must be dispatched; any other word is a reason.
ADMITTED: Final = "admitted"


@unique
class Servers(StrEnum):
    """Where the servers of a case live: models inside this process, or real processes."""

    IN_PROCESS = "in_process"
    PROCESS = "process"


class Named(Protocol):
    """One that has a name."""

    @property
    def name(self) -> str:
        """What reports call it."""


class Case(Protocol):
    """One case, ready to run. `id` is folder/file/case and stable.

    `broker` names the broker that it drives, whose stage plays it; `run_id` the run that its groups are of.
    `policy` is the id of what its authority comes from; `source` is a digest of the files that it was made from.
    """

    @property
    def id(self) -> str: ...

    @property
    def broker(self) -> str: ...

    @property
    def file(self) -> str: ...

    @property
    def because(self) -> str: ...

    @property
    def tags(self) -> tuple[str, ...]: ...

    @property
    def source(self) -> Digest: ...

    @property
    def agent(self) -> Named: ...

    @property
    def policy(self) -> str: ...

    @property
    def run_id(self) -> str: ...

    @property
    def servers(self) -> Servers: ...

    @property
    def only_models(self) -> bool:
        """Whether it does to its servers what can be done to models alone."""


def folder_of(file: str, otherwise: str) -> str:
    """The first part of a case's id: the folder below fixtures/ that its file is in; `otherwise`, for one elsewhere."""
    match file.split("/"):
        case ["fixtures", folder, _, *_]:
            return folder
    return otherwise
