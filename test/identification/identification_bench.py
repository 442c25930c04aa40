# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings of an arm whose masses and friction are known, and a description that is wrong."""

from dataclasses import replace

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.resources import robot_path
from mbs_dynamics.timeseries import TimeSeries, TimeSeriesError

TRUE = mbs.Model.from_urdf(robot_path("arm7"))
JOINTS = TRUE.joint_names
COULOMB = np.linspace(1.0, 0.3, 7)
VISCOUS = np.linspace(0.8, 0.2, 7)
MOTORS = np.linspace(0.3, 0.02, 7)
OFFSETS = np.linspace(-0.2, 0.3, 7)
SPEED = 0.05


def erroneous(model, share, rng, shift=0.02):
    """Return a model with other masses, centres of mass and tensors, physically possible.

    Masses differ by up to a ``share``, centres of mass by up to ``shift`` in m along each axis.
    """
    bodies = []
    for body in model.bodies:
        old = body.inertia
        scale = 1.0 + share * rng.uniform(-1.0, 1.0)
        com = old.com + shift * rng.uniform(-1.0, 1.0, 3)
        inertia = Inertia.from_com(scale * old.mass, com, scale * np.asarray(old.tensor_at_com))
        bodies.append(replace(body, inertia=inertia))
    return replace(model, bodies=tuple(bodies))


def wrong(seed=0, share=0.3):
    return erroneous(TRUE, share, np.random.default_rng(seed))


def ranges(model):
    """Return the middle and the half of the ranges of the joints, of a turn if they have none."""
    low = np.where(np.isfinite(model.lower), model.lower, -np.pi)
    high = np.where(np.isfinite(model.upper), model.upper, np.pi)
    return 0.5 * (low + high), 0.5 * (high - low)


def motion(t, seed, waves=5, fundamental=0.1, reach=0.8, model=TRUE):
    """Return q, qd, qdd (N, n) of a Fourier series that stays within the limits."""
    rng, (middle, half) = np.random.default_rng(seed), ranges(model)
    w = 2.0 * np.pi * fundamental * np.arange(1, waves + 1)
    a, b = rng.uniform(-1.0, 1.0, (2, waves, model.n)) / np.arange(1, waves + 1)[:, None]
    phase = t[:, None] * w
    s, c = np.sin(phase), np.cos(phase)
    q = s @ a - c @ b
    scale = reach * np.minimum(half, 1.5) / np.abs(q).max(axis=0)
    rates = ((c * w) @ a + (s * w) @ b) * scale
    return middle + scale * q, rates, ((c * w**2) @ b - (s * w**2) @ a) * scale


def with_still_joints(recording, joints, at=None):
    """Return q, qd, qdd (N, n) of a recording whose joints stay where they begin, or elsewhere."""
    q = recording.q.copy()
    q[:, joints] = q[0, joints] if at is None else at
    qd = np.gradient(q, recording.t, axis=0)
    return q, qd, np.gradient(qd, recording.t, axis=0)


def poses_of(q, tau, joints=JOINTS, **more):
    """Return poses at rest and their torques, one in each row."""
    return TimeSeries(np.arange(float(len(q))), joints, q, tau=tau, **more)


def refused(read, *arguments):
    """Return why motion data is refused by a function; empty if it is not."""
    try:
        read(*arguments)
    except TimeSeriesError as error:
        return str(error)
    return ""


def torques(q, qd, qdd, model=TRUE, speed=SPEED):
    rigid = mbs.inverse_dynamics(model, q, qd, qdd)
    return rigid + COULOMB * np.tanh(qd / speed) + VISCOUS * qd + MOTORS * qdd + OFFSETS


def recorded(seed=1, duration=20.0, rate=200.0, noise=0.01, velocities=True, arm=TRUE, **options):
    """Return a recording; ``noise`` of the torques is a share of their root mean square."""
    t = np.arange(0.0, duration, 1.0 / rate)
    q, qd, qdd = motion(t, seed, **options)
    tau = torques(q, qd, qdd, arm)
    rng = np.random.default_rng(seed + 1000)
    tau = tau + noise * np.sqrt(np.square(tau).mean(axis=0)) * rng.normal(size=tau.shape)
    return TimeSeries(t, JOINTS, q, qd if velocities else None, tau=tau, name="simulated")
