# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Robots of example-robot-data, in every representation, by both back ends, are Pinocchio's.

For each of the 68 files that are not empty, up to 101 joints, at three random states:

- poses of all links, those that were merged into others included;
- Jacobians of all leaves and of a merged link;
- torques of motions with applied wrenches.

The equations are traced once for both back ends. Compiling takes most of the time: of robots with
more than 20 bodies, llvm gets the Jacobians of the merged link alone.

All but the robots in REPRESENTATIVE are slow cases.

Differences are measured as in :func:`reference.assert_close`, and the bound is 1e-10. Each kernel
is called with all states at once and with a single one.

Pinocchio lets mimic joints be free here, because it can follow only some of those in these files:
its velocities are T qd, so that torques are T^T tau, and Jacobians J T. Where Pinocchio can follow,
it is asked as well.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from cases import mostly_slow
from reference import assert_close
from robots import NAMELESS, all_files
from robots import robot as robot_file
from twins import Twin
from urdf_reference import load, pin_positions

import mbs_dynamics as mbs
from mbs_dynamics.model.orders import leaves

pytestmark = pytest.mark.backend_independent  # all is evaluated by both, whatever is set

ROBOTS = {name: path for name, path in all_files().items() if name not in NAMELESS}
BACKENDS = ("python", "llvm")
MANY = 20
STATES = 3
REPRESENTATIVE = (
    "allegro_hand_description/urdf/allegro_left_hand.urdf",  # branches
    "iris_description/robots/iris_simple.urdf",  # nothing moves
    "panda_description/urdf/panda.urdf",  # prismatic joints, of which one mimics the other
    "talos_data/robots/talos_full_v2.urdf",  # more than MANY bodies, mimic joints
    "ur_description/urdf/ur5_robot.urdf",  # aligned axes
)
TOLERANCE = 1e-10
FRAMES = {
    "body_fixed": pin.LOCAL,
    "spatial": pin.WORLD,
    "hybrid": pin.LOCAL_WORLD_ALIGNED,
    "mixed": pin.LOCAL_WORLD_ALIGNED,  # its angular part is turned into the body
}

every_representation = pytest.mark.parametrize("representation", FRAMES)


def angular_first(x):
    """Pinocchio's twists, wrenches and rows of Jacobians have the linear part first."""
    return np.concatenate([x[3:], x[:3]])


class Robot(Twin):
    """A model, that of Pinocchio, and their states."""

    def __init__(self, path):
        super().__init__(load(path), pin.buildModelFromUrdf(str(path)))
        n, nb = self.model.n, self.model.nb
        rng = np.random.default_rng(n)
        q = np.array([self.model.random_state(0).q, *rng.uniform(-2.5, 2.5, (STATES - 1, n))])
        self.state = (q, *rng.uniform(-2.0, 2.0, (2, STATES, n)))
        self.wrenches = rng.uniform(-10.0, 10.0, (STATES, nb, 6))
        """Applied wrenches (moment, force), in the frames of the bodies."""

    def of(self, k):
        """Pinocchio's q, v and a."""
        q, qd, qdd = (x[k] for x in self.state)
        return self.q(q), self.T @ qd, self.T @ qdd

    def backends(self, *, always):
        """Both for a small robot, and for a large one where it matters most."""
        return BACKENDS if always or self.model.nb <= MANY else ("python",)

    def frame(self, name):
        return self.pin.getFrameId(name, pin.BODY)

    def joint(self, body):
        return self.pin.getJointId(body.joint.name)


@pytest.fixture(scope="module", params=mostly_slow(ROBOTS, REPRESENTATIVE))
def robot(request):
    return Robot(ROBOTS[request.param])


def assert_agrees(robot, algorithm, arrays, expected, backends=BACKENDS, **options):
    """The back ends give the expected results for all states at once, and for the first alone."""
    model = robot.model
    kernels = {"python": mbs.compile(algorithm, model, backend="python", **options)}
    if "llvm" in backends:
        defaults = {"gravity": model.gravity, "payload": model.payloads.parameters}
        program = kernels["python"].program  # what compile(..., backend="llvm") would trace again
        kernels["llvm"] = mbs.Kernel(program, backend="llvm", defaults=defaults)
    for backend, kernel in kernels.items():
        assert_close(kernel(*arrays), expected, TOLERANCE, backend)
        single = kernel(*[array[0] for array in arrays])
        assert_close(single, expected[0], TOLERANCE, f"{backend}, one state")
    for cache in (model.compiled.kernels, model.compiled.with_defaults):
        cache.clear()  # or programs of large robots stay in memory


def test_poses_of_all_links(robot):
    links = tuple(robot.model.frames)
    expected = np.zeros((STATES, len(links), 4, 4))
    for k in range(STATES):
        pin.framesForwardKinematics(robot.pin, robot.data, robot.of(k)[0])
        expected[k] = [robot.data.oMf[robot.frame(link)].homogeneous for link in links]
    assert_agrees(robot, mbs.forward_kinematics, robot.state[:1], expected, bodies=links)


@every_representation
def test_jacobians_of_leaves_and_a_merged_link(robot, representation):
    merged = [
        name
        for name, frame in robot.model.frames.items()
        if frame.body >= 0 and not np.array_equal(frame.placement, np.eye(4))
    ]
    links = (*leaves(robot.model), (merged or list(robot.model.frames))[-1])
    for link in links:
        expected = np.zeros((STATES, 6, robot.model.n))
        for k in range(STATES if robot.model.n else 0):  # without columns, Pinocchio crashes
            pin.computeJointJacobians(robot.pin, robot.data, robot.of(k)[0])
            pin.updateFramePlacements(robot.pin, robot.data)
            at = robot.frame(link)
            J = pin.getFrameJacobian(robot.pin, robot.data, at, FRAMES[representation])
            expected[k] = angular_first(J) @ robot.T
            if representation == "mixed":
                expected[k, :3] = robot.data.oMf[at].rotation.T @ expected[k, :3]
        backends = robot.backends(always=link == links[-1])
        options = {"body": link, "representation": representation}
        assert_agrees(robot, mbs.jacobian, robot.state[:1], expected, backends, **options)


@pytest.mark.parametrize("name", ["panda.urdf", "baxter.urdf", "pr2.urdf", "tiago_pro.urdf"])
def test_torques_where_pinocchio_follows_mimic_joints(name):
    model = load(robot_file(name))
    reference = pin.buildModelFromUrdf(str(robot_file(name)), mimic=True)
    data = reference.createData()
    assert reference.nv == model.n
    for seed in range(STATES):
        q, qd, qdd = model.random_state(seed)
        theirs = pin_positions(reference, dict(zip(model.joint_names, q, strict=True)))
        order = [reference.joints[reference.getJointId(j)].idx_v for j in model.joint_names]
        v, a = np.zeros((2, reference.nv))
        v[order], a[order] = qd, qdd
        expected = pin.rnea(reference, data, theirs, v, a)[order]
        kernel = mbs.compile(mbs.inverse_dynamics, model)
        assert_close(kernel(q, qd, qdd), expected, TOLERANCE)
