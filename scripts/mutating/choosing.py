"""Which tests a fault is shown to: those that reach its lines, the quick ones first, of its own room first."""

from __future__ import annotations

import ast
from typing import Any, Final

import attrs

from mutating.operators import Mutant
from mutating.reach import Reach

_MOST: Final = 1500
_CPU: Final = 12.0
_SLOW: Final = 3
_COLD_FILES: Final = 12


class Chooser:
    """Finds the tests for a fault, and how it is made: `hot` in a running process, `cold` by importing anew."""

    def __init__(self, reach: Reach, sources: dict[str, bytes]) -> None:
        self._reach = reach
        self._statements = {file: _statements(source) for file, source in sources.items()}
        self._words = {file: source.decode().splitlines() for file, source in sources.items()}

    def order(self, mutant: Mutant) -> tuple[str, dict[str, Any]]:
        """The stage and what it is told."""
        reached = self._reaching(mutant) if mutant.top else set()
        if reached:
            return "hot", self._told(mutant, self._bounded(mutant, reached), hot=True)
        if mutant.top:  # run at import, or in other processes only
            around = self._of_file(mutant)
            starting = {each for each in around if self._reach.tests[each].starts} or around
            return "cold", self._told(mutant, self._ranked(mutant, starting)[:12])
        named = self._naming(mutant) or self._of_file(mutant)
        return "cold", self._told(mutant, self._few_files(self._bounded(mutant, named)))

    def cold_too(self, mutant: Mutant, verdict: str) -> bool:
        """Whether a fault that was made hot says nothing yet: it could not be made, or import computes with it."""
        lines = range(mutant.line, mutant.end_line + 1)
        at_import = not self._reach.imported.get(mutant.file, set()).isdisjoint(lines)
        return verdict == "stillborn" or (verdict == "survived" and mutant.top > 0 and at_import)

    def cold_again(self, mutant: Mutant) -> dict[str, Any]:
        """As a fault that is made cold, whatever it is."""
        reached = self._reaching(mutant) or self._of_file(mutant)
        return self._told(mutant, self._few_files(self._bounded(mutant, reached)))

    def _reaching(self, mutant: Mutant) -> set[int]:
        lines = self._reach.lines.get(mutant.file, {})
        found = {test for line in range(mutant.line, mutant.end_line + 1) for test in lines.get(line, ())}
        if not found:
            first = self._statements[mutant.file].get(mutant.line, mutant.line)
            found = set(lines.get(first, ()))
        return found

    def _of_file(self, mutant: Mutant) -> set[int]:
        found = {test for tests in self._reach.lines.get(mutant.file, {}).values() for test in tests}
        room = f"scripts/tests/{mutant.file.split('/')[0]}/"
        return found or {place for place, test in enumerate(self._reach.tests) if test.id.startswith(room)}

    def _naming(self, mutant: Mutant) -> set[int]:
        """The tests that reach a line which names what the fault's statement defines."""
        first = self._statements[mutant.file].get(mutant.line, mutant.line)
        head = self._words[mutant.file][first - 1].strip()
        name = head.split("=")[0].split(":")[0].split("(")[0].strip()
        if not name.isidentifier() or len(name) < 3:
            return set()
        found: set[int] = set()
        for file, words in self._words.items():
            for number, line in enumerate(words, 1):
                if name in line:
                    found.update(self._reach.lines.get(file, {}).get(number, ()))
        return found

    def _ranked(self, mutant: Mutant, tests: set[int]) -> list[int]:
        room = f"scripts/tests/{mutant.file.split('/')[0]}/"

        def rank(place: int) -> tuple[bool, float]:
            test = self._reach.tests[place]
            away = 1 if test.id.startswith(room) else 3
            return test.slow, (test.cpu + test.wall / 10 + 0.002) * away

        return sorted(tests, key=rank)

    def _bounded(self, mutant: Mutant, tests: set[int]) -> list[int]:
        chosen: list[int] = []
        spent, slow = 0.0, 0
        for place in self._ranked(mutant, tests):
            test = self._reach.tests[place]
            slow += test.slow
            if slow > _SLOW or (not test.slow and (len(chosen) >= _MOST or spent > _CPU)):
                continue
            spent += test.cpu
            chosen.append(place)
        return chosen

    def _few_files(self, tests: list[int]) -> list[int]:
        files: list[str] = []
        kept = []
        for place in tests:
            file = self._reach.tests[place].file
            if file not in files and len(files) < _COLD_FILES:
                files.append(file)
            if file in files:
                kept.append(place)
        return kept

    def _told(self, mutant: Mutant, tests: list[int], *, hot: bool = False) -> dict[str, Any]:
        chosen = [self._reach.tests[place] for place in tests]
        # Made cold, most faults are noticed in the first file: what the others import is not paid for.
        first = [test.id for test in chosen if test.file == chosen[0].file]
        return {
            "mutant": attrs.asdict(mutant),
            "tests": [test.id for test in chosen] if hot else first,
            "more": [] if hot else [test.id for test in chosen if test.file != chosen[0].file],
            "costs": {test.id: [test.cpu, test.wall] for test in chosen},
        }


def _statements(source: bytes) -> dict[int, int]:
    """The first line of the innermost statement that a line is in."""
    found: dict[int, int] = {}
    for node in ast.walk(ast.parse(source)):  # outer ones first
        if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef | ast.ClassDef):
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                found[line] = node.lineno
    return found
