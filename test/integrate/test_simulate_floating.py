# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Floating bases: beside a rigid body on SE(3), what is conserved, MuJoCo, and bad input."""

from __future__ import annotations

import math
from dataclasses import replace

import mujoco
import numpy as np
import pytest
from reference import assert_close

import mbs_dynamics as mbs
from mbs_dynamics.errors import ArgumentError, ModelError, SimulationError
from mbs_dynamics.integrate import JointForces, free_body, simulate_body, simulate_floating
from mbs_dynamics.integrate.floating import has_floating_base
from mbs_dynamics.lie import se3, so3
from mbs_dynamics.model.macro_joints import Connection, macro_joint

BASE = mbs.spatial_inertia(3.0, (0.05, -0.02, 0.1), np.diag([0.05, 0.08, 0.1]))
LINK = mbs.spatial_inertia(0.8, (0.0, 0.0, 0.2), np.diag([0.01, 0.012, 0.002]))
GRAVITY = (0.0, 0.0, -9.81)


def shift(x, y, z):
    C = np.eye(4)
    C[:3, 3] = x, y, z
    return C


def model_of(links, gravity=GRAVITY):
    """A body with two links, if any, turned and moved joint frames."""
    turned = se3.exp(np.array([0.4, -0.3, 0.2, 0.1, 0.2, -0.3]))
    parts = [
        Connection(name="float", joint=macro_joint("free"), body="base", M_body=BASE,
                   S_parent=turned, S_body=shift(0.1, 0.0, 0.05))
    ]  # fmt: skip
    for k in range(links):
        parts.append(
            Connection(name=f"joint{k}", joint=macro_joint("revolute", axis=(0, 1, 0)),
                       body=f"link{k}", M_body=LINK, parent="base",
                       S_parent=shift(0.0, 0.3 * (-1) ** k, 0.1))
        )  # fmt: skip
    return mbs.Model.from_joints(parts, gravity=gravity)


POSE = se3.exp(np.array([0.3, 1.2, -0.4, 1.0, -0.5, 0.7]))
TWIST = np.array([1.0, 5.0, -2.0, 0.4, -0.3, 2.0])


def test_a_single_body_is_that_of_the_group():
    """It turns many times over, through all that is singular for three angles."""
    found = simulate_floating(model_of(0), POSE, TWIST, [], duration=3.0)
    expected = simulate_body(free_body(BASE, GRAVITY), POSE, TWIST, duration=3.0)
    assert np.abs(found.V - expected.V).max() < 1e-7
    assert np.abs(found.C - expected.C).max() < 1e-7
    assert_close(found.energy, expected.energy, 1e-7)
    assert_close(found.momentum, expected.momentum, 1e-7)
    assert np.abs(found.C[:, 2, 0]).max() > 0.9


@pytest.mark.parametrize(("method", "order"), [("rk4", 4), ("semi_implicit_euler", 1)])
def test_order(method, order):
    model = model_of(2)

    def end(steps, method=method):
        start = POSE, TWIST, [0.3, -0.5], [2.0, -1.0]
        motion = simulate_floating(model, *start, duration=0.5, step=0.5 / steps, method=method)
        return np.concatenate([motion.C[-1].ravel(), motion.V[-1], motion.q[-1]])

    exact, steps = end(2000, "rk4"), 50 if order == 4 else 800
    errors = [np.abs(end(k) - exact).max() for k in (steps, 2 * steps)]
    assert abs(math.log2(errors[0] / errors[1]) - order) < 0.15


def test_momentum_and_energy_in_flight():
    """Only gravity acts: the momentum changes by its impulse, and the energy not at all."""
    model = model_of(2)
    motion = simulate_floating(model, POSE, TWIST, [0.3, -0.5], [2.0, -1.0], duration=2.0)
    mass = 3.0 + 2 * 0.8
    impulse = np.multiply.outer(motion.t, mass * np.array(GRAVITY))
    assert_close(motion.momentum[:, 3:], motion.momentum[0, 3:] + impulse, 1e-9)
    assert_close(motion.energy, np.full(len(motion), motion.energy[0]), 1e-7)
    free = model.with_gravity((0.0, 0.0, 0.0))
    floating = simulate_floating(
        free, POSE, TWIST, [0.3, -0.5], duration=2.0, control=[0.2, -0.1],
        forces=damping(free, 0.1),
    )  # fmt: skip
    assert_close(floating.momentum, np.full((2001, 6), floating.momentum[0]), 1e-8)
    assert floating.joint_names == ("joint0", "joint1")


@pytest.mark.parametrize("gravity", [(0.0, 0.0, 0.0), (1.0, -2.0, -9.81)])
@pytest.mark.parametrize("method", ["semi_implicit_euler", "rk4"])
def test_momentum_to_rounding(gravity, method):
    """The momentum of the whole is kept whatever the step, with motors and dampers inside."""
    model = model_of(2, gravity)
    start = {"C": POSE, "V": TWIST, "q": [0.3, -0.5], "qd": [2.0, -1.0]}
    options = {"duration": 2.0, "step": 0.01, "method": method, "control": [0.2, -0.1]}
    forces = damping(model, 0.1)
    kept = simulate_floating(model, **start, **options, forces=forces, keep_momentum=True)
    plain = simulate_floating(model, **start, **options, forces=forces)
    fine = simulate_floating(
        model, **start, duration=2.0, step=2e-4, control=[0.2, -0.1], forces=forces
    )
    expected = fine.momentum[::50]  # to the order of that step
    scale = np.abs(expected).max()
    g, t = np.array(gravity), kept.t[:, None]
    p = kept.momentum[0, 3:] + (3.0 + 2 * 0.8) * g * t
    assert np.abs(kept.momentum[:, 3:] - p).max() < 1e-13 * scale
    assert np.abs(kept.momentum - expected).max() < 1e-9 * scale
    if not g.any():
        assert np.abs(kept.momentum - kept.momentum[0]).max() < 1e-13 * scale
        assert np.abs(plain.momentum - plain.momentum[0]).max() > 1e-10 * scale


def test_the_order_stays_with_the_momentum_kept():
    model = model_of(2)
    start = POSE, TWIST, [0.3, -0.5], [2.0, -1.0]

    def end(steps):
        motion = simulate_floating(
            model, *start, duration=0.5, step=0.5 / steps, keep_momentum=True
        )
        return np.concatenate([motion.C[-1].ravel(), motion.V[-1], motion.q[-1]])

    plain = simulate_floating(model, *start, duration=0.5, step=0.5 / 2000)
    exact = np.concatenate([plain.C[-1].ravel(), plain.V[-1], plain.q[-1]])
    errors = [np.abs(end(k) - exact).max() for k in (25, 50)]
    assert math.log2(errors[0] / errors[1]) > 3.7


def damping(model, d):
    zero, infinite = np.zeros(model.n), np.full(model.n, np.inf)
    d = np.concatenate([np.zeros(6), np.full(model.n - 6, d)])
    return JointForces(d, zero, zero + 1.0, -infinite, infinite, zero, zero)


def test_a_law_sees_the_base():
    model = model_of(2)
    seen = []

    def law(t, C, V, q, qd):
        seen.append((t, C, V))
        return -2.0 * q - 0.1 * qd

    motion = simulate_floating(model, POSE, TWIST, [0.3, -0.5], duration=0.1, control=law)
    assert len(seen) == 101  # the last one for the torques at the end
    for k in (0, 40, 99):
        t, C, V = seen[k]
        assert t == pytest.approx(motion.t[k])
        assert_close(C, motion.C[k], 1e-12)
        assert_close(V, motion.V[k], 1e-12)


def test_flight_is_that_of_mujoco():
    """MuJoCo has quaternions and the same scheme of Runge-Kutta, on another chart."""
    link = """<body pos="0 {y} 0.1"><joint type="hinge" axis="0 1 0"/>
        <inertial mass="0.8" pos="0 0 0.2" diaginertia="0.01 0.012 0.002"/></body>"""
    theirs = mujoco.MjModel.from_xml_string(
        f"""<mujoco><option timestep="0.001" integrator="RK4"/><worldbody><body><freejoint/>
        <inertial mass="3" pos="0.05 -0.02 0.1" diaginertia="0.05 0.08 0.1"/>
        {link.format(y=0.3)}{link.format(y=-0.3)}</body></worldbody></mujoco>"""
    )
    data = mujoco.MjData(theirs)
    quaternion = np.zeros(4)
    mujoco.mju_mat2Quat(quaternion, POSE[:3, :3].ravel())
    data.qpos[:] = [*POSE[:3, 3], *quaternion, 0.3, -0.5]
    data.qvel[:] = [*(POSE[:3, :3] @ TWIST[3:]), *TWIST[:3], 2.0, -1.0]
    for _ in range(500):
        mujoco.mj_step(theirs, data)
    found = simulate_floating(model_of(2), POSE, TWIST, [0.3, -0.5], [2.0, -1.0], duration=0.5)
    rotation = np.zeros(9)
    mujoco.mju_quat2Mat(rotation, data.qpos[3:7])
    assert_close(found.C[-1, :3, 3], data.qpos[:3], 1e-6)
    assert_close(found.C[-1, :3, :3], rotation.reshape(3, 3), 1e-6)
    assert_close(found.q[-1], data.qpos[7:], 1e-6)


# -- bad input -------------------------------------------------------------------------------------


def test_models_without_a_floating_base():
    arm = mbs.Model.from_screws(
        [-1], np.eye(4)[None], [[0, 0, 1, 0, 0, 0]], LINK[None], frame="body_fixed"
    )
    with pytest.raises(ModelError, match="must be a free joint on the ground"):
        simulate_floating(arm, POSE, TWIST, [], duration=1.0)
    with pytest.raises(ArgumentError, match="must be a Model"):
        simulate_floating("arm", POSE, TWIST, [], duration=1.0)


@pytest.mark.parametrize("k", range(6))
def test_joints_that_are_no_free_joint_are_no_floating_base(k):
    model = model_of(1)
    assert has_floating_base(model)
    bodies = list(model.bodies)
    bodies[k] = replace(bodies[k], joint=replace(bodies[k].joint, name="knee"))
    assert not has_floating_base(replace(model, bodies=tuple(bodies)))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"C": 2.0 * np.eye(4)}, "C has no rotation"),
        ({"V": np.zeros(3)}, "V has shape"),
        ({"q": [0.0]}, "q has shape"),
        ({"qd": [0.0, np.nan]}, "qd must be finite"),
        ({"step": 0.0}, "step must be positive"),
        ({"duration": 0.0}, "duration must be positive"),
        ({"control": [0.0]}, "control has shape"),
    ],
)
def test_bad_arguments(given, message):
    standard = {"C": POSE, "V": TWIST, "q": [0.0, 0.0], "duration": 1.0}
    with pytest.raises(ArgumentError, match=message):
        simulate_floating(model_of(2), **{**standard, **given})


def test_failures_keep_what_there_is():
    model = model_of(2)
    forces = damping(model, 0.1)
    object.__setattr__(forces, "damping", np.full(model.n, 0.1))
    with pytest.raises(ArgumentError, match="must leave the base free"):
        simulate_floating(model, POSE, TWIST, [0.0, 0.0], duration=1.0, forces=forces)

    def law(t, C, V, q, qd):
        return [np.nan, 0.0] if t > 0.05 else [0.0, 0.0]

    with pytest.raises(SimulationError, match=r"control returned .nan") as caught:
        simulate_floating(model, POSE, TWIST, [0.0, 0.0], duration=1.0, control=law)
    assert len(caught.value.motion) == 52
    with pytest.raises(SimulationError, match=r"not finite|singular") as caught:
        simulate_floating(
            model, POSE, 1e6 * TWIST, [0.0, 0.0], [1e7, -1e8], duration=100.0, step=0.1,
            method="explicit_euler",
        )  # fmt: skip
    assert caught.value.time == caught.value.motion.t[-1]
    assert np.isfinite(caught.value.motion.q).all()


@pytest.mark.backend_independent
def test_rotation_of_the_start():
    assert np.abs(so3.log(POSE[:3, :3])).max() > 0.3


def test_power_is_the_rate_of_energy():
    model = model_of(2)
    found = simulate_floating(
        model, POSE, [TWIST, -TWIST, 0.0 * TWIST], [0.3, -0.5], [2.0, -1.0], duration=0.1,
        step=1e-3, control=[0.4, -0.2],
    )  # fmt: skip
    assert found.power.shape == (101, 3)
    rate = (found.energy[2:] - found.energy[:-2]) / 2e-3
    assert_close(found.power[1:-1], rate, 1e-5)


def test_adaptive_steps_feel_damping():
    model = model_of(2)
    start, given = (POSE, TWIST, [0.3, -0.5], [2.0, -1.0]), {"duration": 0.5, "step": 1e-3}
    given["forces"] = damping(model, 0.3)
    fixed = simulate_floating(model, *start, **given)
    adaptive = simulate_floating(model, *start, **given, method="dormand_prince")
    assert_close(adaptive.q, fixed.q, 1e-6)
    assert_close(adaptive.V, fixed.V, 1e-6)
