# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Statements of the pages on frames and on other libraries, run with those that are installed.

Pinocchio and MuJoCo run in the code of the pages. The libraries here are no test dependencies: nox
installs them.
"""

import numpy as np
import pytest

import mbs_dynamics as mbs
from mbs_dynamics.model.dh import DHRow, DHTable
from mbs_dynamics.resources import robot_path

pytestmark = pytest.mark.slow

URDF = robot_path("arm7")
ARM = mbs.Model.from_urdf(URDF)
Q = np.array([0.3, 0.5, -0.2, 1.1, 0.0, 0.7, 0.1])
QD = np.array([0.4, -0.2, 0.6, 0.1, 0.3, -0.5, 0.2])
QDD = np.array([1.0, 0.2, 0.3, -0.4, 0.5, 0.6, -0.7])
DAMPING = np.array([0.8, 0.8, 0.5, 0.5, 0.3, 0.2, 0.15])
SWAP = [3, 4, 5, 0, 1, 2]
POSE = mbs.forward_kinematics(ARM, Q, bodies=["tool"])[0]


def same(theirs, ours, atol=1e-9):
    np.testing.assert_allclose(np.asarray(theirs, float), ours, rtol=0, atol=atol)


def jacobian(representation):
    return mbs.jacobian(ARM, Q, "tool", representation=representation)


def twist(representation):
    return mbs.twists(ARM, Q, QD, bodies=["tool"], representation=representation)[0]


def test_statements_about_drake():
    multibody = pytest.importorskip("pydrake.multibody.plant")
    parsing = pytest.importorskip("pydrake.multibody.parsing")
    tree = pytest.importorskip("pydrake.multibody.tree")
    plant = multibody.MultibodyPlant(0.0)
    parsing.Parser(plant).AddModels(str(URDF))
    W = plant.world_frame()
    plant.WeldFrames(W, plant.GetFrameByName("base_link"))
    plant.Finalize()
    context, tool = plant.CreateDefaultContext(), plant.GetFrameByName("tool")
    plant.SetPositions(context, Q)
    plant.SetVelocities(context, QD)
    forces = tree.MultibodyForces(plant)
    weightless = mbs.inverse_dynamics(ARM.with_gravity((0, 0, 0)), Q, QD, QDD)
    same(plant.CalcInverseDynamics(context, QDD, forces), weightless)
    plant.CalcForceElementsContribution(context, forces)
    damped = mbs.inverse_dynamics(ARM, Q, QD, QDD) + DAMPING * QD
    same(plant.CalcInverseDynamics(context, QDD, forces), damped)
    same(plant.CalcGravityGeneralizedForces(context), -mbs.gravity_torques(ARM, Q))
    same(plant.CalcBiasTerm(context), mbs.coriolis_torques(ARM, Q, QD))
    same(plant.CalcMassMatrix(context), mbs.mass_matrix(ARM, Q))
    same(tool.CalcPoseInWorld(context).GetAsMatrix4(), POSE)
    V = tool.CalcSpatialVelocity(context, W, W)
    same(V.get_coeffs(), twist("hybrid"))
    same(tool.CalcSpatialVelocity(context, W, tool).get_coeffs(), twist("body_fixed"))
    same(V.Shift(-POSE[:3, 3]).get_coeffs(), twist("spatial"))
    of = (context, tree.JacobianWrtVariable.kV, tool, np.zeros(3), W, W)
    same(plant.CalcJacobianSpatialVelocity(*of), jacobian("hybrid"))
    rate = mbs.jacobian_rate(ARM, Q, QD, "tool", representation="hybrid")
    same(plant.CalcBiasSpatialAcceleration(*of).get_coeffs(), rate @ QD)


def test_statements_about_adam():
    adam = pytest.importorskip("adam")
    computations = pytest.importorskip("adam.numpy").KinDynComputations
    model = computations(str(URDF), list(ARM.joint_names), gravity=np.array([0, 0, -9.81, 0, 0, 0]))
    names = {"BODY_FIXED": "body_fixed", "INERTIAL_FIXED": "spatial", "MIXED": "hybrid"}
    for name, ours in names.items():
        model.set_frame_velocity_representation(
            getattr(adam.Representations, f"{name}_REPRESENTATION")
        )
        same(model.jacobian("tool", np.eye(4), Q)[SWAP, 6:], jacobian(ours))
        theirs = model.jacobian_dot("tool", np.eye(4), Q, np.zeros(6), QD)[SWAP, 6:]
        rate = mbs.jacobian_rate(ARM, Q, QD, "tool", representation=ours)
        same(theirs @ QD, rate @ QD)
        assert abs(theirs - rate).max() > 0.1
    same(model.gravity_term(np.eye(4), Q)[6:], mbs.gravity_torques(ARM, Q))


ROWS = [
    DHRow(0.05, 0.33, -1.57, mass=3, com=(0.01, 0.02, -0.1), inertia_at_com=0.02 * np.eye(3)),
    DHRow(0.4, 0.1, 0.3, -1.5, 2, com=(0.2, 0, 0), inertia_at_com=0.03 * np.eye(3)),
    DHRow(0.1, 0.02, 1.5, mass=1, com=(0.1, 0, 0), inertia_at_com=0.01 * np.eye(3)),
    DHRow(0.01, 0.4, -1.5),
    DHRow(0.0, 0.05, 1.5),
    DHRow(0.02, 0.06, 0.1, mass=0.5, com=(0, 0, 0.1), inertia_at_com=0.01 * np.eye(3)),
]
"""Lengths a and d, the angles alpha and perhaps theta, and masses."""


@pytest.mark.parametrize("convention", ["classical", "modified"])
def test_statements_about_robotics_toolbox(convention):
    toolbox = pytest.importorskip("roboticstoolbox")
    arm = mbs.Model.from_dh(DHTable(rows=tuple(ROWS), convention=convention))
    link = toolbox.RevoluteDH if convention == "classical" else toolbox.RevoluteMDH
    robot = toolbox.DHRobot([
        link(a=r.a, d=r.d, alpha=r.alpha, offset=r.theta, m=r.mass, r=r.com or np.zeros(3),
             I=np.zeros((3, 3)) if r.com is None else r.inertia_at_com)
        for r in ROWS
    ], gravity=[0, 0, -9.81])  # fmt: skip
    q, qd, qdd = Q[:6], QD[:6], QDD[:6]
    pose = mbs.forward_kinematics(arm, q, bodies=["tool"])[0]
    same(robot.fkine(q).A, pose)
    hybrid = mbs.jacobian(arm, q, "tool", representation="hybrid")
    same(robot.jacob0(q)[SWAP], hybrid)
    same(robot.jacobe(q)[SWAP], mbs.jacobian(arm, q, "tool", representation="body_fixed"))
    rate = mbs.jacobian_rate(arm, q, qd, "tool", representation="hybrid")
    same(robot.jacob0_dot(q, qd)[SWAP], rate)
    hessian = mbs.kinematic_hessian(arm, q, "tool", representation="hybrid")
    same(robot.hessian0(q)[:, SWAP].transpose(1, 2, 0), hessian)
    same(robot.rne(q, qd, qdd), mbs.inverse_dynamics(arm, q, qd, qdd))
    same(robot.gravload(q), mbs.gravity_torques(arm, q))
    same(robot.inertia(q), mbs.mass_matrix(arm, q))
    same(robot.coriolis(q, qd), mbs.coriolis_matrix(arm, q, qd))
    same(robot.manipulability(q), mbs.manipulability(arm, q, "tool"))
    torques = mbs.inverse_dynamics(arm, q, qd, qdd)
    same(robot.accel(q, qd, torques), mbs.forward_dynamics(arm, q, qd, torques), atol=1e-7)
    one, G, B, Tc = robot.links[1], -50.0, 2e-3, 0.4  # at the motor there, at the joint here
    one.Jm, one.G, one.B, one.Tc = 1e-4, G, B, Tc
    rows = list(ROWS)
    rows[1] = rows[1]._replace(
        motor_inertia=1e-4, gear_ratio=G, damping=G**2 * B, friction=abs(G) * Tc
    )
    driven = mbs.Model.from_dh(DHTable(rows=tuple(rows), convention=convention))
    resisted = driven.damping * qd + driven.friction * np.sign(qd)
    same(robot.rne(q, qd, qdd), mbs.inverse_dynamics(driven, q, qd, qdd) + resisted)
    same(robot.inertia(q), mbs.mass_matrix(driven, q))
    robot.payload(2.0, [0.1, 0.2, 0.05])
    same(robot.gravload(q), mbs.gravity_torques(arm.with_payload("tool", 2.0, (0.1, 0.2, 0.05)), q))


def test_statements_about_modern_robotics():
    modern = pytest.importorskip("modern_robotics")
    poses = mbs.forward_kinematics(ARM, np.zeros(7), bodies=["tool"])[0]
    space = mbs.jacobian(ARM, np.zeros(7), "tool", representation="spatial")
    body = mbs.jacobian(ARM, np.zeros(7), "tool", representation="body_fixed")
    same(modern.FKinSpace(poses, space, Q), POSE)
    same(modern.JacobianSpace(space, Q), jacobian("spatial"))
    same(modern.JacobianBody(body, Q), jacobian("body_fixed"))
