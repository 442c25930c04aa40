# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The torques that an arm needs: gravity, damping, and assist.

    gravity = scale g(q)
    damping = -D qd - s M(q) qd
    assist  = friction compensation - springs near the position limits + a law

Gravity torques hold the arm. Damping only dissipates energy; s fades to zero after enabling. Assist
can add energy. The three are separate, since an arm may be damped during a release, but not
assisted, and neither while its state is unknown.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.compiler import abs, less, select, sqrt
from mbs_dynamics.control.period.logic import all_of, clipped, holds, largest, least, max, min
from mbs_dynamics.control.period.records import Sample, Settings, State
from mbs_dynamics.representation.tree import Tree

FRICTION_SPEED = 0.05
"""Speed in rad/s or m/s at which 71 % of the friction compensation is reached."""

LIMIT_FREQUENCY = 10.0
"""Natural frequency in rad/s of a joint on its limit spring while the others stand still."""

SETTLING, PERIODS = 0.1, 5.0
"""Time constant in s of the damping of the momentum, and its least number of periods."""

HEADROOM = 0.1
"""Share of the velocity limit of a joint below it, over which the damping of the momentum fades."""


class Torques(NamedTuple):
    """Torques of the joints, each (n,) in N m or N."""

    gravity: Any
    damping: Any
    assist: Any


def gravity_torques(tree: Tree, s: State, q: Any, representation: str) -> Any:
    """Return the scaled gravity torques (n,) of the arm with its loads at q (n,)."""
    return s.scale * mbs.gravity_torques(tree, q, representation=representation)


def torques(
    s: State, x: Sample, p: Settings, M: Any, q: Any, qd: Any, g: Any, law: Any, acts: Any
) -> Torques:
    """Return the torques at trusted positions q (n,), for velocities qd (n,).

    ``M`` (n, n) is the mass matrix; ``g`` and ``law`` are the torques (n,) of gravity and of laws.
    ``acts`` (n,) are the conditions that states are new enough for damping.
    """
    longest = max(SETTLING, PERIODS * largest(s.interval))
    left = min(1.0, (s.settling - x.now) / p.settle_time)
    left = select(less(x.now, s.settling), left, 0.0)
    # M qd opposes the motion only if all velocities are known, and none is clipped at its limit
    commanded = holds(p.commanded)
    known = all_of(acts | ~commanded)
    below = (1.0 - abs(qd) / max(p.fastest, 1e-9)) / HEADROOM
    share = least(select(commanded, clipped(below, 0.0, 1.0), 1.0))
    settling = select(known, share * left / longest, 0.0)
    damping = -s.damping * qd - settling * (M @ select(commanded, qd, 0.0))

    # F v / sqrt(v^2 + v0^2): less power than friction dissipates at any velocity
    assist = s.friction * qd / sqrt(qd * qd + FRICTION_SPEED**2)
    low, high = less(q, s.spring_low), less(s.spring_high, q)
    depth = select(low, q - s.spring_low, select(high, q - s.spring_high, 0.0))
    inertia = np.diag(M)
    inside = min(1.0, abs(depth) / max(s.zone, 1e-6))
    w = LIMIT_FREQUENCY
    spring = inertia * (w * w * depth + 2.0 * w * inside * qd)
    assist = assist - select(less(0.0, s.zone), spring, 0.0)
    return Torques(g, damping, assist + law)
