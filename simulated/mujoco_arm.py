# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""An arm in MuJoCo that can be held, guided, pushed and let go, and the record of its motion.

It does not use ROS. Benchmarks and tests of gravity compensation share it.
"""

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

STEP = 0.001
"""Seconds of one step of the simulation."""

RIGID = 1e6
"""Inertia that is added to a joint whose motion is prescribed, kg m^2: torques do not move it."""

POSITION_LOOP = 50.0
"""Natural frequency of the position loop, rad/s; it is critically damped."""

POSTURES = {
    "arm7": (0.3, 0.5, -0.2, 1.1, 0.1, 0.7, 0.1),
    "Panda": (0.2, -0.6, 0.3, -2.0, 0.1, 1.6, 0.7),
    "UR5": (0.2, -1.0, 1.2, -0.8, 0.5, 0.1),
}
"""A bent posture of each arm, in which gravity loads its joints; rad."""


class Load(NamedTuple):
    """A ball that an arm carries at the origin of a link."""

    link: str
    mass: float


def bare(path: str | Path) -> str:
    """Return a URDF of torque motors alone: no friction, no fingers that move, no meshes."""
    root = ElementTree.parse(path).getroot()
    for joint in root.iter("joint"):
        if joint.get("type") == "prismatic":
            joint.set("type", "fixed")
        for tag in ("mimic", "dynamics", "safety_controller", "calibration"):
            for element in joint.findall(tag):
                joint.remove(element)
    for link in root.iter("link"):
        for tag in ("visual", "collision"):
            for element in link.findall(tag):
                link.remove(element)
    return ElementTree.tostring(root, encoding="unicode")


def compiled(text: str, load: Load | None = None) -> mujoco.MjModel:
    """Return MuJoCo's model of a URDF, without contacts, with a load that is welded to a link."""
    spec = mujoco.MjSpec.from_string(text)
    if load is not None:
        ball = spec.body(load.link).add_body()
        ball.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[1e-3, 0, 0], mass=load.mass)
    model = spec.compile()
    model.opt.timestep = STEP
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    return model


class Statics:
    """Gravity torques and energies of a model; changes no simulation."""

    def __init__(self, model: mujoco.MjModel) -> None:
        self.model = model
        self._data = mujoco.MjData(model)

    def _place(self, q: FloatArray) -> None:
        self._data.qpos[:] = q
        self._data.qvel[:] = 0.0
        mujoco.mj_kinematics(self.model, self._data)
        mujoco.mj_comPos(self.model, self._data)
        mujoco.mj_comVel(self.model, self._data)

    def gravity(self, q: FloatArray) -> FloatArray:
        """Return the torques (n,) that hold the arm at q (n,), in N m."""
        self._place(q)
        torques = np.zeros(self.model.nv)
        mujoco.mj_rne(self.model, self._data, 0, torques)
        return torques

    def mass_matrix(self, q: FloatArray) -> FloatArray:
        """Return the mass matrix (n, n) at q (n,)."""
        self._place(q)
        mujoco.mj_crb(self.model, self._data)
        full = np.zeros((self.model.nv, self.model.nv))
        mujoco.mj_fullM(self.model, self._data, full)
        return full

    def inertias(self, q: FloatArray) -> FloatArray:
        """Return the inertia (n,) that each joint moves while the others are free, kg m^2."""
        return 1.0 / np.diag(np.linalg.inv(self.mass_matrix(q)))

    def kinetic_energy(self, q: FloatArray, qd: FloatArray) -> float:
        """Return the kinetic energy at q, qd (n,), in J."""
        return float(0.5 * qd @ self.mass_matrix(q) @ qd)


class MujocoArm:
    """An arm with torque motors under MuJoCo, whose joints can be held and guided.

    Parameters: ``text`` is a URDF; ``friction`` and ``damping`` (n,) act in its joints, in N m and
    N m s/rad. The motors apply :attr:`command`, or what the position loop asks for while it is on.
    """

    def __init__(
        self,
        text: str,
        load: Load | None = None,
        friction: ArrayLike = 0.0,
        damping: ArrayLike = 0.0,
    ) -> None:
        self.model = compiled(text, load)
        self.statics = Statics(compiled(text, load))
        self.model.dof_frictionloss[:] = friction
        self.model.dof_damping[:] = damping
        self.data = mujoco.MjData(self.model)
        self.names = [self.model.joint(k).name for k in range(self.model.njnt)]
        self.n = self.model.nv
        self.command = np.zeros(self.n)
        self.exerted = np.zeros(self.n)
        """(n,) torques of the motors, in N m."""
        self.loop: FloatArray | None = None
        """(n,) where the position loop holds the arm; None while it is off."""
        self._prescribed: dict[int, float] = {}
        self._push_until = 0.0

    @property
    def q(self) -> FloatArray:
        """(n,) the positions."""
        return self.data.qpos

    @property
    def qd(self) -> FloatArray:
        """(n,) the velocities."""
        return self.data.qvel

    def place(self, q: ArrayLike) -> None:
        """Put the arm somewhere, at rest."""
        self.data.qpos[:] = q
        self.data.qvel[:] = 0.0
        self.data.qacc_warmstart[:] = 0.0

    def lock(self, joints: Sequence[int] | None = None) -> None:
        """Hold joints where they are, all by default, as brakes do."""
        self.guide(dict.fromkeys(range(self.n) if joints is None else joints, 0.0))

    def guide(self, velocities: Mapping[int, float]) -> None:
        """Move joints at these velocities in rad/s, whatever their torque, as a strong hand does.

        The other joints stay as they are: held, guided or free.
        """
        self._prescribed |= velocities
        for k, velocity in velocities.items():
            self.model.dof_armature[k] = RIGID
            self.data.qvel[k] = velocity

    def let_go(self, joints: Sequence[int] | None = None) -> None:
        """Leave joints to their torques, all by default. They keep their velocities."""
        for k in range(self.n) if joints is None else joints:
            self._prescribed.pop(k, None)
            self.model.dof_armature[k] = 0.0

    def hold(self) -> None:
        """Let a position loop hold the arm where it is, instead of what is commanded."""
        self.loop = self.data.qpos.copy()

    def release(self) -> None:
        """Switch the position loop off. Its last torque stays until the next command."""
        self.command, self.loop = self.exerted.copy(), None

    def push(self, link: str, force: Sequence[float], seconds: float) -> None:
        """Push at a link's centre of mass with a force (3,) in N, in the world's directions."""
        self.data.xfrc_applied[self.model.body(link).id, :3] = force
        self._push_until = self.data.time + seconds

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        for _ in range(round(seconds / STEP)):
            self.exerted = self.command if self.loop is None else self._held(self.loop)
            self.data.qfrc_applied[:] = self.exerted
            before = {k: self.data.qpos[k] for k in self._prescribed}
            mujoco.mj_step(self.model, self.data)
            for k, velocity in self._prescribed.items():
                self.data.qpos[k] = before[k] + STEP * velocity
                self.data.qvel[k] = velocity
            if self._push_until and self.data.time >= self._push_until:
                self.data.xfrc_applied[:] = 0.0
                self._push_until = 0.0

    def _held(self, goal: FloatArray) -> FloatArray:
        w = POSITION_LOOP
        wanted = w * w * (goal - self.q) - 2.0 * w * self.qd
        return self.statics.mass_matrix(self.q) @ wanted + self.statics.gravity(self.q)
