# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Mechanisms: frozen trees of rigid bodies and joints, and their coordinates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ModelError, UnknownJointError
from mbs_dynamics.model.body import GROUND, Body, Frame, Frames
from mbs_dynamics.model.compiled import Compiled
from mbs_dynamics.model.coordinates import drivetrain_of, limits_of
from mbs_dynamics.model.description import STANDARD_GRAVITY
from mbs_dynamics.model.diagnostics import Diagnostic
from mbs_dynamics.model.fixed_joints import FixedJoint, fixed_joint
from mbs_dynamics.model.joint import Joint
from mbs_dynamics.model.payloads import Payloads
from mbs_dynamics.model.text import text
from mbs_dynamics.model.values import Value, frozen


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism(Value):
    """The bodies, joints and loads of a :class:`mbs_dynamics.Model`, and what follows from them."""

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
    """Loads, at most one per link, and what bodies carry of them in sum."""
    placed: tuple[str, ...] = ()
    """Links whose placements are inputs of kernels, bodies first: see :meth:`with_placements`."""
    joints: tuple[Joint, ...] = field(init=False)
    """The joints that mimic no other one, in the order of q."""
    parents: tuple[int, ...] = field(init=False)
    """(nb,) indices of the parent bodies; GROUND (-1) for a root."""
    nq: int = field(init=False)
    """Number of entries of positions q."""
    nv: int = field(init=False)
    """Number of entries of velocities, accelerations and torques."""
    lower: FloatArray = field(init=False)
    """(n,) lower position limits in rad or m, those of mimic joints included; -inf if none."""
    upper: FloatArray = field(init=False)
    """(n,) upper position limits in rad or m, those of mimic joints included; inf if none."""
    velocity_limits: FloatArray = field(init=False)
    """(n,) velocity limits in rad/s or m/s, those of mimic joints included; inf if none."""
    effort_limits: FloatArray = field(init=False)
    """(n,) effort limits in N m or N; inf if none is stated, or zero."""
    armature: FloatArray = field(init=False)
    """(n,) rotor inertia in kg m^2 or kg on the diagonal of M, with that of mimic joints."""
    damping: FloatArray = field(init=False)
    """(n,) viscous damping in N m s/rad or N s/m, that of mimic joints included."""
    friction: FloatArray = field(init=False)
    """(n,) Coulomb friction in N m or N, that of mimic joints included."""
    _compiled: Compiled = field(init=False)
    """See :func:`mbs_dynamics.model.compiled.compiled`."""

    def __post_init__(self) -> None:
        fixed = [frame.joint for frame in self.frames.values() if frame.joint is not None]
        for what, given in (
            ("body", [body.name for body in self.bodies]),
            ("joint", [*fixed, *(body.joint.name for body in self.bodies)]),
        ):
            if len(set(given)) < len(given):
                twice = sorted({name for name in given if given.count(name) > 1})
                raise ModelError(f"{what} names must be unique; used more than once: {twice}")
        for i, body in enumerate(self.bodies):
            if not GROUND <= body.parent < i:
                raise ModelError(
                    f"body {body.name!r} has the index {i} and the parent {body.parent}; a parent "
                    f"must be the ground ({GROUND}) or come before its children"
                )
        owners: dict[int, Joint] = {}
        for joint in self._owners():
            for k in joint.velocities:
                other = owners.setdefault(k, joint)
                if other is not joint:
                    raise ModelError(
                        f"joints {other.name!r} and {joint.name!r} both own the coordinate {k}; "
                        "one that follows another must say so (mimics)"
                    )
        if sorted(owners) != list(range(len(owners))):
            raise ModelError(f"coordinates must be numbered 0, 1, ...; got {sorted(owners)}")
        for body in self.bodies:
            owner = owners.get(body.joint.coordinate)
            if owner is None or owner.nv != body.joint.nv:
                raise ModelError(
                    f"joint {body.joint.name!r} refers to coordinate {body.joint.coordinate}, "
                    f"which no joint with {body.joint.nv} degrees of freedom owns"
                )
        frames = {
            name: frame._replace(placement=checks.snap(frame.placement))
            for name, frame in self.frames.items()
        }
        for i, body in enumerate(self.bodies):
            own = frames.get(body.name, Frame(body.name, i, np.eye(4)))
            own = own._replace(body=i, placement=checks.snap(np.eye(4)), inertia=None)
            frames[body.name] = own
        for name, frame in frames.items():
            if frame.body != GROUND and frame.parent is None:
                own = frames[self.bodies[frame.body].name]
                if own.parent is None and name != own.name:
                    frames[name] = frame._replace(parent=own.name)
        gravity = checks.numbers("gravity", self.gravity, (3,))
        self.__dict__.update(frames=frames, gravity=frozen(gravity))
        self._complete()

    def _owners(self) -> list[Joint]:
        return [body.joint for body in self.bodies if body.joint.mimics is None]

    def _complete(self) -> None:
        """Set the derived fields, and an empty store for compiled kernels."""
        owners = sorted(self._owners(), key=lambda joint: joint.coordinate)
        every, n = [body.joint for body in self.bodies], sum(joint.nv for joint in owners)
        lower, upper, velocity, effort = limits_of(every, n)
        self.__dict__.update(
            frames=Frames(self.frames),
            joints=tuple(owners),
            nv=n,
            nq=sum(joint.nq for joint in owners),
            parents=tuple(body.parent for body in self.bodies),
            lower=lower,
            upper=upper,
            velocity_limits=velocity,
            effort_limits=effort,
            **drivetrain_of(every, n)._asdict(),
            _compiled=Compiled(),
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields that define the model, without compiled kernels."""
        return {**super().__getstate__(), "frames": dict(self.frames)}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Restore the defining fields; kernels are compiled anew on demand."""
        super().__setstate__(state)
        self._complete()

    def __repr__(self) -> str:
        return f"<Model {self.name!r}: {self.size}, {self.nb} bodies>"

    def __str__(self) -> str:
        return text(self.name, self.size, self.bodies, self.gravity, self.payloads)

    @property
    def n(self) -> int:
        """Number of velocities, the same as ``nv``."""
        return self.nv

    @property
    def size(self) -> str:
        """Number of coordinates, in words, for messages."""
        if self.nq == self.nv:
            return f"{self.nv} coordinates"
        return f"{self.nq} positions, {self.nv} velocities"

    @property
    def nb(self) -> int:
        """Number of moving bodies."""
        return len(self.bodies)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints that mimic no other one, in the order of q."""
        return tuple(joint.name for joint in self.joints)

    @cached_property
    def velocity_names(self) -> tuple[str, ...]:
        """A name for each of the n velocities: that of its joint, with an index if it has more."""
        return _names((joint.name, joint.nv) for joint in self.joints)

    @cached_property
    def position_names(self) -> tuple[str, ...]:
        """A name for each of the nq positions: that of its joint, with an index if it has more."""
        return _names((joint.name, joint.nq) for joint in self.joints)

    @property
    def body_names(self) -> tuple[str, ...]:
        """Names of the nb moving bodies, which are those of the joints' child links, in order."""
        return tuple(body.name for body in self.bodies)

    def joint(self, name: str) -> Joint:
        """Return a joint by its name, mimic joints included.

        Raises UnknownJointError, which lists the valid names.
        """
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

    def positions(self, joint: str) -> slice:
        """Return the slice of q of a joint, or of the joint that it mimics.

        Raises UnknownJointError, which lists the valid names.
        """
        return self.positions_of(self.joint(joint))

    def positions_of(self, joint: Joint) -> slice:
        """Return the slice of q of one of its joints."""
        return self._position_slices[joint.coordinate]

    def velocities(self, joint: str) -> slice:
        """Return the slice of velocities of a joint, or of the joint that it mimics.

        Raises UnknownJointError, which lists the valid names.
        """
        columns = self.joint(joint).velocities
        return slice(columns.start, columns.stop)

    @cached_property
    def _position_slices(self) -> dict[int, slice]:
        """Slices of q, by the first velocity of their joint."""
        ends = np.cumsum([joint.nq for joint in self.joints]).tolist()
        return {
            j.coordinate: slice(end - j.nq, end) for j, end in zip(self.joints, ends, strict=True)
        }

    @cached_property
    def single(self) -> FloatArray:
        """(m, 2) int: indices of position and velocity of joints with one degree of freedom."""
        indices = [
            (self.positions_of(joint).start, joint.coordinate)
            for joint in self.joints
            if joint.nv == 1
        ]
        return np.array(indices, dtype=int).reshape(-1, 2)

    def check_single(self, what: str, *others: str, instead: str = "") -> None:
        """Raise ModelError, naming the joint, if one has several degrees of freedom.

        ``what`` is for models without such joints, except for those called ``others``; for models
        with them one uses something else ``instead``.
        """
        for joint in self.joints:
            if joint.nv > 1 and joint.name not in others:
                raise ModelError(
                    f"{what}: joint {joint.name!r} is {joint.kind} and has {joint.nv} degrees of "
                    "freedom; valid are joints with one" + (f": use {instead}" if instead else "")
                )

    @property
    def total_mass(self) -> float:
        """Total mass in kg of the moving bodies and the loads."""
        own = sum(body.inertia.mass for body in self.bodies)
        return float(own + sum(load.parameters[0] for load in self.payloads))

    def placement(self, link: str) -> FloatArray:
        """Return the pose (4, 4) of a link in the frame of the body that carries it, in m.

        That of a body is B_i, its pose relative to the body before it, or to the ground, with the
        joint between them at zero. That of a merged link or added frame is constant in its body.
        Raises UnknownBodyError.
        """
        frame = self.frames[link]
        own = frame.body != GROUND and self.bodies[frame.body].name == link
        return self.bodies[frame.body].home_rel if own else frame.placement

    @property
    def placements(self) -> FloatArray:
        """(k, 3, 4) the upper rows of the placements of :attr:`placed`: an input of kernels."""
        return np.array([self.placement(link)[:3] for link in self.placed]).reshape(-1, 3, 4)

    @property
    def variables(self) -> tuple[tuple[int, ...], bool, tuple[str, ...]]:
        """Which bodies have loads, whether there is armature, and which links are placed.

        These are inputs of kernels.
        """
        return self.payloads.bodies, bool(self.armature.any()), self.placed

    @property
    def payload_beyond(self) -> FloatArray:
        """(k, 10) sums of the loads on each of :attr:`loaded_fixed_joints`: an input of kernels."""
        sums = [np.zeros(10) for _ in self.loaded_fixed_joints]
        for total, name in zip(sums, self.loaded_fixed_joints, strict=True):
            for load in self.payloads:
                if load.link in self.fixed_joints[name].links:
                    total += load.parameters
        return np.array(sums).reshape(-1, 10)

    @property
    def loaded_fixed_joints(self) -> list[str]:
        """Names of the k fixed joints on bodies that carry loads."""
        bodies, joints = self.payloads.bodies, self.fixed_joints
        return [name for name in joints if joints[name].child.body in bodies] if bodies else []

    def _moving(self, what: str, link: str) -> Frame:
        """Return the frame of a link, or raise ModelError if it does not move."""
        frame = self.frames[link]
        if frame.body == GROUND:
            raise ModelError(f"{what} at {link!r} has no effect: that link does not move")
        return frame


def _names(sizes: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    """Return the name of each entry, with an index if there are several of a name."""
    return tuple(x if n == 1 else f"{x}[{k}]" for x, n in sizes for k in range(n))
