# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Models from MJCF, read by MuJoCo's own compiler.

Joints and velocities are in MuJoCo's order. Positions and velocities of a joint are:

=========  ==================================  =====================================================
joint      MuJoCo                              here
=========  ==================================  =====================================================
hinge      angle, rate                         the same: revolute
slide      displacement, rate                  the same: prismatic
ball       quaternion w, x, y, z;              spherical: quaternion x, y, z, w;
           angular velocity in the body        the same
free       position, quaternion w, x, y, z;    free: position, quaternion x, y, z, w;
           linear velocity in the world,       twist in the body, angular part first
           angular velocity in the body
=========  ==================================  =====================================================

:func:`mbs_dynamics.to_mujoco` and :func:`mbs_dynamics.from_mujoco` convert states.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, ModelError, missing_extra, quoted
from mbs_dynamics.lie import se3, so3
from mbs_dynamics.model import joints
from mbs_dynamics.model.body import GROUND, Body, Frame, add_inertia
from mbs_dynamics.model.diagnostics import Description, Diagnostic, diagnose
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.joint import Joint, Limits, one_screw
from mbs_dynamics.model.subgroup import Subgroup
from mbs_dynamics.model.urdf_xml import LARGEST_SIZE
from mbs_dynamics.output_files import missing_file

UNSUPPORTED = {"equality": "constraints", "tendon": "tendons", "flex": "soft bodies"}
"""Elements beyond trees of rigid bodies, and what they are."""

JOINTS = ("free", "ball", "slide", "hinge")
"""MuJoCo's joints by their number, ``mjtJoint``."""

XYZW = (1, 2, 3, 0)
"""Entries of a quaternion of MuJoCo in the order of this package."""


def describe(source: Any, leave_out: Collection[str], gravity: ArrayLike | None) -> Description:
    """Return the bodies of an MJCF; see :meth:`mbs_dynamics.Model.from_mjcf`."""
    mujoco = mujoco_module()
    kinds = [leave_out] if isinstance(leave_out, str) else list(leave_out)
    if unknown := [x for x in kinds if x not in UNSUPPORTED]:
        raise ArgumentError(f"leave_out takes {', '.join(UNSUPPORTED)}; got {unknown[0]!r}")
    m = compiled(mujoco, source)
    g = m.opt.gravity if gravity is None else checks.numbers("gravity", gravity, (3,))
    if gravity is None and m.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_GRAVITY:
        g = np.zeros(3)
    return Assembly(mujoco, m).description(g, kinds)


def mujoco_module() -> Any:
    """Return the package mujoco; raise BackendError if it is not installed."""
    try:
        import mujoco
    except ImportError as error:
        raise missing_extra("MJCF needs MuJoCo", "mjcf", error) from error
    return mujoco


def compiled(mujoco: Any, source: Any) -> Any:
    """Return the MjModel of a source, or raise ModelError with the error of MuJoCo."""
    if isinstance(source, mujoco.MjModel):
        return source
    if not isinstance(source, (str, os.PathLike)):
        raise ArgumentError(
            f"source must be a path, MJCF text or a mujoco.MjModel; got {quoted(source)}"
        )
    where = "MJCF"
    try:
        if isinstance(source, str) and source.lstrip().startswith("<"):
            return mujoco.MjModel.from_xml_string(source)
        where = os.fspath(source)
        if not os.path.isfile(where):
            raise ModelError(missing_file(where))
        if where.endswith(".mjb"):
            return mujoco.MjModel.from_binary_path(where)
        return mujoco.MjModel.from_xml_path(where)
    except (ValueError, mujoco.FatalError) as error:
        raise ModelError(f"{where}: MuJoCo does not read it: {error}") from error


def is_mjcf(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is an MJCF by its ending, .mjb, or by its first element, in a .xml."""
    if not os.fspath(path).endswith(".xml"):
        return os.fspath(path).endswith(".mjb")
    with open(path, "rb") as file:
        text = re.sub(rb"<!--.*?-->", b"", file.read(LARGEST_SIZE), flags=re.DOTALL)
    first = re.search(rb"<(\w+)", text)  # after <?xml ...> and <!DOCTYPE ...>
    return first is not None and first[1] == b"mujoco"


class Assembly:
    """The bodies, frames and diagnostics that a compiled model becomes."""

    def __init__(self, mujoco: Any, m: Any) -> None:
        self.mujoco, self.m = mujoco, m
        self.bodies: list[Body] = []
        self.frames = {"world": Frame("world", GROUND, np.eye(4))}
        self.at = [self.frames["world"]]
        """The frame of each body of MuJoCo."""
        self.diagnostics: list[Diagnostic] = []
        self.efforts = self._efforts()
        self.joint_names = {self.name("joint", k) for k in range(m.njnt)}

    def description(self, gravity: FloatArray, leave_out: Collection[str]) -> Description:
        """Return the bodies and frames; raise ModelError for elements beyond trees."""
        self._refuse(leave_out)
        self._report_passive_forces()
        for i in range(1, self.m.nbody):
            self._add(i)
        for k in range(self.m.nsite):
            pose = pose_of(self.m.site_pos[k], self.m.site_quat[k])
            if name := self._stated_name("site", k):
                on = self.at[self.m.site_bodyid[k]]
                while name in self.frames:
                    name += "_site"
                self.frames[name] = Frame(name, on.body, on.placement @ pose, parent=on.name)
        name = self.m.names[: self.m.names.index(b"\0")].decode() or "mechanism"
        if not self.bodies:
            self._report(f"MJCF {name!r}", "has no joint that moves")
        diagnostics = [*self.diagnostics, *diagnose(self.bodies)]
        return Description(name, tuple(self.bodies), np.array(gravity), self.frames, diagnostics)

    def _report(self, subject: str, message: str, severity: str = "warning") -> None:
        self.diagnostics.append(Diagnostic(subject, message, severity))

    # -- bodies and joints -----------------------------------------------------------------------

    def _add(self, i: int) -> None:
        """Add a body with its joints, or merge it into its parent if it has none."""
        m, name = self.m, self.name("body", i)
        on, pose = self.at[m.body_parentid[i]], pose_of(m.body_pos[i], m.body_quat[i])
        R = pose_of(np.zeros(3), m.body_iquat[i])[:3, :3]
        tensor = R @ np.diag(m.body_inertia[i]) @ R.T
        inertia = Inertia.from_com(m.body_mass[i], m.body_ipos[i], tensor)
        first, count = int(m.body_jntadr[i]), int(m.body_jntnum[i])
        home, parent = on.placement @ pose, on.body
        if not count:
            inertia = inertia.transformed(home)
            add_inertia(self.bodies, parent, inertia)
            weld = name
            while weld in self.joint_names:
                weld += "_weld"
            self.joint_names.add(weld)
            self.frames[name] = Frame(name, parent, home, inertia, on.name, weld)
            self.at.append(self.frames[name])
            why = "a mocap body, taken to stand still" if m.body_mocapid[i] >= 0 else "no joint"
            into = "the ground" if parent == GROUND else f"link {self.bodies[parent].name!r}"
            self._report(f"link {name!r}", f"merged into {into}: {why}", "note")
            return
        for k in range(first, first + count):
            joint, home_rel = self._joint(k, home)
            last = k == first + count - 1
            moved = name if last else f"{name}/{joint.name}"
            start = on.name if k == first else None
            self.bodies.append(
                Body(moved, parent, home_rel, joint, inertia if last else Inertia.zero(), start)
            )
            parent, home = len(self.bodies) - 1, np.eye(4)
            self.frames[moved] = Frame(moved, parent, np.eye(4))
        self.at.append(self.frames[name])

    def _joint(self, k: int, home: FloatArray) -> tuple[Joint, FloatArray]:
        """Return joint k, and the pose of its body relative to the parent at position zero."""
        m, name = self.m, self.name("joint", k)
        subject, kind = f"joint {name!r}", JOINTS[m.jnt_type[k]]
        at, e = m.jnt_pos[k], m.jnt_axis[k]
        if kind == "free":
            group, home = joints.joint("free"), np.eye(4)
        elif kind == "ball":
            group = Subgroup("spherical", joints.joint("spherical").basis, se3.pose(np.eye(3), at))
        else:
            X = np.concatenate([e, np.cross(at, e)] if kind == "hinge" else [np.zeros(3), e])
            group = one_screw(subject, X)
            home = home @ se3.exp_screw(X, -m.qpos0[m.jnt_qposadr[k]])  # ref
        limits = Limits(effort=self.efforts.get(k))
        if m.jnt_limited[k] and group.nv == 1:
            lower, upper = m.jnt_range[k].tolist()
            limits = limits._replace(lower=lower, upper=upper)
        elif m.jnt_limited[k]:
            self._report(subject, f"is a {kind} joint, whose range is left out")
        dofs = slice(int(m.jnt_dofadr[k]), int(m.jnt_dofadr[k]) + group.nv)
        armature = m.dof_armature[dofs]
        if kind == "free":
            armature = np.roll(armature, 3)
            if np.ptp(armature[3:]):
                raise ModelError(
                    f"{subject}: the linear armature of a free joint must be the same for all "
                    f"axes; got {armature[3:].tolist()}"
                )
            if armature[3]:  # constant in the world in MuJoCo, in the body here
                message = "has linear armature, which is in M, without its torque a omega x v"
                self._report(subject, message)
        damping, friction = m.dof_damping[dofs], m.dof_frictionloss[dofs]
        for what, values in (("damping", damping), ("friction loss", friction)):
            if np.ptp(values):
                each = f"has the {what} {values.tolist()}"
                self._report(subject, f"{each}; the first is used for all axes")
        joint = Joint(name, group, dofs.start, limits=limits, armature=armature)
        return replace(joint, damping=float(damping[0]), friction=float(friction[0])), home

    def _efforts(self) -> dict[int, float]:
        """Return the force limits of joints: the smallest that the joint or an actuator states."""
        m = self.m
        limited = np.flatnonzero(m.jnt_actfrclimited).tolist()
        efforts = {k: float(np.abs(m.jnt_actfrcrange[k]).max()) for k in limited}
        direct = int(self.mujoco.mjtTrn.mjTRN_JOINT)
        for a in np.flatnonzero(m.actuator_forcelimited).tolist():
            k = int(m.actuator_trnid[a, 0])
            if m.actuator_trntype[a] == direct:
                most = float(np.abs(m.actuator_forcerange[a]).max() * abs(m.actuator_gear[a, 0]))
                efforts[k] = min(efforts.get(k, np.inf), most)
        return efforts

    # -- names, and what is left out -------------------------------------------------------------

    def _stated_name(self, kind: str, k: int) -> str | None:
        number = int(getattr(self.mujoco.mjtObj, f"mjOBJ_{kind.upper()}"))
        name: str | None = self.mujoco.mj_id2name(self.m, number, k)
        return name

    def name(self, kind: str, k: int) -> str:
        """Return the name of an object, or its kind with its number."""
        return self._stated_name(kind, k) or f"{kind}{k}"

    def _refuse(self, leave_out: Collection[str]) -> None:
        """Raise ModelError for elements beyond trees; warn of those that ``leave_out`` names."""
        counts = zip(UNSUPPORTED, (self.m.neq, self.m.ntendon, self.m.nflex), strict=True)
        present = {kind: [self.name(kind, k) for k in range(n)] for kind, n in counts if n}
        refused = [kind for kind in present if kind not in leave_out]
        if refused:
            listed = "; ".join(f"{kind}: {', '.join(present[kind])}" for kind in refused)
            raise ModelError(
                f"MJCF with {' and '.join(UNSUPPORTED[kind] for kind in refused)} is not a tree of "
                f"rigid bodies ({listed}); leave_out={tuple(present)!r} leaves them out"
            )
        for kind, names in present.items():
            self._report_left_out(UNSUPPORTED[kind], names)

    def _report_left_out(self, what: str, names: Collection[str]) -> None:
        if names:
            self._report(f"MJCF {what}", f"left out: {', '.join(names)}")

    def _report_passive_forces(self) -> None:
        m = self.m

        def nonzero(field: str) -> set[int]:  # some fields are new in MuJoCo 3.5
            return set(np.nonzero(np.asarray(getattr(m, field, [])))[0].tolist())

        damped = {int(m.dof_jntid[k]) for k in nonzero("dof_dampingpoly")}
        for what, kind, numbers in (
            ("springs of joints", "joint", nonzero("jnt_stiffness") | nonzero("jnt_stiffnesspoly")),
            ("nonlinear damping of joints", "joint", damped),
            ("gravity compensation of bodies", "body", nonzero("body_gravcomp")),
            ("plugins of bodies", "body", set(np.flatnonzero(m.body_plugin >= 0).tolist())),
        ):
            self._report_left_out(what, [self.name(kind, k) for k in sorted(numbers)])
        fluid = [x for x in ("density", "viscosity") if getattr(m.opt, x)]
        self._report_left_out("forces of a fluid", fluid)


def pose_of(position: FloatArray, quaternion: FloatArray) -> FloatArray:
    """Return the pose (4, 4) of a position and a quaternion w, x, y, z."""
    x = np.array(quaternion)[list(XYZW)]
    return np.asarray(se3.pose(so3.from_quaternion(x, x @ x), np.array(position)), dtype=float)
