# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Simulation: arms and floating bases, and the files of their motions."""

from __future__ import annotations

import numpy as np
from bench import FOLDER, arm, check, close, state

import mbs_dynamics as mbs
from mbs_dynamics import integrate
from mbs_dynamics.model.joints import Connection, joint
from mbs_dynamics.timeseries import TimeSeries

TWIST = np.array([0.1, 2.0, 0.2, 0.3, 0.0, 0.1])  # of what floats


@check
def simulation(expected: set[str]) -> None:
    """Arms and floating bases keep their energy; motions are kept in files."""
    q, qd, *_ = state()
    given = {"duration": 0.02, "step": 1e-3, "progress": False}
    ends = []
    for method in integrate.METHODS:
        motion = integrate.simulate(arm(), q, qd, method=method, **given)
        ends.append(motion.q[-1])
        close(ends[-1], ends[0], 1e-2)
    motion = integrate.simulate(arm(), q, qd, method="dormand_prince", **given)
    energy = motion.kinetic + motion.potential
    close(energy, np.full_like(energy, energy[0]), 1e-7)
    motion.series.write(FOLDER / "motion.npz")
    close(TimeSeries.read(FOLDER / "motion.npz").q, motion.q)
    forces = integrate.JointForces.of(arm(), damping=0.5)
    stops = integrate.stop_events(arm())
    damped = integrate.simulate(arm(), q, qd, forces=forces, events=stops, **given)
    assert (damped.kinetic + damped.potential)[-1] < energy[0]
    held = integrate.simulate(
        arm(), q, control=lambda t, q, qd: mbs.gravity_torques(arm(), q), **given
    )
    close(held.q[-1], q, 1e-6)
    inertia = mbs.spatial_inertia(2.0, (0.01, 0.02, 0.03), np.diag([0.1, 0.2, 0.3]))
    base = Connection(name="float", joint=joint("free"), body="base", M_body=inertia)
    model = mbs.Model.from_joints([base], gravity=(0.0, 0.0, 0.0))
    for method in integrate.METHODS:
        flight = integrate.simulate(model, model.neutral(), TWIST, method=method, **given)
        close(flight.kinetic[-1], flight.kinetic[0], 1e-2)
    moved = mbs.displaced(model, model.neutral(), TWIST)
    close(mbs.difference(model, model.neutral(), moved), TWIST, 1e-12)
    close(mbs.position_rates(model, model.neutral(), TWIST)[:3], TWIST[3:])
