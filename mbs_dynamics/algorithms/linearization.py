# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The linearised state-space model of a mechanism at a state."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.algorithms._algorithm import algorithm
from mbs_dynamics.algorithms.derivatives import forward_dynamics_derivatives
from mbs_dynamics.algorithms.newton_euler import Wrenches
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.representation.tree import Tree

__all__ = ["Linearization", "linearize"]


class Linearization(NamedTuple):
    """Result of :func:`linearize`: d/dt dx = A dx + B dtau with dx = (dq, dqd)."""

    A: FloatArray
    """(..., 2n, 2n)."""
    B: FloatArray
    """(..., 2n, n)."""


@algorithm(invariant=True, joint_space_only=True, generic=True)
def linearize(
    model: Tree,
    q: ArrayLike,
    qd: ArrayLike,
    tau: ArrayLike,
    wrenches: Wrenches | None = None,
) -> Linearization:
    """Return A (..., 2n, 2n) and B (..., 2n, n) of the dynamics linearized about a state.

    With x = (q, qd) and xdot = f(x, tau) = (qd, qdd), A = df/dx and B = df/dtau: a small deviation
    dx = (dq, dqd) from the motion obeys d/dt dx = A dx + B dtau. For joints with several degrees of
    freedom dq is the displacement of :func:`displaced`, with d/dt dq = dqd - [qd, dq], the bracket
    of their algebra. The state need not be an equilibrium. Damping and friction of the joints are
    not included.

    From :func:`forward_dynamics_derivatives`, which has the same arguments and errors.
    """
    by = forward_dynamics_derivatives(model, q, qd, tau, wrenches)
    zero, eye = np.zeros((model.n, model.n)), np.eye(model.n)
    turning: Any = np.full(zero.shape, 0.0, dtype=object)
    for joint in model.model.joints:
        if joint.nv > 1:
            k = joint.velocities
            rate = model.of_joint(joint, qd)
            own = [rate @ column for column in joint.group.structure.T]  # (c, b)
            turning[np.ix_(k, k)] = -np.array(own).T
    A = model.assembled([[turning, eye], [by.dqdd_dq, by.dqdd_dqd]])
    B = model.assembled([[zero], [by.dqdd_dtau]])
    return Linearization(A, B)
