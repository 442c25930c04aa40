# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What the demonstration does with a robot: a posture to hold, a push, a load. Knows no ROS."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.model import Model
from mbs_dynamics.model.coordinates import bounded
from mbs_dynamics.model.orders import path

CANDIDATES = 200
"""Postures among which the one to hold is chosen."""

NEEDED = 0.6
"""Largest share of its effort limit that a joint may need to hold the posture."""

DECAY = 0.4
"""Seconds in which the damping of a joint alone takes its speed to a third."""

FALL = 0.3
"""Share of its velocity limit that a joint reaches where nothing but its gear holds it up."""

PUSH, LASTING = 0.15, 0.5
"""How far the push takes the joint that feels it most, against all damping, in rad or m; and how
many seconds it lasts."""

LOAD, HEAVIEST = 0.25, 3.0
"""The load needs at most this share of an effort limit, and weighs at most so many kg."""

AMPLE = 4.0
"""A joint without effort limit gets this many times the largest gravity torque."""


@dataclass(frozen=True)
class Plan:
    """What a robot is put through. Arrays have one entry per coordinate, in SI units."""

    posture: FloatArray
    """(n,) where it begins, within its limits and with its weight on the motors."""
    efforts: FloatArray
    """(n,) effort limits: those of the description, and ample ones where it states none."""
    damping: FloatArray
    """(n,) what the compensation adds, so that the robot comes to rest."""
    own_damping: FloatArray
    """(n,) that of the simulated joints: geared motors do not fall freely."""
    tip: str
    """The body that is pushed and loaded: at the end of the longest branch, but no finger."""
    push: FloatArray
    """(6,) wrench on the tip in its own frame, moment first."""
    load: float
    """Mass in kg that is hung on the tip."""
    sags: bool
    """Whether gravity moves it at all."""

    @classmethod
    def of(cls, model: Model) -> Plan:
        """Return the plan for a model with at least one joint."""
        speeds = np.where(np.isfinite(model.velocity_limits), model.velocity_limits, 1.0)
        postures = _postures(model)
        gravity = np.abs(mbs.gravity_torques(model, postures))
        stated = model.effort_limits
        efforts = np.where(np.isfinite(stated), stated, max(AMPLE * gravity.max(), 1.0))
        share = gravity / efforts
        fits = (share <= NEEDED).all(axis=1)
        weighs = np.linalg.norm(share, axis=1)
        posture = postures[np.where(fits, weighs, -weighs).argmax()].round(3)
        M = mbs.mass_matrix(model, posture)
        turns = np.array([joint.kind == "revolute" for joint in model.joints])
        tip = _tip(model)
        J = mbs.jacobian(model, posture, tip)
        damping = np.diag(M) / DECAY
        own = damping + gravity.max(axis=0) / (FALL * speeds)
        speed = J[3:].T / (damping + own)[:, None]  # under a unit force along each axis of the tip
        fastest = np.abs(speed[turns] if turns.any() else speed).max(axis=0)
        push = np.zeros(6)
        push[3 + fastest.argmax()] = PUSH / LASTING / fastest.max()
        per_kg = mbs.gravity_torques(
            model.with_payload(tip, mass=1.0, com=(0.0, 0.0, 0.0)), posture
        ) - mbs.gravity_torques(model, posture)
        felt = np.abs(per_kg) / efforts
        load = HEAVIEST if felt.max() * HEAVIEST <= LOAD else LOAD / felt.max()
        falls = np.linalg.solve(M, mbs.gravity_torques(model, posture))
        return cls(
            posture,
            efforts,
            damping,
            own,
            tip,
            push,
            float(f"{load:.2g}"),
            bool(np.abs(falls).max() > 1.0),
        )


def _tip(model: Model) -> str:
    """Return the last body on the longest branch that turns, or the last one if none does."""
    branch = max((path(model, model.frame(name).body) for name in model.leaves), key=len)
    bodies = [model.bodies[i] for i in branch]
    turning = [body for body in bodies if body.joint.kind == "revolute"]
    return (turning or bodies)[-1].name


def _postures(model: Model) -> FloatArray:
    """Return postures in the inner halves of the ranges; joints without limits within +-1."""
    within = bounded(model.lower, model.upper)
    lower, upper = np.where(within, model.lower, -1.0), np.where(within, model.upper, 1.0)
    random = np.random.default_rng(0).uniform(-1.0, 1.0, (CANDIDATES, model.n))
    return np.asarray(0.5 * (lower + upper) + 0.25 * (upper - lower) * random)
