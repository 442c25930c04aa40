# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Dry friction: what stands, what breaks away, what slides, and that none of it adds energy."""

import itertools
import math

import numpy as np
import pytest
from cases import mostly_slow
from mechanisms import random_mechanism
from reference import assert_close

import mbs_dynamics as mbs
from mbs_dynamics.integrate import JointForces, Stepper, simulate
from mbs_dynamics.resources import robot_path

METHODS = ("semi_implicit_euler", "rk4")
every_method = pytest.mark.parametrize("method", METHODS)
ARM = mbs.Model.from_urdf(robot_path("arm7"))
Q = np.array([0.3, 0.5, -0.2, 1.1, 0.0, 0.7, 0.1])
WEIGHT = 9.81


def block(angle=90.0):
    """1 kg on an incline of so many degrees; downhill is negative."""
    tilt = math.radians(angle)
    axis = [0.0, 0.0, 0.0, math.cos(tilt), 0.0, math.sin(tilt)]
    M = mbs.spatial_inertia(1.0, (0, 0, 0), 1e-6 * np.eye(3))
    return mbs.Model.from_screws(
        [-1], np.eye(4)[None], [axis], M[None], frame="body_fixed", gravity=(0, 0, -WEIGHT)
    )


def rubbing(model, friction, **given):
    return JointForces.of(model, damping=0.0, friction=friction, **given)


@every_method
@pytest.mark.parametrize("share", [1e-7, 0.2])
def test_a_block_that_friction_can_hold_stands_still_for_a_minute(method, share):
    given = {"forces": rubbing(block(), WEIGHT * (1.0 + share)), "method": method}
    run = simulate(block(), [0.0], duration=60.0, step=1e-2, **given)
    assert not run.q.any()
    assert not run.qd.any()


@every_method
@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_a_block_breaks_away_at_the_load_that_friction_bears(method, side):
    """Within a millionth; with the rest of the load as acceleration."""
    given = {"duration": 1.0, "step": 1e-2, "method": method}
    for share, moves in ((1.0 - 1e-6, False), (1.0 + 1e-6, True)):
        control = [WEIGHT + side * 12.0 * share]
        run = simulate(block(), [0.0], control=control, forces=rubbing(block(), 12.0), **given)
        assert_close(run.qd[-1], [side * 12e-6 if moves else 0.0], 1e-9)


@every_method
@pytest.mark.parametrize(("friction", "angle"), [(6.0, 30.0), (4.9051, 30.0), (3.0, 0.0)])
def test_a_block_on_an_incline_stops_where_theory_says(method, friction, angle):
    """Uphill at 1 m/s it decelerates by a = g sin + F / m, stops at v / a, and stays there."""
    model = block(angle)
    a = WEIGHT * math.sin(math.radians(angle)) + friction
    errors = []
    for step in (1e-2, 1e-3):
        forces = rubbing(model, friction)
        run = simulate(model, [0.0], [1.0], duration=1.0, step=step, method=method, forces=forces)
        stopped = run.t[np.argmax(run.qd[:, 0] == 0.0)]
        assert 0.0 <= stopped - 1.0 / a < 1.001 * step
        assert not run.qd[run.t >= stopped].any()
        errors.append(abs(run.q[-1, 0] - 0.5 / a))
    assert errors[1] < (0.6 * a * 1e-6 if method == "rk4" else 0.6e-3)


@every_method
def test_a_block_turns_and_slides_down_as_theory_says(method):
    """F below the weight: 1 / (g + F) up, then down by g - F; only this step has an error."""
    friction, model = 3.0, block()
    run = simulate(
        model, [0.0], [1.0], duration=1.0, method=method, forces=rubbing(model, friction)
    )
    turned = 1.0 / (WEIGHT + friction)
    error = abs(run.qd[-1, 0] + (WEIGHT - friction) * (1.0 - turned))
    assert error < 2.0 * friction * 1e-3


@pytest.mark.long
@every_method
def test_coupled_joints_stand_together_up_to_the_load_of_each(method):
    """An arm stands under gravity while each friction exceeds its torque, and only the joint whose
    friction does not moves, if no reaction exceeds the others' friction."""
    g = np.abs(mbs.gravity_torques(ARM, Q))
    given = {"duration": 1.0, "method": method, "step": 1e-2}
    run = simulate(ARM, Q, forces=rubbing(ARM, g * (1.0 + 1e-6) + 1e-6), **given)
    assert not (run.q - Q).any()
    bound = g + 5.0
    bound[3] = g[3] - 0.1
    run = simulate(ARM, Q, forces=rubbing(ARM, bound), **{**given, "duration": 0.1})
    moved = np.abs(run.q[-1] - Q) > 0.0
    assert moved.tolist() == [False, False, False, True, False, False, False]


def exact(M, free, bound):
    """Return the rates that obey M v = M free + r, from all combinations of directions."""
    n = len(free)
    for signs in itertools.product((-1.0, 0.0, 1.0), repeat=n):
        s = np.array(signs)
        slides = np.flatnonzero(s)
        v = np.zeros(n)
        load = M @ free - bound * s
        v[slides] = np.linalg.solve(M[np.ix_(slides, slides)], load[slides])
        r = M @ (v - free)
        stands = np.abs(r[s == 0.0]) <= bound[s == 0.0] * (1.0 + 1e-9)
        if stands.all() and (v[slides] * s[slides] > 0.0).all():
            return v
    raise AssertionError("no combination obeys the law")


@pytest.mark.long
@pytest.mark.parametrize("seed", mostly_slow(range(30), range(2)))
def test_directions_are_those_of_all_combinations(seed):
    """One step of strongly coupled joints, from rest and from motion."""
    rng = np.random.default_rng(seed)
    model = random_mechanism(seed, [-1, 0, 1, 2], ["revolute"]).model
    q, effort = rng.uniform(-1, 1, (2, 4))
    bound, qd = 10.0 ** rng.uniform(-2, 0, 4), rng.uniform(-1, 1, 4) * (seed % 2)
    h, M = 1e-2, mbs.mass_matrix(model, q)
    forces = rubbing(model, bound)
    free = qd + h * mbs.forward_dynamics(model, q, qd, 3.0 * effort)
    stepped = Stepper(model, forces=forces).step([q, qd], 3.0 * effort, h)
    assert_close(stepped[1], exact(M, free, h * bound), 1e-8)


@pytest.mark.long
@every_method
@pytest.mark.parametrize("seed", mostly_slow(range(10), [0]))
def test_friction_never_adds_energy(method, seed):
    """Trees at random, with friction from none to far beyond the rates, in coarse steps without
    gravity. A step in which a joint stops or reverses may return a part, but less than the step
    before took; all else is the error of the scheme without friction."""
    rng = np.random.default_rng(seed)
    model = random_mechanism(seed, [-1, 0, 1, 1, 3]).model.with_gravity((0, 0, 0))
    q, qd = rng.uniform(-1.0, 1.0, (2, 25, model.n))
    friction = 10.0 ** rng.uniform(-3, 4, model.n) * rng.integers(0, 2, model.n)
    given = {"duration": 0.1, "step": 2e-3, "method": method}
    run = simulate(model, q, qd, forces=rubbing(model, friction), **given)
    free = simulate(model, q, qd, **given)
    change, scheme = np.diff(run.kinetic, axis=0), np.abs(np.diff(free.kinetic, axis=0)).max()
    turns = (np.diff(np.sign(run.qd), axis=0) * run.qd[:-1] != 0.0).any(axis=-1)
    assert turns.any()
    assert (change[~turns] <= 1.1 * scheme + 1e-12).all()
    assert (change[1:] + change[:-1] <= 2.2 * scheme + 1e-12)[turns[1:]].all()


@pytest.mark.long
@every_method
def test_sliding_keeps_the_order_of_a_scheme(method):
    """While no joint changes its direction, friction is smooth."""
    forces = rubbing(ARM, np.full(7, 0.05) * [1, 1, 1, 1, 0.1, 0.1, 0.01])
    start = Q, np.array([0.5, 0.6, -0.7, 0.8, -0.9, 0.5, 0.4])
    given = {"duration": 0.04, "control": mbs.gravity_torques(ARM, Q), "forces": forces}
    best = simulate(ARM, *start, step=2.5e-4, method="rk4", **given)
    assert (best.qd * start[1] > 0.0).all()
    ends = [simulate(ARM, *start, step=h, method=method, **given) for h in (1e-2, 5e-3)]
    errors = [np.abs(run.q[-1] - best.q[-1]).max() for run in ends]
    order = 1.0 if method == "semi_implicit_euler" else 4.0
    assert abs(math.log2(errors[0] / errors[1]) - order) < 0.4


@pytest.mark.long
@every_method
def test_members_of_a_batch_slide_and_stand_each_by_itself(method):
    rng = np.random.default_rng(2)
    q, qd = Q + rng.uniform(-0.3, 0.3, (70, 7)), rng.uniform(-0.5, 0.5, (70, 7))
    given = {"duration": 0.05, "method": method, "forces": rubbing(ARM, 2.0)}
    many = simulate(ARM, q, qd, **given)
    for k in (0, 34, 69):
        one = simulate(ARM, q[k], qd[k], **given)
        assert_close(many.q[-1, k], one.q[-1], 1e-12)


def test_efforts_by_step_act_in_their_steps_though_joints_stick_and_slip():
    rng = np.random.default_rng(3)
    efforts = WEIGHT + rng.uniform(-20.0, 20.0, (300, 1))
    stepper = Stepper(block(), method="rk4", forces=rubbing(block(), 8.0))
    whole, state = stepper.run([[0.0], [0.0]], efforts, 1e-2, 300), np.zeros((2, 1))
    for k in range(300):
        state = stepper.step(state, efforts[k], 1e-2)
        assert_close(whole[k + 1], state, 1e-12)
    law = simulate(
        block(), [0.0], duration=3.0, step=1e-2, forces=rubbing(block(), 8.0),
        control=lambda t, q, qd: efforts[min(round(100.0 * t), 299)],
    )  # fmt: skip
    assert_close(law.q[:, 0], whole[:, 0, 0], 1e-12)
