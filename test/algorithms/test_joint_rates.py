# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Joint rates and accelerations from twists: exact where they can be, optimal where they cannot."""

from __future__ import annotations

import re
from functools import lru_cache
from math import inf

import numpy as np
import pytest
from mechanisms import MECHANISMS, POSITIONS
from reference import assert_close

import mbs_dynamics as mbs
from mbs_dynamics.algorithms.joint_rates import (
    fit_joint_rates,
    joint_accelerations_from_twists,
    joint_rates_from_twists,
)
from mbs_dynamics.closed_form import MovingSystem, System

REPRESENTATIONS = ("body_fixed", "spatial", "hybrid", "mixed")
LETTERS = dict(zip(REPRESENTATIONS, "bshm", strict=True))

every_mechanism = pytest.mark.parametrize("name", MECHANISMS)
every_position = pytest.mark.parametrize("where", POSITIONS)
every_representation = pytest.mark.parametrize("representation", REPRESENTATIONS)


@lru_cache
def state(name, where="generic"):
    mechanism = MECHANISMS[name]
    rng = np.random.default_rng(len(name))
    q = POSITIONS[where](rng, mechanism.n)
    return mechanism.model, q, *rng.uniform(-2.0, 2.0, (2, mechanism.n))


def motion(name, representation, where="generic"):
    """A model, q, qd, qdd, and the twists and accelerations that the closed forms give."""
    model, q, qd, qdd = state(name, where)
    moving = MovingSystem(model, q, qd, qdd)
    letter = LETTERS[representation]
    V, Vd = (getattr(moving, what + letter).reshape(model.nb, 6) for what in ("V_", "Vd_"))
    return model, q, qd, qdd, V, Vd


def noisy(name, representation):
    """A model, q, noisy twists, and the system Jacobian in the representation."""
    model, q, _, _, V, _ = motion(name, "body_fixed")
    V = V + np.random.default_rng(1).normal(size=V.shape)
    C = mbs.forward_kinematics(model, q)
    V = mbs.convert_twist(V, C, source="body_fixed", target=representation)
    return model, q, V, getattr(System(model, q), "J_" + LETTERS[representation])


# -- twists that fit together ----------------------------------------------------------------------


@every_position
@every_representation
@every_mechanism
def test_rates_come_back(name, representation, where):
    model, q, qd, _, V, _ = motion(name, representation, where)
    same = {"representation": representation}
    assert_close(joint_rates_from_twists(model, q, V, **same), qd)
    assert_close(fit_joint_rates(model, q, V, **same), qd, 1e-10)


@every_position
@every_representation
@every_mechanism
def test_accelerations_come_back(name, representation, where):
    model, q, _, qdd, V, Vd = motion(name, representation, where)
    found = joint_accelerations_from_twists(model, q, V, Vd, representation=representation)
    assert_close(found, qdd)


@every_representation
def test_batches(representation):
    """Any of the arrays may have batch axes, which broadcast."""
    name = "mimics"
    model, q, qd, qdd, V, Vd = motion(name, representation)
    rates = np.stack([qd, -2.0 * qd, 0.5 * qd])
    moving = [MovingSystem(model, q, rate, qdd) for rate in rates]
    letter = LETTERS[representation]
    Vs, Vds = (
        np.array([getattr(m, what + letter) for m in moving]).reshape(3, model.nb, 6)
        for what in ("V_", "Vd_")
    )
    same = {"representation": representation}
    for function in (joint_rates_from_twists, fit_joint_rates):
        assert_close(function(model, q, Vs, **same), rates, 1e-10)
        assert_close(function(model, [[q], [q]], Vs, **same), [rates, rates], 1e-10)
        assert_close(function(model, [q, q], V, **same), [qd, qd], 1e-10)
        assert function(model, q, Vs[:0], **same).shape == (0, model.n)
    found = joint_accelerations_from_twists(model, [[q], [q]], Vs, Vds, **same)
    assert_close(found, np.broadcast_to(qdd, (2, 3, model.n)))
    double = joint_accelerations_from_twists(model, q, V, [Vd, Vd], **same)
    assert_close(double, [qdd, qdd])


# -- twists that do not ----------------------------------------------------------------------------


@every_mechanism
def test_what_the_rates_minimise(name):
    """(26) minimises the sum of squares of (I - D) V - X N qd, in all four forms the same."""
    model, q, V, J = noisy(name, "body_fixed")
    system = System(model, q)
    X = system.X_b @ system.N
    relative = system.A_b_inverse @ V.ravel()
    qd = joint_rates_from_twists(model, q, V, tolerance=inf)
    assert_close(X.T @ (relative - X @ qd), np.zeros(model.n))  # where the gradient vanishes
    assert_close(qd, np.linalg.lstsq(X, relative, rcond=None)[0])
    for representation in REPRESENTATIONS[1:]:
        model, q, V, _ = noisy(name, representation)
        same = {"representation": representation, "tolerance": inf}
        assert_close(joint_rates_from_twists(model, q, V, **same), qd)
        assert_close(System(model, q).rates_from_twists(V.ravel(), representation), qd)
    if model.nb > 1:  # and so not that of V - J qd, whose gradient does not vanish
        _, _, V, _ = noisy(name, "body_fixed")
        assert np.abs(J.T @ (V.ravel() - J @ qd)).max() > 0.1


@every_mechanism
def test_what_the_accelerations_minimise(name):
    """(11) minimises the sum of squares of (I - D) Vd + a V - X N qdd."""
    model, q, V, _ = noisy(name, "body_fixed")
    Vd = np.random.default_rng(2).normal(size=V.shape)
    qd = joint_rates_from_twists(model, q, V, tolerance=inf)
    moving = MovingSystem(model, q, qd)
    X = moving.X_b @ moving.N
    relative = moving.A_b_inverse @ Vd.ravel() + moving.a_b @ V.ravel()
    qdd = joint_accelerations_from_twists(model, q, V, Vd, tolerance=inf)
    assert_close(X.T @ (relative - X @ qdd), np.zeros(model.n))


@every_representation
@every_mechanism
def test_what_the_fit_minimises(name, representation):
    """The sum of squares of V - J qd in the representation."""
    model, q, V, J = noisy(name, representation)
    qd = fit_joint_rates(model, q, V, representation=representation)
    rest = V.ravel() - J @ qd
    assert_close(J.T @ rest, np.zeros(model.n), 1e-10)
    assert_close(qd, np.linalg.lstsq(J, V.ravel(), rcond=None)[0], 1e-10)
    step_by_step = joint_rates_from_twists(
        model, q, V, representation=representation, tolerance=inf
    )
    loss = np.sum((V.ravel() - J @ step_by_step) ** 2)
    assert np.sum(rest**2) <= loss * (1.0 + 1e-14)  # equal for one body, to rounding
    if model.nb > 1:
        assert np.sum(rest**2) < 0.99 * loss


@pytest.mark.parametrize("name", ["revolute chain", "tree", "mimics"])
def test_only_the_spatial_fit_is_another(name):
    body_fixed, spatial, hybrid, mixed = (
        fit_joint_rates(*noisy(name, representation)[:3], representation=representation)
        for representation in REPRESENTATIONS
    )
    assert_close(hybrid, body_fixed, 1e-10)
    assert_close(mixed, body_fixed, 1e-10)
    assert np.abs(spatial - body_fixed).max() > 1e-3


def disturbed(name, body, by, representation):
    """Twists of which the one of a body has a disturbance, given in that body's frame."""
    model, q, *_, V, Vd = motion(name, representation)
    i = model.body_names.index(body)
    C = mbs.forward_kinematics(model, q)[i]
    V[i] += mbs.convert_twist(by, C, source="body_fixed", target=representation)
    return model, q, V, Vd


def across(model, body):
    """A twist of length one that the joint of a body does not allow at all."""
    X = model.bodies[model.body_names.index(body)].joint.screw
    return np.linalg.svd(X[None, :])[2][-1]


@every_representation
def test_a_disturbed_twist_is_refused_with_where_and_by_how_much(representation):
    """At a leaf, where what the joint does not allow is all of the disturbance."""
    leaf, parent = "body5", "body3"
    model, *_ = state("tree")
    by = across(model, leaf)
    model, q, V, Vd = disturbed("tree", leaf, 0.37 * by, representation)
    same = {"representation": representation}
    size = f"{0.37 * np.abs(by).max():.3g}"
    said = rf"^V .*'{leaf}' has, relative to '{parent}', {re.escape(size)} .* joint 'joint5'"
    with pytest.raises(mbs.ArgumentError, match=said):
        joint_rates_from_twists(model, q, V, **same)
    with pytest.raises(mbs.ArgumentError, match=said):
        joint_accelerations_from_twists(model, q, V, Vd, **same)
    good = motion("tree", representation)[4]
    with pytest.raises(mbs.ArgumentError, match=said.replace("V .*", r"V .*state \(2,\), .*")):
        joint_rates_from_twists(model, q, np.stack([good, good, V]), **same)


def test_a_root_that_breaks_away_is_refused():
    model, q, V, _ = disturbed("one body", "body1", across(state("one body")[0], "body1"), "mixed")
    with pytest.raises(mbs.ArgumentError, match="'body1' has, relative to the ground"):
        joint_rates_from_twists(model, q, V, representation="mixed")


def test_mimic_joints_that_do_not_follow_are_refused():
    """Each joint alone allows the motion, but not their common coordinate."""
    model, q, qd, *_ = motion("mimics", "body_fixed")
    moving = MovingSystem(model, q, qd)
    rate = moving.rate + np.eye(model.nb)[3]
    V = (moving.A_b @ moving.X_b @ rate).reshape(model.nb, 6)
    with pytest.raises(mbs.ArgumentError, match="does not allow"):
        joint_rates_from_twists(model, q, V)


@every_representation
def test_accelerations_that_do_not_fit_the_twists_are_refused(representation):
    model, q, *_, V, Vd = motion("forest", representation)
    with pytest.raises(mbs.ArgumentError, match=r"^Vd is no motion.*rad/s\^2"):
        joint_accelerations_from_twists(model, q, V, 2.0 * Vd, representation=representation)


def test_the_tolerance_is_relative_to_the_largest_twist():
    model, q, *_, V, _ = motion("tree", "body_fixed")
    by = np.zeros_like(V)
    by[4] = 1e-3 * across(model, "body5")  # a leaf
    limit = np.abs(by).max() / (1.0 + np.abs(V + by).max())
    joint_rates_from_twists(model, q, V + by, tolerance=1.01 * limit)
    with pytest.raises(mbs.ArgumentError, match="no motion"):
        joint_rates_from_twists(model, q, V + by, tolerance=0.99 * limit)
    joint_rates_from_twists(model, q, 1e6 * V)  # consistent, with larger rounding errors


def test_the_tolerance_is_relative_to_the_largest_twist_or_acceleration():
    model, q, qd, qdd = state("tree")
    by = np.zeros((model.nb, 6))
    by[4] = across(model, "body5")
    for moving in (MovingSystem(model, q, 0.1 * qd, 10.0 * qdd), MovingSystem(model, q, 10.0 * qd)):
        V, Vd = moving.bodies(moving.V_b), moving.bodies(moving.Vd_b) + by
        limit = np.abs(by).max() / (1.0 + max(np.abs(V).max(), np.abs(Vd).max()))
        joint_accelerations_from_twists(model, q, V, Vd, tolerance=1.01 * limit)
        with pytest.raises(mbs.ArgumentError, match="no motion"):
            joint_accelerations_from_twists(model, q, V, Vd, tolerance=0.99 * limit)


def test_twists_that_are_no_numbers_are_refused():
    model, q, *_, V, Vd = motion("tree", "body_fixed")
    gap = np.where(np.arange(6) == 2, np.nan, V)
    with pytest.raises(mbs.ArgumentError, match="no motion"):
        joint_rates_from_twists(model, q, gap)
    with pytest.raises(mbs.ArgumentError, match="no motion"):
        joint_accelerations_from_twists(model, q, V, np.full_like(Vd, np.nan))
    assert np.isnan(joint_rates_from_twists(model, q, gap, tolerance=inf)).any()


@pytest.mark.parametrize("tolerance", [-1e-9, np.nan, None, "small"])
def test_a_tolerance_that_is_none_is_refused(tolerance):
    model, q, *_, V, _ = motion("tree", "body_fixed")
    with pytest.raises(mbs.ArgumentError, match=r"^tolerance must be .*at least 0"):
        joint_rates_from_twists(model, q, V, tolerance=tolerance)


@pytest.mark.parametrize(
    "function", [joint_rates_from_twists, joint_accelerations_from_twists, fit_joint_rates]
)
def test_wrong_arguments_are_refused_by_name(function):
    model, q, *_, V, _ = motion("tree", "body_fixed")
    rest = [V] if function is joint_accelerations_from_twists else []
    with pytest.raises(mbs.ArgumentError, match=r" V has shape \(6,\); valid is \(7, 6\)"):
        function(model, q, V[0], *rest)
    with pytest.raises(mbs.ArgumentError, match=" q has shape"):
        function(model, q[:-1], V, *rest)
    with pytest.raises(mbs.UnknownRepresentationError, match="local"):
        function(model, q, V, *rest, representation="local")


def test_auto_is_body_fixed():
    model, q, V, _ = noisy("tree", "body_fixed")
    assert_close(fit_joint_rates(model, q, V, representation="auto"), fit_joint_rates(model, q, V))
    model, q, qd, qdd, V, Vd = motion("tree", "body_fixed")
    assert_close(joint_rates_from_twists(model, q, V, representation="auto"), qd)
    assert_close(joint_accelerations_from_twists(model, q, V, Vd, representation="auto"), qdd)
