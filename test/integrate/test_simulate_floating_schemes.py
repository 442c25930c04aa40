# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Schemes for floating bases: orders, references, energy, batches, events, stops, files."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import pinocchio as pin
import pytest
from reference import assert_close

import mbs_dynamics as mbs
from mbs_dynamics.errors import ArgumentError, SimulationError, UnknownMethodError
from mbs_dynamics.integrate import (
    METHODS,
    JointForces,
    free_body,
    simulate,
    simulate_body,
    simulate_floating,
    stop_events,
)
from mbs_dynamics.lie import se3
from mbs_dynamics.model.macro_joints import Connection, macro_joint

GRAVITY = (0.0, 0.0, -9.81)
ORDERS = {
    "explicit_euler": 1,
    "semi_implicit_euler": 1,
    "rk4": 4,
    "runge_kutta": 4,
    "implicit_midpoint": 2,
}
BASE = mbs.spatial_inertia(3.0, (0.05, -0.02, 0.1), np.diag([0.05, 0.08, 0.1]))

LINK = """<link name="{0}"><inertial><origin xyz="{1}"/><mass value="{2}"/>
  <inertia ixx="{3}" iyy="{4}" izz="{5}" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
JOINT = """<joint name="{0}" type="revolute"><origin xyz="{1}" rpy="0.2 -0.1 0.3"/>
  <parent link="{2}"/><child link="{3}"/><axis xyz="{4}"/>
  <limit lower="-1.2" upper="0.9" effort="10" velocity="10"/></joint>"""
PARTS = "".join(
    [
        LINK.format("base", "0.05 -0.02 0.1", 3.0, 0.05, 0.08, 0.1),
        LINK.format("first", "0 0 0.2", 0.8, 0.01, 0.012, 0.002),
        LINK.format("second", "0.05 0 0.15", 0.5, 0.006, 0.007, 0.002),
        JOINT.format("shoulder", "0 0.3 0.1", "base", "first", "0 1 0"),
        JOINT.format("elbow", "0 0 0.4", "first", "second", "1 0 0"),
    ]
)
THEIRS = f'<robot name="probe">{PARTS}</robot>'
OURS = (
    f'<robot name="probe"><link name="world"/>{PARTS}<joint name="float" type="floating">'
    '<parent link="world"/><child link="base"/></joint></robot>'
)
POSE = se3.exp(np.array([0.3, 1.2, -0.4, 1.0, -0.5, 0.7]))
TWIST = np.array([1.0, 4.0, -2.0, 0.4, -0.3, 2.0])
JOINT_NAMES = ("shoulder", "elbow")
START = POSE, TWIST, np.array([0.3, -0.5]), np.array([2.0, -1.0])


@lru_cache
def probe(gravity=GRAVITY):
    return mbs.Model.from_urdf(OURS, gravity=gravity)


def law(t, C, V, q, qd):
    first = math.sin(10.0 * t) - 2.0 * q[..., 0] + 0.1 * V[..., 1]
    return np.stack([first, C[..., 0, 0] - 0.1 * qd[..., 1]], axis=-1)


def push(t, C, V, q, qd):
    """Drag and a thrust on the base, and a pull at the last body."""
    W = np.zeros((*V.shape[:-1], 8, 6))
    W[..., 5, :] = [0.1, 0.0, -0.2, 0.0, 1.0, 3.0] - 0.1 * V
    W[..., 7, 3] = math.cos(3.0 * t)
    return W


def end(method, steps, duration=0.3, **given):
    motion = simulate_floating(
        probe(), *START, duration=duration, step=duration / steps, method=method, **given
    )
    return np.concatenate([motion.C[-1].ravel(), motion.V[-1], motion.q[-1], motion.qd[-1]])


@lru_cache
def accurate(control, wrenches):
    tight = {"rtol": 1e-13, "atol": 1e-13}
    return end("dormand_prince", 4, control=control, wrenches=wrenches, **tight)


@pytest.mark.parametrize("method", ORDERS)
@pytest.mark.parametrize("acting", ["nothing", "laws"])
def test_order(method, acting):
    """Laws act at every stage of runge_kutta; elsewhere they are held, which is of order 1."""
    drives = {"control": law, "wrenches": push} if acting == "laws" else {}
    reference = accurate(drives.get("control"), drives.get("wrenches"))
    order = 1 if drives and method != "runge_kutta" else ORDERS[method]
    steps = 400 if order == 1 else 64
    errors = [np.abs(end(method, k, **drives) - reference).max() for k in (steps, 2 * steps)]
    assert abs(math.log2(errors[0] / errors[1]) - order) < 0.1


def test_steps_that_keep_the_tolerance():
    given = {"duration": 0.3, "control": law, "wrenches": push}
    found = simulate_floating(
        probe(), *START, step=0.01, method="dormand_prince", rtol=1e-9, atol=1e-9, **given
    )
    fine = simulate_floating(probe(), *START, step=5e-4, method="runge_kutta", **given)
    for name in ("C", "V", "q", "qd", "tau", "momentum"):  # also between its own steps
        assert_close(getattr(found, name), getattr(fine, name)[::20], 1e-7)
    assert found.orthogonality.max() < 1e-14
    assert found.tau.shape == (31, 2)


def test_trajectories_are_those_of_the_same_scheme_over_pinocchio():
    """Munthe-Kaas steps of order 4 on SE(3), with Pinocchio's exp, Jlog6 and aba."""
    theirs = pin.buildModelFromXML(THEIRS, pin.JointModelFreeFlyer())
    data, h, steps = theirs.createData(), 2e-3, 100
    quaternion = pin.Quaternion(POSE[:3, :3]).coeffs()
    turned = [3, 4, 5, 0, 1, 2]  # linear part first, there
    q = np.concatenate([POSE[:3, 3], quaternion, START[2]])
    v = np.concatenate([TWIST[turned], START[3]])

    def rate(q, v, X, dv):
        v = v + dv
        a = pin.aba(theirs, data, pin.integrate(theirs, q, X), v, np.zeros(8))
        Xd = v.copy()
        Xd[:6] = pin.Jlog6(pin.exp6(X[:6])) @ v[:6]
        return Xd, a

    zero = np.zeros(8)
    for _ in range(steps):
        k1 = rate(q, v, zero, zero)
        k2 = rate(q, v, *(0.5 * h * x for x in k1))
        k3 = rate(q, v, *(0.5 * h * x for x in k2))
        k4 = rate(q, v, *(h * x for x in k3))
        X, dv = (
            h / 6.0 * (a + 2 * b + 2 * c + d) for a, b, c, d in zip(k1, k2, k3, k4, strict=True)
        )
        q, v = pin.integrate(theirs, q, X), v + dv
    found = simulate_floating(probe(), *START, duration=steps * h, step=h, method="runge_kutta")
    assert_close(found.C[-1], pin.XYZQUATToSE3(q[:7]).homogeneous, 1e-11)
    assert_close(found.V[-1][turned], v[:6], 1e-10)
    assert_close(found.q[-1], q[7:], 1e-11)
    assert_close(found.qd[-1], v[6:], 1e-10)


def test_midpoint_steps_of_a_body_are_those_on_its_group():
    joint = Connection(name="float", joint=macro_joint("free"), body="base", M_body=BASE)
    model = mbs.Model.from_joints([joint], gravity=GRAVITY)
    options = {"duration": 0.5, "step": 5e-3}
    W = np.zeros((6, 6))
    W[5] = [0.1, 0.2, -0.3, 1.0, -2.0, 3.0]
    found = simulate_floating(
        model, POSE, TWIST, [], method="implicit_midpoint", wrenches=W, **options
    )
    expected = simulate_body(
        free_body(BASE, GRAVITY), POSE, TWIST, method="momentum_midpoint", wrenches=W[5], **options
    )
    assert_close(found.C, expected.C, 1e-11)
    assert_close(found.V, expected.V, 1e-11)
    assert_close(found.momentum, expected.momentum, 1e-11)
    free = simulate_floating(model, POSE, TWIST, [], method="runge_kutta", **options)
    expected = simulate_body(free_body(BASE, GRAVITY), POSE, TWIST, **options)
    assert_close(free.C, expected.C, 1e-12)


@pytest.mark.parametrize("far", [1e3, 1e6])
def test_implicit_steps_far_from_the_origin(far):
    """The moment about the origin is known to the last place of r times p only, and so is V."""
    model, step = probe((0.0, 0.0, 0.0)), {"duration": 0.1, "step": 2e-3}
    away = POSE.copy()
    away[:3, 3] += far
    found = simulate_floating(model, away, *START[1:], method="implicit_midpoint", **step)
    near = simulate_floating(model, *START, method="implicit_midpoint", **step)
    assert_close(found.q, near.q, 1e-13 * far)
    assert_close(found.C[:, :3, :3], near.C[:, :3, :3], 1e-13 * far)
    for method in ("momentum_midpoint", "generalized_alpha"):
        body = free_body(BASE)
        found = simulate_body(body, away, TWIST, method=method, **step)
        near = simulate_body(body, POSE, TWIST, method=method, **step)
        assert_close(found.C[:, :3, :3], near.C[:, :3, :3], 1e-13 * far)


def test_a_heavy_base_is_the_ground():
    """The arm on it moves as the arm on the ground does, up to the ratio of their masses."""
    arm = mbs.Model.from_urdf(THEIRS, gravity=(0.0, 0.0, 0.0))
    heavy = PARTS.replace('"3.0"', '"3e9"').replace('ixx="0.05" iyy="0.08" izz="0.1"',
                                                    'ixx="1e9" iyy="1e9" izz="1e9"')  # fmt: skip
    model = mbs.Model.from_urdf(OURS.replace(PARTS, heavy), gravity=(0.0, 0.0, 0.0))
    for method in ("rk4", "implicit_midpoint"):
        given = {"duration": 0.3, "step": 2e-3, "method": method, "control": [0.2, -0.1]}
        found = simulate_floating(model, POSE, np.zeros(6), *START[2:], **given)
        expected = simulate(arm, *START[2:], **given)
        assert_close(found.q, expected.q, 1e-7)
        assert_close(found.tau, expected.tau, 1e-15)


def test_energy_of_the_implicit_midpoint_rule_does_not_drift():
    """Without gravity: momentum to rounding, energy within a bound of order 2."""
    model = probe((0.0, 0.0, 0.0))
    bound = {}
    for h in (0.02, 0.01):
        motion = simulate_floating(
            model, POSE, 0.5 * TWIST, [0.3, -0.5], [0.2, -0.1], duration=20.0, step=h,
            method="implicit_midpoint",
        )  # fmt: skip
        assert np.ptp(motion.q[:, 0]) > 1.0
        scale = np.abs(motion.momentum[0]).max() * (1.0 + np.abs(motion.C[:, :3, 3]).max())
        assert np.abs(motion.momentum - motion.momentum[0]).max() < 1e-14 * scale
        error = np.abs(motion.energy - motion.energy[0])
        fifths = [part.max() for part in np.array_split(error, 5)]
        assert max(fifths) < 1.5 * fifths[0]
        bound[h] = error.max()
    assert abs(math.log2(bound[0.02] / bound[0.01]) - 2.0) < 0.2


POSES = np.array([POSE, POSE @ se3.exp(np.array([0.3, 0.1, 0.0, 0.0, 0.0, 1.0]))])
JOINTS = np.array([[0.3, -0.5], [0.1, 0.2]])


@pytest.mark.parametrize("method", METHODS)
def test_batch(method):
    given = {"duration": 0.05, "step": 2e-3, "method": method, "control": law, "wrenches": push}
    many = simulate_floating(probe(), POSES, TWIST, JOINTS, [1.0, 0.0], every=5, **given)
    assert many.C.shape == (6, 2, 4, 4)
    assert many.energy.shape == (6, 2)
    one = simulate_floating(probe(), POSES[1], TWIST, JOINTS[1], [1.0, 0.0], **given)
    tolerance = 1e-7 if method == "dormand_prince" else 1e-12
    for name in ("C", "V", "q", "qd", "tau", "momentum", "potential"):
        assert_close(getattr(many, name)[:, 1], getattr(one, name)[::5], tolerance)


def test_batch_in_the_compiled_loop():
    """Twelve at once, which vector code does, with a row of torques for each step and member."""
    rng = np.random.default_rng(5)
    poses, q = se3.exp(rng.normal(size=(12, 6))), rng.uniform(-0.5, 0.5, (12, 2))
    rows = rng.uniform(-1.0, 1.0, (20, 12, 2))
    for given in ({}, {"keep_momentum": True}):
        many = simulate_floating(probe(), poses, TWIST, q, duration=0.02, control=rows, **given)
        one = simulate_floating(
            probe(), poses[7], TWIST, q[7], duration=0.02, control=rows[:, 7], **given
        )
        assert_close(many.C[:, 7], one.C, 1e-12)
        assert_close(many.momentum[:, 7], one.momentum, 1e-11)
        assert_close(many.tau[:-1], rows)


@pytest.mark.parametrize("method", METHODS)
def test_events_and_stops_of_a_batch(method):
    """Each is what it is in a simulation of its own; who has stopped rests."""

    def low(t, C, V, q, qd):
        return C[2, 3] + 0.9

    given = {
        "duration": 0.6,
        "step": 5e-3,
        "method": method,
        "stop": low,
        "events": {"straight": lambda t, C, V, q, qd: q[1]},
    }
    if method == "dormand_prince":
        given |= {"rtol": 1e-11, "atol": 1e-11}
    many = simulate_floating(probe(), POSES, TWIST, JOINTS, **given)
    for k in (0, 1):
        one = simulate_floating(probe(), POSES[k], TWIST, JOINTS[k], **given)
        own = [event for event in many.events if event.member == (k,)]
        assert [event.name for event in own] == [event.name for event in one.events]
        assert own[-1].name == "stop"
        for a, b in zip(own, one.events, strict=True):
            assert abs(a.t - b.t) < (1e-8 if method == "dormand_prince" else 1e-12)
        last = own[-1]
        assert abs(last.C[2, 3] + 0.9) < 1e-12
        assert_close(many.C[-1, k], last.C, 1e-14)
        assert_close(many.qd[-1, k], last.qd, 1e-11)
        assert one.t[-1] == one.events[-1].t
        assert_close(one.C[-1], one.events[-1].C, 1e-14)
    assert len({event.t for event in many.events if event.name == "stop"}) == 2


@pytest.mark.parametrize("method", METHODS)
def test_a_base_that_turns_about_its_axis_and_falls(method):
    """The angle grows as 3 t, and the height falls by g t^2 / 2; both crossings are known."""
    joint = Connection(name="float", joint=macro_joint("free"), body="base", M_body=np.diag(
        [0.1, 0.2, 0.3, 2.0, 2.0, 2.0]))  # fmt: skip
    model = mbs.Model.from_joints([joint], gravity=GRAVITY)
    found = simulate_floating(
        model, np.eye(4), [0.0, 0.0, 3.0, 0.0, 0.0, 0.0], [], duration=1.0, step=0.01,
        method=method, events={"turned": lambda t, C, *rest: math.atan2(C[1, 0], C[0, 0]) - 1.0},
        stop=lambda t, C, *rest: C[2, 3] + 1.0,
    )  # fmt: skip
    assert [event.name for event in found.events] == ["turned", "stop"]
    turned, stop = found.events
    assert abs(turned.t - 1.0 / 3.0) < 1e-12
    error = 6e-3 if "euler" in method else 1e-9 if method == "dormand_prince" else 1e-12
    assert abs(stop.t - math.sqrt(2.0 / 9.81)) < error
    assert abs(stop.C[2, 3] + 1.0) < 1e-12


@pytest.mark.parametrize("method", ORDERS)
def test_stiff_damping_between_the_bodies(method):
    """The joints come to rest within a step or two; what they exchange keeps the momentum."""
    model = probe((0.0, 0.0, 0.0))
    forces = JointForces.of(model, damping=np.repeat([0.0, 1e4], [6, 2]), friction=0.0)
    run = simulate_floating(
        model, POSE, 0.1 * TWIST, *START[2:], duration=0.05, method=method, forces=forces
    )
    assert np.abs(run.qd[-1]).max() < 1e-3
    assert (np.diff(run.kinetic) < 1e-6 * run.kinetic[0]).all()
    assert_close(run.momentum, np.tile(run.momentum[0], (len(run), 1)), 5e-3)


def test_joint_stops_and_friction():
    """As in joint coordinates; and they act between the bodies: the momentum of all is kept."""
    model = probe((0.0, 0.0, 0.0))
    forces = JointForces.of(model, damping=0.0, friction=np.repeat([0.0, 0.05], [6, 2]), stops=True)
    given = {"duration": 0.5, "forces": forces}
    zero, q = np.zeros(6), np.array([0.3, -0.5])
    pose = mbs.forward_kinematics(model, np.zeros(8))[5]
    events = stop_events(model)
    ends = [f"{joint} at its {end} limit" for end in ("lower", "upper") for joint in JOINT_NAMES]
    assert list(events) == ends
    for method in ("semi_implicit_euler", "rk4"):
        given["method"] = method
        found = simulate_floating(
            model, pose, zero, q, control=[1.0, 0.0], keep_momentum=True, events=events, **given
        )
        assert [event.name for event in found.events][:1] == ["shoulder at its upper limit"]
        assert abs(found.events[0].q[0] - 0.9) < 1e-9
        assert 0.9 < found.q[-1, 0] < 0.91
        assert np.abs(found.momentum).max() < 1e-13
        found = simulate_floating(model, pose, zero, q, control=[1.0, 0.0], **given)
        start = np.concatenate([zero, q])
        chain = simulate(model, start, control=[*zero, 1.0, 0.0], events=events, **given)
        assert_close(found.q, chain.q[:, 6:], 5e-4)  # the base moves on another path, to order 1
        assert_close(found.C, mbs.forward_kinematics(model, chain.q)[:, 5], 5e-3)
        assert chain.events[0].name == "shoulder at its upper limit"


# -- failures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_a_torque_that_is_not_finite(method):
    def lost(t, C, V, q, qd):
        return [np.nan, 0.0] if t > 0.0955 else [0.0, 0.0]

    with pytest.raises(SimulationError, match=r"control returned .nan.* at t = ") as caught:
        simulate_floating(probe(), *START, duration=0.5, step=2e-3, method=method, control=lost)
    motion = caught.value.motion
    assert motion.t[-1] < 0.098
    if method != "dormand_prince":
        assert motion.t[-1] > 0.093
    assert np.isfinite(motion.q).all()


def test_midpoint_steps_that_are_too_long():
    with pytest.raises(SimulationError, match="the midpoint scheme does not converge at t = 0 s"):
        simulate_floating(
            probe(), POSE, 20 * TWIST, JOINTS[0], duration=5.0, step=0.5, method="implicit_midpoint"
        )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"C": [POSE] * 2, "q": np.zeros((3, 2))}, "do not broadcast together: C .*, q"),
        ({"keep_momentum": True, "method": "runge_kutta"}, "keep_momentum takes no wrenches, and"),
        ({"keep_momentum": True, "wrenches": np.zeros((8, 6))}, "got 'rk4' and wrenches"),
        ({"wrenches": np.zeros((2, 6))}, r"wrenches has shape \(2, 6\); valid is \(8, 6\)"),
        ({"control": np.zeros((3, 2))}, "control has 3 rows; valid is one for each of the 100"),
        ({"stop": lambda t, C, V, q, qd: q}, "event 'stop' must return a finite number"),
        ({"forces": 1.0}, "forces must be JointForces"),
        ({"every": 0}, "every must be an integer of at least 1"),
    ],
)
def test_bad_arguments(given, message):
    standard = {"C": POSE, "V": TWIST, "q": [0.0, 0.0], "duration": 0.1}
    with pytest.raises(ArgumentError, match=message):
        simulate_floating(probe(), **{**standard, **given})


def test_what_the_midpoint_rule_refuses():
    forces = JointForces.of(probe(), friction=np.repeat([0.0, 0.1], [6, 2]))
    with pytest.raises(ArgumentError, match="neither friction nor joint stops"):
        simulate_floating(probe(), *START, duration=0.1, method="implicit_midpoint", forces=forces)
    with pytest.raises(UnknownMethodError, match="did you mean 'rk4'"):
        simulate_floating(probe(), *START, duration=0.1, method="rk5")
