# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The largest difference between this package and Pinocchio over many random states."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pinocchio as pin

import mbs_dynamics as mbs
from benchmarks.mechanisms import ARMS, FRAMES, HUMANOIDS, FloatArray, Twins, robot
from benchmarks.report import Table
from mbs_dynamics.model.orders import leaves

STATES = 200

ANGULAR_FIRST = [3, 4, 5, 0, 1, 2]
"""Pinocchio's twists have the linear part first."""


def accuracy() -> Iterator[Table]:
    """Yield one table, a column for each robot."""
    names = (*ARMS, *HUMANOIDS)
    columns = [_differences(robot(name)) for name in names]
    table = Table("Largest difference, relative to the largest entry", ("result", *names))
    table.rows = [(key, *(column[key] for column in columns)) for key in columns[0]]
    table.note = f"Over {STATES} random states of each robot."
    yield table


def _differences(twins: Twins) -> dict[str, float]:
    worst: dict[str, float] = {}
    for seed in range(STATES):
        for name, ours, theirs in _results(twins, *twins.model.random_state(seed)):
            difference = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
            worst[name] = max(worst.get(name, 0.0), difference)
    return worst


def _results(
    twins: Twins, q: FloatArray, qd: FloatArray, qdd: FloatArray
) -> Iterator[tuple[str, FloatArray, Any]]:
    """Yield name, our result and Pinocchio's result in our order."""
    ours, model, data = twins.model, twins.pin_model, twins.pin_data
    p, pd, pdd = twins.configuration(q), twins.velocity(qd), twins.velocity(qdd)
    columns, joints = twins.columns(), twins.joint_ids()
    torques: tuple[tuple[Callable[..., Any], tuple[Any, ...], Any], ...] = (
        (mbs.inverse_dynamics, (q, qd, qdd), pin.rnea(model, data, p, pd, pdd)),
        (mbs.gravity_torques, (q,), pin.computeGeneralizedGravity(model, data, p)),
        (mbs.bias_torques, (q, qd), pin.nonLinearEffects(model, data, p, pd)),
    )
    for function, arrays, tau in torques:
        yield function.__name__, function(ours, *arrays), tau[columns]
    M = pin.crba(model, data, p)[np.ix_(columns, columns)]
    yield "mass_matrix", mbs.mass_matrix(ours, q), M
    # Newton's law holds it against rnea, because aba takes no mimic joints
    tau = pin.rnea(model, data, p, pd, pdd)[columns]
    yield "forward_dynamics", mbs.forward_dynamics(ours, q, qd, tau), qdd
    pin.forwardKinematics(model, data, p, pd)
    poses = np.array([data.oMi[joint].homogeneous for joint in joints])
    yield "forward_kinematics", mbs.forward_kinematics(ours, q), poses
    for name, frame in FRAMES.items():
        V = [pin.getVelocity(model, data, joint, frame).vector for joint in joints]
        found = mbs.twists(ours, q, qd, representation=name)
        yield f"twists, {name}", found, np.array(V)[:, ANGULAR_FIRST]
    body = leaves(ours)[0]
    for name, frame in FRAMES.items():
        J = pin.computeFrameJacobian(model, data, p, model.getFrameId(body), frame)
        found = mbs.jacobian(ours, q, body, representation=name)
        yield f"jacobian, {name}", found, J[ANGULAR_FIRST][:, columns]
