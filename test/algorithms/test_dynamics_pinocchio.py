# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Twenty-nine real robots: what their dynamics are according to Pinocchio, by both back ends.

Fixed bases, from 2 to 43 joints, arms, hands, legged robots and humanoids, some with prismatic and
mimic joints, at three random states. Each kernel is called with all states at once and with a
single one.

The equations are traced once for both back ends. Tracing and compiling takes most of the time:
robots with more than ``FEW`` bodies get the representation body_fixed instead of the cheapest of
the four, and no llvm. Derivatives and regressors of the large ones are left out.

Differences are relative to the largest entry, and the bound is 1e-10.

Pinocchio lets mimic joints be free: the positions of its joints are T q + offset, torques are
T^T tau, matrices T^T M T. See test_pinocchio.py for poses, twists, Jacobians and torques.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from cases import mostly_slow
from robots import robot as robot_file
from test_pinocchio import STATES, Robot, angular_first

import mbs_dynamics as mbs
from mbs_dynamics.algorithms import algorithm_of

pytestmark = pytest.mark.backend_independent  # both evaluate, whatever is set

ROBOTS = (
    "a1.urdf",
    "alex_nub_hands.urdf",
    "alexander_v1.lowerBodyOnly.urdf",
    "allegro_left_hand.urdf",
    "anymal-kinova.urdf",
    "TwoDofs.urdf",
    "b1-z1.urdf",
    "baxter.urdf",
    "bolt.urdf",
    "borinot_flying_arm_2.urdf",
    "double_pendulum_continuous.urdf",
    "finger_edu.urdf",
    "hextilt_flying_arm_5.urdf",
    "hyq_no_sensors.urdf",
    "kinova.urdf",
    "panda.urdf",
    "so101.urdf",
    "solo12.urdf",
    "talos_left_arm.urdf",
    "tiago_no_hand.urdf",
    "ur5_robot.urdf",
    "xarm7.urdf",
    "z1.urdf",
)
LARGE = (
    "alex_psyonic_hands.urdf",
    "g1_29dof_with_hand_rev_1_0.urdf",
    "icub.urdf",
    "pr2.urdf",
    "simple_humanoid.urdf",
    "talos_reduced.urdf",
)
QUICK = (
    "allegro_left_hand.urdf",
    "baxter.urdf",
    "panda.urdf",
    "talos_reduced.urdf",
    "tiago_no_hand.urdf",
    "ur5_robot.urdf",
)
FEW = 7
TOLERANCE = 1e-10
METHODS = ("articulated_body", "udut", "mass_matrix")
OURS = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]
"""Pinocchio orders tensors xx, xy, yy, xz, yz, zz; here it is xx, xy, xz, yy, yz, zz."""

under_wrenches_and_free = pytest.mark.parametrize(
    "pushed", [False, True], ids=["free", "under wrenches"]
)


class Asked(Robot):
    """A robot with torques and wrenches, and what Pinocchio says they do."""

    def __init__(self, path):
        super().__init__(path)
        self.tau = np.random.default_rng(1).uniform(-5.0, 5.0, (STATES, self.model.n))
        self.free = self.model.n == self.model.nb
        """Whether no joint mimics another, so that Pinocchio solves the same equations."""
        self.M = np.zeros((STATES, self.model.n, self.model.n))
        for k in range(STATES):
            upper = pin.crba(self.pin, self.data, self.of(k)[0])
            self.M[k] = self.T.T @ symmetric(upper) @ self.T

    def forces(self, k, pushed):
        """The applied wrenches as Pinocchio takes them: in the joint's frame, linear first."""
        forces = pin.StdVec_Force()
        forces.extend([pin.Force.Zero()] * len(self.pin.joints))
        for body, W in zip(self.model.bodies, pushed * self.wrenches[k], strict=True):
            forces[self.joint(body)] = pin.Force(W[3:], W[:3])
        return forces

    def acceleration(self, k, pushed):
        """What the torques cause, (n,)."""
        q, v, _ = self.of(k)
        forces = self.forces(k, pushed)
        if self.free:
            return self.T.T @ pin.aba(self.pin, self.data, q, v, self.T @ self.tau[k], forces)
        h = self.T.T @ pin.rnea(self.pin, self.data, q, v, 0.0 * v, forces)
        return np.linalg.solve(self.M[k], self.tau[k] - h)

    def by_state(self, dq, dv):
        """Derivatives of the torques (n, n) from those of Pinocchio's joints."""
        return self.T.T @ dq @ self.T, self.T.T @ dv @ self.T


def symmetric(upper):
    """Pinocchio fills the upper triangle alone."""
    return np.triu(upper) + np.triu(upper, 1).T


@pytest.fixture(scope="module", params=mostly_slow([*ROBOTS, *LARGE], QUICK))
def robot(request):
    return Asked(robot_file(request.param))


all_but_the_large = pytest.mark.parametrize(
    "robot", mostly_slow(ROBOTS, set(QUICK) & set(ROBOTS)), indirect=True
)


def assert_agrees(robot, algorithm, arrays, *expected, **options):
    """The outputs are these, from both back ends, for all states at once and for the first."""
    model = robot.model
    if model.nb > FEW and "representation" in algorithm_of(algorithm).options:
        options["representation"] = "body_fixed"
    kernels = {"python": mbs.compile(algorithm, model, backend="python", **options)}
    if model.nb <= FEW:
        defaults = {"gravity": model.gravity, "payload": model.payloads.parameters}
        program = kernels["python"].program  # what compile(..., backend="llvm") would trace again
        kernels["llvm"] = mbs.Kernel(program, backend="llvm", defaults=defaults)
    for backend, kernel in kernels.items():
        batch, single = kernel(*arrays), kernel(*[array[0] for array in arrays])
        if len(expected) == 1:
            batch, single = (batch,), (single,)
        for found, alone, right in zip(batch, single, expected, strict=True):
            assert_relatively_close(found, right, backend)
            assert_relatively_close(alone, right[0], f"{backend}, one state")


def assert_relatively_close(found, expected, what):
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    largest = np.abs(expected).max()
    assert largest > 0.0, f"{what}: all is zero, and that shows nothing"
    error = np.abs(found - expected).max() / largest
    assert error <= TOLERANCE, f"{what} is off by {error:.2g}"  # a NaN is not


def per_state(function):
    return np.array([function(k) for k in range(STATES)])


# -- matrices -------------------------------------------------------------------------------------


def test_mass_matrix(robot):
    assert_agrees(robot, mbs.mass_matrix, [robot.q], robot.M)


def test_inverse_mass_matrix(robot):
    expected = np.linalg.inv(robot.M)
    ill = np.linalg.cond(robot.M).max() > 1e7  # there computeMinverse itself is off by 1e-9
    if robot.free and not ill:
        for k in range(STATES):
            upper = pin.computeMinverse(robot.pin, robot.data, robot.of(k)[0])
            expected[k] = robot.T.T @ symmetric(upper) @ robot.T
    assert_agrees(robot, mbs.inverse_mass_matrix, [robot.q], expected)


def test_coriolis_matrix(robot):
    def matrix(k):
        return robot.T.T @ pin.computeCoriolisMatrix(robot.pin, robot.data, *of(k)) @ robot.T

    def of(k):
        return robot.of(k)[:2]

    assert_agrees(robot, mbs.coriolis_matrix, [robot.q, robot.qd], per_state(matrix))


# -- forward dynamics -----------------------------------------------------------------------------


def test_forward_dynamics(robot):
    expected = per_state(lambda k: robot.acceleration(k, pushed=False))
    assert_agrees(robot, mbs.forward_dynamics, [robot.q, robot.qd, robot.tau], expected)


@pytest.mark.parametrize("method", METHODS)
def test_forward_dynamics_under_wrenches(robot, method):
    expected = per_state(lambda k: robot.acceleration(k, pushed=True))
    arrays = [robot.q, robot.qd, robot.tau, robot.wrenches]
    assert_agrees(robot, mbs.forward_dynamics, arrays, expected, method=method, wrenches=True)


# -- derivatives ----------------------------------------------------------------------------------


@all_but_the_large
@under_wrenches_and_free
def test_inverse_dynamics_derivatives(robot, pushed):
    expected = np.zeros((3, STATES, robot.model.n, robot.model.n))
    for k in range(STATES):
        forces = robot.forces(k, pushed)
        dq, dv, _ = pin.computeRNEADerivatives(robot.pin, robot.data, *robot.of(k), forces)
        expected[:, k] = *robot.by_state(dq, dv), robot.M[k]
    arrays = [robot.q, robot.qd, robot.qdd] + [robot.wrenches] * pushed
    options = {"wrenches": True} if pushed else {}
    assert_agrees(robot, mbs.inverse_dynamics_derivatives, arrays, *expected, **options)


@all_but_the_large
@under_wrenches_and_free
def test_forward_dynamics_derivatives(robot, pushed):
    expected = np.zeros((3, STATES, robot.model.n, robot.model.n))
    for k in range(STATES):
        q, v, _ = robot.of(k)
        forces = robot.forces(k, pushed)
        if robot.free:
            tau = robot.T @ robot.tau[k]
            dq, dv, upper = pin.computeABADerivatives(robot.pin, robot.data, q, v, tau, forces)
            expected[:2, k] = robot.by_state(dq, dv)
            expected[2, k] = robot.T.T @ symmetric(upper) @ robot.T
        else:
            a = robot.T @ robot.acceleration(k, pushed)
            dq, dv, _ = pin.computeRNEADerivatives(robot.pin, robot.data, q, v, a, forces)
            expected[2, k] = np.linalg.inv(robot.M[k])
            expected[:2, k] = [-expected[2, k] @ by for by in robot.by_state(dq, dv)]
    arrays = [robot.q, robot.qd, robot.tau] + [robot.wrenches] * pushed
    options = {"wrenches": True} if pushed else {}
    assert_agrees(robot, mbs.forward_dynamics_derivatives, arrays, *expected, **options)


@all_but_the_large
def test_inverse_dynamics_regressor(robot):
    columns = [10 * (robot.joint(body) - 1) + k for body in robot.model.bodies for k in OURS]

    def regressor(k):
        Y = pin.computeJointTorqueRegressor(robot.pin, robot.data, *robot.of(k))
        return robot.T.T @ Y[:, columns]

    arrays = [robot.q, robot.qd, robot.qdd]
    assert_agrees(robot, mbs.inverse_dynamics_regressor, arrays, per_state(regressor))


# -- wrenches in the joints -----------------------------------------------------------------------


@under_wrenches_and_free
def test_joint_wrenches(robot, pushed):
    def transmitted(k):
        pin.rnea(robot.pin, robot.data, *robot.of(k), robot.forces(k, pushed))
        f = [robot.data.f[robot.joint(body)] for body in robot.model.bodies]
        return [angular_first(force.vector) for force in f]

    arrays = [robot.q, robot.qd, robot.qdd] + [robot.wrenches] * pushed
    options = {"wrenches": True} if pushed else {}
    assert_agrees(robot, mbs.joint_wrenches, arrays, per_state(transmitted), **options)


# -- energies and momenta -------------------------------------------------------------------------


def test_energies(robot):
    T = per_state(lambda k: pin.computeKineticEnergy(robot.pin, robot.data, *robot.of(k)[:2]))
    U = per_state(lambda k: pin.computePotentialEnergy(robot.pin, robot.data, robot.of(k)[0]))
    assert_agrees(robot, mbs.kinetic_energy, [robot.q, robot.qd], T)
    assert_agrees(robot, mbs.potential_energy, [robot.q], U)


def test_center_of_mass_and_centroidal_momentum(robot):
    com, hg = np.zeros((STATES, 3)), np.zeros((STATES, 6))
    for k in range(STATES):
        q, v, _ = robot.of(k)
        com[k] = pin.centerOfMass(robot.pin, robot.data, q)
        hg[k] = angular_first(pin.computeCentroidalMomentum(robot.pin, robot.data, q, v).vector)
        A = pin.ccrba(robot.pin, robot.data, q, v)
        np.testing.assert_allclose(angular_first(A @ v), hg[k], rtol=0, atol=1e-9)
    assert_agrees(robot, mbs.center_of_mass, [robot.q], com)
    assert_agrees(robot, mbs.centroidal_momentum, [robot.q, robot.qd], hg)


def test_generalized_momentum(robot):
    def rate(k):
        q, v, _ = robot.of(k)
        C = pin.computeCoriolisMatrix(robot.pin, robot.data, q, v).copy()
        return robot.T.T @ (C.T @ v - pin.computeGeneralizedGravity(robot.pin, robot.data, q))

    p = per_state(lambda k: robot.M[k] @ robot.qd[k])
    assert_agrees(robot, mbs.generalized_momentum, [robot.q, robot.qd], p, per_state(rate))


def test_momenta_of_bodies(robot):
    def momenta(k):
        pin.forwardKinematics(robot.pin, robot.data, *robot.of(k)[:2])
        ids = [robot.joint(body) for body in robot.model.bodies]
        return [angular_first((robot.pin.inertias[i] * robot.data.v[i]).vector) for i in ids]

    assert_agrees(robot, mbs.momenta, [robot.q, robot.qd], per_state(momenta))
