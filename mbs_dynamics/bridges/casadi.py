# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Algorithms as functions of CasADi, for optimisation: the graph of the algorithm in SX."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mbs_dynamics.bridges._programs import check_size, evaluated, kernel_for, split
from mbs_dynamics.compiler import Port
from mbs_dynamics.compiler.ir import operations as ops
from mbs_dynamics.errors import missing_extra
from mbs_dynamics.model import Model

try:
    import casadi
except ImportError as error:
    raise missing_extra("mbs_dynamics.bridges.casadi", "casadi", error) from error

__all__ = ["to_casadi"]

MOST = 200_000
"""Operations that are made SX at most."""

EACH = 10e-6
"""Seconds to make one, measured on an AMD EPYC."""


def to_casadi(
    function: Callable[..., Any] | str,
    model: Model,
    *,
    gravity: bool = False,
    payload: bool = False,
    armature: bool = False,
    placements: bool = False,
    **options: Any,
) -> casadi.Function:
    """Return an algorithm of a model as a ``casadi.Function``, which CasADi can differentiate.

    Its inputs and outputs have the names of the algorithm: ``to_casadi(mbs.inverse_dynamics, arm)``
    is called with columns q, qd and qdd. Vectors are columns, matrices keep their shape, and arrays
    with more axes have their matrices below each other: the poses of ``forward_kinematics`` are
    (4 nb, 4). Quaternions of floating bases are entries of q like others; ``displaced`` moves on
    the group.

    ``gravity``, ``payload``, ``armature`` and ``placements`` make these properties of the model the
    last inputs, (3,), (k, 10), (n,) and (3 k, 4); otherwise they are constants. ``options`` are
    those of :func:`mbs_dynamics.compile`, and ``inertial_parameters=True`` makes what
    :func:`mbs_dynamics.inertial_parameters` returns an input, in place of payload and armature.
    Results are NaN or infinite where a kernel would raise SingularError.

    Raises what :func:`mbs_dynamics.compile` raises, and ArgumentError for algorithms of so many
    operations that CasADi would take too long.
    """
    kernel = kernel_for(function, model, {**options, "backend": "python"})  # nothing is compiled
    program = kernel.program
    seconds = EACH * program.operations.total
    check_size(program, MOST, f"about {seconds:.0f} s as SX, and several times that differentiated")
    asked = {"gravity": gravity, "payload": payload, "armature": armature, "placements": placements}
    ports, constants = split(kernel, **asked)
    symbols = {port.name: casadi.SX.sym(port.name, *_size(port)) for port in ports}
    given = {
        name: np.array(casadi.vec(x.T).elements(), dtype=object) for name, x in symbols.items()
    }
    results = evaluated(program, {**constants, **given}, ON_SX)
    matrices = [_matrix(results[port.name], port) for port in program.outputs]
    names = [port.name for port in program.outputs]
    return casadi.Function(kernel.name, list(symbols.values()), matrices, list(symbols), names)


def _size(port: Port) -> tuple[int, int]:
    """Return the rows and columns that an array has in CasADi."""
    columns = port.shape[-1] if len(port.shape) > 1 else 1
    return port.size // columns if columns else 0, columns


def _matrix(entries: Any, port: Port) -> casadi.SX:
    rows, columns = _size(port)
    matrix: casadi.SX = casadi.reshape(casadi.vertcat(*entries.ravel()), columns, rows).T
    return matrix


def _binary(code: int) -> Callable[[Any, Any], Any]:
    return partial(casadi.SX.binary, code)  # operators take five times as long from Python


def _unary(code: int) -> Callable[[Any], Any]:
    return partial(casadi.SX.unary, code)


def _isnan(x: Any) -> Any:
    # CasADi makes x != x false; every comparison with NaN is
    number = casadi.SX.binary(casadi.OP_LE, x, math.inf)
    return casadi.SX.unary(casadi.OP_NOT, number)


def _select(condition: Any, x: Any, y: Any) -> Any:
    if_true = casadi.SX.binary(casadi.OP_IF_ELSE_ZERO, condition, x)
    otherwise = casadi.SX.unary(casadi.OP_NOT, condition)
    return if_true + casadi.SX.binary(casadi.OP_IF_ELSE_ZERO, otherwise, y)


ON_SX: dict[str, Callable[..., Any]] = {
    ops.ADD: _binary(casadi.OP_ADD),
    ops.SUB: _binary(casadi.OP_SUB),
    ops.MUL: _binary(casadi.OP_MUL),
    ops.DIV: _binary(casadi.OP_DIV),
    ops.ATAN2: _binary(casadi.OP_ATAN2),
    ops.LESS: _binary(casadi.OP_LT),
    ops.LESS_EQUAL: _binary(casadi.OP_LE),
    ops.EQUAL: _binary(casadi.OP_EQ),
    ops.ISNAN: _isnan,
    ops.AND: _binary(casadi.OP_AND),
    ops.OR: _binary(casadi.OP_OR),
    ops.NOT: _unary(casadi.OP_NOT),
    ops.ABS: _unary(casadi.OP_FABS),
    ops.HYPOT: _binary(casadi.OP_HYPOT),
    ops.NEG: _unary(casadi.OP_NEG),
    ops.SIN: _unary(casadi.OP_SIN),
    ops.COS: _unary(casadi.OP_COS),
    ops.SQRT: _unary(casadi.OP_SQRT),
    ops.SELECT: _select,
}
