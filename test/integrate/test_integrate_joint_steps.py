# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Steps in joint coordinates: their order, friction and stops, parameters, and bad input."""

import math

import numpy as np
import pytest
from cases import mostly_slow
from mechanisms import random_mechanism, with_mimics
from reference import assert_close

import mbs_dynamics as mbs
from mbs_dynamics.errors import ArgumentError, SingularError, UnknownMethodError
from mbs_dynamics.integrate import JointForces, Stepper
from mbs_dynamics.resources import robot_path

ORDERS = {"semi_implicit_euler": 1, "rk4": 4}
every_method = pytest.mark.parametrize("method", ORDERS)

MECHANISMS = {
    "chain": random_mechanism(2, [-1, 0, 1], ["revolute"]),
    "tree": random_mechanism(5, [-1, 0, 0]),
    "mimics": with_mimics(
        random_mechanism(8, [-1, 0, 0]), (0, 1, 0), (1.0, 1.0, -0.5), (0.0, 0.0, 0.3)
    ),
}


def pendulum(mass=2.0, length=0.5, gravity=9.81):
    """A rod about a horizontal axis, hanging at q = 0."""
    M = mbs.spatial_inertia(mass, (0, 0, -length / 2), np.diag([mass * length**2 / 12] * 2 + [0.0]))
    return mbs.Model.from_screws(
        [-1], np.eye(4)[None], [[0, 1, 0, 0, 0, 0]], M[None], frame="body_fixed",
        gravity=(0, 0, -gravity),
    )  # fmt: skip


def joint_forces(model, **given):
    """Forces with these parameters, zero or infinite where none is given."""
    standard = dict.fromkeys(("damping", "friction", "stiffness", "stop_damping"), 0.0)
    values = {**standard, "lower": -np.inf, "upper": np.inf, **given}
    return JointForces(**{name: np.full(model.n, x) for name, x in values.items()})


@every_method
@pytest.mark.parametrize("name", mostly_slow(MECHANISMS, ["mimics"]))
def test_order_with_damping(name, method):
    """Halving the step divides the error by 2 to the power of the order."""
    model = MECHANISMS[name].model
    rng = np.random.default_rng(3)
    start, effort = rng.uniform(-1.0, 1.0, (2, model.n)), rng.uniform(-1.0, 1.0, model.n)
    forces = joint_forces(model, damping=0.02)

    def end(method, steps):
        stepper = Stepper(model, method=method, forces=forces)
        return stepper.run(start, effort, 0.02 / steps, steps)[-1]

    exact = end("rk4", 64)
    errors = [np.abs(end(method, steps) - exact).max() for steps in (4, 8)]
    assert abs(math.log2(errors[0] / errors[1]) - ORDERS[method]) < 0.2


@pytest.mark.parametrize("algorithm", ["spatial", "mixed"])
def test_the_algorithm_changes_no_result(algorithm):
    """Wrenches stay body-fixed, whatever the recursions are in."""
    model = MECHANISMS["tree"].model
    rng = np.random.default_rng(5)
    state, effort = rng.uniform(-1.0, 1.0, (2, model.n)), rng.uniform(-1.0, 1.0, model.n)
    W = rng.uniform(-1.0, 1.0, (model.nb, 6))
    asked = {"method": "rk4", "forces": joint_forces(model, damping=0.3), "wrenches": True}
    plain, other = Stepper(model, **asked), Stepper(model, algorithm=algorithm, **asked)
    assert other.kernel.operations != plain.kernel.operations
    expected = plain.step(state, effort, 1e-2, W)
    assert_close(other.step(state, effort, 1e-2, W), expected, 1e-12)


@every_method
@pytest.mark.parametrize("stiffness", [1e3, 1e9])
def test_stops_are_stable_whatever_their_stiffness(method, stiffness):
    """A motor drives a pendulum onto a stop, at 1 kHz; it rests where the spring holds it.

    In rk4 the motor moves the joint within a step, and the stop takes that back at its end: the
    rate at rest is off by a third power of the step.
    """
    model = pendulum()
    inertia = mbs.mass_matrix(model, [0.0])[0, 0]
    forces = joint_forces(
        model, upper=0.7, stiffness=stiffness, stop_damping=2.0 * math.sqrt(stiffness * inertia)
    )
    stepper = Stepper(model, method=method, forces=forces)
    states = stepper.run([[0.0], [0.0]], np.full(1, 20.0), 1e-3, 8000)
    assert np.isfinite(states).all()
    q, qd = states[-1, :, 0]
    net = 20.0 - mbs.gravity_torques(model, [q])[0]
    assert abs(q - 0.7 - net / stiffness) < (1e-7 if method == "rk4" else 1e-12)
    assert abs(qd) < (1e-6 if method == "rk4" else 1e-9)
    assert np.abs(np.diff(states[-100:, 0, 0])).max() < 1e-12


def test_gravity_payload_and_joints_are_inputs():
    arm = mbs.Model.from_urdf(robot_path("arm7")).with_payload("link7", 1.0)
    kernel = Stepper(arm, forces=joint_forces(arm, damping=1.0)).kernel
    state = np.array([np.full(7, 0.3), np.full(7, 0.1)])

    def acceleration(model, damping, tau=0.0):
        stepper = Stepper(model, forces=joint_forces(model, damping=damping))
        assert stepper.kernel is kernel
        change = stepper.step(state, np.full(7, tau), 1e-9)[1] - state[1]
        return change / 1e-9

    for model in (arm, arm.with_gravity((1.0, 2.0, 3.0)), arm.with_payload("link7", 5.0)):
        for damping in (1.0, 3.0):
            expected = mbs.forward_dynamics(model, *state, -damping * state[1])
            assert_close(acceleration(model, damping), expected, 1e-5)


@every_method
@pytest.mark.parametrize("members", [3, 40])
def test_batches(method, members):
    """Many at once, by rows of efforts that are the same for all or not, is one by one."""
    model = MECHANISMS["tree"].model
    rng = np.random.default_rng(5)
    states = rng.uniform(-1, 1, (members, 2, model.n))
    stepper = Stepper(model, method=method, forces=joint_forces(model, damping=0.1))
    for shape in ((40, members, model.n), (40, 1, model.n), (40, model.n), (model.n,)):
        efforts = rng.uniform(-1, 1, shape)
        many = stepper.run(states, efforts, 1e-3, 40)
        assert many.shape == (41, members, 2, model.n)
        for k in (0, 1, members - 1):
            own = efforts[:, k % shape[1]] if len(shape) == 3 else efforts
            assert_close(many[:, k], stepper.run(states[k], own, 1e-3, 40), 1e-12)


def test_wrong_arguments_are_named():
    model, other = pendulum(), mbs.Model.from_urdf(robot_path("arm7"))
    stepper, state, effort = Stepper(model), np.zeros((2, 1)), np.zeros(1)
    massless = mbs.Model.from_screws(
        [-1], np.eye(4)[None], [[0, 1, 0, 0, 0, 0]], frame="body_fixed"
    )
    for call, error, said in (
        (lambda: joint_forces(model, damping=-1.0), ArgumentError, "damping"),
        (lambda: joint_forces(model, lower=float("nan")), ArgumentError, "lower"),
        (lambda: joint_forces(model, lower=2.0, upper=1.0), ArgumentError, "lower.*upper"),
        (lambda: JointForces(*np.zeros((5, 3)), np.zeros(2)), ArgumentError, r"\(3,\)"),
        (lambda: Stepper(model, method="rk5"), UnknownMethodError, "'rk4'"),
        (lambda: Stepper("arm7"), ArgumentError, "model"),
        (lambda: Stepper(model, forces=JointForces.of(other)), ArgumentError, r"forces.*7.*1"),
        (lambda: stepper.step([0.0, 0.0], effort, 1e-3), ArgumentError, "state"),
        (lambda: stepper.step(state, effort, 1e-3, np.zeros((1, 6))), ArgumentError, "wrenches"),
        (lambda: stepper.run(state, effort, -1e-3, 10), ArgumentError, "h "),
        (lambda: stepper.run(state, np.zeros((7, 1)), 1e-3, 10), ArgumentError, "effort"),
        (lambda: Stepper(massless).step(state, effort, 1e-3), SingularError, "joint1"),
    ):
        with pytest.raises(error, match=said):
            call()
