"""What a fault is: one expression or statement of a module, replaced by another.

A mutant is named by its file, the function it is in, what was there and what is there now; never by its line, so
that a name outlives what is written around it. Texts for people (sentences, details of a refusal) are left alone:
nobody parses them, and no test may.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from typing import Final

from attrs import frozen

_COMPARED: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_COMPUTED: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitAnd,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
_SAYS_THE_DEFAULT: Final = frozenset({"to_bytes", "from_bytes"})
_TYPES_ONLY: Final = frozenset({"cast", "isinstance", "issubclass", "TypeVar", "NewType", "overload"})
_TEXTS: Final = (ast.JoinedStr, ast.Constant, ast.List, ast.Tuple)


@frozen
class Mutant:
    """One fault. `begin` and `end` are places in the source's bytes; `top` is the first line of the outermost function
    around it, 0 for what is run when the module is imported."""

    name: str
    file: str
    line: int
    end_line: int
    top: int
    top_name: str
    begin: int
    end: int
    text: str

    def applied(self, source: bytes) -> bytes:
        """The module with this fault, every other line where it was."""
        lines = source[self.begin : self.end].count(b"\n")
        text = self.text.encode()
        padded = text + b"\n" * lines if text in (b"pass", b"break", b"continue", b"return None") else (
            b"(" + text + b"\n" * lines + b")"
        )  # fmt: skip
        return source[: self.begin] + padded + source[self.end :]


def mutants_of(file: str, source: bytes) -> list[Mutant]:
    """Every fault of one module, in the order of its text."""
    finder = _Finder(file, source)
    finder.visit(ast.parse(source))
    return finder.found


class _Finder(ast.NodeVisitor):
    def __init__(self, file: str, source: bytes) -> None:
        self.found: list[Mutant] = []
        self._file = file
        self._source = source
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._scope: list[str] = []
        self._top = (0, "")
        self._names: Counter[str] = Counter()

    def _add(self, node: ast.expr | ast.stmt, now: ast.AST | str) -> None:
        begin = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        text = now if isinstance(now, str) else ast.unparse(now)
        was = ast.unparse(node)
        if text == was:
            return
        scope = ".".join(self._scope)
        name = f"{self._file}::{scope} `{_short(was)}` -> `{_short(text)}`"
        self._names[name] += 1
        if self._names[name] > 1:
            name += f" #{self._names[name]}"
        self.found.append(
            Mutant(name, self._file, node.lineno, node.end_lineno or node.lineno, *self._top, begin, end, text)
        )

    # What is not a fault that a test could be asked to notice.

    def visit_Module(self, node: ast.Module) -> None:
        self._all(node.body)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """A text for people, and its places in the source are not known."""

    def visit_Import(self, node: ast.Import) -> None:
        """An import is needed or it is not: the linter says."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """As any import."""

    def visit_Assert(self, node: ast.Assert) -> None:
        """Says what must be so, and is taken out where it costs."""

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        """A pattern takes no expression."""

    def visit_match_case(self, node: ast.match_case) -> None:
        if node.guard is not None:
            self.visit(node.guard)
        self._all(node.body)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None and not ast.unparse(node.annotation).endswith("TypeAlias"):
            self.visit(node.value)
            self._assigned(node, [node.target])

    def visit_Assign(self, node: ast.Assign) -> None:
        if not any(isinstance(each, ast.Name) and each.id in ("__all__", "__slots__") for each in node.targets):
            self.visit(node.value)
            self._assigned(node, node.targets)

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) != "TYPE_CHECKING":
            self._condition(node.test)
            self._all(node.body)
            self._all(node.orelse)

    # Scopes.

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._scope.append(node.name)
        self._all(node.body)
        self._scope.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._all([*node.args.defaults, *(each for each in node.args.kw_defaults if each is not None)])
        if node.name == "__repr__" or any("overload" in ast.unparse(each) for each in node.decorator_list):
            return
        self._scope.append(node.name)
        outer = self._top
        if not outer[0]:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            self._top = first, ".".join(self._scope)
        self._all(node.body)
        self._top = outer
        self._scope.pop()

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - the visitor's own spelling

    def _all(self, nodes: list[ast.stmt] | list[ast.expr]) -> None:
        for node in nodes:
            self.visit(node)

    # Statements.

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.visit(node.value)
            if not isinstance(node.value, ast.Yield | ast.YieldFrom):
                self._inside(node, "pass")

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            self.visit(node.value)
            if not isinstance(node.value, ast.Constant):
                self._inside(node, "return None")

    def visit_Raise(self, node: ast.Raise) -> None:
        if isinstance(node.exc, ast.Call):
            self._call_arguments(node.exc, said=True)
        self._inside(node, "pass")

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        self._inside(node, "pass")

    def visit_Delete(self, node: ast.Delete) -> None:
        self._inside(node, "pass")

    def visit_Break(self, node: ast.Break) -> None:
        self._inside(node, "continue")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._inside(node, "break")

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)  # always true would only hang
        if not isinstance(node.test, ast.Constant):
            self._add(node.test, "False")
        self._all(node.body)
        self._all(node.orelse)

    def _inside(self, node: ast.stmt, now: str) -> None:
        if self._top[0]:
            self._add(node, now)

    def _assigned(self, node: ast.stmt, targets: list[ast.expr]) -> None:
        # A name that is not set is an error wherever it is read: no fault worth a run.
        if any(isinstance(each, ast.Attribute | ast.Subscript) for each in targets):
            self._inside(node, "pass")

    # Expressions.

    def _condition(self, test: ast.expr) -> None:
        """Always and never, as far as no other fault of the same condition says as much."""
        joined = type(test.op) if isinstance(test, ast.BoolOp) else None
        if joined is not ast.And:
            self._add(test, "True")
        if joined is not ast.Or:
            self._add(test, "False")
        negated = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], negated):
            self.generic_visit(test)
        elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            self.visit(test.operand)
        else:
            self.visit(test)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._condition(node.test)
        self.visit(node.body)
        self.visit(node.orelse)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self.visit(node.iter)
        for each in node.ifs:
            self._condition(each)

    def visit_Compare(self, node: ast.Compare) -> None:
        for index, op in enumerate(node.ops):
            changed = copy.deepcopy(node)
            changed.ops[index] = _COMPARED[type(op)]()
            self._add(node, changed)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for index in range(len(node.values)):
            rest = [each for place, each in enumerate(node.values) if place != index]
            self._add(node, rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub):
            self._add(node, node.operand)
        self.visit(node.operand)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        kinds = _union(node)
        joined = isinstance(node.op, ast.Add) and isinstance(node.left, _TEXTS) | isinstance(node.right, _TEXTS)
        numbers = isinstance(node.left, ast.Constant) and type(node.left.value) is int
        numbers = numbers or (isinstance(node.right, ast.Constant) and type(node.right.value) is int)
        if not kinds and (numbers or not joined) and type(node.op) in _COMPUTED:
            self._add(node, ast.BinOp(node.left, _COMPUTED[type(node.op)](), node.right))
        if not kinds:
            self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        self.visit(node.func)
        if called in _TYPES_ONLY:
            return
        self._call_arguments(node, said=False)

    def _call_arguments(self, node: ast.Call, *, said: bool) -> None:
        """Each argument, and the call without it. Of what is `said` to people texts are left as they are."""
        for value in [*node.args, *(each.value for each in node.keywords)]:
            if not (said and isinstance(value, ast.Constant)):
                self.visit(value)
        if not self._top[0] or said:
            return
        for index, keyword in enumerate(node.keywords):
            if keyword.arg is not None:
                rest = node.keywords[:index] + node.keywords[index + 1 :]
                self._add(node, ast.Call(node.func, node.args, rest))
        by_habit = isinstance(node.func, ast.Attribute) and node.func.attr in _SAYS_THE_DEFAULT
        if len(node.args) > 1 and not by_habit and not isinstance(node.args[-1], ast.Starred):
            self._add(node, ast.Call(node.func, node.args[:-1], node.keywords))

    def visit_Subscript(self, node: ast.Subscript) -> None:
        part = node.slice
        if isinstance(part, ast.Slice):
            for bound in ("lower", "upper"):
                if getattr(part, bound) is not None:
                    changed = copy.deepcopy(node)
                    setattr(changed.slice, bound, None)
                    self._add(node, changed)
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        for index in range(len(node.keys)):
            keys, values = node.keys[:], node.values[:]
            del keys[index], values[index]
            self._add(node, ast.Dict(keys, values))
        self.generic_visit(node)

    def visit_Set(self, node: ast.Set) -> None:
        for index in range(len(node.elts)):
            if len(node.elts) > 1:
                self._add(node, ast.Set(node.elts[:index] + node.elts[index + 1 :]))
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.value, ast.Name) and node.value.id == "Reason" and node.attr.isupper():
            other = "TOO_LARGE" if node.attr == "MALFORMED_CALL" else "MALFORMED_CALL"
            self._add(node, f"Reason.{other}")
        self.visit(node.value)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._add(node, str(not value))
        elif isinstance(value, int):
            self._add(node, str(value + 1))
        elif isinstance(value, str) and not any(map(str.isspace, value)):
            self._add(node, repr("XX" + value))
        elif isinstance(value, bytes) and b" " not in value:
            self._add(node, repr(b"XX" + value))


def _union(node: ast.BinOp) -> bool:
    """Whether this is a union of types, which nothing computes with."""

    def named(each: ast.expr) -> Iterator[str]:
        if isinstance(each, ast.BinOp):
            yield from named(each.left)
            yield from named(each.right)
        else:
            yield ast.unparse(each).split("[")[0].split(".")[-1]

    plain = {"None", "int", "str", "bytes", "float", "bool", "dict", "list", "tuple"}
    return isinstance(node.op, ast.BitOr) and all(
        each in plain or (each[:1].isupper() and not each.isupper()) for each in named(node)
    )


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 160 else flat[:120] + " ... " + flat[-35:]
