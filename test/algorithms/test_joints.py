# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Joints with several degrees of freedom: Pinocchio, and derivatives along the groups.

Derivatives are compared with those of Taylor series along g exp(S d), exact to rounding. Those of
forward dynamics differ from Pinocchio's by 1e-12 for Talos, 1e-11 for G1 and 1e-8 for iCub, whose
mass matrices have condition numbers of 1e5, 2e5 and 1e8. Ours are within 1e-13, 1e-13 and 1e-12 of
the same equations in 80 bits: the difference is the rounding of Pinocchio.
"""

import functools
import re

import numpy as np
import pinocchio as pin
import pytest
from cases import mostly_slow
from interpreted import evaluated
from mechanisms import pose
from reference import assert_close
from robots import all_files, robot
from twins import MIXED, Twin, fixed, floating, mixed, with_rotors

import mbs_dynamics as mbs
from mbs_dynamics.compiler import derivative_of, series_of
from mbs_dynamics.model.coordinates import checked_positions, velocity_names
from mbs_dynamics.model.equivalent import equivalent
from mbs_dynamics.model.joints import Connection, joint
from mbs_dynamics.model.orders import leaves
from mbs_dynamics.representation.tree import Tree

pytestmark = pytest.mark.filterwarnings("ignore::mbs_dynamics.ModelWarning")
REPRESENTATIONS = tuple(mbs.REPRESENTATIONS)
FRAMES = {
    "body_fixed": pin.LOCAL,
    "spatial": pin.WORLD,
    "hybrid": pin.LOCAL_WORLD_ALIGNED,
    "mixed": pin.LOCAL_WORLD_ALIGNED,  # its angular part is turned into the body
}
ANGULAR_FIRST = np.roll(np.eye(6), 3, axis=0)
METHODS = ("articulated_body", "udut", "mass_matrix")
ROBOTS = {
    "solo": "solo12.urdf",
    "anymal": "anymal-kinova.urdf",
    "g1": "g1_29dof_rev_1_0.urdf",
    "talos": "talos_reduced.urdf",
    "icub": "icub.urdf",
    "tiago": "tiago_no_hand.urdf",
}
FIXED = {
    "allegro on a fixed base": "allegro_left_hand.urdf",
    "baxter on a fixed base": "baxter.urdf",
    "hyq on a fixed base": "hyq_no_sensors.urdf",
    "kinova on a fixed base": "kinova.urdf",
    "panda on a fixed base": "panda.urdf",
    "talos on a fixed base": "talos_reduced.urdf",
    "ur5 on a fixed base": "ur5_robot.urdf",
}
ROTORS = ("mixed0 with rotors", "mixed2 with rotors", "solo with rotors", "tiago with rotors")
QUICK = ("mixed1", "solo", "panda on a fixed base", "mixed0 with rotors")
PIN_ORDER = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]
"""Pinocchio orders tensors xx, xy, yy, xz, yz, zz; here it is xx, xy, xz, yy, yz, zz."""


@functools.cache
def twin(name: str) -> Twin:
    plain, _, rotors = name.partition(" with ")
    return with_rotors(made(plain)) if rotors else made(name)


def made(name: str) -> Twin:
    if name.startswith("mixed"):
        return mixed(int(name[5:]))
    return fixed(robot(FIXED[name])) if name in FIXED else floating(robot(ROBOTS[name]))


def twins(*names):
    """Return parameters that are slow unless they are in QUICK."""
    without = pytest.mark.skipif(not all_files(), reason="no example-robot-data")
    return pytest.mark.parametrize(
        "t",
        [
            pytest.param(
                name,
                marks=[pytest.mark.slow] * (name not in QUICK) + [without] * ("mixed" not in name),
            )
            for name in names
        ],
    )


every_twin = twins(*(f"mixed{k}" for k in range(6)), *ROBOTS, *FIXED, *ROTORS)
with_groups = twins(*(f"mixed{k}" for k in range(6)), *ROBOTS)
every_robot = twins(*ROBOTS, *FIXED)


def assert_accelerations(found, expected, M, tolerance, what):
    """Compare; torques alone where rounding of those that are given moves accelerations by 1e-8."""
    if np.linalg.cond(M) > 1e7:
        found, expected, tolerance = M @ found, M @ expected, 1e-12
    assert_close(found, expected, tolerance, what)


@every_twin
def test_dynamics_of_pinocchio(t):
    t = twin(t)
    m, T = t.model, t.T
    (q, v, a), (pq, pv, pa) = t.state(1)
    M = pin.crba(t.pin, t.data, pq)
    M = T.T @ (np.triu(M) + np.triu(M, 1).T) @ T
    tau = T.T @ pin.rnea(t.pin, t.data, pq, pv, pa)
    traced = equivalent(m)  # by kernels
    for rep in REPRESENTATIONS if m.nb < 10 else REPRESENTATIONS[:1]:
        same = {"representation": rep}
        assert_close(evaluated(mbs.inverse_dynamics, traced, q, v, a, **same), tau, 1e-12, rep)
        assert_close(evaluated(mbs.mass_matrix, traced, q, **same), M, 1e-12, rep)
        for method in METHODS:
            found = evaluated(mbs.forward_dynamics, traced, q, v, tau, method=method, **same)
            assert_accelerations(found, a, M, 1e-10, (rep, method))
    g = T.T @ pin.computeGeneralizedGravity(t.pin, t.data, pq)
    assert_close(evaluated(mbs.gravity_torques, m, q), g, 1e-12)
    bias = T.T @ pin.nonLinearEffects(t.pin, t.data, pq, pv)
    assert_close(evaluated(mbs.bias_torques, m, q, v), bias, 1e-12)
    inverse, rounding = evaluated(mbs.inverse_mass_matrix, m, q), 1e-15 * np.linalg.cond(M)
    assert_close(inverse @ M, np.eye(m.n), max(1e-9, rounding))
    C = evaluated(mbs.coriolis_matrix, m, q, v)
    assert_close(C @ v, bias - g, 1e-12)
    Y = evaluated(mbs.inverse_dynamics_regressor, m, q, v, a)
    assert_close(Y @ mbs.algorithms.inertial_parameters(m), tau, 1e-12)
    p, rate = evaluated(mbs.generalized_momentum, m, q, v)
    assert_close(p, M @ v, 1e-12)
    assert_close(rate, C.T @ v - g, 1e-12)
    pin.computeCentroidalMomentum(t.pin, t.data, pq, pv)
    momentum = ANGULAR_FIRST @ t.data.hg.vector
    assert_close(evaluated(mbs.centroidal_momentum, m, q, v), momentum, 1e-11)
    center = pin.centerOfMass(t.pin, t.data, pq)
    assert_close(evaluated(mbs.center_of_mass, m, q), center, 1e-12)
    assert_close(evaluated(mbs.kinetic_energy, m, q, v), 0.5 * v @ M @ v, 1e-12)
    potential = pin.computePotentialEnergy(t.pin, t.data, pq)
    assert_close(evaluated(mbs.potential_energy, m, q), potential, 1e-12)


@every_twin
def test_poses_jacobians_and_accelerations_of_pinocchio(t):
    """Poses of all links, those that were merged into others included, and motions of some."""
    t = twin(t)
    (q, v, a), (pq, pv, pa) = t.state(4)
    pin.forwardKinematics(t.pin, t.data, pq, pv, pa)
    pin.computeJointJacobiansTimeVariation(t.pin, t.data, pq, pv)
    pin.updateFramePlacements(t.pin, t.data)
    frames = {link: t.frame(link) for link in t.model.frames}
    poses = [t.data.oMf[k].homogeneous for k in frames.values()]
    assert_close(mbs.forward_kinematics(t.model, q, bodies=[*frames]), poses, 1e-12)
    for link in {leaves(t.model)[-1], [*frames][-1]}:
        R = t.data.oMf[frames[link]].rotation
        for rep, kind in FRAMES.items():
            expected = ANGULAR_FIRST @ pin.getFrameJacobian(t.pin, t.data, frames[link], kind) @ t.T
            if rep == "mixed":
                expected[:3] = R.T @ expected[:3]
            J = evaluated(mbs.jacobian, t.model, q, link, representation=rep)
            assert_close(J, expected, 1e-12, (link, rep))
            if rep == "mixed":
                continue
            Jd = pin.getFrameJacobianTimeVariation(t.pin, t.data, frames[link], kind) @ t.T
            found = evaluated(mbs.jacobian_rate, t.model, q, v, link, representation=rep)
            assert_close(found, ANGULAR_FIRST @ Jd, 1e-10, (link, rep))
            classical = rep == "hybrid"  # the rate of rdot is the acceleration of a point
            get = pin.getFrameClassicalAcceleration if classical else pin.getFrameAcceleration
            Vd = ANGULAR_FIRST @ get(t.pin, t.data, frames[link], kind).vector
            found = evaluated(
                mbs.accelerations, t.model, q, v, a, bodies=[link], representation=rep
            )
            assert_close(found[0], Vd, 1e-10, (link, rep))


@every_twin
def test_derivatives_of_pinocchio(t):
    t = twin(t)
    m, T = t.model, t.T
    if T.shape[0] != T.shape[1]:
        pytest.skip("mimic joints are free in Pinocchio")
    (q, v, a), (pq, pv, pa) = t.state(2)
    dq, dv, _ = pin.computeRNEADerivatives(t.pin, t.data, pq, pv, pa)
    by_q, by_v, _ = evaluated(mbs.inverse_dynamics_derivatives, m, q, v, a)
    assert_close(by_q, T.T @ dq @ T, 1e-11)
    assert_close(by_v, T.T @ dv @ T, 1e-11)
    state = q, v, mbs.inverse_dynamics(m, q, v, a)
    pin.computeABADerivatives(t.pin, t.data, pq, pv, T @ state[2])
    ours = evaluated(mbs.forward_dynamics_derivatives, m, *state)
    back = np.linalg.inv(T)
    theirs = back @ t.data.ddq_dq @ T, back @ t.data.ddq_dv @ T
    if np.finfo(np.longdouble).eps < 1e-18:  # rounding of ours, and then of Pinocchio's
        exact = evaluated(
            mbs.forward_dynamics_derivatives, m, *[x.astype(np.longdouble) for x in state]
        )
        assert_close(ours, exact, 1e-12)
    for found, expected in zip(ours, theirs, strict=False):
        assert_close(found, expected, 1e-10 if np.linalg.cond(ours[2]) < 1e7 else 1e-7)


@every_robot
def test_dynamics_under_wrenches_of_pinocchio(t):
    t = twin(t)
    m, T = t.model, t.T
    (q, v, a), (pq, pv, pa) = t.state(6)
    W = np.random.default_rng(6).uniform(-10.0, 10.0, (m.nb, 6))
    forces, ids = pin.StdVec_Force(), [t.pin.getJointId(b.joint.name) for b in m.bodies]
    forces.extend([pin.Force.Zero()] * len(t.pin.joints))
    for k, w in zip(ids, W, strict=True):
        forces[k] = pin.Force(w[3:], w[:3])
    tau = T.T @ pin.rnea(t.pin, t.data, pq, pv, pa, forces)
    assert_close(evaluated(mbs.inverse_dynamics, m, q, v, a, W), tau, 1e-11)
    f = np.array([ANGULAR_FIRST @ t.data.f[k].vector for k in ids])
    assert_close(evaluated(mbs.joint_wrenches, m, q, v, a, W), f, 1e-11)
    momenta = [ANGULAR_FIRST @ (t.pin.inertias[k] * t.data.v[k]).vector for k in ids]
    assert_close(evaluated(mbs.momenta, m, q, v), np.array(momenta), 1e-12)
    traced = equivalent(m, keep_frames=range(m.nb))  # by kernels
    dq, dv, M = pin.computeRNEADerivatives(t.pin, t.data, pq, pv, pa, forces)
    M = np.triu(M) + np.triu(M, 1).T
    expected = [T.T @ x @ T for x in (dq, dv, M)]
    for method in METHODS:
        found = evaluated(mbs.forward_dynamics, traced, q, v, tau, W, method=method)
        assert_accelerations(found, a, expected[2], 1e-9, method)
    derivatives = evaluated(mbs.inverse_dynamics_derivatives, m, q, v, a, W)
    for found, by in zip(derivatives, expected, strict=True):
        assert_close(found, by, 1e-10)
    by_q, by_qd, by_tau = evaluated(mbs.forward_dynamics_derivatives, m, q, v, tau, W)
    for found, by in ((by_q, -expected[0]), (by_qd, -expected[1]), (by_tau, np.eye(m.n))):
        assert_close(expected[2] @ found, by, max(1e-8, 1e-15 * np.linalg.cond(expected[2])))
    Y = pin.computeJointTorqueRegressor(t.pin, t.data, pq, pv, pa)
    columns = [10 * (k - 1) + x for k in ids for x in PIN_ORDER]
    found = evaluated(mbs.inverse_dynamics_regressor, m, q, v, a)
    assert_close(found, T.T @ Y[:, columns], 1e-11)


@with_groups
def test_configurations_of_pinocchio(t):
    t = twin(t)
    m, T = t.model, t.T
    (q, v, _), (pq, pv, _) = t.state(3)
    q2 = m.random_state(4).q
    assert_close(t.q(mbs.displaced(m, q, v)), pin.integrate(t.pin, pq, pv), 1e-13)
    d = mbs.difference(m, q, q2)
    assert_close(T @ d, pin.difference(t.pin, pq, t.q(q2)), 1e-12)
    assert_close(mbs.difference(m, mbs.displaced(m, q, d), q2), np.zeros(m.n), 1e-12)
    h = 1e-6
    slope = (mbs.displaced(m, q, h * v) - mbs.displaced(m, q, -h * v)) / (2 * h)
    assert_close(mbs.position_rates(m, q, v), slope, 1e-8)


def along(function, model, q, direction):
    """Return the derivative of ``function(tree, q)`` along g exp(S d), by Taylor series."""
    tree = Tree(model)
    rest = np.zeros(model.n)
    course = tree.position_series([q, direction, rest])
    if model.nq == model.n and not hasattr(course, "now"):
        course = series_of([q, direction])
    return np.asarray(derivative_of(function(tree, course), 1), dtype=float)


def columns(function, model, q):
    """Return the derivatives by all columns, on the last axis."""
    return np.stack([along(function, model, q, e) for e in np.eye(model.n)], axis=-1)


@pytest.mark.long
@pytest.mark.parametrize("seed", mostly_slow(range(3), [0]))
def test_derivatives_along_the_groups(seed):
    m = mixed(seed, MIXED if seed else MIXED[:4]).model
    q, v, _ = m.random_state(seed)
    M = columns(lambda tree, x: mbs.mass_matrix(tree, x, representation="body_fixed"), m, q)
    C = evaluated(mbs.coriolis_matrix, m, q, v)
    assert_close(C + C.T, M @ v, 1e-12, "Mdot - 2 C is skew-symmetric")
    assert_close(evaluated(mbs.christoffel_symbols, m, q) @ v, C, 1e-12)
    U = columns(lambda tree, x: mbs.potential_energy(tree, x), m, q)
    assert_close(evaluated(mbs.gravity_torques, m, q), U, 1e-12)
    body = max(m.body_names, key=lambda name: len(Tree(m).path(m.frames[name].body)))
    for rep in REPRESENTATIONS:
        same = {"body": body, "representation": rep}

        def J(tree, x, same=same):
            return mbs.jacobian(tree, x, **same)

        H = evaluated(mbs.kinematic_hessian, m, q, **same)
        assert_close(H, columns(J, m, q), 1e-12, rep)
        first = [evaluated(mbs.jacobian_derivative, m, q, joints=(k,), **same) for k in range(m.n)]
        assert_close(np.stack(first, axis=-1), H, 1e-12, rep)
        for k, j in ((3, 0), (m.n - 1, m.n - 2), (m.n - 2, 2), (7, 8), (8, 7)):

            def dJ(tree, x, k=k, same=same):
                return mbs.jacobian_derivative(tree, x, joints=(k,), **same)

            second = evaluated(mbs.jacobian_derivative, m, q, joints=(k, j), **same)
            assert_close(second, along(dJ, m, q, np.eye(m.n)[j]), 1e-12, (rep, k, j))


def test_jacobian_derivative_takes_names_of_velocities():
    m = mixed(2, ("free", "revolute")).model
    q, body, names = m.random_state(1).q, m.body_names[-1], velocity_names(m.joints)
    assert names[0].endswith("[0]")
    for k in (0, 6):
        by_name = evaluated(mbs.jacobian_derivative, m, q, body=body, joints=(names[k],))
        assert_close(by_name, evaluated(mbs.jacobian_derivative, m, q, body=body, joints=(k,)), 0.0)
    with pytest.raises(mbs.errors.UnknownJointError, match=re.escape(names[0])):
        mbs.jacobian_derivative(m, q, body, (m.joint_names[0],))


@pytest.mark.long
def test_linearization_predicts_neighbouring_motions():
    m = mixed(2, ("free", "revolute", "spherical", "planar")).model
    q, v, tau = m.random_state(2)
    A, B = mbs.linearize(m, q, v, tau)
    rng = np.random.default_rng(3)
    dq, dv, dtau = rng.normal(size=(3, m.n))
    h, size = 1e-5, 1e-5

    def after(q, v, tau):
        half = v + 0.5 * h * mbs.forward_dynamics(m, q, v, tau)
        q = mbs.displaced(m, q, h * half)
        return q, v + h * mbs.forward_dynamics(m, q, half, tau)

    def ahead(sign):
        e = sign * size
        return after(mbs.displaced(m, q, e * dq), v + e * dv, tau + e * dtau)

    (q1, v1), (q0, v0) = ahead(1.0), ahead(-1.0)
    middle, _ = after(q, v, tau)
    found = mbs.difference(m, middle, q1) - mbs.difference(m, middle, q0)
    now = np.concatenate([found, v1 - v0]) / (2 * size)
    dx = np.concatenate([dq, dv])
    assert_close((now - dx) / h, A @ dx + B @ dtau, 2e-3)


@pytest.mark.parametrize("kind", ["schoenflies", "planar_screw", "planar_translation", "planar"])
def test_other_subgroups_of_table_1(kind):
    """Torques are the rate of the momentum; displacements follow velocities."""
    takes = {"pitch": 0.2} if kind == "planar_screw" else {}
    if kind == "planar_translation":
        takes["axes"] = [[1, 0, 0], [0.6, 0.8, 0]]
    axis = np.array([0.36, 0.48, 0.8])
    if kind != "planar_translation":
        takes["axis"] = axis
    rng = np.random.default_rng(0)
    M = mbs.spatial_inertia(2.0, (0.1, 0.2, -0.1), np.diag([0.2, 0.3, 0.4]))
    motion = joint(kind, **takes)
    link = dict(M_body=M, S_parent=pose(rng), S_body=pose(rng))
    m = mbs.Model.from_joints(
        [
            Connection(name="a", joint=motion, body="A", **link),
            Connection(name="b", joint=joint("spherical"), body="B", parent="A", **link),
            Connection(name="c", joint=motion, body="C", parent="B", **link),
        ]
    )
    assert m.velocities("b") == slice(motion.nv, motion.nv + 3)
    q, v, a = m.random_state(1)
    h = 1e-5
    slope = (mbs.displaced(m, q, h * v) - mbs.displaced(m, q, -h * v)) / (2 * h)
    assert_close(mbs.position_rates(m, q, v), slope, 1e-9)
    d = mbs.difference(m, q, m.random_state(2).q)
    assert_close(mbs.difference(m, q, mbs.displaced(m, q, d)), d, 1e-12)
    C, Cd = (mbs.forward_kinematics(m, mbs.displaced(m, q, s * h * v)) for s in (1, -1))
    middle = mbs.forward_kinematics(m, q)
    found = [
        mbs.twist_from_rate(x, (y - z) / (2 * h), "body_fixed")
        for x, y, z in zip(middle, C, Cd, strict=True)
    ]
    assert_close(mbs.twists(m, q, v), np.array(found), 1e-8)
    p = [
        mbs.generalized_momentum(m, mbs.displaced(m, q, s * h * v), v + s * h * a).p
        for s in (1, -1)
    ]
    rate = mbs.generalized_momentum(m, q, v).rate
    assert_close(mbs.inverse_dynamics(m, q, v, a), (p[0] - p[1]) / (2 * h) - rate, 1e-7)
    W = mbs.joint_reactions(m, q, v, a)
    for body, reaction in zip(m.bodies, W, strict=True):
        assert_close(body.joint.screws.T @ reaction, np.zeros(body.joint.nv), 1e-11)


def test_quaternions_need_no_unit_length_but_some():
    m = mixed(0, MIXED).model
    q, v, a = m.random_state()
    at = m.positions(next(j.name for j in m.joints if j.kind == "spherical"))
    scaled = q.copy()
    scaled[at] *= -3.0
    assert_close(mbs.inverse_dynamics(m, scaled, v, a), mbs.inverse_dynamics(m, q, v, a), 1e-12)
    assert_close(np.linalg.norm(mbs.displaced(m, scaled, v)[at]), 1.0, 1e-15)
    scaled[at] = 0.0
    name = next(j.name for j in m.joints if j.kind == "spherical")
    with pytest.raises(mbs.SingularError, match=name):
        mbs.inverse_dynamics(m, scaled, v, a)
    with pytest.raises(mbs.ArgumentError, match=name):
        checked_positions(m.joints, "q", scaled)
