# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Twists, Jacobians and wrenches from one representation into another."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mbs_dynamics.lie import se3
from mbs_dynamics.lie.arrays import Array, shaped
from mbs_dynamics.representation.operators import checked


def from_body_fixed(C: Array, representation: str) -> Array:
    """Return D (..., 6, 6) with V = D V^b for a body with pose C (..., 4, 4).

    K Table 3, eqs. (54), (55), (47). The same matrix takes Jacobians and the joint's own screw, and
    its inverse transpose wrenches. K (57), which takes Y_i for the instantaneous screw, holds with
    A_i in place of C_i, that is at q = 0.
    """
    C = np.asarray(C)
    R = C[..., :3, :3]
    eye, zero = np.broadcast_to(np.eye(3), R.shape), np.zeros(R.shape)
    matrices: dict[str, Callable[[], Array]] = {
        "body_fixed": lambda: np.block([[eye, zero], [zero, eye]]),
        "spatial": lambda: se3.Ad(C),
        "hybrid": lambda: np.block([[R, zero], [zero, R]]),
        "mixed": lambda: np.block([[eye, zero], [zero, R]]),
    }
    return matrices[checked(representation)]()


def to_body_fixed(C: Array, representation: str) -> Array:
    """Return the inverse of :func:`from_body_fixed` (..., 6, 6)."""
    if checked(representation) == "spatial":
        return se3.Ad(se3.inverse(np.asarray(C)))
    return np.swapaxes(from_body_fixed(C, representation), -1, -2)


def convert_twist(V: Array, C: Array, *, source: str, target: str) -> Array:
    """Return a twist (..., 6) of a body with pose C (..., 4, 4) in another representation.

    ``source`` and ``target`` are ``"body_fixed"``, ``"spatial"``, ``"hybrid"`` or ``"mixed"``:
    Mueller (kinematics), Table 3. Traced symbols are accepted. Raises ArgumentError for a wrong
    shape, UnknownRepresentationError.
    """
    V, C = shaped(V=(V, (6,)), C=(C, (4, 4)))
    D = from_body_fixed(C, target) @ to_body_fixed(C, source)
    return (D @ V[..., None])[..., 0]


def convert_jacobian(J: Array, C: Array, *, source: str, target: str) -> Array:
    """Return a Jacobian (..., 6, n) of a body with pose C (..., 4, 4) in another representation.

    Arguments and errors are those of :func:`convert_twist`.
    """
    J, C = shaped(J=(J, (6, "n")), C=(C, (4, 4)))
    return from_body_fixed(C, target) @ to_body_fixed(C, source) @ J


def convert_wrench(W: Array, C: Array, *, source: str, target: str) -> Array:
    """Return a wrench (..., 6), moment first, in another representation.

    The power W^T V does not change. Arguments and errors are those of :func:`convert_twist`.
    """
    W, C = shaped(W=(W, (6,)), C=(C, (4, 4)))
    D = from_body_fixed(C, source) @ to_body_fixed(C, target)
    return (np.swapaxes(D, -1, -2) @ W[..., None])[..., 0]


def twist_from_rate(C: Array, Cd: Array, representation: str) -> Array:
    """Return the twist (..., 6) of a pose C with the rate Cdot (..., 4, 4): K Table 4, K (80).

    V^b = (C^-1 Cdot), V^s = (Cdot C^-1), V^h = (omega^s, rdot), V^m = (omega^b, rdot). Raises
    ArgumentError for a wrong shape, UnknownRepresentationError.
    """
    C, Cd = shaped(C=(C, (4, 4)), Cd=(Cd, (4, 4)))
    V_body = se3.vee(se3.inverse(C) @ Cd)
    return convert_twist(V_body, C, source="body_fixed", target=representation)
