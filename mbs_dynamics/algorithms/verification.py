# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Comparison of kernels with the equations that they were compiled from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mbs_dynamics.algorithms._algorithm import algorithm_of
from mbs_dynamics.algorithms.kernels import MODEL_INPUTS, placements
from mbs_dynamics.compiler import Kernel
from mbs_dynamics.errors import BackendError
from mbs_dynamics.model.model import Model
from mbs_dynamics.representation.tree import Tree

STATES = 3

AGREEMENT = 1e-9
"""Largest difference from the equations, relative to one plus the largest absolute value."""


def verify(kernel: Kernel, algorithm: Callable[..., Any], model: Model, output: str = "") -> None:
    """Raise BackendError if a kernel differs from its algorithm, evaluated without compilation.

    ``algorithm`` is one with a ``representation``, which makes no difference to its result, and
    ``model`` the one that the kernel was compiled for. ``output`` names the result of a kernel with
    several. States and inputs of the model are random, masses and armature positive. The equations
    are evaluated body-fixed on NumPy arrays, which takes 1 ms for an arm of 7 joints.
    """
    rng = np.random.default_rng(0)
    for _ in range(STATES):
        given = {port.name: rng.uniform(-1.0, 1.0, port.shape) for port in kernel.inputs}
        for name in {"payload", "armature"} & given.keys():  # results may divide by them
            given[name] = np.abs(given[name])
        if "placements" in given:  # equations may use that they are poses
            given["placements"] = placements(model)
        results: Any = kernel(**given)
        computed = getattr(results, output) if len(kernel.outputs) > 1 else results
        tree = Tree(model, *(given.get(name) for name in MODEL_INPUTS))
        arrays = [given[name] for name in algorithm_of(algorithm).required]
        expected = np.asarray(algorithm(tree, *arrays, representation="body_fixed"), dtype=float)
        error = np.abs(computed - expected).max(initial=0.0)
        error /= 1.0 + np.abs(expected).max(initial=0.0)
        if not error <= AGREEMENT:  # NaN is an error, too
            raise BackendError(
                f"{output or kernel.name}: the compiled code (back end {kernel.backend}) differs "
                f"from the equations by {error:.2g} of the largest value; must be at most "
                f"{AGREEMENT:g}. Delete the cache of compiled code (MBS_CACHE_DIR), or set "
                "MBS_BACKEND=python"
            )
