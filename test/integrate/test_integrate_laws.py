# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Bodies on SO(3) and SE(3) under applied wrenches: orders, work, events, batches, failures."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import pytest
from reference import assert_close

import mbs_dynamics as mbs
from mbs_dynamics.errors import ArgumentError, SimulationError, UnknownMethodError
from mbs_dynamics.integrate import (
    BODY_METHODS,
    BodyStepper,
    free_body,
    pivoted_body,
    simulate_body,
)
from mbs_dynamics.lie import se3, so3

METHODS = (*BODY_METHODS, "dormand_prince")
ORDERS = {name: int(name[-1]) if name[-1].isdigit() else 2 for name in BODY_METHODS}
GRAVITY = (0.0, 0.0, -9.81)
COM = np.array([0.1, -0.05, 0.2])
INERTIA = mbs.spatial_inertia(2.0, COM, np.diag([0.1, 0.15, 0.2]))
BODIES = {
    "pivoted": pivoted_body(np.diag([0.1, 0.2, 0.3])),
    "falling": free_body(INERTIA, GRAVITY, wrench=lambda C, V: -0.1 * V),
}
TWIST = np.array([2.0, -3.0, 1.5, 0.3, 0.2, -0.1])
TURNED = se3.exp(np.array([0.3, -0.2, 0.5, 0.0, 0.0, 0.0]))


def law(t, C, V):
    """A body-fixed wrench that depends on time, pose and twist, of one body or many."""
    return 0.3 * math.sin(5.0 * t) * C[..., 0, :1] - 0.1 * V + 0.06 * V * V[..., ::-1]


def moved(name, steps, duration=0.4, **options):
    body = BODIES[name]
    start = TURNED[: body.group.size, : body.group.size], TWIST[: body.group.dim]
    return simulate_body(body, *start, duration=duration, step=duration / steps, **options)


@lru_cache
def accurate(name):
    return moved(name, 8, method="dormand_prince", rtol=1e-13, atol=1e-13, wrenches=law)


def difference(a, b):
    return max(np.abs(a.C[-1] - b.C[-1]).max(), np.abs(a.V[-1] - b.V[-1]).max())


KINDS = {
    "right": {},
    "left, truncated": {"increments": "left", "dexp": "truncated"},
    "momenta": {"momenta": True, "dexp": "truncated"},
    "momenta, left": {"momenta": True, "increments": "left"},
}
CASES = [(method, kind) for method in BODY_METHODS[:4] for kind in KINDS]
CASES += [("momentum_midpoint", "right"), ("generalized_alpha", "right")]


@pytest.mark.parametrize(("method", "kind"), CASES)
@pytest.mark.parametrize("name", BODIES)
def test_a_law_leaves_the_order(name, method, kind):
    """Halving the step divides the error by 2 to the power of the order, within 0.1."""
    steps = 256 if ORDERS[method] == 1 else 48
    ends = [moved(name, n, method=method, wrenches=law, **KINDS[kind]) for n in (steps, 2 * steps)]
    errors = [difference(end, accurate(name)) for end in ends]
    assert abs(math.log2(errors[0] / errors[1]) - ORDERS[method]) < 0.1


@pytest.mark.parametrize("kind", KINDS)
def test_steps_that_keep_the_tolerance(kind):
    for name in BODIES:
        options = {"method": "dormand_prince", "rtol": 1e-9, "atol": 1e-9, **KINDS[kind]}
        found = moved(name, 40, wrenches=law, **options)
        assert difference(found, accurate(name)) < 1e-7
        assert found.orthogonality.max() < 1e-14
        fine = moved(name, 640, wrenches=law)  # also between its steps
        assert_close(found.C, fine.C[::16], 1e-7)
        assert_close(found.V, fine.V[::16], 1e-7)


@pytest.mark.parametrize("method", BODY_METHODS)
def test_held_wrenches(method):
    """A law, its values row by row, and a constant, in a loop of machine code or not."""
    constant = np.array([0.1, -0.2, 0.3, 1.0, -2.0, 0.5])
    by_constant = moved("falling", 20, method=method, wrenches=constant)
    by_rows = moved("falling", 20, method=method, wrenches=np.tile(constant, (20, 1)))
    by_law = moved("falling", 20, method=method, wrenches=lambda t, C, V: constant)
    for found in (by_rows, by_law):
        assert_close(found.C, by_constant.C, 1e-11)
        assert_close(found.V, by_constant.V, 1e-11)
        assert_close(found.wrench, np.tile(constant, (21, 1)))
    as_its_own = free_body(INERTIA, GRAVITY, wrench=lambda C, V: constant - 0.1 * V)
    expected = simulate_body(as_its_own, TURNED, TWIST, duration=0.4, step=0.02, method=method)
    assert_close(by_constant.V, expected.V, 1e-11)


def test_a_stepper_takes_wrenches():
    W = np.random.default_rng(6).normal(size=(20, 6))
    for method in ("munthe_kaas_4", "generalized_alpha"):
        stepper = BodyStepper(BODIES["falling"], method, wrenches=True)
        states = stepper.run(stepper.pack(TURNED, TWIST, W[0]), 0.02, 20, W)
        expected = moved("falling", 20, method=method, wrenches=W)
        C, V = stepper.unpack(states)
        assert_close(C, expected.C, 1e-13)
        assert_close(V, expected.V, 1e-13)
        assert_close(stepper.momentum(states), expected.momentum, 1e-12)


def test_progress_is_shown(capsys):
    moved("pivoted", 10, wrenches=lambda t, C, V: -0.1 * V, progress=True)
    assert "of 0.4 s" in capsys.readouterr().err


def test_power_is_the_rate_of_energy():
    found = simulate_body(
        free_body(INERTIA, GRAVITY), TURNED, TWIST, duration=0.5, step=1e-3, wrenches=law
    )
    work = np.concatenate([[0.0], np.cumsum(0.5e-3 * (found.power[1:] + found.power[:-1]))])
    assert np.abs(found.power).max() > 1.0
    assert_close(found.energy - found.energy[0], work, 1e-5)
    assert_close(found.wrench[-1], law(0.5, found.C[-1], found.V[-1]), 1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_a_moment_about_the_axis_of_rotation(method):
    """The angle is 2 t + t^2 / 2; it reaches 1 at sqrt(6) - 2; a scheme of order 1 misses that."""
    found = simulate_body(
        pivoted_body(np.diag([0.1, 0.2, 0.3])),
        np.eye(3),
        [0.0, 0.0, 2.0],
        duration=3.0,
        step=0.013,
        method=method,
        wrenches=lambda t, C, V: [0.0, 0.0, 0.3],
        events={"quarter": lambda t, C, V: C[1, 0] - math.sin(0.25)},
        stop=lambda t, C, V: math.atan2(C[1, 0], C[0, 0]) - 1.0,
    )
    assert [event.name for event in found.events] == ["quarter", "stop"]
    quarter, stop = found.events
    error = 2e-3 if method == "munthe_kaas_1" else 1e-13
    assert abs(stop.t - (math.sqrt(6.0) - 2.0)) < error
    assert abs(quarter.t - (math.sqrt(4.5) - 2.0)) < error
    assert_close(so3.log(stop.C), [0.0, 0.0, 1.0], 1e-13)
    assert found.t[-1] == stop.t
    assert_close(found.C[-1], stop.C, 1e-15)
    assert_close(found.V[-1], stop.V, 1e-15)
    assert stop.q.shape == (0,)
    assert stop.member == ()


@pytest.mark.parametrize("method", METHODS[1:])
@pytest.mark.parametrize("wrenches", [None, lambda t, C, V: 0.0 * V], ids=["free", "law"])
def test_bodies_that_fall_to_a_height(method, wrenches):
    """Each of a batch stops where it lands, at sqrt(2 h / g), and rests until the last one has."""
    heights = np.array([0.5, 2.0, 1.0])
    C = np.tile(np.eye(4), (3, 1, 1))
    C[:, 2, 3] = heights - COM[2]
    spin = np.array([0.0, 0.0, 1.0])  # about a principal axis through the centre of mass
    V = np.concatenate([spin, np.cross(COM, spin)])
    found = simulate_body(
        free_body(INERTIA, GRAVITY),
        C,
        V,
        duration=1.0,
        step=0.01,
        method=method,
        wrenches=wrenches,
        stop=lambda t, C, V: float(C[2] @ [*COM, 1.0]),
    )
    times = np.sqrt(2.0 * heights / 9.81)
    assert [event.member for event in found.events] == [(0,), (2,), (1,)]
    for event in found.events:
        (k,) = event.member
        assert abs(event.t - times[k]) < 1e-12
        row = math.ceil(event.t / 0.01)
        assert_close(found.C[row, k], event.C, 1e-14)
        assert_close(found.C[-1, k], event.C, 1e-14)
        assert_close(found.V[-1, k], event.V, 1e-12)
    assert found.t[-1] == pytest.approx(0.64)  # the step in which the last one lands


def test_between_two_states_of_a_turning_body():
    """The crossing is found by the exponential: its error is of order 4 in the step."""
    body = BODIES["pivoted"]

    def crossing(step):
        options = {"duration": 0.5, "step": step, "method": "dormand_prince"}
        found = simulate_body(
            body, TURNED[:3, :3], TWIST[:3], rtol=1e-13, atol=1e-13, **options,
            stop=lambda t, C, V: C[0, 2] - 0.3,
        )  # fmt: skip
        end = found.events[-1]
        assert abs(end.C[0, 2] - 0.3) < 1e-12
        assert np.abs(end.C.T @ end.C - np.eye(3)).max() < 1e-14
        return end.t

    exact = crossing(0.003125)
    errors = [abs(crossing(step) - exact) for step in (0.1, 0.05)]
    assert errors[1] < 2e-5
    assert errors[1] < 0.2 * errors[0]


@pytest.mark.parametrize("method", METHODS)
def test_batch_under_a_law(method):
    poses = se3.exp(np.random.default_rng(1).normal(size=(2, 2, 6)))
    twists = np.random.default_rng(2).normal(size=(2, 2, 6))
    given = {"duration": 0.05, "step": 5e-3, "method": method, "wrenches": law}
    many = simulate_body(BODIES["falling"], poses, twists, every=5, **given)
    assert many.wrench.shape == (3, 2, 2, 6)
    one = simulate_body(BODIES["falling"], poses[1, 0], twists[1, 0], **given)
    tolerance = 1e-7 if method == "dormand_prince" else 1e-12
    for name in ("C", "V", "wrench", "momentum"):
        assert_close(getattr(many, name)[:, 1, 0], getattr(one, name)[::5], tolerance)
    assert_close(many.t, one.t[::5])


def test_the_momentum_of_the_state_is_kept_to_the_last_bit():
    """And that of pose and twist as far as the pose is: to the last place of r times p."""
    body = free_body(INERTIA)
    twist = np.concatenate([TWIST[:3], [30.0, 20.0, -10.0]])
    for method in ("momentum_midpoint", "munthe_kaas_4"):
        found = simulate_body(
            body, np.eye(4), twist, duration=50.0, step=0.01, every=50, method=method, momenta=True
        )
        assert (found.momentum == found.momentum[0]).all()
        again = body.momentum(found.C, found.V)
        far = np.linalg.norm(found.C[:, :3, 3], axis=1)
        place = 2.3e-16 * (1.0 + far) * np.linalg.norm(found.momentum[0, 3:])
        assert far[-1] > 1500.0
        assert (np.abs(again - found.momentum[0]).max(axis=1) < 10.0 * place).all()


# -- failures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_a_wrench_that_is_not_finite(method):
    def lost(t, C, V):
        return np.full(3, np.nan) if t > 0.0955 else -0.1 * V

    with pytest.raises(SimulationError, match=r"wrenches returned .nan.* at t = ") as caught:
        moved("pivoted", 100, 1.0, method=method, wrenches=lost)
    motion = caught.value.motion
    assert 0.0955 < caught.value.time < 0.25
    assert motion.t[-1] < 0.101
    if method != "dormand_prince":  # whose steps look further ahead
        assert motion.t[-1] > 0.085
    assert np.isfinite(motion.V).all()


@pytest.mark.parametrize("method", ["momentum_midpoint", "generalized_alpha"])
def test_a_law_on_which_a_step_cannot_agree(method):
    """Dry friction that holds the body jumps from one sign to the other."""
    with pytest.raises(SimulationError, match="the implicit scheme does not converge at t = 0 s"):
        simulate_body(
            BODIES["pivoted"],
            np.eye(3),
            [1e-4, 0.0, 0.0],
            duration=1.0,
            step=0.01,
            method=method,
            wrenches=lambda t, C, V: -0.5 * np.sign(V),
        )


def test_a_state_that_is_not_finite_under_a_law():
    with pytest.raises(SimulationError, match=r"not finite|returned .*inf") as caught:
        moved("pivoted", 1000, 10.0, wrenches=lambda t, C, V: 0.5 * V * V)
    assert len(caught.value.motion) > 10
    assert abs(caught.value.time - caught.value.motion.t[-1]) <= 0.01
    assert np.isfinite(caught.value.motion.V).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"wrenches": np.zeros(6)}, r"wrenches has shape \(6,\); valid is \(3,\).*of t, C, V"),
        ({"wrenches": np.zeros((7, 3))}, "wrenches has 7 rows; valid is one for each of the 100"),
        ({"wrenches": lambda t, C, V: [0.0]}, r"wrenches returned the shape \(1,\) at t = 0 s"),
        (
            {"method": "dormand_prince", "wrenches": np.zeros((100, 3))},
            "takes wrenches as a constant or as a function of t, C, V",
        ),
        ({"C": 2.0 * np.eye(3)}, "C has no rotation"),
        ({"C": np.diag([1.0, 1.0, -1.0])}, "C has no rotation"),
        ({"C": [np.eye(3)] * 2, "V": np.zeros((3, 3))}, "do not broadcast together: C .*, V"),
        ({"stop": 1.0}, "event 'stop' must be a function"),
        ({"events": {"all": lambda t, C, V: C}}, "event 'all' must return a finite number"),
        ({"rtol": 0.0}, "rtol must be more than 1e-14"),
    ],
)
def test_bad_arguments(given, message):
    standard = {"C": np.eye(3), "V": np.ones(3), "duration": 0.1}
    with pytest.raises(ArgumentError, match=message):
        simulate_body(BODIES["pivoted"], **{**standard, **given})


@pytest.mark.backend_independent
def test_unknown_methods():
    with pytest.raises(UnknownMethodError, match="dormand_prince"):
        simulate_body(BODIES["pivoted"], np.eye(3), np.ones(3), duration=1.0, method="dopri")
    with pytest.raises(ArgumentError, match="the last row of C"):
        simulate_body(BODIES["falling"], np.diag([1.0, 1.0, 1.0, 2.0]), TWIST, duration=1.0)
