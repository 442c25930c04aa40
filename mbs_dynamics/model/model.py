# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The model of a mechanism: a frozen tree of rigid bodies and joints, and models made from it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, ModelError, ModelWarning, UnknownJointError
from mbs_dynamics.lie import se3
from mbs_dynamics.model import dh, editing, joints, mjcf, urdf
from mbs_dynamics.model.body import GROUND, Body, FixedJoint, Frame, Frames, fixed_joint, with_poses
from mbs_dynamics.model.compiled import Compiled
from mbs_dynamics.model.coordinates import (
    bounded,
    checked_positions,
    position_slices,
    properties_of,
    with_singles,
)
from mbs_dynamics.model.dh import DHRow, DHTable
from mbs_dynamics.model.diagnostics import SINGULAR, Description, Diagnostic, diagnose
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.joint import Joint
from mbs_dynamics.model.joints import Connection
from mbs_dynamics.model.payloads import Payload, Payloads, loaded
from mbs_dynamics.model.screws import Screws, bodies_of_screws
from mbs_dynamics.model.screws import screws as screws_of
from mbs_dynamics.model.text import size, text
from mbs_dynamics.model.values import Value, frozen

STANDARD_GRAVITY = (0.0, 0.0, -9.81)
"""Free-fall acceleration in m/s^2, z upwards."""


class State(NamedTuple):
    """Positions (nq,), velocities (n,) and accelerations (n,)."""

    q: FloatArray
    qd: FloatArray
    qdd: FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class Model(Value):
    """A mechanism with tree topology: nb moving bodies, one or several roots.

    Positions ``q`` have ``nq`` entries, velocities ``n``. They are as many, and qd is the rate of
    q, if all joints have one degree of freedom; :mod:`mbs_dynamics.model.subgroup` lists positions
    and velocities of other joints. A parent always precedes its children. A mimic joint shares the
    coordinate of another joint, so that nb can exceed n. ``print(model)`` shows the tree.

    Models are immutable, compared by content, and can be copied and pickled. Those that
    :meth:`with_gravity`, :meth:`with_payload`, :meth:`with_armature` and :meth:`with_placements`
    return share the compiled kernels.
    """

    name: str
    bodies: tuple[Body, ...]
    gravity: FloatArray = STANDARD_GRAVITY  # type: ignore[assignment]
    """(3,) free-fall acceleration in the inertial frame, m/s^2."""
    frames: Mapping[str, Frame] = field(default_factory=dict)
    """Frames by name: those of the bodies, of links merged into bodies, and added ones.

    ``frames[name]`` raises UnknownBodyError, which lists the valid names."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """Warnings about implausible physics, and notes on incomplete descriptions."""
    payloads: Payloads = field(default_factory=Payloads)
    """Loads, at most one per link, and their sums per body."""
    variable_links: tuple[str, ...] = ()
    """Links whose placements are inputs of kernels, bodies first: see :meth:`with_placements`."""
    nb: int = field(init=False)
    """Number of moving bodies."""
    body_names: tuple[str, ...] = field(init=False)
    """Names of the nb moving bodies, which are those of the joints' child links, in order."""
    joint_names: tuple[str, ...] = field(init=False)
    """Names of the joints that mimic no other one, in the order of q."""
    joints: tuple[Joint, ...] = field(init=False)
    """The joints that mimic no other one, in the order of q."""
    parents: tuple[int, ...] = field(init=False)
    """(nb,) indices of the parent bodies; GROUND (-1) for a root."""
    nq: int = field(init=False)
    """Number of entries of positions q."""
    n: int = field(init=False)
    """Number of entries of velocities, accelerations and torques."""
    lower: FloatArray = field(init=False)
    """(n,) lower position limits in rad or m, those of mimic joints included; -inf if none."""
    upper: FloatArray = field(init=False)
    """(n,) upper position limits in rad or m, those of mimic joints included; inf if none."""
    velocity_limits: FloatArray = field(init=False)
    """(n,) velocity limits in rad/s or m/s, those of mimic joints included; inf if none."""
    effort_limits: FloatArray = field(init=False)
    """(n,) effort limits in N m or N; inf if not stated or zero."""
    armature: FloatArray = field(init=False)
    """(n,) rotor inertia in kg m^2 or kg on the diagonal of M, with that of mimic joints."""
    damping: FloatArray = field(init=False)
    """(n,) viscous damping in N m s/rad or N s/m, that of mimic joints included."""
    friction: FloatArray = field(init=False)
    """(n,) Coulomb friction in N m or N, that of mimic joints included."""
    compiled: Compiled = field(init=False)
    """The compiled kernels, for this package."""

    # -- constructors ------------------------------------------------------------------------------

    @staticmethod
    def from_urdf(
        source: str | bytes | os.PathLike[str],
        *,
        root: str | None = None,
        tip: str | None = None,
        floating_base: bool = False,
        gravity: ArrayLike = STANDARD_GRAVITY,
    ) -> Model:
        """Return the model of a URDF.

        :param source: a path, or the XML text itself: a string that begins with "<", or bytes.
        :param root: link at which the tree begins; links above it remain if all joints above it
            are fixed. Gravity is turned into its axes, and a note reports it.
        :param tip: only the bodies on the path to this link remain, each with all links fixed to
            it.
        :param floating_base: whether a free joint, ``"floating_base"``, moves the root link, which
            otherwise is fixed to the ground; with underscores appended while another joint has
            that name.
        :param gravity: (3,) free-fall acceleration in m/s^2, in the axes of the root link of the
            description.
        :raises UrdfError: for a file that cannot be read or is not a tree of joints, naming the
            link or joint.
        :raises UnknownBodyError: for a ``root`` or ``tip`` that does not exist.
        :raises ArgumentError: for a ``tip`` that is not below ``root``, or a ``floating_base`` of a
            robot that a floating joint connects to the ground already.

        Bodies have the names of the joints' child links, and are numbered depth first. B_i of
        Mueller (kinematics), eq. (4), is the joint's ``origin``; X_i is (e, 0) for ``revolute`` and
        ``continuous``, (0, e) for ``prismatic``, with ``axis`` e of unit length. The child of a
        ``fixed`` joint is merged into the body that carries it; its name stays valid wherever a
        body is asked for, with its own frame. ``floating``, ``planar`` and ``spherical`` joints
        have 6, 3 and 3 degrees of freedom (:mod:`mbs_dynamics.model.subgroup`), without limits and
        friction; the angle of ``planar`` is about ``axis``. A ``mimic`` joint shares the coordinate
        of the joint at the end of its chain of mimics; if it names a joint that does not exist, the
        prefix of its own name is tried before that name, and a warning reports it.

        Implausible physics is reported by link and joint as one ModelWarning;
        ``Model.diagnostics`` has the same, and notes on merged links.
        """
        return _from_description(urdf.describe(source, root, tip, floating_base, gravity))

    @staticmethod
    def from_mjcf(
        source: Any, *, leave_out: Collection[str] = (), gravity: ArrayLike | None = None
    ) -> Model:
        """Return the model of an MJCF file, of MJCF text or of a compiled ``mujoco.MjModel``.

        ``source`` is a path (.xml or .mjb), text that begins with "<", or an MjModel; the package
        mujoco reads it (extra ``mjcf``). ``gravity`` (3,) in m/s^2 is by default that of the file.

        Bodies and joints have their names in the file, or ``"body3"`` and ``"joint3"`` with their
        number. Bodies without joints are merged into their parents; their names and those of sites
        are frames. Each joint of a body but the last moves a massless body ``"body/joint"``.
        Armature, damping, friction loss, ranges and force limits are those of joints and of
        actuators on joints. Positions are MuJoCo's, those of ``ref`` included; see
        :mod:`mbs_dynamics.model.mjcf` for quaternions and free joints.

        Contacts and actuators are not part of models. Passive forces, such as springs, are left
        out, and a warning lists them. Equality constraints, tendons and soft bodies are refused,
        unless ``leave_out`` contains their kind, ``"equality"``, ``"tendon"`` or ``"flex"``: then a
        warning lists them.

        Raises ModelError for a file that MuJoCo does not read, and for what is not supported, by
        name; BackendError if mujoco is not installed; ArgumentError for another source or kind.
        """
        return _from_description(mjcf.describe(source, leave_out, gravity))

    @staticmethod
    def from_screws(
        parents: Sequence[int],
        homes: ArrayLike,
        screws: ArrayLike,
        M_body: ArrayLike | None = None,
        *,
        frame: str,
        gravity: ArrayLike = STANDARD_GRAVITY,
        body_names: Sequence[str] | None = None,
        joint_names: Sequence[str] | None = None,
        name: str = "mechanism",
    ) -> Model:
        """Return the model of a tree of bodies from its joint screws at the positions zero.

        :param parents: (nb,) index of each body's parent, -1 for the ground. There may be several
            roots; a parent comes before its children.
        :param homes: (nb, 4, 4) poses at q = 0, in m: absolute A_i if ``frame`` is ``"spatial"``,
            relative to the parent B_i otherwise.
        :param screws: (nb, 6) joint screws at q = 0, angular part first, in the frame that
            ``frame`` names.
        :param M_body: (nb, 6, 6) inertia matrices, always in the frames of the bodies; see
            :func:`mbs_dynamics.spatial_inertia`. None is a model for kinematics, without masses.
        :param frame: ``"spatial"``, ``"body_fixed"`` or ``"parent"``; see the table in
            :mod:`mbs_dynamics.model.screws`.
        :param gravity: (3,) free-fall acceleration in the inertial frame, m/s^2.
        :param body_names: nb different names; body1, body2, ... if None.
        :param joint_names: nb different names; joint1, joint2, ... if None.
        :param name: name of the mechanism.
        :raises ArgumentError: for a wrong shape or type, a number that is not finite, a matrix that
            is not a pose, or an unknown frame.
        :raises ModelError: for a parent that does not come before its child, an axis that is not of
            unit length, an inertia that no rigid body has, or a name used twice.
        """
        bodies = bodies_of_screws(parents, homes, screws, M_body, frame, body_names, joint_names)
        diagnostics = diagnose(bodies, if_massless="note")
        return _from_description(Description(name, bodies, gravity, {}, diagnostics))

    @staticmethod
    def from_joints(
        connections: Iterable[Connection],
        *,
        gravity: ArrayLike = STANDARD_GRAVITY,
        name: str = "mechanism",
    ) -> Model:
        """Return the model of a tree of bodies connected by joints of any kind.

        The two joint frames of a connection coincide in the reference configuration, and the body
        moves by S_parent D S_body^-1 with the motion D of the joint: Mueller (kinematics), eq. (3)
        and Remark 4. Bodies and coordinates are numbered in the order of ``connections``, in which
        a parent precedes its children.

        :param gravity: (3,) free-fall acceleration in the inertial frame, m/s^2.
        :param name: name of the mechanism.
        :raises ArgumentError: for a wrong shape or type, or a matrix that is not a pose.
        :raises UnknownBodyError: for a parent that is not the body of an earlier connection.
        :raises ModelError: for an inertia that no rigid body has, or a name used twice.
        """
        return _from_description(joints.describe(connections, gravity, name))

    @staticmethod
    def from_dh(
        table: DHTable | Sequence[DHRow | Mapping[str, Any] | Sequence[Any]],
        *,
        gravity: ArrayLike = STANDARD_GRAVITY,
    ) -> Model:
        """Return the model of a serial robot from Denavit-Hartenberg parameters.

        The frame ``"tool"`` of the model is the last frame of the table;
        :mod:`mbs_dynamics.model.dh` has the frames of the bodies and the inertia of links. A table
        without masses is a model for kinematics.

        :param table: a :class:`~mbs_dynamics.model.dh.DHTable`, or its rows alone: each a
            :class:`~mbs_dynamics.model.dh.DHRow`, a mapping with its
            fields, or a sequence in their order (a, d, alpha, theta, mass, ...).
        :param gravity: (3,) free-fall acceleration in frame 1, the inertial frame, in m/s^2; 9.81
            along -Z_1 by default.
        :raises ArgumentError: for a field that is missing, unknown or not a finite number, and for
            an unknown kind of joint or convention.
        :raises ModelError: for a negative mass, inertia, limit or friction, a gear ratio of zero, a
            lower limit above the upper one, an inertia without ``com``, a table without rows, or a
            name used twice.
        """
        return _from_description(dh.describe(table, gravity))

    # -- checks and derived fields -----------------------------------------------------------------

    def __post_init__(self) -> None:
        joints = [body.joint for body in self.bodies]
        fixed = [frame.joint for frame in self.frames.values() if frame.joint is not None]
        for what, names in (
            ("body", [body.name for body in self.bodies]),
            ("joint", [*fixed, *(joint.name for joint in joints if joint.nv)]),
        ):
            if len(set(names)) < len(names):
                twice = sorted({name for name in names if names.count(name) > 1})
                raise ModelError(f"{what} names must be unique; used more than once: {twice}")
        for i, body in enumerate(self.bodies):
            if not GROUND <= body.parent < i:
                raise ModelError(
                    f"body {body.name!r} has the index {i} and the parent {body.parent}; a parent "
                    f"must be the ground ({GROUND}) or come before its children"
                )
        gravity = checks.numbers("gravity", self.gravity, (3,))
        diagnostics = tuple(self.diagnostics)
        self.__dict__.update(
            frames=self._all_frames(), gravity=frozen(gravity), diagnostics=diagnostics
        )
        self._complete()

    def _all_frames(self) -> dict[str, Frame]:
        """Return the frames, those of the bodies included, each with its parent."""
        frames = {
            name: frame._replace(placement=checks.snap(frame.placement))
            for name, frame in self.frames.items()
        }
        for i, body in enumerate(self.bodies):
            frame = frames.get(body.name, Frame(body.name, i, np.eye(4)))
            placement = checks.snap(np.eye(4))
            frames[body.name] = frame._replace(body=i, placement=placement, inertia=None)
        for name, frame in frames.items():
            if frame.body != GROUND and frame.parent is None:
                root = frames[self.bodies[frame.body].name]
                if root.parent is None and name != root.name:
                    frames[name] = frame._replace(parent=root.name)
        return frames

    def _complete(self) -> None:
        """Set the derived fields, and an empty store for compiled kernels."""
        joints = [body.joint for body in self.bodies]
        owners = [joint for joint in joints if joint.mimics is None and joint.nv]
        owners.sort(key=lambda joint: joint.coordinate)
        n = sum(joint.nv for joint in owners)
        self.__dict__.update(
            frames=MappingProxyType(Frames(self.frames)),
            nb=len(self.bodies),
            body_names=tuple(body.name for body in self.bodies),
            joint_names=tuple(joint.name for joint in owners),
            joints=tuple(owners),
            n=n,
            nq=sum(joint.nq for joint in owners),
            parents=tuple(body.parent for body in self.bodies),
            **properties_of(joints, n),
            compiled=Compiled(),
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields that define the model, without compiled kernels."""
        return {**super().__getstate__(), "frames": dict(self.frames)}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Restore the defining fields; kernels are compiled anew on demand."""
        super().__setstate__(state)
        self._complete()

    def __dask_tokenize__(self) -> tuple[str, str]:
        """Return what identifies the model for Dask: its type, and a digest of its fields."""
        import hashlib
        import pickle

        return type(self).__name__, hashlib.sha256(pickle.dumps(self)).hexdigest()

    def __repr__(self) -> str:
        return f"<Model {self.name!r}: {size(self.nq, self.n)}, {self.nb} bodies>"

    def __str__(self) -> str:
        return text(self.name, size(self.nq, self.n), self.bodies, self.gravity, self.payloads)

    def joint(self, name: str) -> Joint:
        """Return a joint by its name, mimic joints included; UnknownJointError lists the names."""
        for body in self.bodies:
            if body.joint.name == name:
                return body.joint
        raise UnknownJointError(name, (body.joint.name for body in self.bodies))

    @cached_property
    def fixed_joints(self) -> Mapping[str, FixedJoint]:
        """Fixed joints by name, with what hangs on them.

        Those of the description, joints locked by :meth:`locked`, and the welds of an MJCF, which
        have the names of their bodies.
        """
        return {
            frame.joint: fixed_joint(self.bodies, self.frames, name)
            for name, frame in self.frames.items()
            if frame.joint is not None
        }

    def positions(self, joint: str | Joint) -> slice:
        """Return the slice of q of a joint, or of the joint that it mimics; UnknownJointError."""
        one = self.joint(joint) if isinstance(joint, str) else joint
        return self._position_slices[one.coordinate] if one.nv else slice(0, 0)

    def velocities(self, joint: str) -> slice:
        """Return the slice of qd of a joint, or of the joint that it mimics; UnknownJointError."""
        columns = self.joint(joint).velocities
        return slice(columns.start, columns.stop)

    @cached_property
    def _position_slices(self) -> dict[int, slice]:
        """Slices of q, by the first velocity of their joint."""
        return {joint.coordinate: at for joint, at in position_slices(self.joints)}

    @property
    def total_mass(self) -> float:
        """Total mass in kg of the moving bodies and the loads."""
        loads = sum(load.parameters[0] for load in self.payloads)
        return float(loads + sum(body.inertia.mass for body in self.bodies))

    def placement(self, link: str) -> FloatArray:
        """Return the pose (4, 4) of a link in the frame of the body that carries it, in m.

        That of a body is B_i, its pose relative to the body before it, or to the ground, with the
        joint between them at zero. That of a merged link or added frame is constant in its body.
        Raises UnknownBodyError.
        """
        frame = self.frames[link]
        names_body = frame.body != GROUND and self.bodies[frame.body].name == link
        return self.bodies[frame.body].home_rel if names_body else frame.placement

    def _moving(self, what: str, link: str) -> Frame:
        """Return the frame of a link, or raise ModelError if it does not move."""
        frame = self.frames[link]
        if frame.body == GROUND:
            raise ModelError(f"{what} at {link!r} has no effect: that link does not move")
        return frame

    # -- arrays of coordinates and bodies ----------------------------------------------------------

    def neutral(self, *, within_limits: bool = False) -> FloatArray:
        """Return the positions (nq,) of the reference configuration: zeros and unit quaternions.

        With ``within_limits`` single coordinates are at the nearest limit if zero is beyond it.
        """
        q = np.concatenate([np.zeros(0), *(joint.group.neutral() for joint in self.joints)])
        if within_limits:
            q = with_singles(self.joints, q, np.clip(np.zeros(self.n), self.lower, self.upper))
        return q

    def random_state(self, seed: int = 0) -> State:
        """Return a random state q (nq,), qd and qdd (n,), reproducible by ``seed``.

        Positions are uniform between the limits, or in +-pi for coordinates without two finite
        limits; orientations are uniform; velocities and accelerations are uniform in +-1.
        """
        rng = np.random.default_rng(seed)
        within = bounded(self.lower, self.upper)
        q = rng.uniform(np.where(within, self.lower, -np.pi), np.where(within, self.upper, np.pi))
        qd, qdd = rng.uniform(-1.0, 1.0, (2, self.n))
        if any(joint.nv > 1 for joint in self.joints):
            q = with_singles(self.joints, rng.uniform(-np.pi, np.pi, self.nq), q)
            for joint in self.joints:
                if joint.group.has_quaternion:
                    end = self.positions(joint).stop
                    turn = rng.normal(size=4)
                    q[end - 4 : end] = turn / np.linalg.norm(turn)
        return State(q, qd, qdd)

    def vector(self, values: Mapping[str, ArrayLike], rest: float = 0.0) -> FloatArray:
        """Return an array (n,) of rates, torques or the like from a mapping of joint names.

        Other joints get the value ``rest``. For joints with one degree of freedom these may be
        positions as well; a joint with k of them has k values. Raises UnknownJointError for a name
        of no coordinate, ArgumentError if ``values`` is not a mapping from names to finite numbers.
        """
        checks.mapping("values", values, "joint")
        array = np.full(self.n, float(rest))
        places = {joint.name: joint.velocities for joint in self.joints}
        UnknownJointError.check(values, places)
        for name, value in values.items():
            what, k = f"the value of joint {name!r}", places[name]
            array[k] = checks.numbers(what, value, () if len(k) == 1 else (len(k),))
        return array

    # -- models made from this one -----------------------------------------------------------------

    def screws(self, *, frame: str = "body_fixed") -> Screws:
        """Return parents, homes, screws and body inertias, as :meth:`from_screws` takes them.

        ``frame`` is ``"body_fixed"`` (B_i and X_i), ``"spatial"`` (A_i and Y_i) or ``"parent"``.
        Joint positions are zero. A mimic joint is listed as the joint that it is; names, limits,
        gravity and payloads are not included. Raises ArgumentError for another frame, ModelError
        for a joint with several degrees of freedom.
        """
        return screws_of(self.bodies, frame)

    def with_gravity(self, gravity: ArrayLike) -> Model:
        """Return this model with another free-fall acceleration (3,), inertial frame, in m/s^2.

        No kernel is compiled again. Raises ArgumentError for a wrong shape or type.
        """
        return self._sharing_kernels(gravity=frozen(checks.numbers("gravity", gravity, (3,))))

    def with_payload(
        self,
        link: str,
        mass: float,
        com: ArrayLike = (0.0, 0.0, 0.0),
        inertia_at_com: ArrayLike | None = None,
    ) -> Model:
        """Return this model with a load fixed to a link, in place of the previous load of the link.

        ``mass`` is in kg, ``com`` (3,) in m in the frame of ``link``, ``inertia_at_com`` (3, 3) in
        kg m^2 about the centre of mass; None means a point mass. Loads on several links of one body
        are added up. Kernels are compiled again only if a body carries its first load. Raises
        UnknownBodyError; ArgumentError for a wrong shape or type; ModelError for a load that is
        physically impossible or attached to a link that does not move.
        """
        frame = self._moving("a payload", link)
        tensor = np.zeros((3, 3)) if inertia_at_com is None else inertia_at_com
        inertia = Inertia.from_com(mass, com, tensor)
        for message in inertia.violations():
            raise ModelError(f"payload at {link!r}: {message}")
        parameters = inertia.transformed(frame.placement).parameters
        load = Payload(link, frame.body, checks.snap(parameters))
        others = [payload for payload in self.payloads if payload.link != link]
        loads = sorted([*others, load], key=lambda load: (load.body, load.link))
        return self._sharing_kernels(payloads=Payloads(loads))

    def with_armature(self, by_joint: Mapping[str, ArrayLike]) -> Model:
        """Return this model with other rotor inertias, as the named joints see them.

        ``by_joint`` maps names of joints, mimic joints included, to rotor inertia times gear ratio
        squared, in kg m^2 or kg: a number, or k for a joint with k degrees of freedom. Other joints
        keep theirs. They are added to the diagonal of M; gyroscopic torques of the rotors are left
        out. Kernels are compiled again only if the model had no armature at all. Raises
        UnknownJointError; ArgumentError for values that are not numbers; ModelError for negative
        ones.
        """
        checks.mapping("by_joint", by_joint, "joint")
        given: Mapping[str, Any] = by_joint
        changed = {name: replace(self.joint(name), armature=x) for name, x in given.items()}
        bodies = tuple(
            replace(body, joint=changed.get(body.joint.name, body.joint)) for body in self.bodies
        )
        moving = {f"joint {name!r}" for name, joint in changed.items() if np.any(joint.armature)}
        diagnostics = tuple(
            each
            for each in self.diagnostics
            if each.subject not in moving or not each.message.endswith(SINGULAR)
        )
        model = replace(self, bodies=bodies, diagnostics=diagnostics)
        model.__dict__["compiled"] = Compiled(self.compiled)
        return model

    def with_placements(self, poses: Mapping[str, ArrayLike]) -> Model:
        """Return this model with other placements of links, as in a kinematic calibration.

        ``poses`` maps names of bodies, merged links and added frames to poses (4, 4) as
        :meth:`placement` returns them. The axis of the joint moves with its body. A merged link or
        added frame moves alone: masses stay with their bodies.

        Placements of the named links are inputs of the kernels of the model from then on. Kernels
        are compiled again only if a link is named for the first time; those with such inputs take
        more operations.

        Raises UnknownBodyError; ArgumentError for values that are not poses.
        """
        checks.mapping("poses", poses, "link")
        given = {}
        for link, pose in poses.items():
            C = checks.pose(f"the pose of {self.frames[link].name!r}", pose)
            given[link] = frozen(checks.snap(C))
        bodies, frames = with_poses(self.bodies, self.frames, given)
        known = dict.fromkeys((*self.body_names, *self.frames))  # bodies first
        order = tuple(name for name in known if name in given or name in self.variable_links)
        return self._sharing_kernels(bodies=bodies, frames=frames, variable_links=order)

    def with_frame(self, name: str, parent: str, pose: ArrayLike) -> Model:
        """Return this model with an additional frame, such as a tool centre point, on a link.

        ``pose`` (4, 4) is its pose in the frame of the link ``parent``, in m. The name is then
        valid wherever the name of a body or link is. Raises UnknownBodyError; ArgumentError if
        ``pose`` is not a pose or ``name`` not a name; ModelError if the name is in use.
        """
        if not isinstance(name, str) or not name:
            raise ArgumentError(f"name must be that of a frame; got {name!r}")
        base, C = self.frames[parent], checks.pose("pose", pose)
        if name in self.frames:
            raise ModelError(f"there is a frame {name!r} already; choose another name")
        frame = Frame(name, base.body, base.placement @ C, parent=parent)
        return replace(self, frames={**self.frames, name: frame})

    def attached(
        self, tool: Model, to: str, placement: ArrayLike | None = None, prefix: str = ""
    ) -> Model:
        """Return this model with another one mounted on the link ``to``.

        ``placement`` (4, 4) is the pose of the tool's root link in the frame of ``to``, the
        identity if None. Names of the tool's links, joints and frames get the ``prefix``.
        Coordinates of the tool come after those of this model; gravity is that of this model. Links
        that are fixed to the root of the tool belong to the body of ``to``. Raises
        UnknownBodyError; ArgumentError for a placement that is not a pose; ModelError for names
        that are in use, as those of a tool that is mounted twice.
        """
        if not isinstance(tool, Model):
            raise ArgumentError(f"tool must be a Model; got {tool!r}")
        at = checks.pose("placement", np.eye(4) if placement is None else placement)
        parts = editing.attached(self._parts, tool._parts, self.frames[to], at, prefix, self.n)
        return self._of(parts, self.diagnostics + tool.diagnostics)

    def locked(
        self,
        positions: Mapping[str, ArrayLike] | ArrayLike | None = None,
        *,
        but: Iterable[str] | None = None,
    ) -> Model:
        """Return this model with joints fixed at positions in rad or m.

        ``positions`` maps names of joints to positions. With ``but``, names of joints, all others
        are fixed: at those positions or, where none is given, at the neutral one within the limits.
        ``positions`` may then also be positions q (nq,).

        Joints that mimic fixed ones are fixed as well, and those that mimic the ones in ``but`` are
        not. Inertias are merged, frames are kept; positions of the other joints keep their order. A
        position outside the limits is a ModelWarning. Raises UnknownJointError; ModelError for a
        joint that mimics another one; ArgumentError for values that are not positions of the joint.
        """
        given: dict[str, Any] = {}
        if but is not None:
            if isinstance(but, str):
                raise ArgumentError(f"but must be names of joints; got the text {but!r}")
            movable = [self.joint(name).mimics or name for name in but]
            q = self.neutral(within_limits=True)
            if positions is not None and not isinstance(positions, Mapping):
                q, positions = checked_positions(self.joints, "positions", positions), None
            others = [joint for joint in self.joints if joint.name not in movable]
            given = {joint.name: q[self.positions(joint)] for joint in others}
        if positions is not None:
            by_name: Any = positions
            checks.mapping("positions", by_name, "joint")
            given.update(by_name)
        at = {}
        for name, value in given.items():
            what, size = f"the position of joint {name!r}", self.joint(name).nq
            at[name] = checks.numbers(what, [value] if np.ndim(value) == 0 else value, (size,))
        return self._of(editing.locked(self._parts, at), self.diagnostics)

    @property
    def _parts(self) -> editing.Parts:
        return editing.Parts(self.bodies, self.frames, self.payloads)

    def _of(self, parts: editing.Parts, diagnostics: tuple[Diagnostic, ...]) -> Model:
        return replace(self, **parts._asdict(), diagnostics=diagnostics, variable_links=())

    def _sharing_kernels(self, **changes: Any) -> Model:
        """Return this model with other properties that are inputs of kernels."""
        model = object.__new__(type(self))
        model.__dict__.update(self.__dict__, **changes, compiled=Compiled(self.compiled))
        if "frames" in changes:
            model.__dict__.pop("fixed_joints", None)  # where a link was
        return model

    def loaded(self) -> Model:
        """Return the model with its loads merged into the bodies that carry them."""
        if not self.payloads.bodies:
            return self
        loads = zip(self.payloads.bodies, self.payloads.parameters, strict=True)
        frames = dict(self.frames)
        for load in self.payloads:
            inertia = frames[load.link].inertia
            if inertia is not None:
                total = inertia + Inertia.from_parameters(load.parameters)
                frames[load.link] = frames[load.link]._replace(inertia=total)
        bodies = loaded(self.bodies, loads)
        return replace(self, bodies=bodies, frames=frames, payloads=Payloads())


def body_wrenches(model: Model, by_link: Mapping[str, ArrayLike]) -> FloatArray:
    """Return body-fixed wrenches (..., nb, 6) on all bodies from a mapping of link names.

    Each value (..., 6), moment in N m first, then force in N, acts at the origin of its link in
    the axes of the link; wrenches on links of one body are added up. Leading axes are batches
    and broadcast. Algorithms and simulations take such a mapping in place of the array as well.
    Raises UnknownBodyError; ModelError for a link that does not move; ArgumentError for a wrong
    shape or type.
    """
    checks.mapping("by_link", by_link, "link")
    given = {}
    for link, wrench in by_link.items():
        frame = model._moving("a wrench", link)
        W = checks.numbers(f"the wrench on {link!r}", wrench, (6,), batch=True)
        given[link] = frame, W @ se3.Ad(se3.inverse(frame.placement))
    batch = checks.batch_of(**{link: W.shape[:-1] for link, (_, W) in given.items()})
    totals = np.zeros((*batch, model.nb, 6))
    for frame, W in given.values():
        totals[..., frame.body, :] += W
    return totals


def warnings_about(model: Model) -> list[str]:
    """Return the warnings about a model, without the notes."""
    return [str(each) for each in model.diagnostics if each.severity == "warning"]


def _from_description(description: Description) -> Model:
    """Return the model of a description, and issue the warnings about it as one ModelWarning."""
    model = Model(**description._asdict())
    found = warnings_about(model)
    if found:
        message = f"model {model.name!r} has {len(found)} warning(s):\n  " + "\n  ".join(found)
        warnings.warn(message, ModelWarning, stacklevel=3)  # where Model.from_... was called
    return model


def without_payloads(model: Model) -> Model:
    """Return a model without its loads, which shares the compiled kernels."""
    return model._sharing_kernels(payloads=Payloads())
