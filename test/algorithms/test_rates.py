# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Accelerations, jerks, Jacobian rates and partial derivatives of any order."""

from __future__ import annotations

import itertools

import numpy as np
import pinocchio as pin
import pytest
from cases import mostly_slow
from mechanisms import ARM_URDF, MECHANISMS, VARIED
from reference import assert_close
from robots import robot

import mbs_dynamics as mbs
from mbs_dynamics.model.orders import leaves

REPRESENTATIONS = tuple(mbs.REPRESENTATIONS)
ARMS = {
    "ur5_robot.urdf": ("wrist_3_joint", "tool0"),
    "anymal_b_simple_description/robots/anymal.urdf": ("LF_KFE", "LF_FOOT"),
}
FRAMES = {
    "body_fixed": pin.ReferenceFrame.LOCAL,
    "spatial": pin.ReferenceFrame.WORLD,
    "hybrid": pin.ReferenceFrame.LOCAL_WORLD_ALIGNED,
}
ANGULAR_FIRST = [3, 4, 5, 0, 1, 2]


def mechanism(name):
    return mbs.Model.from_urdf(ARM_URDF) if name == "arm" else MECHANISMS[name].model


most_cases_slow = pytest.mark.parametrize(
    "name", mostly_slow([*MECHANISMS, "arm"], [*VARIED, "arm"])
)


def motion_at(model, t, order, seed=0):
    """Return q and its time derivatives along a polynomial motion, (order + 1, n)."""
    c = np.random.default_rng(seed).uniform(-1.0, 1.0, (7, model.n))
    powers = np.polynomial.polynomial
    return np.array([powers.polyval(t, powers.polyder(c, k)) for k in range(order + 1)])


def along(function, h=2e-3):
    """Return the derivative of function(t) at 0 by central differences of order 8."""
    weights = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
    return sum(w * (function(k * h) - function(-k * h)) for k, w in weights.items()) / h


@pytest.mark.parametrize("representation", REPRESENTATIONS)
@most_cases_slow
def test_derivatives_of_twists_are_rates_of_each_other(name, representation):
    model = mechanism(name)
    for order in (1, 2, 4):
        options = {"representation": representation}

        def lower(t, order=order, options=options):
            motion = motion_at(model, t, order)
            return mbs.twist_derivatives(model, motion, order - 1, **options)

        found = mbs.twist_derivatives(model, motion_at(model, 0.0, order + 1), order, **options)
        assert_close(found, along(lower), 1e-9)


@pytest.mark.parametrize("robot_name", ARMS)
def test_accelerations_and_jacobian_rates_are_those_of_pinocchio(robot_name):
    _, link = ARMS[robot_name]
    path = robot(robot_name)
    model = mbs.Model.from_urdf(path)
    reference = pin.buildModelFromUrdf(str(path))
    data, frame = reference.createData(), reference.getFrameId(link)
    order = [reference.joints[reference.getJointId(name)].idx_v for name in model.joint_names]
    q, qd, qdd = motion_at(model, 0.2, 2)
    theirs = np.zeros((3, model.n))
    theirs[:, order] = q, qd, qdd
    pin.forwardKinematics(reference, data, *theirs)
    pin.computeJointJacobiansTimeVariation(reference, data, theirs[0], theirs[1])
    pin.updateFramePlacements(reference, data)
    for representation, in_frame in FRAMES.items():
        options = {"representation": representation}
        Vd = mbs.accelerations(model, q, qd, qdd, bodies=[link], **options)[0]
        classical = representation == "hybrid"  # the rate of rdot is the acceleration of a point
        get = pin.getFrameClassicalAcceleration if classical else pin.getFrameAcceleration
        assert_close(Vd, get(reference, data, frame, in_frame).vector[ANGULAR_FIRST], 1e-10)
        Jd = pin.getFrameJacobianTimeVariation(reference, data, frame, in_frame)
        found = mbs.jacobian_rate(model, q, qd, link, **options)
        assert_close(found, Jd[ANGULAR_FIRST][:, order], 1e-10)


@pytest.mark.parametrize("representation", REPRESENTATIONS)
@most_cases_slow
def test_jacobian_rates_give_accelerations_and_jerks(name, representation):
    model = mechanism(name)
    q, qd, qdd, qddd = motion_at(model, -0.4, 3)
    link = leaves(model)[-1] if name != "arm" else "tool"
    options = {"representation": representation}
    J = mbs.jacobian(model, q, link, **options)
    Jd = mbs.jacobian_rate(model, q, qd, link, **options)
    Jdd = mbs.jacobian_second_rate(model, q, qd, qdd, link, **options)
    Vd = mbs.accelerations(model, q, qd, qdd, bodies=[link], **options)[0]
    Vdd = mbs.jerks(model, q, qd, qdd, qddd, bodies=[link], **options)[0]
    assert_close(J @ qdd + Jd @ qd, Vd)
    assert_close(J @ qddd + 2.0 * Jd @ qdd + Jdd @ qd, Vdd)


@pytest.mark.parametrize("representation", REPRESENTATIONS)
@most_cases_slow
def test_partial_derivatives_are_derivatives_of_lower_ones(name, representation):
    model = mechanism(name)
    q = motion_at(model, 0.1, 0)[0]
    link = leaves(model)[-1] if name != "arm" else "tool"
    options = {"representation": representation}
    rng = np.random.default_rng(3)
    for joints in [(), *(tuple(rng.integers(model.n, size=k)) for k in (1, 1, 2))]:
        for k in range(model.n):

            def lower(t, k=k, joints=joints):
                moved = q + t * np.eye(model.n)[k]
                return mbs.jacobian_derivative(model, moved, link, joints, **options)

            found = mbs.jacobian_derivative(model, q, link, (*joints, k), **options)
            assert_close(found, along(lower), 1e-9, what=(joints, k))


@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_the_order_of_differentiation_does_not_matter(representation):
    model = MECHANISMS["tree"].model
    q = motion_at(model, 0.1, 0)[0]
    first = mbs.jacobian_derivative(
        model, q, leaves(model)[-1], (0, 2, 3), representation=representation
    )
    for joints in itertools.permutations((0, 2, 3)):
        named = [model.joint_names[k] for k in joints]
        other = mbs.jacobian_derivative(
            model, q, leaves(model)[-1], named, representation=representation
        )
        assert np.array_equal(first, other)


@pytest.mark.parametrize("representation", REPRESENTATIONS)
@most_cases_slow
def test_the_hessian_contracts_to_the_jacobian_rate(name, representation):
    model = mechanism(name)
    q, qd = motion_at(model, 0.6, 1)
    link = leaves(model)[0]
    H = mbs.kinematic_hessian(model, q, link, representation=representation)
    assert_close(H @ qd, mbs.jacobian_rate(model, q, qd, link, representation=representation))


def test_bad_orders_and_joints_are_refused():
    model = MECHANISMS["tree"].model
    q, link = np.zeros(model.n), leaves(model)[0]
    with pytest.raises(mbs.ArgumentError, match=r"order.*-1"):
        mbs.twist_derivatives(model, np.zeros((1, model.n)), -1)
    with pytest.raises(mbs.ArgumentError, match=r"order.*1\.5"):
        mbs.twist_derivatives(model, np.zeros((1, model.n)), 1.5)
    with pytest.raises(mbs.ArgumentError, match=rf"motion.*\(3, {model.n}\)"):
        mbs.twist_derivatives(model, np.zeros((3, model.n)), 2)
    with pytest.raises(mbs.ArgumentError, match=str(model.n)):
        mbs.jacobian_derivative(model, q, link, (0, model.n))
    with pytest.raises(mbs.UnknownJointError, match="'elbow'"):
        mbs.jacobian_derivative(model, q, link, ("elbow",))
    with pytest.raises(mbs.ArgumentError, match="joints"):
        mbs.jacobian_derivative(model, q, link, 2)


def test_the_hessian_is_that_of_pinocchio():
    path = robot("ur5_robot.urdf")
    model, reference = mbs.Model.from_urdf(path), pin.buildModelFromUrdf(str(path))
    data, frame = reference.createData(), reference.getFrameId("tool0")
    q = motion_at(model, 0.2, 0)[0]
    pin.computeJointKinematicHessians(reference, data, q)
    pin.updateFramePlacements(reference, data)
    for representation, in_frame in FRAMES.items():
        tensor = pin.getFrameKinematicHessian(reference, data, frame, in_frame)
        theirs = np.reshape(np.ravel(tensor), (6, model.n, model.n), order="F")  # as it is stored
        found = mbs.kinematic_hessian(model, q, "tool0", representation=representation)
        assert_close(found, theirs[ANGULAR_FIRST], 1e-10)
