"""Every exception this package raises on purpose.

    HarnessError                      always carries a Reason and a plain sentence
    +-- InputError                    bytes from outside are wrong; nothing has changed
    |   +-- CanonicalError            not admissible as I-JSON (kernel, wire)
    |   +-- DocumentError             a YAML file is wrong: one or several Problems
    |   `-- MisuseError               a command or an API was called wrongly
    +-- LedgerError                   the ledger cannot be used; send nothing
    +-- IntegrityError                receipts, ledger or pins do not verify
    +-- ServerError                   a server could not be started, observed or understood
    `-- Interrupted                   the run was interrupted by a signal

A broker saying no is not in this tree: that is a `Refused`, a value.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from assisted_benchmark.kernel.codes import Reason


class HarnessError(Exception):
    """The root; `reason` is from the closed list, `detail` is for people."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.detail} ({self.reason.value})"


class InputError(HarnessError):
    """Bytes from outside are wrong; nothing has changed."""


class CanonicalError(InputError):
    """Bytes are not admissible I-JSON; `offset` is the byte offset where known, else -1."""

    def __init__(self, reason: Reason, detail: str, offset: int = -1) -> None:
        super().__init__(reason, detail)
        self.offset = offset


class Problem(NamedTuple):
    """One thing wrong in a file: what, where (1-based; 0 when unknown), what to do."""

    reason: Reason
    detail: str
    file: str = ""
    line: int = 0
    column: int = 0
    hint: str = ""

    def __str__(self) -> str:
        from assisted_benchmark.kernel.text import shown  # only where there is something to say: servers start without

        where = shown(self.file, 4096) or "<input>"
        if self.line:
            where += f":{self.line}:{self.column}"
        tail = f"; {self.hint}" if self.hint else ""
        return f"{self.detail} ({self.reason.value}) at {where}{tail}"


class DocumentError(InputError):
    """A file is wrong; `problems` holds every fault that was found, in file order."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        first = self.problems[0]
        super().__init__(first.reason, first.detail)

    def __reduce__(self) -> tuple[type[DocumentError], tuple[tuple[Problem, ...]]]:
        return type(self), (self.problems,)  # the arguments differ from the root's, which pickling would use

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


class MisuseError(InputError):
    """A command or an API was called wrongly."""


class LedgerError(HarnessError):
    """The ledger cannot be used: nothing may be sent."""


class IntegrityError(HarnessError):
    """Receipts, a ledger or a pinned digest do not verify."""


class ServerError(HarnessError):
    """A server could not be started, observed or understood."""


class Interrupted(HarnessError):  # noqa: N818 - not an error, a person said stop
    """The run was interrupted; what was done is recorded."""

    def __init__(self, detail: str) -> None:
        super().__init__(Reason.COULD_NOT_RUN, detail)

    def __reduce__(self) -> tuple[type[Interrupted], tuple[str]]:
        return type(self), (self.detail,)
