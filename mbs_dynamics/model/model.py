# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The model of a mechanism: a frozen tree of rigid bodies and one-degree-of-freedom joints."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, ModelError, UnknownBodyError, UnknownJointError
from mbs_dynamics.lie import se3
from mbs_dynamics.model.body import GROUND, Body, Frame, Payload, loaded
from mbs_dynamics.model.compiled import Compiled
from mbs_dynamics.model.coordinates import CoordinateLimits, limits_of
from mbs_dynamics.model.diagnostics import Diagnostic
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.joint import Joint
from mbs_dynamics.model.values import Value

STANDARD_GRAVITY = (0.0, 0.0, -9.81)
"""Free-fall acceleration in m/s^2, z upwards."""


class State(NamedTuple):
    """Joint positions, rates and accelerations, each (n,)."""

    q: FloatArray
    qd: FloatArray
    qdd: FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class Model(Value):
    """A mechanism with tree topology: n coordinates, nb bodies, one or several roots.

    Make one with :meth:`from_urdf`, :meth:`from_screws`, :meth:`from_joint_frames`,
    :meth:`from_joints` or :meth:`from_dh`. Bodies stand in an order in which a parent comes before
    its children. A mimic joint shares the coordinate of another, so that nb can exceed n. Models do
    not change; :meth:`with_gravity` and :meth:`with_payload` return others, which share the
    compiled kernels.
    """

    name: str
    bodies: tuple[Body, ...]
    gravity: FloatArray = STANDARD_GRAVITY  # type: ignore[assignment]
    """(3,) free-fall acceleration in the inertial frame, m/s^2."""
    frames: Mapping[str, Frame] = field(default_factory=dict)
    """All names under which a frame can be asked for; the bodies' own are added by themselves."""
    diagnostics: tuple[Diagnostic, ...] = ()
    """Warnings about implausible physics, and notes on what the description left out."""
    payloads: tuple[Payload, ...] = ()
    """Loads, at most one for each link, in the order of the bodies that carry them."""
    joints: tuple[Joint, ...] = field(init=False)
    """The n joints that own a coordinate, in the order of q."""
    parents: tuple[int, ...] = field(init=False)
    """Index of each body's parent; GROUND (-1) for a root."""
    compiled: Compiled = field(init=False)
    """Kernels by algorithm and options; shared by the models made from this one by other loads."""

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
        """Return the model of a URDF; see :func:`mbs_dynamics.model.urdf.from_urdf`."""
        return _builder("urdf", "from_urdf")(source, root=root, tip=tip, gravity=gravity)

    @classmethod
    def from_screws(
        cls,
        parents: Sequence[int],
        homes: ArrayLike,
        screws: ArrayLike,
        M_body: ArrayLike | None = None,
        *,
        frame: str,
        gravity: ArrayLike = STANDARD_GRAVITY,
        **names: Any,
    ) -> Model:
        """Return the model from joint screws; see :func:`mbs_dynamics.model.screws.from_screws`."""
        build = _builder("screws", "from_screws")
        return build(parents, homes, screws, M_body, frame=frame, gravity=gravity, **names)

    @classmethod
    def from_joint_frames(
        cls,
        parents: Sequence[int],
        S_parent: ArrayLike,
        S_body: ArrayLike,
        Z: ArrayLike,
        M_body: ArrayLike | None = None,
        *,
        gravity: ArrayLike = STANDARD_GRAVITY,
        **names: Any,
    ) -> Model:
        """Return the model from joint frames; see :mod:`mbs_dynamics.model.screws`."""
        build = _builder("screws", "from_joint_frames")
        return build(parents, S_parent, S_body, Z, M_body, gravity=gravity, **names)

    @classmethod
    def from_joints(
        cls,
        connections: Any,
        *,
        gravity: ArrayLike = STANDARD_GRAVITY,
        name: str = "mechanism",
    ) -> Model:
        """Return the model from joints of any kind; see :mod:`mbs_dynamics.model.macro_joints`."""
        return _builder("macro_joints", "from_joints")(connections, gravity=gravity, name=name)

    @classmethod
    def from_dh(cls, table: Any, *, gravity: ArrayLike = STANDARD_GRAVITY) -> Model:
        """Return the model from Denavit-Hartenberg parameters; see :mod:`mbs_dynamics.model.dh`."""
        return _builder("dh", "from_dh")(table, gravity=gravity)

    def screws(self, *, frame: str) -> Any:
        """Return the model as screws; see :func:`mbs_dynamics.model.screws.screws`."""
        return _builder("screws", "screws")(self, frame)

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
                raise ModelError(
                    f"joint {body.joint.name!r} refers to coordinate {body.joint.coordinate}, "
                    "which no joint owns"
                )
        frames = {
            name: frame._replace(placement=checks.snap(frame.placement))
            for name, frame in self.frames.items()
        }
        for i, body in enumerate(self.bodies):
            frames[body.name] = Frame(body.name, i, checks.snap(np.eye(4)))
        object.__setattr__(self, "frames", frames)
        gravity = checks.numbers("gravity", self.gravity, (3,))
        gravity.flags.writeable = False
        object.__setattr__(self, "gravity", gravity)
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
        object.__setattr__(self, "compiled", Compiled())

    def __getstate__(self) -> dict[str, Any]:
        """Return what it is made of, without what is compiled."""
        return {**super().__getstate__(), "frames": dict(self.frames)}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Take over what another one is made of; what is compiled is compiled again."""
        super().__setstate__(state)
        self._complete()

    def __repr__(self) -> str:
        return f"<Model {self.name!r}: {self.n} coordinates, {self.nb} bodies>"

    def __str__(self) -> str:
        return str(_builder("text", "text")(self))

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

    @property
    def lower(self) -> FloatArray:
        """(n,) lower limits in rad or m, -inf for none; those of mimic joints bind as well."""
        return self.limits.lower

    @property
    def upper(self) -> FloatArray:
        """(n,) upper limits in rad or m, inf for none; those of mimic joints bind as well."""
        return self.limits.upper

    @property
    def velocity_limits(self) -> FloatArray:
        """(n,) in rad/s or m/s, inf for none; those of mimic joints bind as well."""
        return self.limits.velocity

    @property
    def effort_limits(self) -> FloatArray:
        """(n,) in N m or N, inf for none; a limit of zero counts as none."""
        return self.limits.effort

    @cached_property
    def limits(self) -> CoordinateLimits:
        """The limits of the coordinates; see :mod:`mbs_dynamics.model.coordinates`."""
        return limits_of([body.joint for body in self.bodies], self.n)

    def turns_endlessly(self, k: int) -> bool:
        """Whether coordinate k is an angle that no limit bounds: a sensor may wrap it around."""
        return (
            self.joints[k].kind == "revolute"
            and not np.isfinite([self.lower[k], self.upper[k]]).any()
        )

    @property
    def total_mass(self) -> float:
        """Mass in kg of all that moves, loads included."""
        return float(sum(body.inertia.mass for body in self.loaded().bodies))

    def random_state(self, seed: int = 0) -> State:
        """Return a random state: positions within the limits where they are finite, else +-pi."""
        rng = np.random.default_rng(seed)
        bounded = self.limits.bounded
        q = rng.uniform(np.where(bounded, self.lower, -np.pi), np.where(bounded, self.upper, np.pi))
        return State(q, rng.uniform(-1.0, 1.0, self.n), rng.uniform(-1.0, 1.0, self.n))

    # -- arrays by name --------------------------------------------------------------------------

    def vector(self, values: Mapping[str, float], rest: float = 0.0) -> FloatArray:
        """Return positions, rates or torques (n,) from those of joints by name.

        ``rest`` is for the joints that are not named. Raises UnknownJointError, which lists the
        joints that own a coordinate; ArgumentError for what is no mapping of names to numbers.
        """
        if not isinstance(values, Mapping):
            raise ArgumentError(f"values must be a mapping of joint names; got {values!r}")
        found = np.full(self.n, float(rest))
        places = {name: k for k, name in enumerate(self.joint_names)}
        for name, value in values.items():
            if name not in places:
                raise UnknownJointError(name, places)
            found[places[name]] = checks.number(f"the value of joint {name!r}", value)
        return found

    def by_joint(self, values: ArrayLike) -> dict[str, float]:
        """Return positions, rates or torques (n,) as a mapping from joint names."""
        array = checks.numbers("values", values, (self.n,))
        return dict(zip(self.joint_names, array.tolist(), strict=True))

    def wrenches(self, by_link: Mapping[str, ArrayLike]) -> FloatArray:
        """Return body-fixed wrenches (nb, 6) on the bodies from wrenches (6,) on links by name.

        Each, the moment in N m first, then the force in N, acts in the origin and the axes of its
        link; those on links of one body add up. Raises UnknownBodyError; ModelError for a link that
        does not move.
        """
        if not isinstance(by_link, Mapping):
            raise ArgumentError(f"by_link must be a mapping of link names; got {by_link!r}")
        found = np.zeros((self.nb, 6))
        for link, wrench in by_link.items():
            frame = self._moving("a wrench", link)
            W = checks.numbers(f"the wrench on {link!r}", wrench, (6,))
            found[frame.body] += se3.Ad(se3.inverse(frame.placement)).T @ W
        return found

    def _moving(self, what: str, link: str) -> Frame:
        """Return the frame of a link, or raise ModelError if it does not move."""
        frame = self.frame(link)
        if frame.body == GROUND:
            raise ModelError(f"{what} at {link!r} has no effect: that link does not move")
        return frame

    # -- models made from this one ---------------------------------------------------------------

    def with_gravity(self, gravity: ArrayLike) -> Model:
        """Return this model under another free-fall acceleration (3,), in m/s^2, inertial frame."""
        return self._sharing_kernels(gravity=checks.numbers("gravity", gravity, (3,)))

    def with_payload(
        self,
        link: str,
        mass: float,
        com: ArrayLike = (0.0, 0.0, 0.0),
        inertia_at_com: ArrayLike | None = None,
    ) -> Model:
        """Return this model with a load fixed to a link, in place of the load that this link has.

        mass in kg, com (3,) in m in the frame of ``link``, inertia_at_com (3, 3) in kg m^2 about
        the centre of mass (default: a point mass). Loads on several links of one body add up. No
        kernel is compiled again unless a body carries a load that carried none before.

        Raises UnknownBodyError; ArgumentError or ModelError for a load that cannot exist or hangs
        on a link that does not move.
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
        return self._sharing_kernels(payloads=tuple(loads))

    def without_payloads(self) -> Model:
        """Return this model without its loads."""
        return self._sharing_kernels(payloads=())

    def with_frame(self, name: str, parent: str, pose: ArrayLike) -> Model:
        """Return this model with a further frame, such as that of a tool, fixed to a link.

        pose (4, 4) is its pose in the frame of the link ``parent``, in m. What takes the name of a
        body or link takes this name then. Raises UnknownBodyError; ArgumentError for what is no
        pose or no name; ModelError for a name that is in use.
        """
        if not isinstance(name, str) or not name:
            raise ArgumentError(f"name must be that of a frame; got {name!r}")
        base, C = self.frame(parent), checks.pose("pose", checks.numbers("pose", pose, (4, 4)))
        if name in self.frames:
            raise ModelError(f"there is a frame {name!r} already; choose another name")
        frame = Frame(name, base.body, base.placement @ C)
        return replace(self, frames={**self.frames, name: frame})

    def _sharing_kernels(self, **changes: Any) -> Model:
        """Return this model with another gravity or other loads, which kernels take as inputs."""
        model = replace(self, **changes)
        object.__setattr__(model, "compiled", Compiled(self.compiled))
        return model

    @cached_property
    def loaded_bodies(self) -> tuple[int, ...]:
        """The k bodies that carry loads, in order."""
        return tuple(sorted({load.body for load in self.payloads}))

    @property
    def payload_parameters(self) -> FloatArray:
        """(k, 10) parameters of the loads of the k bodies that carry any, in the bodies' order."""
        sums = {i: np.zeros(10) for i in self.loaded_bodies}
        for load in self.payloads:
            sums[load.body] += load.parameters
        return np.array(list(sums.values())).reshape(-1, 10)

    def loaded(self) -> Model:
        """Return the model with its payloads added to the bodies that carry them."""
        loads = zip(self.loaded_bodies, self.payload_parameters, strict=True)
        return replace(self, bodies=loaded(self.bodies, loads), payloads=())


def _builder(file: str, function: str) -> Callable[..., Model]:
    """Return a function of a file that imports this one, imported when it is first called."""
    module = importlib.import_module(f"mbs_dynamics.model.{file}")
    return getattr(module, function)  # type: ignore[no-any-return]
