"""Where a broker's code refuses: every guard of a reason, found in the source itself.

A guard is one place that answers with one reason, and whatever decides that it does: a check in a broker's list of
named checks, an `if`, a choice between two values, a `case`, a handler of an error, or nothing but the statement's own
place at the end of its function. What lacks the guard is made of it mechanically (`suite.matrix.lacking`), so a new
check has its mutant as soon as it is written.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from enum import StrEnum, unique
from functools import cache
from inspect import getsourcefile
from pathlib import Path
from typing import Final, NamedTuple

from attrs import frozen

from assisted_benchmark.kernel.reasons import Reason

PACKAGE: Final = "assisted_benchmark"

# Answers that keep a call in without a reason of their own: the ledger's word that a claim came too late.
_WORDS: Final = {"Lost": Reason.LOST_RACE}
# What a caller inside the harness did wrong: nothing that comes from outside leads there.
_NOT_REFUSALS: Final = frozenset({"MisuseError"})
# Reasons of a call that the program itself got wrong: no check of anything that comes from outside.
_OWN_FAULTS: Final = frozenset({Reason.COULD_NOT_RUN, Reason.MISUSE})


@unique
class How(StrEnum):
    """What decides at a guard, and so what its mutant lacks."""

    CHECK = "check"  # taken out of the broker's list
    IF = "if"  # its condition never holds
    ELSE = "else"  # its condition always holds
    CASE = "case"  # it never matches
    HANDLER = "handler"  # the error goes on as it is
    PAIR = "pair"  # of a reason and what has to hold for it not to be given: it is taken to hold
    PLACE = "place"  # the statement is left out


@frozen(kw_only=True)
class Guard:
    """One place that answers with `reason`. `name` is stable while its function and order are: no line is in it."""

    name: str
    reason: Reason
    how: How
    module: str
    function: str
    line: int


class Spot(NamedTuple):
    """A guard in its tree: the node that decides, the module's statement that holds it, and its function's name."""

    guard: Guard
    node: ast.AST
    top: ast.stmt
    target: str


@cache
def spots(module: str) -> tuple[Spot, ...]:
    """Every guard of a module's functions, in the order of its text."""
    tree, _ = tree_of(module)
    sayers = dict(_sayers(tree))
    walk = _Walk(module, sayers)
    walk.visit(tree)
    return tuple(walk.found)


@cache
def tree_of(module: str) -> tuple[ast.Module, str]:
    """A module's source, as the interpreter read it for the import, and its file."""
    path = Path(getsourcefile(importlib.import_module(f"{PACKAGE}.{module}")) or "")
    return ast.parse(path.read_text(encoding="utf-8"), str(path)), str(path)


class _Walk(ast.NodeVisitor):
    """Goes through a module with the way down to where it is, and notes each answer that bears a reason."""

    def __init__(self, module: str, sayers: dict[str, Reason]) -> None:
        self.found: list[Spot] = []
        self._said = _WORDS | sayers
        self._sayers = sayers
        self._module = module
        self._way: list[ast.AST] = []
        self._seen: dict[str, int] = {}
        self._taken: set[tuple[int, How]] = set()

    def visit(self, node: ast.AST) -> None:
        self._way.append(node)
        reason = _reason_of(node, self._said)
        if reason is not None and reason not in _OWN_FAULTS:
            self._note(node, reason)
        self.generic_visit(node)
        self._way.pop()

    def _note(self, node: ast.AST, reason: Reason) -> None:
        functions = [each.name for each in self._way if isinstance(each, ast.FunctionDef)]
        if (
            not functions
            or functions[-1] in self._sayers
            or any(isinstance(each, ast.Compare | ast.Dict | ast.arguments) for each in self._way)
        ):
            return
        if any(isinstance(each, ast.Raise) and _raises(each) in _NOT_REFUSALS for each in self._way):
            return
        decided = _decider(self._way)
        if decided is None or (id(decided[1]), decided[0]) in self._taken:
            return
        how, decider = decided
        self._taken.add((id(decider), how))
        scopes = [each.name for each in self._way if isinstance(each, ast.FunctionDef | ast.ClassDef)]
        function = ".".join(scopes)
        base = f"{self._module}:{function}/{reason.value}"
        number = self._seen[base] = self._seen.get(base, 0) + 1
        top = next(each for each in self._way if isinstance(each, ast.FunctionDef | ast.ClassDef))
        target = ".".join(scopes[: scopes.index(functions[0]) + 1])
        guard = Guard(
            name=base if number == 1 else f"{base}.{number}",
            reason=reason,
            how=how,
            module=self._module,
            function=function,
            line=getattr(node, "lineno", 0),
        )
        self.found.append(Spot(guard, decider, top, target))


def _sayers(tree: ast.Module) -> Iterator[tuple[str, Reason]]:
    """Functions that do nothing but give one reason, and are called for it: the guards are where they are called."""
    called = {each.func.id for each in ast.walk(tree) if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)}
    for each in tree.body:
        if isinstance(each, ast.FunctionDef) and each.name in called and len(each.body) == 1:
            said = {reason for node in ast.walk(each.body[0]) if (reason := _reason_of(node, {})) is not None}
            if len(said) == 1 and isinstance(each.body[0], ast.Return | ast.Raise):
                yield each.name, said.pop()


def _reason_of(node: ast.AST, words: dict[str, Reason]) -> Reason | None:
    match node:
        case ast.Attribute(value=ast.Name(id="Reason"), attr=name) if name in Reason.__members__:
            return Reason[name]
        case ast.Call(func=ast.Name(id=name)):
            return words.get(name)
    return None


def _decider(way: list[ast.AST]) -> tuple[How, ast.AST] | None:
    """What decides that the last node of the way is come to; the innermost first."""
    for above, child in _upwards(way):
        match above:
            case ast.Tuple(elts=[first, _]) if child is first:
                return How.PAIR, above
            case ast.IfExp(test=test) if child is not test:
                return (How.IF if child is above.body else How.ELSE), above
            case ast.If(test=test) if child is not test:
                return (How.IF if child in above.body else How.ELSE), above
            case ast.match_case():
                return How.CASE, above
            case ast.ExceptHandler():
                return How.HANDLER, above
            case ast.FunctionDef() | ast.Lambda():
                break
    statement = next(each for each in reversed(way) if isinstance(each, ast.stmt))
    return (How.PLACE, statement) if isinstance(statement, ast.Return | ast.Raise) else None


def _raises(statement: ast.Raise) -> str:
    """The name of the error that is raised, if it stands there."""
    match statement.exc:
        case ast.Call(func=ast.Name(id=name)):
            return name
    return ""


def _upwards(way: list[ast.AST]) -> Iterator[tuple[ast.AST, ast.AST]]:
    return zip(reversed(way[:-1]), reversed(way[1:]), strict=True)
