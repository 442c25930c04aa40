# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Integrators on SO(3) and SE(3): orders, what they keep, independent references, bad input."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from reference import assert_close

import mbs_dynamics as mbs
from mbs_dynamics.errors import ArgumentError, ModelError, SimulationError, UnknownMethodError
from mbs_dynamics.integrate import (
    BODY_METHODS,
    SO3,
    BodyStepper,
    GroupBody,
    free_body,
    pivoted_body,
    simulate,
    simulate_body,
)
from mbs_dynamics.integrate.groups import Alpha
from mbs_dynamics.lie import se3, so3
from mbs_dynamics.model.macro_joints import Connection, macro_joint

INERTIA = mbs.spatial_inertia(2.0, (0.1, -0.05, 0.2), np.diag([0.1, 0.15, 0.2]))
GRAVITY = (0.0, 0.0, -9.81)
BODIES = {
    "spinning": pivoted_body(np.diag([0.1, 0.2, 0.3])),
    "top": pivoted_body(np.diag([0.3, 0.32, 0.1]), (0.0, 0.0, 0.5), GRAVITY),
    "free": free_body(INERTIA),
    "braked": free_body(INERTIA, GRAVITY, wrench=lambda C, V: -0.1 * V),
}
START = np.array([2.0, -3.0, 1.5, 0.3, 0.2, -0.1])
ORDERS = {name: int(name[-1]) if name[-1].isdigit() else 2 for name in BODY_METHODS}
KINDS = {
    "right": {},
    "left, truncated": {"increments": "left", "dexp": "truncated"},
    "momenta": {"momenta": True, "dexp": "truncated"},
    "momenta, left": {"momenta": True, "increments": "left"},
}


def moved(name, steps, duration=0.4, **options):
    body = BODIES[name]
    pose = np.eye(body.group.size)
    pose[:3, :3] = so3.exp(np.array([0.3, -0.2, 0.5]))
    twist = START[: body.group.dim]
    return simulate_body(body, pose, twist, duration=duration, step=duration / steps, **options)


@lru_cache
def accurate(name):
    return moved(name, 2048)


def difference(a, b):
    return max(np.abs(a.C[-1] - b.C[-1]).max(), np.abs(a.V[-1] - b.V[-1]).max())


CASES = [(method, kind) for method in BODY_METHODS for kind in KINDS if "kaas" in method]
CASES += [("momentum_midpoint", "right"), ("generalized_alpha", "right")]


@pytest.mark.parametrize(("method", "kind"), CASES)
@pytest.mark.parametrize("name", ["spinning", "braked"])
def test_order(name, method, kind):
    """Halving the step divides the error by 2 to the power of the order, within 0.1."""
    reference = accurate(name)
    order, steps = ORDERS[method], 512 if ORDERS[method] == 1 else 64
    ends = [moved(name, n, method=method, **KINDS[kind]) for n in (steps, 2 * steps)]
    errors = [difference(end, reference) for end in ends]
    assert abs(math.log2(errors[0] / errors[1]) - order) < 0.1


def free_model(gravity):
    """The same body on a chain of six joints, which is something else altogether."""
    joint = Connection(name="float", joint=macro_joint("free"), body="body", M_body=INERTIA)
    return mbs.Model.from_joints([joint], gravity=gravity)


@pytest.mark.parametrize("method", BODY_METHODS[3:])
def test_a_thrown_body_is_that_of_a_chain_of_six_joints(method):
    body = free_body(INERTIA, GRAVITY)
    twist = np.array([0.8, -0.5, 0.6, 0.3, 0.2, -0.1])
    rates = np.concatenate([twist[3:], twist[:3]])  # x, y, z, then the rotations, all at zero
    chain = simulate(
        free_model(GRAVITY),
        np.zeros(6),
        rates,
        duration=0.5,
        step=0.25,
        method="dormand_prince",
        rtol=1e-12,
        atol=1e-12,
    )
    found = simulate_body(body, np.eye(4), twist, duration=0.5, step=1e-3, method=method)
    expected = mbs.forward_kinematics(free_model(GRAVITY), chain.q[-1])[-1]
    tolerance = 1e-10 if method == "munthe_kaas_4" else 2e-5
    assert_close(found.C[-1], expected, tolerance)
    assert_close(found.energy[-1], chain.energy[-1], tolerance)
    assert_close(found.momentum[-1], chain.momentum[-1], tolerance)


@pytest.mark.parametrize("name", ["spinning", "free"])
@pytest.mark.parametrize(
    ("method", "momenta"), [("momentum_midpoint", True), ("munthe_kaas_2", True)]
)
def test_spatial_momentum_is_kept_to_rounding(name, method, momenta):
    """In momenta, over 20000 steps; in twists it drifts."""
    kept = moved(name, 20000, 200.0, method=method, momenta=momenta)
    scale = np.abs(kept.momentum[0]).max()
    distance = 1.0 + np.abs(kept.C[:, :3, -1]).max()
    assert (kept.momentum == kept.momentum[0]).all()
    again = BODIES[name].momentum(kept.C, kept.V)
    assert np.abs(again - kept.momentum[0]).max() < 2e-14 * scale * distance
    assert kept.orthogonality.max() < 1e-14
    if method == "munthe_kaas_2":
        lost = moved(name, 20000, 200.0, method=method)
        assert np.abs(lost.momentum - lost.momentum[0]).max() > 1e-4 * scale


def test_energy_of_the_symmetric_scheme_does_not_drift():
    found = moved("spinning", 20000, 400.0, method="momentum_midpoint")
    error = np.abs(found.energy - found.energy[0])
    fifths = [part.max() for part in np.array_split(error, 5)]
    assert max(fifths) < 1.01 * fifths[0]


def test_a_heavy_top_keeps_its_vertical_momentum_and_its_energy():
    found = moved("top", 4000, 2.0)
    assert np.abs(found.momentum[:, 2] - found.momentum[0, 2]).max() < 1e-10
    assert np.abs(found.energy - found.energy[0]).max() < 1e-7
    damped = moved("top", 4000, 2.0, method="generalized_alpha", rho=0.5)
    assert np.abs(damped.energy - found.energy).max() < 1e-3


def test_a_symmetric_body_precesses_as_it_should():
    """omega turns about the axis at the rate (I_3 - I_1) / I_1 omega_3: Euler's solution."""
    body = pivoted_body(np.diag([0.2, 0.2, 0.3]))
    found = simulate_body(body, np.eye(3), [0.5, 0.0, 4.0], duration=3.0, step=5e-3)
    rate = (0.3 - 0.2) / 0.2 * 4.0
    expected = np.stack(
        [0.5 * np.cos(rate * found.t), 0.5 * np.sin(rate * found.t), 4.0 + 0.0 * found.t], axis=1
    )
    assert_close(found.V, expected, 1e-8)


def test_batch_and_every():
    body = BODIES["free"]
    poses = se3.exp(np.random.default_rng(1).normal(size=(2, 3, 6)))
    twists = np.random.default_rng(2).normal(size=(2, 3, 6))
    for method in BODY_METHODS[3:]:
        given = {"duration": 0.06, "step": 1e-3, "method": method}
        many = simulate_body(body, poses, twists, every=20, **given)
        assert many.C.shape == (4, 2, 3, 4, 4)
        assert many.energy.shape == (4, 2, 3)
        one = simulate_body(body, poses[1, 2], twists[1, 2], **given)
        assert_close(many.t, one.t[::20])
        assert_close(many.C[:, 1, 2], one.C[::20], 1e-13)
        assert_close(many.V[:, 1, 2], one.V[::20], 1e-13)
    assert len(many) == 4
    assert "generalized_alpha" in repr(many)


def test_power_of_a_batch_is_the_rate_of_the_energy():
    body = free_body(INERTIA, GRAVITY)
    poses = se3.exp(np.random.default_rng(1).normal(size=(2, 3, 6)))
    twists, wrench = np.random.default_rng(2).normal(size=(2, 3, 6)), START
    found = simulate_body(body, poses, twists, wrenches=wrench, duration=0.02, step=1e-3)
    assert found.power.shape == (21, 2, 3)
    rate = (found.energy[2:] - found.energy[:-2]) / 2e-3
    assert_close(found.power[1:-1], rate, 1e-5)


@pytest.mark.backend_independent
def test_one_matrix_of_a_batch_that_is_no_pose_is_refused():
    poses = np.tile(np.eye(4), (2, 3, 1, 1))
    for entry, value, said in (((0, 0), 1.1, "no rotation"), ((3, 2), 0.1, "last row")):
        bad = poses.copy()
        bad[1, 2][entry] = value
        with pytest.raises(ArgumentError, match=said):
            simulate_body(BODIES["free"], bad, np.zeros((2, 3, 6)), duration=0.1)
    mirrored = poses.copy()
    mirrored[0, 1, 2, 2] = -1.0
    with pytest.raises(ArgumentError, match="no rotation"):
        simulate_body(BODIES["free"], mirrored, np.zeros((2, 3, 6)), duration=0.1)


@pytest.mark.backend_independent
def test_truncated_series():
    """The truncation errs by the first power that it leaves out."""
    X = np.array([0.3, -0.2, 0.4])
    for terms, power in ((1, 1), (2, 2), (3, 4)):  # the third power has no term
        errors = [
            np.abs(SO3.truncated_dexp_inv(s * X, terms) - so3.dexp_inv(s * X)).max()
            for s in (0.02, 0.01)
        ]
        assert abs(math.log2(errors[0] / errors[1]) - power) < 0.05


@pytest.mark.backend_independent
@pytest.mark.parametrize("angle", [1e-9, 1e-3, 0.7, 2.0, 3.0, math.pi])
def test_dexp_and_its_inverse(angle):
    """dexp_inv is the inverse to 1e-13 up to half a turn."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        X = rng.normal(size=6)
        X[:3] *= angle / np.linalg.norm(X[:3])
        for group, Y in ((so3, X[:3]), (se3, X)):
            product = group.dexp(Y) @ group.dexp_inv(Y)
            assert np.abs(product - np.eye(len(Y))).max() < 1e-13


# -- failures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["momentum_midpoint", "generalized_alpha"])
def test_a_step_that_is_too_long(method):
    with pytest.raises(SimulationError, match="step is too long") as caught:
        moved("spinning", 5, 20.0, method=method)
    assert caught.value.motion is not None
    assert caught.value.time == caught.value.motion.t[-1]


def test_a_state_that_is_not_finite():
    body = pivoted_body(np.eye(3), wrench=lambda R, omega: 5.0 * omega * omega)
    with pytest.raises(SimulationError, match="the state is not finite") as caught:
        simulate_body(body, np.eye(3), np.ones(3), duration=5.0, step=0.01)
    motion = caught.value.motion
    assert 10 < len(motion) < 500
    assert np.isfinite(motion.V).all()
    assert motion.t[-1] == caught.value.time


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"step": 0.0}, "step must be positive"),
        ({"duration": 0.0}, "duration must be positive"),
        ({"every": 0}, "every must be an integer of at least 1"),
        ({"C": np.eye(4)}, r"C has shape \(4, 4\); valid is \(3, 3\)"),
        ({"V": np.zeros(6)}, r"V has shape \(6,\); valid is \(3,\)"),
        ({"V": [0.0, np.nan, 0.0]}, "V must be finite"),
        ({"increments": "middle"}, "increments must be one of right, left; got 'middle'"),
        ({"dexp": "none"}, "dexp must be one of exact, truncated"),
        ({"rho": 2.0}, "rho must be from 0 to 1"),
    ],
)
def test_bad_arguments(given, message):
    standard = {"C": np.eye(3), "V": np.ones(3), "duration": 1.0}
    with pytest.raises(ArgumentError, match=message):
        simulate_body(BODIES["spinning"], **{**standard, **given})


@pytest.mark.backend_independent
def test_bad_bodies():
    with pytest.raises(ModelError, match="positive definite"):
        pivoted_body(np.diag([1.0, 1.0, 0.0]))
    with pytest.raises(ModelError, match="positive definite"):
        GroupBody(SO3, np.array([[1.0, 0.2, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    with pytest.raises(ArgumentError, match="inertia has shape"):
        pivoted_body(np.eye(6))
    with pytest.raises(ArgumentError, match="wrench must be a function"):
        free_body(INERTIA, wrench=np.zeros(6))
    with pytest.raises(ArgumentError, match="must be a GroupBody"):
        BodyStepper("top")
    with pytest.raises(UnknownMethodError, match="did you mean 'munthe_kaas_4'"):
        BodyStepper(BODIES["top"], "munthe_kaas_5")


@pytest.mark.backend_independent
def test_orthogonality_is_the_largest_entry_of_what_is_wrong():
    found = simulate_body(BODIES["free"], np.eye(4), START, duration=0.01)
    assert found.orthogonality.max() < 1e-12
    C = found.C.copy()
    C[3, :3, 1] *= 1.5
    off = replace(found, C=C).orthogonality
    assert_close(off[3], 1.25, 1e-12)
    assert off[2] < 1e-12


@pytest.mark.backend_independent
@pytest.mark.parametrize("body", [pivoted_body(np.eye(3), (0.3, 0.4, 0.5)), free_body(INERTIA)])
def test_without_gravity_nothing_acts_on_a_body(body):
    size = body.group.dim
    found = simulate_body(body, np.eye(body.group.size), START[:size], duration=0.02)
    assert_close(found.potential, np.zeros(21), 1e-15)
    assert_close(found.kinetic, np.full(21, found.kinetic[0]), 1e-8)
    assert_close(found.momentum, np.tile(found.momentum[0], (21, 1)), 1e-8)


@pytest.mark.parametrize("rho", [0.0, 0.4, 1.0])
def test_generalized_alpha_is_unconditionally_stable_and_damps_as_asked(rho):
    """Chung and Hulbert (1993): the amplification of infinite frequencies has the radius rho."""
    m, f, beta, gamma = Alpha.of(rho)
    # q' and V' from (a, V, q) of M a = -w^2 q, as w h grows without bound
    big = 1e7  # (w h)^2
    left = np.array([[1.0, 0.0, -beta], [0.0, 1.0, -gamma], [(1 - f) * big, 0.0, 1 - m]])
    right = np.array([[1.0, 1.0, 0.5 - beta], [0.0, 1.0, 1.0 - gamma], [-f * big, 0.0, -m]])
    radius = np.abs(np.linalg.eigvals(np.linalg.solve(left, right))).max()
    assert abs(radius - rho) < 5e-3


def test_a_body_made_from_another_moves_by_its_own_inertia_and_wrench():
    """The steps that were compiled for a body are not those of a changed copy."""
    start = np.eye(3), np.array([0.3, -0.2, 0.5])
    body = pivoted_body(np.diag([0.1, 0.2, 0.3]))
    simulate_body(body, *start, duration=0.1)
    other = np.diag([0.3, 0.2, 0.4])
    for changed, same in (
        (replace(body, inertia=other), pivoted_body(other)),
        (
            replace(body, wrench=lambda C, V: -0.1 * V),
            pivoted_body(body.inertia, wrench=lambda C, V: -0.1 * V),
        ),
    ):
        found, expected = (simulate_body(each, *start, duration=0.1) for each in (changed, same))
        np.testing.assert_array_equal(found.V, expected.V)


def test_moment_of_gravity_and_applied_moment_act_together_on_a_pivoted_body():
    """Euler's equation about the point: I w' + w x I w = l x R^T g + applied moment."""
    tensor, lever = np.diag([0.3, 0.32, 0.1]), np.array([0.1, -0.2, 0.5])
    body = pivoted_body(tensor, lever, GRAVITY, wrench=lambda R, w: -0.1 * w)
    R, w = so3.exp(np.array([0.3, -0.2, 0.5])), np.array([2.0, -3.0, 1.5])
    rate = body.acceleration(R, w)
    moment = np.cross(lever, R.T @ np.array(GRAVITY)) - 0.1 * w
    assert_close(tensor @ rate + np.cross(w, tensor @ w), moment, 1e-13)


@pytest.mark.parametrize("dexp", ["exact", "truncated"])
def test_step_of_second_order_by_hand(dexp):
    """Explicit midpoint rule in the algebra: X' = dexp_-X^-1 w, of which one term is kept."""
    body, h = BODIES["spinning"], 0.3
    R, w = so3.exp(np.array([0.3, -0.2, 0.5])), START[:3]
    X = 0.5 * h * w
    middle = w + 0.5 * h * body.acceleration(R, w)
    rate = middle if dexp == "truncated" else so3.dexp_inv(-X) @ middle
    expected = R @ so3.exp(h * rate)
    stepper = BodyStepper(body, "munthe_kaas_2", dexp=dexp)
    C, _ = stepper.unpack(stepper.run(stepper.pack(R, w), h, 1)[-1])
    assert_close(C, expected, 1e-13)


def test_motion_without_applied_wrenches_has_no_power():
    found = simulate_body(BODIES["free"], np.eye(4), START, duration=0.01)
    np.testing.assert_array_equal(found.wrench, np.zeros(found.V.shape))
    np.testing.assert_array_equal(found.power, np.zeros(len(found)))


def test_body_whose_first_moment_is_not_stated_is_balanced():
    body = pivoted_body(np.diag([0.1, 0.2, 0.3]), gravity=GRAVITY)
    R, w = so3.exp(np.array([0.3, -0.2, 0.5])), np.array([2.0, -3.0, 1.5])
    moment = body.inertia @ body.acceleration(R, w) + np.cross(w, body.inertia @ w)
    assert_close(moment, np.zeros(3), 1e-13)


def test_steps_are_evaluated_by_the_back_end_that_is_named():
    for name in ("python", "llvm"):
        assert BodyStepper(BODIES["free"], backend=name).kernel.backend == name


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_inertia_is_symmetric_or_refused_whatever_its_size(size):
    tensor = size * np.diag([1.0, 2.0, 3.0])
    tensor[0, 1] = 1e-12 * size
    body = GroupBody(SO3, tensor.tolist())
    np.testing.assert_array_equal(body.inertia, body.inertia.T)
    assert_close(body.inertia @ body.inverse, np.eye(3), 1e-14)
    tensor[0, 1] = 1e-6 * size
    with pytest.raises(ModelError, match="symmetric and positive definite"):
        GroupBody(SO3, tensor)
