# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The model of a mechanism: a frozen tree of rigid bodies and one-degree-of-freedom joints."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ModelError, UnknownBodyError, UnknownJointError
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.body import GROUND, Body, Frame, Payload
from mbs_dynamics.model.doubts import Doubt
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.joint import Joint
from mbs_dynamics.model.tree_loops import TreeLoops
from mbs_dynamics.model.values import Recent, Value

STANDARD_GRAVITY = (0.0, 0.0, -9.81)
"""Free-fall acceleration in m/s^2, z upwards."""


MOST_KERNELS = 500
"""So many kernels, programs and other results are kept for a model and those made from it."""


class State(NamedTuple):
    """Joint positions, rates and accelerations, each (n,)."""

    q: FloatArray
    qd: FloatArray
    qdd: FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class Model(Value, TreeLoops):
    """A mechanism with tree topology: n coordinates, nb bodies, one or several roots.

    Make one with :meth:`from_urdf`, :meth:`from_screws`, :meth:`from_joint_frames`,
    :meth:`from_joints` or :meth:`from_dh`. Bodies stand in an order in which a parent comes before
    its children. A mimic joint shares the coordinate of another, so that nb can exceed n. Models do
    not change; :meth:`with_gravity` and :meth:`with_payload` return others, which share the
    compiled kernels.
    """

    name: str
    bodies: tuple[Body, ...]
    gravity: Array = STANDARD_GRAVITY
    """(3,) free-fall acceleration in the inertial frame, m/s^2."""
    frames: Mapping[str, Frame] = field(default_factory=dict)
    """All names under which a frame can be asked for; the bodies' own are added by themselves."""
    doubts: tuple[Doubt, ...] = ()
    payloads: tuple[Payload, ...] = ()
    kernels: dict[Any, Any] = field(init=False, repr=False)
    """Compiled kernels by algorithm and options; shared by the models made from this one."""
    bound: dict[Any, Any] = field(init=False, repr=False)
    """By algorithm and options, as called on this very model: the kernel and its model inputs."""
    lock: threading.RLock = field(init=False, repr=False)
    """Held while a kernel is compiled, so that no thread compiles what another one does already."""

    # -- making one ------------------------------------------------------------------------------

    @classmethod
    def from_urdf(
        cls,
        source: str | Path,
        *,
        root: str | None = None,
        tip: str | None = None,
        gravity: ArrayLike = STANDARD_GRAVITY,
    ) -> Model:
        """Return the model of a URDF; see :func:`mbs_dynamics.model.urdf.model_from_urdf`."""
        from mbs_dynamics.model.urdf import model_from_urdf

        return model_from_urdf(source, root=root, tip=tip, gravity=gravity)

    @classmethod
    def from_screws(
        cls,
        parents: Sequence[int],
        homes: ArrayLike,
        screws: ArrayLike,
        M_body: ArrayLike,
        *,
        frame: str,
        gravity: ArrayLike = STANDARD_GRAVITY,
        **names: Any,
    ) -> Model:
        """Return the model from joint screws; see :func:`mbs_dynamics.model.screws.from_screws`."""
        from mbs_dynamics.model.screws import from_screws

        return from_screws(parents, homes, screws, M_body, frame=frame, gravity=gravity, **names)

    @classmethod
    def from_joint_frames(
        cls,
        parents: Sequence[int],
        S_parent: ArrayLike,
        S_body: ArrayLike,
        Z: ArrayLike,
        M_body: ArrayLike,
        *,
        gravity: ArrayLike = STANDARD_GRAVITY,
        **names: Any,
    ) -> Model:
        """Return the model from joint frames; see :mod:`mbs_dynamics.model.screws`."""
        from mbs_dynamics.model.screws import from_joint_frames

        return from_joint_frames(parents, S_parent, S_body, Z, M_body, gravity=gravity, **names)

    def screws(self, *, frame: str) -> Any:
        """Return the model as screws; see :func:`mbs_dynamics.model.screws.screws`."""
        from mbs_dynamics.model.screws import screws

        return screws(self, frame)

    @classmethod
    def from_joints(
        cls,
        connections: Any,
        *,
        gravity: ArrayLike = STANDARD_GRAVITY,
        name: str = "mechanism",
    ) -> Model:
        """Return the model from joints of any kind; see :mod:`mbs_dynamics.model.macro_joints`."""
        from mbs_dynamics.model.macro_joints import from_joints

        return from_joints(connections, gravity=gravity, name=name)

    @classmethod
    def from_dh(cls, table: Any, *, gravity: ArrayLike = STANDARD_GRAVITY) -> Model:
        """Return the model from Denavit-Hartenberg parameters; see :mod:`mbs_dynamics.model.dh`."""
        from mbs_dynamics.model.dh import from_dh

        return from_dh(table, gravity=gravity)

    def __post_init__(self) -> None:
        for what, given in (
            ("body", [body.name for body in self.bodies]),
            ("joint", [body.joint.name for body in self.bodies]),
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
            other = owners.setdefault(joint.coordinate, joint)
            if other is not joint:
                raise ModelError(
                    f"joints {other.name!r} and {joint.name!r} both own the coordinate "
                    f"{joint.coordinate}; one that follows another must say so (mimics)"
                )
        if sorted(owners) != list(range(len(owners))):
            raise ModelError(f"coordinates must be numbered 0, 1, ...; got {sorted(owners)}")
        for body in self.bodies:
            if body.joint.coordinate not in owners:
                raise ModelError(f"joint {body.joint.name!r} follows a coordinate that nobody has")
        frames = {
            name: frame._replace(placement=checks.snap(frame.placement))
            for name, frame in self.frames.items()
        }
        for i, body in enumerate(self.bodies):
            frames[body.name] = Frame(body.name, i, checks.snap(np.eye(4)))
        object.__setattr__(self, "frames", frames)
        if not (isinstance(self.gravity, np.ndarray) and self.gravity.dtype == object):  # symbols
            object.__setattr__(self, "gravity", _constant("gravity", self.gravity, (3,)))
        self._complete()

    def _owners(self) -> list[Joint]:
        """Return the joints that do not follow another one."""
        return [body.joint for body in self.bodies if body.joint.mimics is None]

    def _complete(self) -> None:
        """Add what follows from what it is made of, and room for what is compiled."""
        owners = sorted(self._owners(), key=lambda joint: joint.coordinate)
        object.__setattr__(self, "frames", MappingProxyType(self.frames))
        object.__setattr__(self, "joints", tuple(owners))
        object.__setattr__(self, "parents", tuple(body.parent for body in self.bodies))
        object.__setattr__(self, "bound", {})
        object.__setattr__(self, "kernels", Recent(MOST_KERNELS))
        object.__setattr__(self, "lock", threading.RLock())
        object.__setattr__(self, "carriers", tuple(load.body for load in self.payloads))

    def __getstate__(self) -> dict[str, Any]:
        """Return what it is made of, without what is compiled."""
        return {**super().__getstate__(), "frames": dict(self.frames)}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Take over what another one is made of; what is compiled is compiled again."""
        super().__setstate__(state)
        self._complete()

    def __repr__(self) -> str:
        return f"<Model {self.name!r}: {self.n} coordinates, {self.nb} bodies>"

    joints: tuple[Joint, ...] = field(init=False)
    """The n joints that own a coordinate, in the order of q."""
    parents: tuple[int, ...] = field(init=False)
    """Index of each body's parent; GROUND (-1) for a root."""
    carriers: tuple[int, ...] = field(init=False)
    """The bodies that carry a payload, in order."""

    # -- what it is ------------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """Number of coordinates."""
        return len(self.joints)

    @property
    def nb(self) -> int:
        """Number of moving bodies."""
        return len(self.bodies)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the n joints that own a coordinate, in the order of q."""
        return tuple(joint.name for joint in self.joints)

    @property
    def body_names(self) -> tuple[str, ...]:
        """Names of the moving bodies, after the joints' child links, in order."""
        return tuple(body.name for body in self.bodies)

    @property
    def leaves(self) -> tuple[str, ...]:
        """Names of the bodies without children."""
        parents = set(self.parents)
        return tuple(body.name for i, body in enumerate(self.bodies) if i not in parents)

    @property
    def home_rel(self) -> FloatArray:
        """(nb, 4, 4) B_i: poses relative to the parents at q = 0."""
        return np.array([body.home_rel for body in self.bodies]).reshape(-1, 4, 4)

    @property
    def screw_body(self) -> FloatArray:
        """(nb, 6) X_i: joint screws in the frames of the bodies they move."""
        return np.array([body.joint.screw for body in self.bodies]).reshape(-1, 6)

    @property
    def M_body(self) -> FloatArray:
        """(nb, 6, 6) inertia matrices in the frames of the bodies, without payloads."""
        return np.array([body.inertia.matrix() for body in self.bodies]).reshape(-1, 6, 6)

    def frame(self, name: str) -> Frame:
        """Return the frame of a body or merged link; UnknownBodyError lists the valid names."""
        try:
            return self.frames[name]
        except (KeyError, TypeError):
            raise UnknownBodyError(name, self.frames) from None

    def joint(self, name: str) -> Joint:
        """Return a joint by name, mimic joints included; UnknownJointError lists the names."""
        for body in self.bodies:
            if body.joint.name == name:
                return body.joint
        raise UnknownJointError(name, (body.joint.name for body in self.bodies))

    def path(self, i: int) -> list[int]:
        """Return the bodies from the root to body i, both included."""
        path = []
        while i != GROUND:
            path.append(i)
            i = self.bodies[i].parent
        return path[::-1]

    def random_state(self, seed: int = 0) -> State:
        """Return a random state: positions within the limits where they are finite, else +-pi."""
        rng = np.random.default_rng(seed)
        lower, upper = [], []
        for joint in self.joints:
            low, high = joint.limits.lower, joint.limits.upper
            bounded = low is not None and high is not None and low < high
            lower.append(low if bounded else -np.pi)
            upper.append(high if bounded else np.pi)
        q = rng.uniform(np.array(lower, float), np.array(upper, float))
        return State(q, rng.uniform(-1.0, 1.0, self.n), rng.uniform(-1.0, 1.0, self.n))

    # -- models made from this one ---------------------------------------------------------------

    def with_gravity(self, gravity: ArrayLike) -> Model:
        """Return this model under another free-fall acceleration (3,), in m/s^2, inertial frame."""
        return self._sharing_kernels(gravity=checks.numbers("gravity", gravity, (3,)))

    def with_payload(
        self,
        body: str,
        mass: float,
        com: ArrayLike = (0.0, 0.0, 0.0),
        inertia_at_com: ArrayLike | None = None,
    ) -> Model:
        """Return this model with a load fixed to a body or link, in place of its present load.

        mass in kg, com (3,) in m in the frame of ``body``, inertia_at_com (3, 3) in kg m^2 about
        the centre of mass (default: a point mass). No kernel is compiled again when only these
        change.

        Raises UnknownBodyError; ArgumentError or ModelError for a load that cannot exist or hangs
        on a link that does not move.
        """
        frame = self.frame(body)
        if frame.body == GROUND:
            raise ModelError(f"a payload at {body!r} has no effect: that link does not move")
        tensor = np.zeros((3, 3)) if inertia_at_com is None else inertia_at_com
        inertia = Inertia.from_com(mass, com, tensor)
        for doubt in inertia.doubts():
            raise ModelError(f"payload at {body!r}: {doubt}")
        parameters = inertia.transformed(frame.placement).parameters
        load = Payload(frame.body, checks.snap(parameters))
        others = [payload for payload in self.payloads if payload.body != frame.body]
        loads = tuple(sorted([*others, load], key=lambda load: load.body))
        return self._sharing_kernels(payloads=loads)

    def without_payloads(self) -> Model:
        """Return this model without its loads."""
        return self._sharing_kernels(payloads=())

    def _sharing_kernels(self, **changes: Any) -> Model:
        """Return this model with another gravity or other loads, which kernels take as inputs."""
        model = replace(self, **changes)
        object.__setattr__(model, "kernels", self.kernels)
        object.__setattr__(model, "lock", self.lock)
        return model

    @property
    def payload_parameters(self) -> FloatArray:
        """(k, 10) parameters of the k payloads, in the order of the bodies that carry them."""
        return np.array([load.parameters for load in self.payloads]).reshape(-1, 10)

    def loaded(self) -> Model:
        """Return the model with its payloads added to the bodies that carry them."""
        bodies = list(self.bodies)
        for load in self.payloads:
            inertia = bodies[load.body].inertia + Inertia.from_parameters(load.parameters)
            bodies[load.body] = replace(bodies[load.body], inertia=inertia)
        return replace(self, bodies=tuple(bodies), payloads=())


def _constant(name: str, value: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    array = checks.numbers(name, value, shape)
    array.flags.writeable = False
    return array
