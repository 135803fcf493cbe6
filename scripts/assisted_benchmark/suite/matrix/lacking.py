"""Brokers that lack guards, made of the broker itself: its code is swapped while the mutant is tried, and put back.

Nothing is copied and no file is written. A check of a list is left out of what the broker is made with; any other guard
is changed in the tree of its own function, which is compiled anew. Functions are changed in place, so whoever holds
one has the changed one. Only for a process of its own, and one thread at a time.
"""

from __future__ import annotations  # also as the flag that functions are compiled with anew

import ast
import functools
import gc
import importlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from types import CodeType, FunctionType
from typing import Any, Final

from assisted_benchmark.suite.matrix.guards import PACKAGE, Guard, How, Spot, spots, tree_of
from assisted_benchmark.suite.matrix.lists import LISTS, CheckList

_FUTURE: Final = annotations.compiler_flag


@contextmanager
def lacking(*guards: Guard) -> Iterator[None]:
    """While this lasts, every broker that is made or goes on in this process lacks these guards."""
    functions: dict[tuple[str, str], list[Spot]] = {}
    with ExitStack() as stack:
        for guard in guards:
            if guard.how is How.CHECK:
                stack.enter_context(_unlisted(guard))
            else:
                spot = next(each for each in spots(guard.module) if each.guard == guard)
                functions.setdefault((guard.module, spot.target), []).append(spot)
        for (module, target), lacked in functions.items():
            stack.enter_context(_recompiled(module, target, lacked))
        forget()
        try:
            yield
        finally:
            forget()


@contextmanager
def noting(tell: Callable[[str], None]) -> Iterator[None]:
    """While this lasts, every check of a list tells its guard's name when it says no."""
    with ExitStack() as stack:
        for each in LISTS:
            stack.enter_context(_made_with(each, each.noting(_default(each), tell)))
        yield


@contextmanager
def _unlisted(guard: Guard) -> Iterator[None]:
    """What is made with the list is made without that check."""
    found = next(each for each in LISTS if (each.module, each.name) == (guard.module, guard.function))
    with _made_with(found, found.without(_default(found), guard.name)):
        yield


@contextmanager
def _made_with(found: CheckList, checks: Any) -> Iterator[None]:
    """What is made without saying otherwise is made with this list."""
    defaults = found.made.__init__.__kwdefaults__  # type: ignore[misc]  # of the class itself, on purpose
    whole = defaults[found.parameter]
    defaults[found.parameter] = checks
    try:
        yield
    finally:
        defaults[found.parameter] = whole


def _default(found: CheckList) -> Any:
    return found.made.__init__.__kwdefaults__[found.parameter]  # type: ignore[misc]  # as above


@contextmanager
def _recompiled(module: str, target: str, lacked: list[Spot]) -> Iterator[None]:
    """The function has other code."""
    function = function_of(module, target)
    whole = function.__code__
    function.__code__ = _code(_compiled(module, lacked), target)
    try:
        yield
    finally:
        function.__code__ = whole


def _compiled(module: str, lacked: list[Spot]) -> CodeType:
    """The statement of the module that holds these guards, without them."""
    whole = lacked[0].top
    places = {id(node): at for at, node in enumerate(ast.walk(whole))}
    top = deepcopy(whole)
    nodes = list(ast.walk(top))
    for spot in lacked:
        changed = nodes[places[id(spot.node)]]
        if spot.guard.how is How.PLACE:
            top = _LeaveOut(changed).visit(top)
        else:
            _change(changed, spot.guard.how)
    tree = ast.fix_missing_locations(ast.Module([top], []))
    code: CodeType = compile(tree, tree_of(module)[1], "exec", _FUTURE, dont_inherit=True)
    return code


def _change(node: Any, how: How) -> None:
    # A condition is asked all the same: what asking does is no part of the guard.
    match how:
        case How.IF:
            node.test = ast.BoolOp(ast.And(), [node.test, ast.Constant(False)])
        case How.ELSE:
            node.test = ast.BoolOp(ast.Or(), [node.test, ast.Constant(True)])
        case How.CASE:
            node.guard = ast.Constant(False)
        case How.PAIR:
            node.elts[1] = ast.Constant(True)
        case How.HANDLER:
            node.body = [ast.Raise()]


class _LeaveOut(ast.NodeTransformer):
    def __init__(self, statement: ast.AST) -> None:
        self._statement = statement

    def visit(self, node: ast.AST) -> Any:
        if node is not self._statement:
            return super().generic_visit(node)
        return ast.Return(ast.Constant(None)) if isinstance(node, ast.Return) else ast.Pass()


def _code(code: CodeType, name: str) -> CodeType:
    """The code object of that function, somewhere in this one."""
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    found = next((each for each in inner if each.co_qualname == name), None)
    return found or _code(next(each for each in inner if name.startswith(f"{each.co_qualname}.")), name)


def target_of(guard: Guard) -> str:
    """The name of the function whose code is another in the mutant."""
    return next(each.target for each in spots(guard.module) if each.guard == guard)


def function_of(module: str, name: str) -> FunctionType:
    """The function of that name as the module has it, whatever is wound around it."""
    found: Any = importlib.import_module(f"{PACKAGE}.{module}")
    for part in name.split("."):
        found = vars(found)[part]
    while not isinstance(found, FunctionType):
        found = found.fget if isinstance(found, property) else found.__wrapped__
    return found


@functools.cache
def _caches() -> tuple[Callable[[], None], ...]:
    """What forgets each function's remembered answers: they may be those of the whole broker."""
    kind = type(_caches)
    mine = [each for each in gc.get_objects() if type(each) is kind and each.__module__.startswith(PACKAGE)]
    return tuple(each.cache_clear for each in mine if ".suite.matrix" not in each.__module__)


def forget() -> None:
    """Forget every remembered answer of a function of ours."""
    for clear in _caches():
        clear()
