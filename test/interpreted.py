# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Results of programs by the interpreter, and of equations on numbers: nothing is compiled.

Values that the interpreter reads before they are written are NaN.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.algorithms import algorithm_of
from mbs_dynamics.compiler.ir import nodes as ir
from mbs_dynamics.compiler.ir import operations as ops
from mbs_dynamics.compiler.ir.interpreter import evaluate_on
from mbs_dynamics.representation.tree import Tree

MEANING = {name: row.meaning for name, row in ops.TABLE.items()}


def evaluate(module: ir.Module, inputs: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """Return the outputs, flat, by name, and the status; inputs are arrays by name."""
    failed: list[int] = []

    def check(value: float, status: int) -> None:
        if not value > 0.0:
            failed.append(status)

    flat = {name: np.asarray(x, dtype=np.float64).ravel().tolist() for name, x in inputs.items()}
    outputs = evaluate_on(module, flat, MEANING, check)
    return {name: np.array(x, dtype=np.float64) for name, x in outputs.items()}, [*failed, 0][0]


def evaluated(function: Any, model: mbs.Model, *arrays: Any, **options: Any) -> Any:
    """Return the result of an algorithm's equations on numbers."""
    algorithm = algorithm_of(function)
    if "representation" in algorithm.options:
        options.setdefault("representation", "body_fixed")
    return np.asarray(algorithm.equations(Tree(model), *arrays, **options), dtype=float)
