# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Models with joints of several degrees of freedom, and the same in Pinocchio."""

import numpy as np
import pinocchio as pin
from mechanisms import pose, random_mechanism, with_mimics

from mbs_dynamics import Model
from mbs_dynamics.model.joints import Connection, joint

TO_PIN = {
    "free": np.roll(np.eye(6), 3, axis=0),  # linear part first
    "planar": np.roll(np.eye(3), -1, axis=0),
}
"""Velocities of Pinocchio from ours, where they differ."""

MIXED = ("free", "revolute", "spherical", "planar", "prismatic", "translation", "cylindrical")
"""Kinds of joints that both have."""


AXIAL = ("revolute", "prismatic", "cylindrical")
"""Those about any axis; that of planar ones is z in Pinocchio."""


def _cylinder(axis):
    both = pin.JointModelComposite(pin.JointModelPrismaticUnaligned(axis))
    both.addJoint(pin.JointModelRevoluteUnaligned(axis))
    return both


MOVERS = {
    "free": pin.JointModelFreeFlyer,
    "spherical": pin.JointModelSpherical,
    "planar": pin.JointModelPlanar,
    "translation": pin.JointModelTranslation,
    "revolute": pin.JointModelRevoluteUnaligned,
    "prismatic": pin.JointModelPrismaticUnaligned,
    "cylindrical": _cylinder,
}


class Twin:
    """A model and that of Pinocchio with joints of the same names: v_pin = T v."""

    def __init__(self, model: Model, other: pin.Model) -> None:
        self.model, self.pin, self.data = model, other, other.createData()
        own = [body.joint for body in model.bodies]
        self.joints = [(x, other.joints[other.getJointId(x.name)]) for x in own]
        self.T = np.zeros((other.nv, model.n))
        for ours, theirs in self.joints:
            block = ours.ratio * TO_PIN.get(ours.kind, np.eye(ours.nv))
            self.T[theirs.idx_v : theirs.idx_v + theirs.nv, ours.velocities] = block

    def q(self, q):
        """Return the positions of Pinocchio."""
        found = pin.neutral(self.pin)
        for ours, theirs in self.joints:
            x = ours.ratio * q[self.model.positions(ours)] + ours.offset
            if theirs.nq > len(x):  # an angle by its cosine and sine
                x = np.array([*x[:-1], np.cos(x[-1]), np.sin(x[-1])])
            found[theirs.idx_q : theirs.idx_q + theirs.nq] = x
        return found

    def frame(self, name):
        """Return the number of Pinocchio's frame of a link."""
        of_body = self.pin.existFrame(name, pin.BODY)
        return self.pin.getFrameId(name, pin.BODY if of_body else pin.OP_FRAME)

    def state(self, seed=0):
        """Return a random state of ours, with moderate positions, and that of Pinocchio."""
        q, v, vd = self.model.random_state(seed)
        return (q, v, vd), (self.q(q), self.T @ v, self.T @ vd)


def with_rotors(twin: Twin) -> Twin:
    """Return a twin with an armature of every joint: k numbers for one with k velocities."""
    rng, joints = np.random.default_rng(0), [ours for ours, _ in twin.joints]
    armatures = {x.name: rng.uniform(0.1, 0.5, x.nv if x.nv > 1 else ()) for x in joints}
    found = Twin(twin.model.with_armature(armatures), twin.pin)
    armature = np.zeros(twin.pin.nv)
    for ours, theirs in found.joints:
        own = TO_PIN.get(ours.kind, np.eye(ours.nv)) @ (ours.armature * np.ones(ours.nv))
        armature[theirs.idx_v : theirs.idx_v + theirs.nv] = own
    twin.pin.armature = armature
    return found


def fixed(path) -> Twin:
    """Return a robot of a URDF on a fixed base."""
    return Twin(Model.from_urdf(path), pin.buildModelFromUrdf(str(path)))


def floating(path) -> Twin:
    """Return a robot of a URDF on a floating base."""
    model = Model.from_urdf(path, floating_base=True)
    other = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    other.names[1] = "floating_base"
    return Twin(model, other)


def mixed(seed: int, kinds=MIXED, *, at_body: bool = False) -> Twin:
    """Return a random tree with joints of all these kinds, in random order and places."""
    rng = np.random.default_rng(seed)
    order = [kinds[k] for k in rng.permutation(len(kinds))]
    connections, parents, other = [], [], pin.Model()
    other.gravity.linear = np.array([0.3, -1.0, -9.0])
    for i, kind in enumerate(order):
        axis = np.linalg.qr(rng.normal(size=(3, 3)))[0][0]
        S_parent, S_body = pose(rng), np.eye(4) if at_body else pose(rng)
        path = [i - 1]  # numbered depth first, as Pinocchio takes for granted
        while path[-1] >= 0:
            path.append(parents[path[-1]])
        parent = path[0] if rng.random() < 0.6 else int(rng.choice(path))
        parents.append(parent)
        m, c = rng.uniform(0.5, 2.0), rng.uniform(-0.2, 0.2, 3)
        points = rng.normal(scale=0.3, size=(4, 3))
        tensor = m / 4 * sum(x @ x * np.eye(3) - np.outer(x, x) for x in points)
        inertia = pin.Inertia(m, c, tensor)
        motion = joint(kind, **{"axis": axis} if kind in AXIAL else {})
        mover = MOVERS[kind](axis) if kind in AXIAL else MOVERS[kind]()
        above = 0 if parent < 0 else other.getJointId(f"joint{parent}")
        place = connections[parent].S_body if parent >= 0 else np.eye(4)
        home = pin.SE3(np.linalg.inv(place) @ S_parent)
        k = other.addJoint(above, mover, home, f"joint{i}")
        other.appendBodyToJoint(k, inertia, pin.SE3.Identity())
        at = pin.SE3(np.linalg.inv(S_body))
        other.addFrame(pin.Frame(f"body{i}", k, at, pin.FrameType.OP_FRAME))
        turn = np.kron([[0, 1], [1, 0]], np.eye(3))  # angular part first
        M = turn @ at.inverse().act(inertia).matrix() @ turn
        given = {"name": f"joint{i}", "joint": motion, "body": f"body{i}", "M_body": M}
        on = {"parent": f"body{parent}" if parent >= 0 else None, "S_parent": S_parent}
        connections.append(Connection(**given, **on, S_body=S_body))
    model = Model.from_joints(connections, gravity=other.gravity.linear)
    return Twin(model, other)


def tree(name):
    """Return a tree with "mimics", or one of "mixed0" and on."""
    if name == "mimics":
        driven = (0, 1, 2, 1, 3, 2), (1.0, 1.0, 1.0, -0.7, 1.0, 2.0), np.zeros(6)
        return with_mimics(random_mechanism(3, (-1, 0, 1, 1, 3, 0)), *driven).model
    return mixed(int(name.removeprefix("mixed"))).model
