# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Identification: recordings of real arms, trials on an arm whose truth is known, and its speed."""

import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import mbs_dynamics as mbs
from benchmarks.report import Table

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT / "test"), str(ROOT / "test" / "identification")]

from identification_bench import (  # noqa: E402
    COULOMB,
    JOINTS,
    MOTORS,
    OFFSETS,
    TRUE,
    VISCOUS,
    motion,
    recorded,
    torques,
    wrong,
)
from robots import robot  # noqa: E402

from mbs_dynamics.identification import (  # noqa: E402
    identify,
    identify_payload,
)
from mbs_dynamics.identification.estimation import base_estimate  # noqa: E402
from mbs_dynamics.identification.signals import cutoff_of, filtered  # noqa: E402
from mbs_dynamics.identification.torque_model import TorqueModel  # noqa: E402
from mbs_dynamics.timeseries import TimeSeries  # noqa: E402

ARMS = ROOT.parent / "shared" / "data" / "arms"
"""Recordings of others, which are not part of this repository."""

REAL = {
    "UR10": ("ur_description/urdf/ur10_robot.urdf", "unisa/ur10_exciting_trajectory.db3", ""),
    "Panda": ("panda_description/urdf/panda.urdf", "unisa/panda_exciting_trajectory.db3", ""),
    "LWR4+, run 1 to run 2": ("lwr4/kuka_lwr4.urdf", "lwr4/run_1.npz", "lwr4/run_2.npz"),
    "LWR4+, run 2 to run 1": ("lwr4/kuka_lwr4.urdf", "lwr4/run_2.npz", "lwr4/run_1.npz"),
    "Gen3, opti_traj": ("kinova_gen3/gen3.urdf", "kinova_gen3/opti_traj_testing1.csv", ""),
    "Gen3, Record": ("kinova_gen3/gen3.urdf", "kinova_gen3/RecordTrajectory_quadratic.csv", ""),
    "Gen3, Run": ("kinova_gen3/gen3.urdf", "kinova_gen3/RunTrajectory1.csv", ""),
    "Gen3, opti_traj to Record": (
        "kinova_gen3/gen3.urdf",
        "kinova_gen3/opti_traj_testing1.csv",
        "kinova_gen3/RecordTrajectory_quadratic.csv",
    ),
    "Gen3, Record to opti_traj": (
        "kinova_gen3/gen3.urdf",
        "kinova_gen3/RecordTrajectory_quadratic.csv",
        "kinova_gen3/opti_traj_testing1.csv",
    ),
}

TRIALS = 100


def identification() -> Iterator[Table]:
    """Yield the tables."""
    warnings.simplefilter("ignore")
    if ARMS.is_dir():
        yield real_arms()
    yield trials()
    yield speed()


def real_arms() -> Table:
    """Return held-out errors on recordings of real arms."""
    rows = []
    for name, (urdf, training, validation) in REAL.items():
        path = ARMS / urdf if (ARMS / urdf).exists() else robot(urdf)
        begin = time.perf_counter()
        clock = {"Time": "t[ms]"} if name.startswith("Gen3") else {}
        known, other = (
            TimeSeries.read(ARMS / one, columns=clock) if one else None
            for one in (training, validation)
        )
        result = identify(mbs.Model.from_urdf(path), [known], other)
        errors = result.errors
        shares = (errors.description, errors.description_with_friction, errors.identified or 0.0)
        rows.append(
            [
                name,
                *(f"{100.0 * share:.2f}" for share in shares),
                "yes" if result.consistent else "no",
                f"{time.perf_counter() - begin:.1f}",
            ]
        )
    head = ["arm", "description %", "with friction %", "identified %", "can exist", "seconds"]
    return Table("Held-out torques of real arms", head, rows)


def trials() -> Table:
    """Return how often the truth is within three stated standard deviations, and payloads."""
    own = np.stack([COULOMB, VISCOUS, MOTORS, OFFSETS], axis=1).ravel()
    truth = np.concatenate([mbs.inertial_parameters(TRUE), own])
    inside, all_inside, worst = 0, [], 0.0
    for seed in range(TRIALS):
        recording = recorded(100 + seed, noise=0.02)
        cutoff = cutoff_of([recording])
        torque_model = TorqueModel(wrong(seed), JOINTS, 0.05)
        base = base_estimate(
            torque_model, [torque_model.equations(filtered(recording, cutoff), cutoff)]
        )
        shares = np.abs(base.values - base.combination @ truth) / base.deviations
        all_inside.append(float((shares < 3.0).mean()))
        inside += all_inside[-1] >= 0.95
    loaded = TRUE.with_payload("tool", 2.0, (0.01, -0.02, 0.06), 0.004 * np.eye(3)).loaded()
    for seed in range(10):
        t = np.arange(0.0, 20.0, 0.005)
        q, qd, qdd = motion(t, 200 + seed)
        tau = torques(q, qd, qdd, loaded)
        rng = np.random.default_rng(seed)
        tau += 0.01 * np.sqrt(np.square(tau).mean(axis=0)) * rng.normal(size=tau.shape)
        run = TimeSeries(t, JOINTS, q, qd, tau=tau)
        load = identify_payload(wrong(seed), run, "tool", recorded(300 + seed))
        worst = max(worst, abs(float(load.inertia.mass) - 2.0) / 2.0)
    rows = [
        ["base parameters within three standard deviations, %", f"{100 * np.mean(all_inside):.2f}"],
        [f"trials of {TRIALS} in which at least 95 % of them are", str(inside)],
        ["worst mass of a load of 2 kg in 10 trials, %", f"{100 * worst:.2f}"],
    ]
    return Table("Arms whose truth is known", ["", ""], rows)


def speed() -> Table:
    """Return how long a minute of seven joints at 1 kHz takes."""
    recording = recorded(1, duration=60.0, rate=1000.0)
    begin = time.perf_counter()
    result = identify(wrong(), [recording])
    seconds = time.perf_counter() - begin
    rows = [
        ["seconds", f"{seconds:.1f}"],
        ["identified %", f"{100 * (result.errors.identified or 0):.2f}"],
    ]
    return Table("A minute of seven joints at 1 kHz", ["", ""], rows)
