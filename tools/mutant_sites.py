# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Mutants of Python modules: small changes of a number or a decision, one at a time.

A mutant replaces one node of the syntax tree, so that line numbers stay and no file is written.
What is neither number nor decision is left alone: annotations, decorators, texts, messages of
exceptions and warnings, assertions, ``__repr__``, enumerations, settings such as ``stacklevel``.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
COMPARISONS = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPPOSITES = ("min max", "minimum maximum", "argmin argmax", "sin cos", "any all", "floor ceil")
NAMES = {
    name: other
    for pair in OPPOSITES
    for name, other in (pair.split(), reversed(pair.split()))  # both ways
}
SETTINGS = {"stacklevel", "maxsize", "strict", "dtype", "throttle_duration_sec", "repr", "daemon"}
MESSAGES = {"debug", "info", "warn", "warning", "error", "fatal"}
TEXT_METHODS = {"__repr__", "__str__", "__format__"}


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    file: str
    function: str
    """Dotted name within the module, empty at its top."""
    change: str
    """The statement, with what changes as {old => new}."""
    line: int
    lines: frozenset[int]
    """Lines of the statement, without those of a body."""
    names: frozenset[str]
    """Names assigned by a statement outside functions; code that uses them depends on it."""
    number: int
    """Among the mutants of the file."""
    put: Callable[[bool], None] = field(repr=False, compare=False)
    """Put the change into the tree, or take it out."""

    @property
    def id(self) -> str:
        """Identifier for ``--mutant``."""
        return f"{self.file}:{self.line}:{self.number}"

    @property
    def key(self) -> tuple[str, str, str]:
        """Key in the list of known survivors; other edits do not change it."""
        return self.file, self.function, self.change


def mutants(source: str, file: str) -> tuple[ast.Module, list[Mutant]]:
    """Return the syntax tree of a module and all its mutants, in the order of the text."""
    tree = ast.parse(source)
    made: list[Mutant] = []
    for parent, name, index, new, statement, scope, outside in _sites(tree, None, "", True):
        put = _putter(parent, name, index, new)
        before = _text(statement)
        put(True)
        after = _text(new if isinstance(new, ast.stmt) else statement)
        put(False)
        if before == after:
            continue
        lines = _lines(statement)
        names = frozenset(_assigned(statement)) if outside else frozenset()
        change = _difference(before, after)
        line = getattr(parent if isinstance(parent, ast.expr) else statement, "lineno", lines[0])
        made.append(Mutant(file, scope, change, line, frozenset(lines), names, len(made), put))
    return tree, made


def _putter(parent: ast.AST, name: str, index: int | None, new: Any) -> Callable[[bool], None]:
    old = getattr(parent, name) if index is None else getattr(parent, name)[index]

    def put(on: bool) -> None:
        if index is None:
            setattr(parent, name, new if on else old)
        else:
            getattr(parent, name)[index] = new if on else old

    return put


Site = tuple[ast.AST, str, "int | None", Any, ast.stmt, str, bool]
"""Where it is (node, field, index), what comes there, statement, function, outside functions."""


def _sites(node: ast.AST, statement: ast.stmt | None, scope: str, outside: bool) -> Iterator[Site]:
    """Yield every place below a node that has another value to it."""
    for name, value in ast.iter_fields(node):
        if _no_code(node, name):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else ((None, value),):
            if not isinstance(child, ast.AST) or _left_alone(child, node):
                continue
            own, inner, out = statement, scope, outside
            if isinstance(child, ast.stmt):
                own = child
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                inner = f"{scope}.{child.name}" if scope else child.name
                out = outside and isinstance(child, ast.ClassDef)
            for new in _alternatives(child, node, name):
                assert own is not None
                yield node, name, index, new, own, scope, outside
            # defaults of arguments belong to the function, but are computed outside
            yield from _sites(child, own, inner, out)


def _no_code(node: ast.AST, name: str) -> bool:
    """Whether a field of a node holds types or decorators."""
    types = ("annotation", "returns", "decorator_list", "bases", "type_params", "pattern")
    return name in types or (isinstance(node, ast.ExceptHandler) and name == "type")


def _left_alone(node: ast.AST, parent: ast.AST) -> bool:
    """Whether a node is neither number nor decision."""
    match node:
        case ast.Raise() | ast.Assert() | ast.JoinedStr() | ast.Import() | ast.ImportFrom():
            return True
        case ast.keyword(arg=name):
            return name in SETTINGS
        case ast.FunctionDef(name=name):
            return name in TEXT_METHODS
        case ast.ClassDef(bases=bases):
            return any("Enum" in ast.unparse(base) for base in bases)
        case ast.If(test=test):
            return ast.unparse(test) in ("TYPE_CHECKING", "__name__ == '__main__'")
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            types = isinstance(value, (ast.Subscript, ast.BinOp)) and name[0].isupper()
            return name == "__all__" or (types and not name.isupper())
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in MESSAGES
        case ast.Call(func=ast.Name(id=name)) if isinstance(parent, ast.expr | ast.Return):
            return name.endswith("Error")
        case ast.AugAssign(value=value):
            return _is_text(value)
        case ast.BinOp(left=left, right=right) | ast.IfExp(body=left, orelse=right):
            return _is_text(left) or _is_text(right)
    return False


def _is_text(node: ast.AST) -> bool:
    """Whether a node is a text, or a list that is written out, for which + has no opposite."""
    return isinstance(node, (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp)) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _alternatives(node: ast.AST, parent: ast.AST, name: str) -> Iterator[ast.AST]:
    """Yield what a mutant has in place of a node."""
    if name == "test" and isinstance(parent, (ast.If, ast.IfExp, ast.While)):
        yield from (_constant(node, x) for x in (True, False) if not (x and _loops(parent)))
    if name == "ifs":
        yield _constant(node, True)
    match node:
        case ast.BinOp(op=ast.MatMult()):  # v @ w is w @ v for vectors
            yield ast.copy_location(ast.UnaryOp(ast.USub(), node), node)
        case ast.BinOp(op=ast.Mult(), right=ast.Constant(value=1)):
            pass  # x / 1 is x * 1
        case ast.BinOp(op=op) if type(op) in ARITHMETIC:
            yield _with(node, op=ARITHMETIC[type(op)]())
        case ast.AugAssign(op=op, target=target, value=value):
            if type(op) in ARITHMETIC:
                yield _with(node, op=ARITHMETIC[type(op)]())
            yield ast.copy_location(ast.Assign([target], value), node)
        case ast.UnaryOp(operand=operand):
            yield operand
        case ast.Compare(ops=ops):
            for k, op in enumerate(ops):
                for new in COMPARISONS[type(op)]:
                    yield _with(node, ops=[*ops[:k], new(), *ops[k + 1 :]])
        case ast.BoolOp(op=op):
            yield _with(node, op=ast.Or() if isinstance(op, ast.And) else ast.And())
        case ast.IfExp(body=body, orelse=orelse):
            yield _with(node, body=orelse, orelse=body)
        case ast.Constant(value=bool(x)):
            yield _constant(node, not x)
        case ast.Constant(value=int(x) | float(x)):
            yield _constant(node, x + 1 if isinstance(x, int) else 2.0 * x or 1.0)
        case ast.Break():
            yield ast.copy_location(ast.Continue(), node)
        case ast.Continue():
            yield ast.copy_location(ast.Break(), node)
        case ast.Name(id=old) if name == "func" and old in NAMES:
            yield _with(node, id=NAMES[old])
        case ast.Attribute(attr=old) if name == "func" and old in NAMES:
            yield _with(node, attr=NAMES[old])
        case ast.Expr(value=ast.Call()):
            yield ast.copy_location(ast.Pass(), node)
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
            yield ast.copy_location(ast.Pass(), node)


def _loops(node: ast.AST) -> bool:
    return isinstance(node, ast.While)


def _with(node: Any, **changes: Any) -> Any:
    new = copy.copy(node)
    for name, value in changes.items():
        setattr(new, name, value)
    return new


def _constant(node: ast.AST, value: Any) -> ast.Constant:
    return ast.copy_location(ast.Constant(value), node)


def _lines(statement: ast.stmt) -> list[int]:
    """Return the lines of a statement without its body; of a function, those of its body."""
    body = getattr(statement, "body", None)
    end = statement.end_lineno or statement.lineno
    if isinstance(statement, ast.FunctionDef):
        return list(range(statement.body[0].lineno, end + 1))
    if body:
        end = max(statement.lineno, body[0].lineno - 1)
    return list(range(statement.lineno, end + 1))


def _text(statement: ast.AST) -> str:
    """Return a statement in one line, without its body."""
    bare = copy.copy(statement)
    for name in ("body", "orelse", "finalbody", "handlers", "decorator_list", "cases"):
        if isinstance(getattr(bare, name, None), list):
            setattr(bare, name, [ast.Pass()] if name == "body" else [])
    return " ".join(ast.unparse(bare).removesuffix("\n    pass").split())


def _difference(before: str, after: str, margin: int = 48) -> str:
    """Return a text with what changes in it as {old => new}, and not much around it."""
    old, new = (re.findall(r"[\w.]+|\s+|[^\w\s]+", text) for text in (before, after))
    head, tail = "", ""
    while old and new and old[0] == new[0]:
        head += old.pop(0)
        new.pop(0)
    while old and new and old[-1] == new[-1]:
        tail = old.pop() + tail
        new.pop()
    if len(head) > margin:
        head = "..." + head[-margin:]
    if len(tail) > margin:
        tail = tail[:margin] + "..."
    return f"{head}{{{''.join(old)} => {''.join(new)}}}{tail}"


def _assigned(statement: ast.AST) -> list[str]:
    """Return the names that a statement assigns or defines."""
    names = [getattr(statement, "name", "")]
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.append(node.id)
    return [name for name in names if name]


def lines_with(tree: ast.Module, names: frozenset[str]) -> set[int]:
    """Return the lines of all functions of a module that use one of these names."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            used = {getattr(x, "id", getattr(x, "attr", None)) for x in ast.walk(node)}
            if used & names:
                first = node.body[0].lineno if isinstance(node, ast.FunctionDef) else node.lineno
                lines |= set(range(first, (node.end_lineno or node.lineno) + 1))
    return lines
