# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Three arms for the tests of inverse kinematics, with Pinocchio's numbers, and a planar one."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pinocchio as pin
import pytest
from cases import mostly_slow
from mechanisms import rotation
from robots import robot
from twins import Twin
from urdf_reference import chain, load

from mbs_dynamics.model.joint import Limits
from mbs_dynamics.resources import robot_path

ARMS = {"panda": "panda_hand", "ur5_robot": "tool0", "arm7": "link7"}
"""Robots by name, and the link that is taken for the hand."""

LOCAL = {"body_fixed": pin.LOCAL, "spatial": pin.WORLD, "hybrid": pin.LOCAL_WORLD_ALIGNED}

every_arm = pytest.mark.parametrize("name", mostly_slow(ARMS, ["panda", "ur5_robot"]))


def path_of(name):
    return robot_path(name) if name == "arm7" else robot(f"{name}.urdf")


@lru_cache
def model_of(name):
    return load(path_of(name))


class Pinocchio:
    """Pinocchio's poses and Jacobians of the hand of an arm, for our coordinates."""

    def __init__(self, name):
        self.twin = Twin(model_of(name), pin.buildModelFromUrdf(str(path_of(name))))
        self.frame = self.twin.frame(ARMS[name])

    def poses(self, q):
        found, t = [], self.twin
        for each in np.reshape(q, (-1, np.shape(q)[-1])):
            pin.framesForwardKinematics(t.pin, t.data, t.q(each))
            found.append(t.data.oMf[self.frame].homogeneous)
        return np.array(found).reshape(*np.shape(q)[:-1], 4, 4)

    def jacobian(self, q, representation="body_fixed"):
        """Angular rows first."""
        t, local = self.twin, LOCAL[representation]
        J = pin.computeFrameJacobian(t.pin, t.pin.createData(), t.q(q), self.frame, local)
        return J[[3, 4, 5, 0, 1, 2]] @ t.T


def reachable(model, count, seed):
    """Random positions within the limits."""
    low, high = np.maximum(model.lower, -np.pi), np.minimum(model.upper, np.pi)
    return np.random.default_rng(seed).uniform(low, high, (count, model.n))


def assert_within(model, q):
    assert np.isfinite(q).all()
    assert (q >= model.lower).all()
    assert (q <= model.upper).all()


def planar(*links, lower="-3", upper="3"):
    """An arm in the x-y plane with joints j0, j1, ... between these lengths; see tip_of."""
    axis = f'<axis xyz="0 0 1"/><limit lower="{lower}" upper="{upper}" velocity="1" effort="1"/>'
    joints = []
    for k, x in enumerate((0.0, *links[:-1])):
        joints.append((f"j{k}", "revolute", f'<origin xyz="{x} 0 0"/>{axis}'))
    return load(chain(*joints, ("tip", "fixed", f'<origin xyz="{links[-1]} 0 0"/>')))


def with_limits(model, limits):
    """The model whose joints have these limits, by name."""
    bodies = [
        replace(body, joint=replace(body.joint, limits=limits.get(body.joint.name, Limits())))
        for body in model.bodies
    ]
    return replace(model, bodies=tuple(bodies))


def tip_of(model):
    """The link at the end of a planar arm, merged into the last body."""
    return "abcdefgh"[model.n + 1]


def random_poses(count, size, seed):
    """Poses anywhere in a box, most of them out of reach in one way or another."""
    rng = np.random.default_rng(seed)
    C = np.tile(np.eye(4), (count, 1, 1))
    C[:, :3, :3] = [rotation(rng) for _ in range(count)]
    C[:, :3, 3] = rng.uniform(-size, size, (count, 3))
    return C


def angle_of(R):
    """The angle of rotations, accurate to 1e-15 for small ones."""
    return 2.0 * np.arcsin(np.minimum(np.linalg.norm(R - np.eye(3), axis=(-2, -1)) / 8**0.5, 1.0))


def assert_reached(C, target, tolerance):
    """Poses are within the tolerance of the search, and a little for the other arithmetic."""
    turned = np.swapaxes(C[..., :3, :3], -1, -2) @ target[..., :3, :3]
    assert angle_of(turned).max() <= tolerance + 1e-12
    assert np.linalg.norm(C[..., :3, 3] - target[..., :3, 3], axis=-1).max() <= tolerance + 1e-12
