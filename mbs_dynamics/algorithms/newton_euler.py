# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics by the recursive Newton-Euler algorithm, and its special cases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.algorithms._algorithm import algorithm
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.lie import so3
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.representation import Representation, dynamic_operators
from mbs_dynamics.representation.tree import Tree

__all__ = ["bias_torques", "coriolis_torques", "gravity_torques", "inverse_dynamics"]

Wrenches = ArrayLike | Mapping[str, ArrayLike]
"""Wrenches by body (..., nb, 6), or a mapping from link names to wrenches (..., 6)."""


class Loads(NamedTuple):
    """External loads in addition to joint torques and gravity. None means zero."""

    wrenches: Any = None
    """(nb, 6) applied wrenches, in the representation of the recursion."""
    base_twist: Any = None
    """(6,) body-fixed twist of the base."""
    base_acceleration: Any = None
    """(6,) rate of the components of base_twist."""


NO_LOADS = Loads()


@algorithm(invariant=True, joint_space_only=True)
def inverse_dynamics(
    model: Tree,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    wrenches: Wrenches | None = None,
    base_twist: ArrayLike | None = None,
    base_acceleration: ArrayLike | None = None,
    *,
    representation: str = "auto",
) -> FloatArray:
    """Return the joint torques tau = M qdd + h - sum J_i^T W_i (..., n) in N m or N, in O(n).

    Damping and friction of the joints are not included.

    ``base_twist`` and ``base_acceleration`` (..., 6) describe a moving base: its body-fixed twist
    and the time derivative of its components. The inertial frame is then the one that
    instantaneously coincides with the base, and gravity is resolved in it.

    Recursive Newton-Euler algorithm: Mueller (dynamics), eqs. (66)-(67), (70)-(71) and (75)-(76);
    the mixed form follows from (56)-(57). Corrected: the backward recursions start at the last
    body, and applied wrenches have the sign of eq. (77). Gravity enters as an acceleration of the
    ground.
    """
    loads = Loads(wrenches, base_twist, base_acceleration)
    return newton_euler(model, q, qd, qdd, representation, loads)


@algorithm(invariant=True, joint_space_only=True)
def gravity_torques(model: Tree, q: ArrayLike, *, representation: str = "auto") -> FloatArray:
    """Return the joint torques g(q) (..., n), in N m or N, that hold the mechanism at rest.

    :func:`inverse_dynamics` without motion.
    """
    rest = np.zeros(model.n)
    return newton_euler(model, q, rest, rest, representation)


@algorithm(invariant=True, joint_space_only=True)
def bias_torques(
    model: Tree, q: ArrayLike, qd: ArrayLike, *, representation: str = "auto"
) -> FloatArray:
    """Return the torques h(q, qd) (..., n) at qdd = 0: Coriolis, centrifugal and gravity torques.

    In N m or N.

    :func:`inverse_dynamics` without acceleration.
    """
    return newton_euler(model, q, qd, np.zeros(model.n), representation)


@algorithm(invariant=True, joint_space_only=True)
def coriolis_torques(
    model: Tree, q: ArrayLike, qd: ArrayLike, *, representation: str = "auto"
) -> FloatArray:
    """Return the Coriolis and centrifugal torques C(q, qd) qd (..., n), without gravity.

    :func:`inverse_dynamics` without acceleration and gravity. Equal to the product of
    :func:`coriolis_matrix` and qd, and to :func:`bias_torques` minus :func:`gravity_torques`.
    """
    return newton_euler(model.with_gravity(np.zeros(3)), q, qd, np.zeros(model.n), representation)


def newton_euler(
    model: Tree, q: Array, qd: Array, qdd: Array, representation: str, loads: Loads = NO_LOADS
) -> FloatArray:
    """Return the generalized forces (n,) of the recursive Newton-Euler algorithm."""
    rep, acceleration = dynamic_operators(representation, model, q), model.joint_rates(qdd)
    _, _, W = recursion(model, rep, qd, qdd, loads)
    tau = model.per_body()
    for i, _ in model.inward():  # (67b) (71c) (76c), with armature
        tau[i] = rep.screw(i).T @ W[i] + model.rotor(i) @ acceleration[i]
    return model.to_coordinates(tau)


def recursion(
    model: Tree, rep: Representation, qd: Array, qdd: Array, loads: Loads = NO_LOADS
) -> tuple[list[Array], list[Array], list[Array]]:
    """Return twists, accelerations and transmitted wrenches of all bodies; the ground is last.

    Equation numbers: Mueller (dynamics), body-fixed, spatial, hybrid. The default for dynamics,
    body-fixed twists with accelerations of the origins (:class:`BodyAxes`), evaluates (66b), (75d)
    and (53) in the frames of the bodies, and (67a), (67b).
    """
    rate, acceleration = model.joint_rates(qd), model.joint_rates(qdd)
    V, Vd = (model.per_body(x) for x in ground_motion(model, rep, loads))
    W = model.per_body(np.zeros(6))
    for i, _ in model.outward():
        V[i] = rep.twist(i, V, rate[i])  # (66b) (70c) (75c)
        Vd[i] = rep.acceleration(i, V, Vd, rate[i], acceleration[i])  # (66c) (70d) (75d)
        W[i] = rep.wrench(i, V[i], Vd[i])  # (41) (38) (53)
        if loads.wrenches is not None:
            W[i] = W[i] - loads.wrenches[i]
    for i, p in model.inward():
        W[p] = W[p] + rep.transform(i).T @ W[i]  # (67a) (71b) (76b)
    return V, Vd, W


def ground_motion(model: Tree, rep: Representation, loads: Loads) -> tuple[Array, Array]:
    """Return the twist of the ground and its acceleration minus that of free fall.

    The inertial frame coincides with the base, so that all four twists of the base are equal. The
    acceleration of its origin differs from the rate of the linear part by omega x v.
    """
    V = np.zeros(6) if loads.base_twist is None else np.asarray(loads.base_twist)
    Vd = np.zeros(6) if loads.base_acceleration is None else np.asarray(loads.base_acceleration)
    linear = Vd[3:] - np.asarray(model.gravity)
    if loads.base_twist is not None and rep.of_origin:
        linear = linear + so3.hat(V[:3]) @ V[3:]
    return V, np.concatenate([Vd[:3], linear])
