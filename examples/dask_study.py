# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Studies on many cores and machines with Dask: a Monte-Carlo study and an ensemble.

python examples/dask_study.py [SCHEDULER]      by default a cluster of processes on this machine

Needs the package distributed, and the extra `identify` of mbs_dynamics.
"""

from __future__ import annotations

import sys

import numpy as np
from distributed import Client, LocalCluster

import mbs_dynamics as mbs
from mbs_dynamics.identification import identify
from mbs_dynamics.integrate import simulate
from mbs_dynamics.resources import robot_path
from mbs_dynamics.timeseries import TimeSeries

POSTURE = np.array([0.0, 0.6, 0.0, 1.4, 0.0, 0.8, 0.0])
MIDDLE = np.array([0.0, 0.4, 0.0, 1.0, 0.0, 0.5, 0.0])
SWING = np.array([1.0, 0.7, 1.0, 0.8, 1.0, 0.8, 1.0])
RATES = np.array([1.1, 1.4, 1.7, 2.0, 2.4, 2.7, 3.1])
"""Posture, and a motion that shows the masses, in rad and rad/s."""


def drift(arm: mbs.Model, mass: float, duration: float) -> float:
    """Return how far, in m, the tool moves if a load of this mass in kg is not compensated."""
    loaded = arm.with_payload("tool", mass)
    hold = mbs.compile(mbs.gravity_torques, arm)
    motion = simulate(
        loaded, POSTURE, duration=duration, control=lambda t, q, qd: hold(q) - 0.2 * qd
    )
    places = mbs.forward_kinematics(arm, motion.q[[0, -1]], bodies=["tool"])[:, 0, :3, 3]
    return float(np.linalg.norm(places[1] - places[0]))


def identified_mass(arm: mbs.Model, seed: int, duration: float) -> float:
    """Return the mass in kg of the last link, identified from torques with noise of its own."""
    t = np.arange(0.0, duration, 0.01)
    q = MIDDLE - SWING * np.cos(np.outer(t, RATES))
    qd = SWING * RATES * np.sin(np.outer(t, RATES))
    qdd = SWING * RATES**2 * np.cos(np.outer(t, RATES))
    noise = np.random.default_rng(seed).normal(0.0, 0.2, q.shape)
    heavy = arm.with_payload("tool", 0.5).loaded()
    tau = mbs.inverse_dynamics(heavy, q, qd, qdd) + noise
    result = identify(arm, [TimeSeries(t, arm.joint_names, q, qd=qd, tau=tau)])
    return float(result.inertial[-1, 0])


def study(client: Client, *, loads: int = 200, runs: int = 8, duration: float = 20.0) -> None:
    """Run both studies on the workers of a client, and print what they find."""
    arm = mbs.Model.from_urdf(robot_path("arm7"))
    shared = client.scatter(arm, broadcast=True)  # sent once to each worker
    masses = np.random.default_rng(0).uniform(0.0, 0.5, loads)
    moved = client.gather(client.map(drift, [shared] * loads, masses.tolist(), duration=0.5))
    print(f"{loads} loads: the tool moves {np.mean(moved):.3f} m, at most {np.max(moved):.3f} m")
    found = client.gather(
        client.map(identified_mass, [shared] * runs, range(runs), duration=duration)
    )
    print(
        f"{runs} identifications: {np.mean(found):.3f} kg, standard deviation {np.std(found):.3f}"
    )
    try:
        client.submit(drift, shared, -1.0, 0.5).result()
    except mbs.MbsError as error:
        print(f"errors of workers arrive as they were raised: {type(error).__name__}: {error}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        with Client(sys.argv[1]) as remote:
            study(remote)
    else:
        with (
            LocalCluster(dashboard_address=None, threads_per_worker=1) as cluster,
            cluster.get_client() as local,
        ):
            study(local)
