# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Random mechanisms for the tests, as plain numbers and as models.

A :class:`Mechanism` holds the numbers from which a model is made. References compute with these,
so that what the package does to them on the way is tested as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from cases import mostly_slow

from mbs_dynamics import Model

KINDS = ("revolute", "prismatic", "screw")
GROUND = -1


@dataclass(frozen=True, eq=False)
class Mechanism:
    """A tree of bodies. Position of joint i: ``ratio[i] * q[coordinate[i]] + offset[i]``."""

    parents: tuple[int, ...]
    homes: Any
    """(nb, 4, 4) pose relative to the parent at joint position zero."""
    screws: Any
    """(nb, 6) in the frames of the bodies, angular part first."""
    masses: Any
    coms: Any
    """(nb, 3)"""
    tensors: Any
    """(nb, 3, 3) about the centres of mass."""
    gravity: Any
    coordinate: tuple[int, ...]
    ratio: Any
    offset: Any

    @property
    def nb(self) -> int:
        return len(self.parents)

    @property
    def n(self) -> int:
        return max(self.coordinate) + 1

    @property
    def inertias(self) -> Any:
        """(nb, 6, 6): over the mass, the integrals of (-p~ 1)^T (-p~ 1), p from the origin."""
        M = np.zeros((self.nb, 6, 6))
        for i, (m, c, tensor) in enumerate(zip(self.masses, self.coms, self.tensors, strict=True)):
            c_hat = np.cross(np.eye(3), c)  # the rows e_k x c make up c~
            M[i, :3, :3] = tensor + m * (c @ c * np.eye(3) - np.outer(c, c))
            M[i, :3, 3:], M[i, 3:, :3], M[i, 3:, 3:] = m * c_hat, m * c_hat.T, m * np.eye(3)
        return M

    @cached_property
    def model(self) -> Model:
        """The model, its bodies named body1, body2, ..., its joints joint1, joint2, ..."""
        numbers = self.parents, self.homes, self.screws, self.inertias
        made = Model.from_screws(*numbers, frame="body_fixed", gravity=self.gravity)
        if self.coordinate == tuple(range(self.nb)):
            return made
        owner = {k: f"joint{self.coordinate.index(k) + 1}" for k in range(self.n)}
        bodies = []
        for i, body in enumerate(made.bodies):
            k = self.coordinate[i]
            mimics = None if self.coordinate.index(k) == i else owner[k]
            numbers = {"ratio": float(self.ratio[i]), "offset": float(self.offset[i])}
            joint = replace(body.joint, coordinate=k, mimics=mimics, **numbers)
            bodies.append(replace(body, joint=joint))
        return Model(made.name, tuple(bodies), self.gravity)


def rotation(rng: np.random.Generator) -> Any:
    """Return a rotation matrix, uniformly distributed."""
    w, x, y, z = (v := rng.normal(size=4)) / np.linalg.norm(v)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def pose(rng: np.random.Generator) -> Any:
    """Return a random pose (4, 4), some decimetres from the origin."""
    C = np.eye(4)
    C[:3, :3], C[:3, 3] = rotation(rng), rng.uniform(-0.5, 0.5, 3)
    return C


def aligned_pose(rng: np.random.Generator) -> Any:
    """Return a pose turned by right angles and moved along one axis: full of zeros and ones."""
    C = np.eye(4)
    turn = np.eye(3)[rng.permutation(3)] * rng.choice([-1.0, 1.0], 3)
    C[:3, :3] = turn * np.linalg.det(turn)
    C[rng.integers(3), 3] = rng.uniform(0.1, 0.5)
    return C


def screw(rng: np.random.Generator, kind: str) -> Any:
    """Return a unit screw whose axis passes the origin of the body frame at some distance."""
    e = rotation(rng)[:, 0]
    if kind == "prismatic":
        return np.array([0.0, 0.0, 0.0, *e])
    pitch = rng.uniform(0.05, 0.2) * rng.choice([-1.0, 1.0]) if kind == "screw" else 0.0
    return np.array([*e, *(np.cross(rng.uniform(-0.3, 0.3, 3), e) + pitch * e)])


def aligned_screw(rng: np.random.Generator, kind: str) -> Any:
    """Return a unit screw along an axis of the body frame, through its origin."""
    e = np.eye(3)[rng.integers(3)] * rng.choice([-1.0, 1.0])
    if kind == "prismatic":
        return np.array([0.0, 0.0, 0.0, *e])
    return np.array([*e, *(0.1 * e if kind == "screw" else 0.0 * e)])


def random_mechanism(
    seed: int,
    parents: Sequence[int],
    kinds: Sequence[str] = KINDS,
    *,
    aligned: bool = False,
    massless: Sequence[int] = (),
) -> Mechanism:
    """Return a mechanism with these parents whose joints have these kinds in turn."""
    rng = np.random.default_rng(seed)
    nb = len(parents)
    masses = rng.uniform(0.5, 3.0, nb)
    masses[list(massless)] = 0.0
    tensors = np.zeros((nb, 3, 3))
    for i in range(nb):
        points = rng.uniform(-0.2, 0.2, (5, 3))  # tensors of real bodies: of five equal points
        points -= points.mean(axis=0)
        for p in points:
            tensors[i] += masses[i] / 5 * (p @ p * np.eye(3) - np.outer(p, p))
    make_pose, make_screw = (aligned_pose, aligned_screw) if aligned else (pose, screw)
    homes = np.array([make_pose(rng) for _ in parents])
    screws = np.array([make_screw(rng, kinds[i % len(kinds)]) for i in range(nb)])
    coms, gravity = rng.uniform(-0.2, 0.2, (nb, 3)), rng.uniform(-1.0, 1.0, 3) * 9.81
    coordinates = tuple(range(nb)), np.ones(nb), np.zeros(nb)
    return Mechanism(tuple(parents), homes, screws, masses, coms, tensors, gravity, *coordinates)


def with_mimics(
    mechanism: Mechanism, coordinate: Sequence[int], ratio: Sequence[float], offset: Sequence[float]
) -> Mechanism:
    """Return the mechanism with its joints driven by fewer coordinates."""
    numbers = {"ratio": np.array(ratio), "offset": np.array(offset)}
    return replace(mechanism, coordinate=tuple(coordinate), **numbers)


CHAIN = range(-1, 5)
TREE = (-1, 0, 0, 2, 2, 1, 3)  # not depth first: body 5 hangs on body 1, after those of body 2
FOREST = (-1, -1, 1, 0, 2, -1, 4, 3)

MECHANISMS = {
    "one body": random_mechanism(1, [-1], ["screw"]),
    "revolute chain": random_mechanism(2, CHAIN, ["revolute"]),
    "prismatic chain": random_mechanism(3, CHAIN, ["prismatic"]),
    "screw chain": random_mechanism(4, CHAIN, ["screw"]),
    "tree": random_mechanism(5, TREE),
    "forest": random_mechanism(6, FOREST),
    "aligned tree": random_mechanism(7, TREE, aligned=True, massless=(0, 3)),
    "mimics": with_mimics(
        random_mechanism(8, TREE, ["revolute", "screw", "prismatic", "revolute"]),
        # body 2 owns coordinate 0 and body 1 coordinate 2: q has another order than the bodies
        coordinate=(1, 2, 0, 1, 1, 2, 0),
        ratio=(1.0, 1.0, 1.0, -2.0, 0.5, -1.0, 1.5),
        offset=(0.0, 0.0, 0.0, 0.3, 0.0, -0.4, 1.2),
    ),
}

VARIED = ("forest", "aligned tree", "mimics")
"""Several roots, zeros and ones, joints that share coordinates; each with branches and joints of
every kind. What holds for these holds for the others, by all that the code can tell apart."""

every_mechanism = pytest.mark.parametrize("name", mostly_slow(MECHANISMS, VARIED))
"""For tests of all mechanisms; those that are not varied run with the slow tests."""

_LINK = """
  <link name="{}"><inertial>
    <origin xyz="0.1 -0.2 0.3" rpy="0.4 -0.5 0.6"/> <mass value="2"/>
    <inertia ixx="0.03" ixy="0.001" ixz="-0.002" iyy="0.04" iyz="0.003" izz="0.05"/>
  </inertial></link>"""
_JOINT = """
  <joint name="{}" type="{}"> <parent link="{}"/> <child link="{}"/>
    <origin xyz="0.3 -0.1 0.2" rpy="0.7 -0.8 2.9"/> <axis xyz="0 0.6 -0.8"/>
    <limit lower="-1" upper="2" velocity="1" effort="1"/> </joint>"""
ARM_URDF = f"""<robot name="arm">
{"".join(map(_LINK.format, ["base", "upper", "bracket", "lower", "tool"]))}
{_JOINT.format("shoulder", "revolute", "base", "upper")}
{_JOINT.format("glue", "fixed", "upper", "bracket")}
{_JOINT.format("elbow", "continuous", "bracket", "lower")}
{_JOINT.format("flange", "fixed", "lower", "tool")}
</robot>"""
"""Two moving bodies, to each of which another link is fixed, with a frame that is turned."""

POSITIONS = {
    "zero": lambda rng, n: np.zeros(n),
    "tiny": lambda rng, n: 1e-7 * rng.normal(size=n),
    "generic": lambda rng, n: rng.uniform(-3.0, 3.0, n),
    "near pi": lambda rng, n: rng.choice([-np.pi, np.pi], n) + 1e-7 * rng.normal(size=n),
}
"""Where joints stand: at zero, close to it, anywhere, and close to half a turn."""


def mechanisms_of_their_own():
    """Copies without compiled kernels, as a model keeps those of the back end that came first."""
    return {
        **{name: replace(mechanism) for name, mechanism in MECHANISMS.items()},
        "aligned tree": random_mechanism(30, TREE, aligned=True, massless=(0, 3)),  # not singular
    }
