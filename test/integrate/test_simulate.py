# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Simulation in joint coordinates: orders, what is conserved, events, and failures."""

import math

import numpy as np
import pytest
from mechanisms import random_mechanism
from reference import assert_close

import mbs_dynamics as mbs
from mbs_dynamics.errors import MbsError, SimulationError
from mbs_dynamics.integrate import METHODS, JointForces, simulate, stop_events
from mbs_dynamics.model.model import body_wrenches
from mbs_dynamics.resources import robot_path

CHAIN = random_mechanism(2, [-1, 0, 1], ["revolute"]).model
START = np.array([0.4, -0.7, 0.9]), np.array([0.5, -0.3, 0.8])


def ends(method, steps, duration, **given):
    motion = simulate(
        CHAIN, *START, duration=duration, step=duration / steps, method=method, **given
    )
    return np.array([motion.q[-1], motion.qd[-1]])


@pytest.mark.long
def test_laws_act_at_every_instant_in_dormand_prince():
    """A reference of small rk4 steps, which hold the torques, is as close as its step is short."""

    def law(t, q, qd):
        return np.sin(20.0 * t) - 2.0 * q - 0.1 * qd

    found, exact = (
        ends("dormand_prince", steps, 0.1, rtol=tolerance, atol=tolerance, control=law)
        for steps, tolerance in ((10, 1e-10), (2, 1e-13))
    )
    assert_close(found, exact, 1e-8)
    errors = [np.abs(ends("rk4", n, 0.1, control=law) - found).max() for n in (100, 200)]
    assert abs(errors[0] / errors[1] - 2.0) < 0.1


@pytest.mark.long
def test_held_torques():
    """A law, its values row by row, and a constant do the same, step by step or in one loop."""
    rows = np.random.default_rng(1).uniform(-1.0, 1.0, (30, 3))
    given = {"duration": 0.03, "method": "rk4"}
    by_rows = simulate(CHAIN, *START, control=rows, **given)
    law = simulate(CHAIN, *START, control=lambda t, q, qd: rows[min(round(t / 1e-3), 29)], **given)
    assert_close(by_rows.q, law.q, 1e-14)
    assert_close(by_rows.tau[:-1], rows)
    assert_close(law.tau[:-1], rows)
    W = np.zeros((3, 6))
    W[1] = [0.1, 0.2, -0.3, 1.0, -2.0, 3.0]
    constant = simulate(CHAIN, *START, control=rows[0], wrenches=W, **given)
    laws = simulate(CHAIN, *START, control=lambda *_: rows[0], wrenches=lambda *_: W, **given)
    assert_close(constant.q, laws.q, 1e-14)
    assert_close(constant.qdd, laws.qdd, 1e-12)
    expected = mbs.forward_dynamics(CHAIN, constant.q, constant.qd, rows[0], W)
    assert_close(constant.qdd, expected, 1e-12)
    smooth = simulate(
        CHAIN, *START, control=rows[0], wrenches=W, **{**given, "method": "dormand_prince"}
    )
    assert_close(constant.q, smooth.q, 1e-8)


def test_named_arrays():
    motion = simulate(CHAIN, *START, duration=0.02)
    for k in (0, 7, 20):
        q, qd = motion.q[k], motion.qd[k]
        assert_close(motion.kinetic[k], mbs.kinetic_energy(CHAIN, q, qd))
        assert_close(motion.potential[k], mbs.potential_energy(CHAIN, q))
        momentum = mbs.momenta(CHAIN, q, qd, representation="spatial").sum(axis=0)
        assert_close(motion.momentum[k], momentum)
        assert_close(motion.qdd[k], mbs.forward_dynamics(CHAIN, q, qd, np.zeros(3)))
    assert_close(motion.t, 1e-3 * np.arange(21), 1e-15)
    assert motion.joint_names == CHAIN.joint_names
    assert len(motion) == 21
    assert "(21, 3), to 0.02 s, rk4" in repr(motion)


def test_wrenches_by_link_are_those_of_the_bodies():
    W, (first, last) = np.array([0.1, -0.2, 0.3, 1.0, 2.0, -3.0]), CHAIN.body_names[::2]
    by_link = {last: W, first: 2.0 * W}
    expected = simulate(CHAIN, *START, duration=0.02, wrenches=body_wrenches(CHAIN, by_link))
    rows = {last: np.tile(W, (20, 1)), first: 2.0 * W}
    for given in (by_link, rows):
        found = simulate(CHAIN, *START, duration=0.02, wrenches=given)
        np.testing.assert_array_equal(found.q, expected.q)
    law = simulate(CHAIN, *START, duration=0.02, wrenches=lambda t, q, qd: by_link)
    assert_close(law.q, expected.q, 1e-13)
    with pytest.raises(mbs.UnknownBodyError, match=last):
        simulate(CHAIN, *START, duration=0.02, wrenches={last + "x": W})


def test_variational_scheme_conserves():
    """The error of the energy is bounded, and by h^2; the momentum of the first joint stays."""
    free = random_mechanism(2, [-1, 0], ["revolute"]).model.with_gravity((0.0, 0.0, 0.0))
    drift = {}
    for h in (0.02, 0.01):
        motion = simulate(
            free, [0.4, -0.7], [0.5, -0.3], duration=50.0, step=h, method="implicit_midpoint"
        )
        error = np.abs(motion.energy - motion.energy[0])
        fifths = [part.max() for part in np.array_split(error, 5)]
        assert max(fifths) < 1.01 * fifths[0]
        drift[h] = error.max()
        # q_1 turns all, so that nothing depends on it
        momenta = np.einsum("ki,ki->k", mbs.mass_matrix(free, motion.q)[:, 0], motion.qd)
        assert np.abs(momenta - momenta[0]).max() < 1e-14
    assert abs(math.log2(drift[0.02] / drift[0.01]) - 2.0) < 0.05


def test_batch():
    q = START[0] + np.random.default_rng(2).normal(size=(2, 4, 3)) * 0.1
    rows = np.random.default_rng(3).uniform(-1.0, 1.0, (20, 2, 4, 3))
    for method in METHODS:
        given = {"duration": 0.02, "method": method}
        control = [0.1, 0.2, 0.3] if method == "dormand_prince" else rows
        many = simulate(CHAIN, q, START[1], control=control, **given)
        assert many.q.shape == many.qdd.shape == many.tau.shape == (21, 2, 4, 3)
        assert many.energy.shape == (21, 2, 4)
        each = control if method == "dormand_prince" else rows[:, 1, 2]
        one = simulate(CHAIN, q[1, 2], START[1], control=each, **given)
        assert_close(many.q[:, 1, 2], one.q, 1e-7 if method == "dormand_prince" else 1e-12)
        assert_close(many.momentum[:, 1, 2], one.momentum, 1e-6)


def test_events_and_stop():
    """Zeros are found to the accuracy of the scheme, and the simulation ends at the stop."""
    model = CHAIN.with_gravity((0.0, 0.0, 0.0))
    whole = simulate(model, *START, duration=0.5, method="dormand_prince", rtol=1e-12, atol=1e-12)
    level = 0.5 * (whole.q[:, 0].min() + whole.q[:, 0].max())
    seen = []
    motion = simulate(
        model,
        *START,
        duration=0.5,
        events={"half": lambda t, q, qd: t - 0.0251, "level": lambda t, q, qd: q[0] - level},
        stop=lambda t, q, qd: seen.append(t) or q[0] - level,
    )
    assert motion.events[0].name == "half"
    assert motion.events[-1].name == "stop"
    end = motion.events[-1]
    assert motion.t[-1] == end.t < 0.5
    assert abs(motion.events[0].t - 0.0251) < 1e-12
    assert abs(end.q[0] - level) < 1e-12
    assert_close(motion.q[-1], end.q)
    assert len(motion) == math.ceil(end.t / 1e-3) + 1
    expected = np.array([np.interp(end.t, whole.t, whole.q[:, k]) for k in range(3)])
    assert_close(end.q, expected, 1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("given", [{}, {"control": lambda t, q, qd: -0.1 * qd}], ids=["", "law"])
def test_events_of_a_batch(method, given):
    """Each is what it is in a simulation of its own."""
    model, q = CHAIN.with_gravity((0.0, 0.0, 0.0)), START[0] + [[[0.0]], [[0.2]]]
    given = {"duration": 0.2, "step": 4e-3, "method": method, **given}
    if method == "dormand_prince":
        given |= {"rtol": 1e-11, "atol": 1e-11}
    events = {  # the second begins beyond the first
        "first": lambda t, q, qd: q[0] - 0.47,
        "third": lambda t, q, qd: q[2] - 1.0,
    }
    many = simulate(model, q, START[1], every=2, **given, events=events)
    assert [event.member for event in many.events if event.name == "first"] == [(0, 0)]
    for member in ((0, 0), (1, 0)):
        one = simulate(model, q[member], START[1], **given, events=events)
        own = [event for event in many.events if event.member == member]
        assert [event.name for event in own] == [event.name for event in one.events]
        for a, b in zip(own, one.events, strict=True):
            assert abs(a.t - b.t) < (1e-9 if method == "dormand_prince" else 1e-12)
            assert_close(a.q, b.q, 1e-9)
        assert_close(many.q[-1][member], one.q[-1], 1e-9)
    assert len(many) == 26


def test_every():
    """Fewer states are kept, of the same motion; the end is kept in any case."""
    rows = np.random.default_rng(4).uniform(-1.0, 1.0, (50, 3))
    given = {"duration": 0.05, "control": rows, "wrenches": np.ones((50, 3, 6))}
    whole, some = (simulate(CHAIN, *START, every=k, **given) for k in (1, 7))
    for name in ("t", "q", "qd", "qdd", "tau", "momentum"):
        expected = getattr(whole, name)[[0, 7, 14, 21, 28, 35, 42, 49, 50]]
        assert_close(getattr(some, name), expected, 1e-14)
    stopped = simulate(CHAIN, *START, every=7, stop=lambda t, q, qd: t - 0.0305, **given)
    assert_close(stopped.t, [*some.t[:5], 0.0305], 1e-12)
    assert_close(stopped.tau[-1], rows[30])
    all_of_it = simulate(CHAIN, *START, stop=lambda t, q, qd: t - 0.0305, **given)
    assert_close(stopped.q[-1], all_of_it.q[-1], 1e-14)
    assert_close(stopped.qd[-1], all_of_it.qd[-1], 1e-14)


def test_stop_events():
    arm = mbs.Model.from_urdf(robot_path("arm7"))
    upper = arm.joints[1].limits.upper
    start = np.zeros(7)
    start[1] = upper - 0.01
    motion = simulate(arm, start, 0.5 * np.eye(7)[1], duration=0.1, events=stop_events(arm))
    assert [event.name for event in motion.events] == [f"{arm.joint_names[1]} at its upper limit"]
    assert abs(motion.events[0].q[1] - upper) < 1e-9


def test_a_state_that_is_not_finite():
    """The time is said, and the states until then are kept."""
    fast = {"duration": 100.0, "step": 0.5, "method": "semi_implicit_euler"}
    with pytest.raises(SimulationError, match="state") as caught:
        simulate(CHAIN, START[0], 1e3 * START[1], **fast)
    motion, time = caught.value.motion, caught.value.time
    assert motion.t[-1] == time
    assert np.isfinite(motion.q).all()
    assert len(motion) > 1


@pytest.mark.parametrize("method", METHODS)
def test_a_torque_that_is_not_finite(method):
    def law(t, q, qd):
        return np.full(3, np.nan) if t > 0.0095 else np.zeros(3)

    with pytest.raises(SimulationError, match=r"control.*nan") as caught:
        simulate(CHAIN, *START, duration=0.1, control=law, method=method)
    assert 0.0095 < caught.value.time < 0.02
    motion = caught.value.motion
    assert motion.t[-1] < 0.011
    if method != "dormand_prince":  # whose steps look further ahead
        assert motion.t[-1] > 0.008
    assert np.isfinite(motion.q).all()
    tau = motion.series.tau  # without the state for which there is none
    assert len(tau) >= len(motion) - 1
    assert_close(tau, np.zeros(tau.shape))


def test_tolerances_that_cannot_be_met():
    """The rate grows with its own square, without bound within a finite time."""
    law = {"control": lambda t, q, qd: 5.0 * qd * np.abs(qd)}
    with pytest.raises(SimulationError, match="tolerance") as caught:
        simulate(CHAIN, *START, duration=5.0, method="dormand_prince", **law)
    assert 0.0 < caught.value.time < 5.0
    assert len(caught.value.motion) > 10


def test_a_singular_mass_matrix():
    """A slider on a turning bar, massless: the mass matrix is singular everywhere."""
    M = np.array([mbs.spatial_inertia(1.0, (0.1, 0, 0), 0.01 * np.eye(3)), np.zeros((6, 6))])
    with pytest.warns(mbs.ModelWarning, match="mass matrix"):
        model = mbs.Model.from_screws(
            [-1, 0], np.array([np.eye(4)] * 2), [[0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0]], M,
            frame="body_fixed",
        )  # fmt: skip
    for method in METHODS:
        with pytest.raises(SimulationError, match="'joint2'") as caught:
            simulate(model, [0.0, 0.0], duration=0.1, method=method)
        assert np.isnan(caught.value.motion.qdd).all()
        assert caught.value.motion.series.qdd is None
        assert len(caught.value.motion) == 1


def test_accelerations_are_not_known_only_where_the_mass_matrix_is_singular():
    """A mass point slides along a bar without mass, to its hinge: nothing resists turning there.

    Another mass slides by itself.
    """
    point = mbs.spatial_inertia(1.0, (0, 0, 0), np.zeros((3, 3)))
    turn, slide = [0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0]
    model = mbs.Model.from_screws(
        [-1, 0, -1], np.array([np.eye(4)] * 3), [turn, slide, slide],
        np.array([np.zeros((6, 6)), point, point]), frame="body_fixed", gravity=(0.0, 0.0, 0.0),
    )  # fmt: skip
    given = {"duration": 1.0, "step": 2.0**-6, "method": "semi_implicit_euler"}
    with pytest.raises(SimulationError, match="singular") as caught:
        # at the hinge after the tenth step, to the last digit
        simulate(model, [0.3, 55.0 * 2.0**-12, 0.0], np.zeros(3), control=[0.0, -1.0, 2.0], **given)
    motion = caught.value.motion
    assert motion.q[-1, 1] == 0.0
    assert_close(motion.qdd[:-1], np.tile([0.0, -1.0, 2.0], (10, 1)))
    assert np.isnan(motion.qdd[-1]).all()


def test_midpoint_steps_that_are_too_long():
    with pytest.raises(SimulationError, match=r"0\.5 s"):
        simulate(
            CHAIN, START[0], 100 * START[1], duration=5.0, step=0.5, method="implicit_midpoint"
        )


OF_ONE = JointForces(*np.zeros((6, 1)))
"""Forces of a robot with one joint."""

RUBBING = JointForces.of(CHAIN, friction=1.0)
STOPPED = JointForces(*np.zeros((2, 3)), -np.ones(3), *np.ones((1, 3)), *np.zeros((2, 3)))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"model": "arm7"}, "model"),
        ({"method": "rk5"}, "'rk4'"),
        ({"step": -1e-3}, "step"),
        ({"duration": -1.0}, "duration"),
        ({"duration": 0.1004}, "duration.*0.1 s"),
        ({"q": np.zeros((2, 3)), "stop": lambda t, q, qd: t - 0.05}, r"batch \(2,\)"),
        ({"q": [0.0, 1.0]}, r"q.*\(2,\).*\(3,\)"),
        ({"q": [0.0, np.inf, 0.0]}, "q"),
        ({"q": np.zeros((2, 3)), "qd": np.zeros((4, 3))}, "q .*, qd"),
        ({"control": [1.0, 2.0]}, r"control.*\(2,\).*\(3,\)"),
        ({"control": np.zeros((7, 3))}, "control.*7.*100"),
        ({"control": np.full((100, 3), np.nan)}, "control"),
        ({"control": lambda t, q, qd: [0.0]}, r"control.*\(1,\)"),
        ({"wrenches": np.zeros(6)}, r"wrenches.*\(6,\).*\(3, 6\)"),
        ({"forces": 3.0}, "forces"),
        ({"forces": OF_ONE}, "forces.*1.*3"),
        ({"events": {"stop": lambda t, q, qd: 1.0}}, "'stop'"),
        ({"stop": 3.0}, "'stop'"),
        ({"stop": lambda t, q, qd: q}, "'stop'"),
        ({"method": "dormand_prince", "rtol": 1e-17}, "rtol"),
        ({"method": "dormand_prince", "atol": 0.0}, "atol"),
        ({"method": "dormand_prince", "control": np.zeros((100, 3))}, "row by row"),
        ({"method": "dormand_prince", "forces": RUBBING}, "dry friction"),
        ({"method": "implicit_midpoint", "forces": RUBBING}, "dry friction"),
        ({"method": "implicit_midpoint", "forces": STOPPED}, "joint stops"),
    ],
)
def test_bad_arguments(given, message):
    with pytest.raises(MbsError, match=message):
        simulate(**{"model": CHAIN, "q": START[0], "duration": 0.1, **given})
