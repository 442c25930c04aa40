# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Damping and friction that no step resolves, and durations that are not whole steps."""

import math

import numpy as np
import pytest
from mechanisms import random_mechanism
from reference import assert_close

import mbs_dynamics as mbs
from mbs_dynamics.errors import SimulationError
from mbs_dynamics.integrate import JointForces, runge_kutta, simulate
from mbs_dynamics.integrate.forces import weight_of_end
from mbs_dynamics.resources import robot_path

FIXED = ("semi_implicit_euler", "rk4", "implicit_midpoint")
ARM = mbs.Model.from_urdf(robot_path("arm7"))
Q, QD = np.array([0.3, 0.5, -0.2, 1.1, 0.0, 0.7, 0.1]), np.linspace(-1.0, 1.0, 7)


def slider(mass):
    M = mbs.spatial_inertia(mass, (0, 0, 0), 1e-6 * np.eye(3))
    return mbs.Model.from_screws([-1], [np.eye(4)], [[0, 0, 0, 1, 0, 0]], [M], frame="body_fixed")


def coaxial(light, heavy):
    """A heavy disc on a light one, both about the same axis: the second joint moves both."""
    inertias = [mbs.spatial_inertia(x, (0, 0, 0), x * np.eye(3)) for x in (light, heavy)]
    axis = [0, 0, 1, 0, 0, 0]
    return mbs.Model.from_screws(
        [-1, 0], [np.eye(4)] * 2, [axis] * 2, np.array(inertias), frame="body_fixed"
    )


@pytest.mark.parametrize("method", FIXED)
@pytest.mark.parametrize("mass", [1e-9, 1.0])
@pytest.mark.parametrize("damping", [2.0, 1e4])
def test_damping_stops_a_mass_and_lets_a_force_move_it(damping, mass, method):
    """The exact v is v0 exp(-d t / m), and F / d in the end."""
    model, exact = slider(mass), math.exp(-0.1 * damping / mass)
    given = {"duration": 0.1, "method": method}
    given["forces"] = JointForces.of(model, damping=damping, friction=0.0)
    slowed = simulate(model, [0.0], [1.0], **given).qd[:, 0]
    first_order = method.endswith("euler")
    assert abs(slowed[-1] - exact) < (0.02 if first_order else 1e-7)
    assert (np.diff(slowed) <= 1e-9).all()
    assert (slowed >= -1e-9).all()
    if exact < 1e-9:
        moved = simulate(model, [0.0], control=[0.5], **given)
        assert_close(moved.qd[-1], [0.5 / damping], 1e-12)


@pytest.mark.parametrize("method", FIXED)
def test_damping_between_a_light_and_a_heavy_body(method):
    """The relative rate moves the light body only, whatever the inertia beyond the joint."""
    model = coaxial(1e-6, 1.0)
    forces = JointForces.of(model, damping=[0.0, 0.1], friction=0.0)
    run = simulate(model, [0.0, 0.0], [1.0, 2.0], duration=0.1, method=method, forces=forces)
    spin = run.qd @ [[1.0], [1.0]]
    assert abs(run.qd[-1, 1]) < 1e-9
    assert_close(spin, np.full_like(spin, 3.0), 1e-5)


@pytest.mark.long
@pytest.mark.parametrize("method", FIXED)
@pytest.mark.parametrize("seed", range(2))
def test_no_damping_adds_energy(seed, method):
    """Trees with damping from none to a thousand times what the step resolves."""
    rng = np.random.default_rng(seed)
    model = random_mechanism(seed, [-1, 0, 1, 1, 3]).model.with_gravity((0, 0, 0))
    start, damping = rng.uniform(-1.0, 1.0, (2, model.n)), 10.0 ** rng.uniform(-3, 6, model.n)
    forces = JointForces.of(model, damping=damping, friction=0.0)
    run = simulate(model, *start, duration=0.5, step=1e-2, method=method, forces=forces)
    assert (np.diff(run.kinetic) <= 1e-12 * run.kinetic[0]).all()


@pytest.mark.long
@pytest.mark.parametrize("method", ["rk4", "implicit_midpoint"])
@pytest.mark.parametrize("damping", [5.0, (1, 1, 1, 1, 1, 1e3, 0.1)])
def test_stiff_damping_of_an_arm_converges(damping, method):
    given = {"duration": 0.1, "forces": JointForces.of(ARM, damping=damping, friction=0.0)}
    exact = simulate(ARM, Q, QD, method="dormand_prince", rtol=1e-11, atol=1e-11, **given)
    ends = [simulate(ARM, Q, QD, method=method, step=h, **given) for h in (4e-4, 2e-4)]
    errors = [np.abs(run.q[-1] - exact.q[-1]).max() for run in ends]
    assert errors[0] < 1e-3
    assert errors[1] < 0.7 * errors[0]


def test_a_motion_that_takes_too_many_steps_says_what_to_take(monkeypatch):
    monkeypatch.setattr(runge_kutta, "MOST_STEPS", 300)
    model = slider(1e-3)
    forces = JointForces.of(model, damping=1e4, friction=0.0)
    with pytest.raises(SimulationError, match=r"300.*rk4"):
        simulate(model, [0.0], [1.0], duration=0.1, method="dormand_prince", forces=forces)


def test_weight_of_the_end_makes_rates_decay_like_the_exponential():
    for z in (1e-3, 0.1, 1.0, 10.0, 1e8):
        decay = 1.0 - z / (1.0 + weight_of_end(z) * z)
        assert abs(decay - 1.0 / (1.0 + z + z**2 / 2.0 + z**3 / 6.0)) < 1e-13


@pytest.mark.parametrize("method", [*FIXED, "dormand_prince"])
@pytest.mark.parametrize(
    ("duration", "step", "steps"), [(2.0, 2.0, 1), (0.031, 1e-3, 31), (0.3, 0.1, 3), (0.7, 0.1, 7)]
)
def test_a_simulation_ends_when_it_was_asked_to(duration, step, steps, method):
    model, forces = slider(2.0), JointForces.of(slider(2.0), damping=0.3, friction=0.0)
    given = {"control": np.linspace(1.0, 2.0, steps)[:, None], "method": method, "forces": forces}
    if method == "dormand_prince":
        given["control"] = [1.0]
    run = simulate(model, [0.1], duration=duration, step=step, **given)
    assert run.t[-1] == duration
    assert len(run) == steps + 1
    assert_close(run.t[:-1], step * np.arange(steps), 1e-12)
    every = simulate(model, [0.1], duration=duration, step=step, every=4, **given)
    assert every.t[-1] == duration
    assert_close(every.q[-1], run.q[-1], 1e-14)
