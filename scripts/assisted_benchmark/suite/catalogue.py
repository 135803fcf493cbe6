"""Everything that is found under a root: pins, each broker's contracts and policies, and the cases of its scenarios.

All problems of all files are gathered, so that one look shows everything. Which broker a scenario is for, its
`schema` says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from assisted_benchmark.contract.files import is_utf8, name_below, read
from assisted_benchmark.contract.pins import Pins, load_pins
from assisted_benchmark.contract.shape import Fault as Flaw
from assisted_benchmark.contract.shape import Record, Word, check, must
from assisted_benchmark.contract.strict_yaml import Document, load
from assisted_benchmark.kernel.digest import Digest
from assisted_benchmark.kernel.errors import DocumentError, Problem
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown
from assisted_benchmark.suite.broker import SCENARIO_SUFFIX, Shelf
from assisted_benchmark.suite.brokers import BROKERS, BY_SCHEMA, SUFFIXES
from assisted_benchmark.suite.case import Case, folder_of
from assisted_benchmark.suite.files import below

PINS_FILE: Final = "contracts/pins.yaml"


class Catalogue:
    """The pins of a root and each broker's shelf, by the broker's name; the problems of their files."""

    def __init__(self, root: Path) -> None:
        if not is_utf8(str(root.absolute())):
            hint = "move contracts/ and fixtures/ to one whose whole path is"
            place = shown(str(root.absolute()))
            raise DocumentError([Problem(Reason.UNREADABLE, "the folder's name is not UTF-8", place, hint=hint)])
        self.root = root
        self.problems: list[Problem] = []
        # Read first: a file that cannot be read is told of before all that follows from it.
        self.pins = self._pins()
        self.shelves: dict[str, Shelf[Any]] = {each.name: each.shelf(root, self.pins) for each in BROKERS}
        self.problems.extend(problem for shelf in self.shelves.values() for problem in shelf.problems)

    def _pins(self) -> Pins | None:
        path = self.root / PINS_FILE
        try:
            return load_pins(path, self.root) if path.is_file() else Pins({}, {})
        except DocumentError as error:
            self.problems.extend(error.problems)
            return None

    def pin_problems(self, *, used: bool = False) -> Iterator[Problem]:
        """The pins that are missing or do not match: all, or those of what the cases found so far use."""
        pins = self.pins
        if pins is None:
            return  # the file itself is at fault, and is told of
        hint = "look at what changed; then `assisted-benchmark lint --write-pins`"
        wanted = {(each.kind, each.name): each for shelf in self.shelves.values() for each in shelf.pinned(used=used)}
        for (kind, name), each in sorted(wanted.items()):
            pinned = _part(pins, each.part).get(name)
            if pinned is None:
                detail = f"the {kind} `{name}` is not pinned; it is {each.digest}"
                yield self._pins_problem(Reason.PIN_MISMATCH, (each.part,), detail, hint)
            elif pinned != each.digest and not each.fits(pinned):
                detail = f"the {kind} `{name}` is pinned as {pinned} and is {each.digest}"
                yield self._pins_problem(Reason.PIN_MISMATCH, (each.part, name), detail, hint)

    def stray_pins(self) -> Iterator[Problem]:
        """Pins of what is not there. Where a file cannot be read, its id is not known, so nothing is said."""
        pins = self.pins
        if pins is None or self.problems:
            return
        for (part, kind), known in self.stock().items():
            for name in _part(pins, part).keys() - known.keys():
                hint = did_you_mean(name, known) or "remove the line"
                detail = f"no {kind} has the id `{shown(name, 60)}`"
                yield self._pins_problem(Reason.UNKNOWN_REFERENCE, (part, name), detail, hint)

    def stock(self) -> dict[tuple[str, str], dict[str, Digest]]:
        """The digest of everything that can be pinned, by part of the pins and kind, and by id."""
        return {key: dict(known) for shelf in self.shelves.values() for key, known in shelf.stock.items()}

    def _pins_problem(self, reason: Reason, path: tuple[str, ...], detail: str, hint: str) -> Problem:
        if self.pins is None or self.pins.document is None:
            return Problem(reason, detail, PINS_FILE, hint=hint)
        return self.pins.document.problem(reason, path, detail, hint, at_key=True)


def _part(pins: Pins, part: str) -> dict[str, Digest]:
    found: dict[str, Digest] = getattr(pins, part)
    return found


class Gathered:
    """The cases of a root's scenario files, and every problem of every file that was read."""

    def __init__(self, root: Path, paths: Sequence[Path] = ()) -> None:
        self.catalogue = Catalogue(root)
        self.problems = list(self.catalogue.problems)
        self._root = root
        self._ids: dict[tuple[str, str], str] = {}
        self._runs: dict[str, Case] = {}
        cases: list[Case] = []
        for path in _scenario_files(root, paths):
            try:
                cases.extend(self._cases(path))
            except DocumentError as error:
                self.problems.extend(error.problems)
        self.cases = tuple(cases)

    def _cases(self, path: Path) -> tuple[Case, ...]:
        data = read(path, self._root)
        document = load(data, name_below(path, self._root))
        broker = BY_SCHEMA[_schema_of(document)]
        found = self.catalogue.shelves[broker.name].found(document, data)
        flaws = [*self._twin(found.id, broker.name, document), *found.flaws, *self._shared_runs(found.cases, document)]
        if flaws:
            raise DocumentError(
                document.problem(each.reason, each.path, each.detail, each.hint, at_key=each.at_key) for each in flaws
            )
        return found.cases

    def _twin(self, name: str, broker: str, document: Document) -> Iterator[Flaw]:
        first = self._ids.setdefault((folder_of(document.file, broker), name), document.file)
        if first != document.file:
            yield Flaw(Reason.DUPLICATE_ID, ("id",), f"another scenario is named `{name}`", f"see {first}")

    def _shared_runs(self, cases: Sequence[Case], document: Document) -> Iterator[Flaw]:
        """Cases whose run has another case's name: of a run's groups each is spent once, so the second would fail."""
        for case in cases:
            first = self._runs.setdefault(case.run_id, case)
            if first.id != case.id:
                name = case.id.rpartition("/")[2]
                detail = f"the run `{case.run_id}` of the case `{name}` is another case's too"
                hint = f"see `{first.id}` in {first.file}; without `run.run` each case has a run of its own"
                given = case.run_id != case.id
                row = document.value.get("cases", {}).get(name, {}) if given else {}
                path = ("cases", name, "run", "run") if "run" in row else ("run", "run") if given else ("id",)
                yield Flaw(Reason.DUPLICATE_ID, path, detail, hint)


def _schema_of(document: Document) -> str:
    """Which kind of scenario file it is: one that its name may have.

    Raises:
        DocumentError: it is of none.
    """
    kinds = [kind for broker in BROKERS for kind in broker.kinds]
    fitting = [kind for kind in kinds if document.file.endswith(kind.suffix)]
    words = tuple(kind.schema for kind in fitting or [kind for kind in kinds if kind.suffix == SCENARIO_SUFFIX])
    if type(document.value) is not dict or document.value.get("schema") not in words:
        shape = (
            fitting[0].shape
            if len(fitting) == 1
            else Record({"schema": must(Word(words), f"one of {', '.join(words)}")}, "a scenario", open=True)
        )
        check(shape, document)
    return str(document.value["schema"])


def _scenario_files(root: Path, paths: Sequence[Path]) -> list[Path]:
    found: dict[Path, None] = {}
    for path in paths or (root / "fixtures",):
        for each in below(path, *SUFFIXES) if path.is_dir() else (path,):
            found.setdefault(each.absolute())
    return list(found)
