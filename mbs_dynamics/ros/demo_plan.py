# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The plan of the demonstration: posture, push, load and ROS domain; and an independent check.

The check takes finite differences of poses. No ROS is needed.
"""

from __future__ import annotations

import random
import socket
from dataclasses import dataclass

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.model import Model
from mbs_dynamics.model.coordinates import bounded
from mbs_dynamics.model.orders import tools

CANDIDATES = 200
"""Number of postures from which the one to hold is selected."""

NEEDED = 0.6
"""Largest share of its effort limit that a joint may need to hold the posture."""

DECAY = 0.4
"""Time constant in s of the speed of a joint under its damping alone."""

FALL = 0.3
"""Share of its velocity limit that a joint reaches when it falls against its damping alone."""

PUSH, LASTING = 0.15, 0.5
"""Largest displacement of a joint by the push, against all damping, in rad or m; and its duration
in s."""

LOAD, HEAVIEST = 0.25, 3.0
"""Largest share of an effort limit that the load needs, and its largest mass in kg."""

AMPLE = 4.0
"""A joint without effort limit gets this many times the largest gravity torque."""

STEP = 1e-4
"""Step of the central differences, in rad or m. Their error goes with its square."""

TOLERANCE = 1e-6
"""Largest error, relative to 1 plus the largest value, that still counts as agreement."""

DOMAINS = range(1, 102)
"""ROS domains with ports on every platform, without the default one."""


@dataclass(frozen=True)
class Plan:
    """Posture, push and load for a robot. Arrays have one entry per coordinate, in SI units."""

    posture: FloatArray
    """(n,) initial positions, within the limits, in which motors carry weight."""
    efforts: FloatArray
    """(n,) effort limits: those of the description, and ample ones where it states none."""
    damping: FloatArray
    """(n,) damping that the compensation adds, so that the robot comes to rest."""
    own_damping: FloatArray
    """(n,) damping of the simulated joints, as of geared motors."""
    tip: str
    """The link that is pushed and loaded: the tool or hand of the longest branch."""
    push: FloatArray
    """(6,) wrench on the tip in its own frame, moment first."""
    load: float
    """Mass in kg of the load on the tip."""
    sags: bool
    """Whether gravity moves the robot."""

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
        tip = tools(model)[0]
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


def _postures(model: Model) -> FloatArray:
    """Return postures in the inner halves of the ranges; joints without limits within +-1."""
    within = bounded(model.lower, model.upper)
    lower, upper = np.where(within, model.lower, -1.0), np.where(within, model.upper, 1.0)
    random = np.random.default_rng(0).uniform(-1.0, 1.0, (CANDIDATES, model.n))
    return np.asarray(0.5 * (lower + upper) + 0.25 * (upper - lower) * random)


# -- the independent check -------------------------------------------------------------------------


def gravity_torques(model: Model, q: FloatArray) -> FloatArray:
    """Return the gradient of U = - sum of m_i g . c_i, by central differences of the poses."""
    states = q + STEP * np.concatenate([np.eye(model.n), -np.eye(model.n)])
    C = mbs.forward_kinematics(model, states)
    inertias = [body.inertia for body in model.bodies]
    masses, coms = np.array([x.mass for x in inertias]), np.array([x.com for x in inertias])
    centres = C[..., :3, 3] + np.einsum("nbij,bj->nbi", C[..., :3, :3], coms)
    above, below = np.split(-np.einsum("b,nbi,i->n", masses, centres, model.gravity), 2)
    return np.asarray((above - below) / (2.0 * STEP))


def error(found: FloatArray, expected: FloatArray) -> float:
    """Return the largest difference, relative to 1 plus the largest expected value."""
    scale = 1.0 + float(np.abs(expected).max())
    return float(np.abs(found - expected).max()) / scale


# -- the ROS domain --------------------------------------------------------------------------------


def unused_domain() -> int:
    """Return a random domain without participants on this machine."""
    candidates = random.sample(DOMAINS, len(DOMAINS))
    return next((domain for domain in candidates if _is_unused(domain)), candidates[0])


def _is_unused(domain: int) -> bool:
    """Return whether the port of the first participant is free, DDSI-RTPS 2.5, section 9.6.2.3."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("", 7400 + 250 * domain + 10))
        except OSError:
            return False
    return True
