# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Equations of motion as expressions of SymPy, in symbols of angles, masses and lengths."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations_with_replacement, product
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.algorithms._algorithm import asked_of
from mbs_dynamics.bridges._programs import check_size, evaluated, program_with
from mbs_dynamics.checks import SNAP_TOLERANCE
from mbs_dynamics.compiler import Port
from mbs_dynamics.compiler.ir import operations as ops
from mbs_dynamics.errors import missing_extra
from mbs_dynamics.lie import so3
from mbs_dynamics.model import Model
from mbs_dynamics.model.body import Frames
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.representation.tree import Tree

try:
    import sympy
except ImportError as error:
    raise missing_extra("mbs_dynamics.bridges.sympy", "sympy", error) from error

__all__ = ["Equations", "to_sympy"]

MOST = 2000
"""Operations of a program at most; its expressions, written out, have many times as many."""

AXES = "xyz"


class Equations(NamedTuple):
    """Result of :func:`to_sympy`."""

    result: Any
    """A matrix; for arrays with other than one or two axes an array; for algorithms with several
    results, a mapping from their names to these."""
    inputs: dict[str, Any]
    """Matrices of the symbols of the arguments, by name: q1, q2, ..., qd1, ..."""
    values: dict[Any, float]
    """Numbers of the model, by symbol."""


def to_sympy(function: Callable[..., Any] | str, model: Model, **options: Any) -> Equations:
    """Return an algorithm of a small robot as expressions in symbols of angles, masses and lengths.

    For body i, counted from 1, m<i> is the mass, c<i>x, c<i>y, c<i>z the centre of mass, I<i>xx,
    I<i>xy, ... the tensor about that centre, and r<i>x, r<i>y, r<i>z the position of the body's
    frame in that of its parent, in SI units. r_<link>_x, ... are positions of other links and
    frames in the frames of their bodies. J<k> is the armature of coordinate k. g is the
    acceleration of free fall, or g_x, g_y, g_z are its components if it is along no axis.
    Quantities that are zero in the model are zero, rotations between frames are numbers, and loads
    are part of their bodies.

    ``options`` are those of :func:`mbs_dynamics.compile`. Expressions are simplified as far as the
    trace does it, by zeros, ones and signs; ``sympy.simplify`` does the rest.

    Raises what :func:`mbs_dynamics.compile` raises, and ArgumentError for more than 2000
    operations.
    """
    algorithm, arrays, complete = asked_of(function, options)
    algorithm.check_model(model)
    model = algorithm.model_for(replace(model, variable_links=()), complete)  # all r<i> are symbols
    numbers = _numbers_of(model)

    def on_tree(tree: Tree, entries: Any) -> None:
        _replace_numbers(tree, dict(zip(numbers, entries, strict=True)))

    constants = ("constants", len(numbers))
    program = program_with(algorithm, model, arrays, complete, constants, on_tree)
    check_size(program, MOST, "and as expressions many times as many")
    rotors = {f"J{k}": x for k, x in enumerate(model.armature, 1) if x}
    fall = {f"g_{axis}": x for axis, x in zip(AXES, model.gravity, strict=True) if x}
    if len(fall) == 1:
        ((name, x),) = fall.items()
        directed, fall = {name: sympy.Symbol("g") * int(np.sign(x))}, {"g": abs(x)}
    else:
        directed = {name: sympy.Symbol(name) for name in fall}
    values = {sympy.Symbol(name): float(x) for name, x in (numbers | rotors | fall).items()}
    inputs = {p.name: _symbols(p) for p in program.inputs if p.name in arrays}
    given = {
        "constants": list(map(sympy.Symbol, numbers)),
        "gravity": [directed.get(f"g_{axis}", 0.0) for axis in AXES],
        "armature": [sympy.Symbol(f"J{k}") if x else 0.0 for k, x in enumerate(model.armature, 1)],
        **{name: list(x) for name, x in inputs.items()},
    }
    flat = {port.name: given[port.name] for port in program.inputs}
    results = {name: _shaped(x) for name, x in evaluated(program, flat, ON_EXPRESSIONS).items()}
    used = set().union(*[x.free_symbols for x in results.values()])
    result = results if len(results) > 1 else next(iter(results.values()))
    return Equations(result, inputs, {x: value for x, value in values.items() if x in used})


def _numbers_of(model: Model) -> dict[str, float]:
    """Return the numbers of a model that are not zero, by the names of their symbols."""
    numbers: dict[str, float] = {}
    for i, body in enumerate(model.loaded().bodies, 1):
        numbers[f"m{i}"] = body.inertia.mass
        numbers |= {f"c{i}{axis}": body.inertia.com[k] for k, axis in enumerate(AXES)}
        tensor = body.inertia.tensor_at_com
        numbers |= {f"I{i}{AXES[j]}{AXES[k]}": tensor[j, k] for j, k in PAIRS}
        numbers |= {f"r{i}{axis}": body.home_rel[k, 3] for k, axis in enumerate(AXES)}
    for name, frame in model.frames.items():
        numbers |= {f"r_{name}_{axis}": frame.placement[k, 3] for k, axis in enumerate(AXES)}
    return {name: x for name, x in numbers.items() if abs(x) > SNAP_TOLERANCE}


PAIRS = list(combinations_with_replacement(range(3), 2))
"""Indices of the upper triangle of a tensor."""


def _replace_numbers(tree: Tree, symbols: dict[str, Any]) -> None:
    """Give the bodies of a tree symbols, by name, instead of numbers that are not zero."""

    def vector(name: str) -> Any:
        return np.array([symbols.get(f"{name}{axis}", 0.0) for axis in AXES], dtype=object)

    bodies = []
    for i, body in enumerate(tree.bodies, 1):
        m, c, C = symbols.get(f"m{i}", 0.0), so3.hat(vector(f"c{i}")), body.home_rel.astype(object)
        C[:3, 3] = vector(f"r{i}")
        tensor = np.zeros((3, 3), dtype=object)
        for j, k in PAIRS:
            tensor[j, k] = tensor[k, j] = symbols.get(f"I{i}{AXES[j]}{AXES[k]}", 0.0)
        inertia = Inertia(m, m * vector(f"c{i}"), tensor - m * (c @ c))
        bodies.append(SimpleNamespace(**{**vars(body), "home_rel": C, "inertia": inertia}))
    tree.bodies = bodies

    frames = Frames(tree.model.frames)
    for name, frame in tree.model.frames.items():
        if frame.placement[:3, 3].any():
            placement = frame.placement.astype(object)
            placement[:3, 3] = vector(f"r_{name}_")
            frames[name] = frame._replace(placement=placement)
    tree.frames = frames


def _symbols(port: Port) -> Any:
    """Return a column, or a matrix, of symbols of an argument, numbered from 1."""
    indices = product(*[range(1, size + 1) for size in port.shape])
    symbols = [sympy.Symbol(port.name + "_".join(map(str, k))) for k in indices]
    columns = port.shape[-1] if len(port.shape) > 1 else 1
    return sympy.Matrix(port.size // columns, columns, symbols)


def _shaped(entries: Any) -> Any:
    """Return results as a matrix if they are one, or else as an array."""
    exact = [_exact(x) for x in entries.ravel()]
    if entries.ndim in (1, 2):
        columns = entries.shape[1] if entries.ndim == 2 else 1
        return sympy.Matrix(len(entries), columns, exact)
    return sympy.Array(exact, entries.shape) if entries.ndim else exact[0]


def _exact(x: Any) -> Any:
    """Return small multiples of 1/8 as rational numbers."""
    return sympy.Rational(x) if isinstance(x, float) and (8.0 * x).is_integer() else x


def _on_exact(operation: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *operands: operation(*map(_exact, operands))


ON_EXPRESSIONS: dict[str, Callable[..., Any]] = {
    ops.ADD: _on_exact(operator.add),
    ops.SUB: _on_exact(operator.sub),
    ops.MUL: _on_exact(operator.mul),
    ops.DIV: _on_exact(operator.truediv),
    ops.NEG: operator.neg,
    ops.SIN: sympy.sin,
    ops.COS: sympy.cos,
    ops.SQRT: sympy.sqrt,
    ops.ATAN2: _on_exact(sympy.atan2),
    ops.HYPOT: _on_exact(lambda a, b: sympy.sqrt(a * a + b * b)),
    ops.ABS: sympy.Abs,
    ops.LESS: _on_exact(sympy.StrictLessThan),
    ops.LESS_EQUAL: _on_exact(sympy.LessThan),
    ops.EQUAL: _on_exact(sympy.Equality),
    ops.ISNAN: lambda a: sympy.false,  # an exact number is none
    ops.AND: sympy.And,
    ops.OR: sympy.Or,
    ops.NOT: sympy.Not,
    ops.SELECT: lambda condition, a, b: sympy.Piecewise((_exact(a), condition), (_exact(b), True)),
}
