# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The laws of a period: torques of springs and dampers about a reference that moves.

They are added to the gravity torques. Joints that are not commanded stand still.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.algorithms.factorization import Factors
from mbs_dynamics.compiler import abs, less, max, min, select, sqrt
from mbs_dynamics.control.period.logic import clipped
from mbs_dynamics.control.period.modes import TINY, spring_forces
from mbs_dynamics.control.period.records import NEVER
from mbs_dynamics.lie import so3
from mbs_dynamics.lie.arrays import Array, symmetric
from mbs_dynamics.representation.tree import Tree

FLOAT, JOINT, LINK, OWN_JOINT, OWN_LINK = 0.0, 1.0, 2.0, 3.0, 4.0
"""Laws: gravity compensation alone; impedance of the joints, and of a link; laws that are called
before the period, and follow a reference of joints, or of a link."""

OF_JOINTS, OF_LINKS = (JOINT, OWN_JOINT), (LINK, OWN_LINK)

RELEASED = 0.8, 0.4
"""Speeds in rad/s and m/s that springs may give to an arm that comes free at the lead."""

LEADS, LEAST_LEADS = (0.2, 0.1), (0.05, 0.02)
"""Largest leads of a reference in rad and m, and the least: friction takes some of light joints."""

HYSTERESIS = 0.5
"""Angle in rad beyond half a turn up to which an orientation error keeps its direction."""

STOP_ZONE, SHORT = 0.15, 0.02
"""Distance in rad or m over which torques toward a position limit fade, and distance from the limit
at which they are zero."""

STOP_RATE, CALM = 30.0, 0.6
"""Rate in 1/s at which joints are braked near a position limit, and above this share of their
velocity limit."""

LEAST_INERTIA = 1e-9
"""Smallest pivot of the mass matrix in kg m^2 or kg. The period never fails."""


class Springs(NamedTuple):
    """Gains of an impedance."""

    stiffness: Any
    """(k,) in N m/rad or N/m."""
    ratio: Any
    """Damping ratio of all modes."""
    most: Any
    """Largest squared natural frequency in 1/s^2; stiffer modes are softened."""


class LawResult(NamedTuple):
    """Result of a law."""

    torques: Any
    """(n,) in addition to gravity torques."""
    lead: Any
    """(k,) distances in rad or m by which the reference may lead the arm."""
    share: Any
    """Share of the stiffness that the loop can control; 1: all of it."""


class Inertia(NamedTuple):
    """The inertia of the commanded joints while the others stand still."""

    commanded: Any
    """(n,) 1 or 0."""
    M: Any
    """(n, n) mass matrix."""
    inverse: Any
    """(n, n) inverse for the commanded joints; the others have rows of the identity matrix."""

    @classmethod
    def of(cls, M: Array, commanded: Any) -> Inertia:
        """Return the inertia, of the mass matrix M (n, n)."""
        c = np.asarray(commanded)
        only = symmetric(M * np.outer(c, c) + np.diag(1.0 - c))
        factors = Factors(only, lambda _, value: max(value, LEAST_INERTIA))
        return cls(c, M, factors.inverse())


def lead_of(w2: Any, most: Any, linear: Any) -> Any:
    """Return how far a reference may lead each of k errors, (k,) in rad or m.

    ``w2`` (k,) are squared frequencies, of the stiffness and the inertia along an error, and
    ``linear`` (k,) is 1 for lengths and 0 for angles. A mass that a critically damped spring of the
    frequency w draws over a distance d reaches the speed w d / e. Without stiffness, the error
    draws nothing, and the lead is NEVER.
    """
    speed, longest, least = (
        each[0] + linear * (each[1] - each[0]) for each in (RELEASED, LEADS, LEAST_LEADS)
    )
    w = sqrt(min(w2, most))
    lead = clipped(math.e * speed / (w + TINY), least, longest)
    return select(less(0.0, w2), lead, NEVER)


def controllable(w2: Any, most: Any) -> Any:
    """Return the share of a stiffness whose largest squared frequency is at most ``most``."""
    return select(less(most, w2), most / max(w2, TINY), 1.0)


def joint_impedance(
    tree: Tree,
    inertia: Inertia,
    gains: Springs,
    linear: Any,
    state: tuple[Any, Any],
    reference: tuple[Any, Any, Any],
    representation: str,
) -> LawResult:
    """Return the torques M qdd_d + C qd_d + K (q_d - q) + D (qd_d - qd) (n,).

    ``state`` is q, qd (n,), and ``reference`` q_d, qd_d, qdd_d (n,). ``linear`` (n,) is 1 for
    prismatic joints.
    """
    (q, qd), (q_d, qd_d, qdd_d), c = state, reference, inertia.commanded
    root = sqrt(gains.stiffness) * c
    W = symmetric(root[:, None] * inertia.inverse * root)
    forces, w2 = spring_forces(
        W, root * (q_d - q), root * (qd_d - qd), 0.0 * root, gains.ratio, gains.most
    )
    # C qd_d = (h(qd + qd_d) - h(qd - qd_d)) / 4, since C is that of the Christoffel symbols
    falling = tree.with_gravity(np.zeros(3))
    h = [
        mbs.bias_torques(falling, q, rate, representation=representation)
        for rate in (qd + qd_d, qd - qd_d)
    ]
    ahead = inertia.M @ qdd_d + 0.25 * (h[0] - h[1])
    lead = lead_of(np.diag(W), gains.most, linear)
    return LawResult(c * (ahead + root * forces), lead, controllable(w2, gains.most))


def link_impedance(
    inertia: Inertia,
    J: Array,
    gains: Springs,
    in_target: Any,
    posture_frequency: Any,
    state: tuple[Any, Any, Any],
    reference: tuple[Any, Any, Any, Any],
    rotation: Any,
) -> tuple[LawResult, Any]:
    """Return the torques (n,) of the impedance of a link, and its orientation error (3,).

    ``J`` (6, n) is the hybrid Jacobian of the link. ``state`` is its pose (3, 4), and q, qd (n,);
    ``reference`` its pose (3, 4) and twist (6,), and posture and its rate (n,). ``rotation`` is the
    orientation error before, see :func:`orientation_error`. ``in_target`` is 1 where the stiffness
    is along the axes of the reference, else 0.
    """
    (C, q, qd), (target, twist, posture, rate), c = state, reference, inertia.commanded
    angle = orientation_error(C, target, rotation)
    e = np.concatenate([angle, target[:, 3] - C[:, 3]])
    # x = sqrt(K) B^T e, xdot = sqrt(K) B^T (E_d V_d - E V): the rate of the axes B is left out
    D, zero, one = so3.dexp_inv(angle), np.zeros((3, 3)), np.eye(3)
    B = (one + in_target * (target[:, :3] - one)).T
    stretch = sqrt(gains.stiffness)[:, None] * np.block([[B, zero], [zero, B]])
    E_d, E = np.block([[D, zero], [zero, one]]), np.block([[D.T, zero], [zero, one]])
    J_x = stretch @ (E @ (J * c))
    W = symmetric(J_x @ inertia.inverse @ J_x.T)
    w = min(posture_frequency, sqrt(gains.most))
    a = c * (w * (w * (posture - q) + 2.0 * gains.ratio * (rate - qd)))
    forces, w2 = spring_forces(
        W, stretch @ e, stretch @ (E_d @ twist) - J_x @ qd, J_x @ a, gains.ratio, gains.most
    )
    torques = c * (inertia.M @ a) + J_x.T @ forces
    lead = lead_of(np.diag(W), gains.most, np.array([0.0] * 3 + [1.0] * 3))
    share = controllable(max(w2, posture_frequency * posture_frequency), gains.most)
    return LawResult(torques, lead, share), angle


def orientation_error(C: Array, target: Array, before: Any) -> Any:
    """Return the rotation vector (3,) from a pose to a target, each (3, 4).

    Of the two rotations about one axis, by at most half a turn and the other way round, the first
    is returned, unless it is opposite to the one ``before`` and the other exceeds half a turn by at
    most HYSTERESIS: else noise would turn the torque around.
    """
    angle = so3.log(target[:, :3] @ C[:, :3].T)
    size = sqrt(angle @ angle)
    other = less(math.pi - HYSTERESIS, size) & less(angle @ before, 0.0)
    turns = 2.0 * math.pi / select(less(size, 1.0), 1.0, size)
    return angle * (1.0 - select(other, turns, 0.0))


def within_stops(
    inertia: Inertia,
    torques: Any,
    weight: Any,
    q: Any,
    qd: Any,
    low: Any,
    high: Any,
    fastest: Any,
    gap: Any,
) -> Any:
    """Return the torques (n,) of laws that move a link, limited near the limits of the joints.

    A pose may pull a joint past its limits ``low`` and ``high`` (n,), or near a singularity beyond
    its velocity limit ``fastest`` (n,). Torques toward a position limit fade over STOP_ZONE and are
    zero just before it. There, and above CALM of its velocity limit, a joint is damped, and beyond
    half of SHORT drawn back by a spring. None of this adds energy. ``weight`` is that of the laws.
    """
    zone = min(STOP_ZONE, 0.25 * (high - low))
    room = select(less(0.0, torques), high - q, q - low) - SHORT
    faded = torques * clipped(room / zone, 0.0, 1.0)
    ahead = select(less(0.0, qd), high - q, q - low) - SHORT
    near = 1.0 - clipped(ahead / zone, 0.0, 1.0)
    excess = max(abs(qd) - CALM * fastest, 0.0)
    speed = 2.0 * near * qd + select(less(qd, 0.0), -excess, excess)
    beyond = q - clipped(q, low + 0.5 * SHORT, high - 0.5 * SHORT)
    rate = min(STOP_RATE, 0.2 / max(gap, 1e-9))
    brake = weight * (rate * speed + 0.25 * rate * rate * beyond)
    return inertia.commanded * (faded - brake / np.diag(inertia.inverse))
