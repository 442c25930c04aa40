# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The model of a mechanism, and models made from it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, ParamSpec

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.errors import ArgumentError, ModelError
from mbs_dynamics.model import dh, editing, macro_joints, mjcf, screws, urdf
from mbs_dynamics.model.arrays import Arrays
from mbs_dynamics.model.body import GROUND, Frame, placed
from mbs_dynamics.model.compiled import Compiled
from mbs_dynamics.model.coordinates import drivetrain_of
from mbs_dynamics.model.description import Description
from mbs_dynamics.model.diagnostics import SINGULAR, Diagnostic, warn
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.payloads import Payload, Payloads, loaded
from mbs_dynamics.model.values import frozen

P = ParamSpec("P")


def _made_of(build: Callable[P, Description]) -> Callable[P, Model]:
    """Return a constructor of models from a function that describes them, with its signature."""

    @functools.wraps(build)
    def make(*args: P.args, **named: P.kwargs) -> Model:
        return warn(Model(*build(*args, **named)))

    make.__signature__ = inspect.signature(build).replace(return_annotation="Model")  # type: ignore[attr-defined]
    return make


class Model(Arrays):
    """A mechanism with tree topology: nb moving bodies, one or several roots.

    Positions ``q`` have ``nq`` entries, velocities ``nv`` or ``n``. They are as many, and qd is the
    rate of q, if all joints have one degree of freedom; :mod:`mbs_dynamics.model.subgroup` lists
    what positions and velocities of the other ones are.

    Constructors: :meth:`from_urdf`, :meth:`from_mjcf`, :meth:`from_screws`,
    :meth:`from_joint_frames`, :meth:`from_joints` and :meth:`from_dh`. A parent always precedes its
    children. A mimic joint shares the coordinate of another joint, so that nb can exceed n.
    ``print(model)`` shows the tree. Models are immutable, compared by content, and can be copied
    and pickled; :meth:`with_gravity`, :meth:`with_payload`, :meth:`with_armature`,
    :meth:`with_placements` and :meth:`with_frame` return new ones, of which all but the last share
    the compiled kernels.
    """

    from_urdf = staticmethod(_made_of(urdf.from_urdf))
    from_mjcf = staticmethod(_made_of(mjcf.from_mjcf))
    from_screws = staticmethod(_made_of(screws.from_screws))
    from_joint_frames = staticmethod(_made_of(screws.from_joint_frames))
    from_joints = staticmethod(_made_of(macro_joints.from_joints))
    from_dh = staticmethod(_made_of(dh.from_dh))

    def screws(self, *, frame: str = "body_fixed") -> screws.Screws:
        """Return parents, homes, screws and body inertias, as :meth:`from_screws` takes them.

        ``frame`` is ``"body_fixed"`` (B_i and X_i), ``"spatial"`` (A_i and Y_i) or ``"parent"``.
        Payloads are not included. Raises ArgumentError for another frame. See
        :func:`mbs_dynamics.model.screws.screws`.
        """
        return screws.screws(self.bodies, frame)

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

    def without_payloads(self) -> Model:
        """Return this model without loads."""
        return self._sharing_kernels(payloads=Payloads())

    def with_armature(self, by_joint: Mapping[str, ArrayLike]) -> Model:
        """Return this model with other rotor inertias, as the named joints see them.

        ``by_joint`` maps names of joints, mimic joints included, to rotor inertia times gear ratio
        squared, in kg m^2 or kg: a number, or k for a joint with k degrees of freedom. Other joints
        keep theirs. They are added to the diagonal of M; gyroscopic torques of the rotors are left
        out. Kernels are compiled again only if the model had no armature at all. Raises
        UnknownJointError; ArgumentError for values that are no numbers; ModelError for negative
        ones.
        """
        checks.mapping("by_joint", by_joint, "joint")
        own = {body.joint.name: body.joint for body in self.bodies}
        for name, armature in by_joint.items():
            given: Any = armature
            own[name] = replace(self.joint(name), armature=given)
        bodies = tuple(replace(body, joint=own[body.joint.name]) for body in self.bodies)
        moving = {f"joint {name!r}" for name in by_joint if np.any(own[name].armature)}
        return self._sharing_kernels(
            bodies=bodies,
            joints=tuple(own[joint.name] for joint in self.joints),
            diagnostics=tuple(
                each
                for each in self.diagnostics
                if each.subject not in moving or not each.message.endswith(SINGULAR)
            ),
            **drivetrain_of(list(own.values()), self.n)._asdict(),
        )

    def with_placements(self, poses: Mapping[str, ArrayLike]) -> Model:
        """Return this model with other placements of links, as in a kinematic calibration.

        ``poses`` maps names of bodies, merged links and added frames to poses (4, 4) as
        :meth:`placement` returns them. The axis of the joint moves with its body. A merged link or
        added frame moves alone: masses stay with their bodies.

        Placements of the named links are inputs of the kernels of the model from then on. Kernels
        are compiled again only if a link is named for the first time; those with such inputs take
        more operations.

        Raises UnknownBodyError; ArgumentError for values that are no poses.
        """
        checks.mapping("poses", poses, "link")
        given = {}
        for link, pose in poses.items():
            name = f"the pose of {self.frames[link].name!r}"
            given[link] = frozen(checks.snap(checks.pose(name, checks.numbers(name, pose, (4, 4)))))
        bodies, frames = placed(self.bodies, self.frames, given)
        known = dict.fromkeys((*self.body_names, *self.frames))  # bodies first
        order = tuple(name for name in known if name in given or name in self.placed)
        return self._sharing_kernels(bodies=bodies, frames=frames, placed=order)

    def with_frame(self, name: str, parent: str, pose: ArrayLike) -> Model:
        """Return this model with an additional frame, such as a tool centre point, on a link.

        ``pose`` (4, 4) is its pose in the frame of the link ``parent``, in m. The name is then
        valid wherever the name of a body or link is. Raises UnknownBodyError; ArgumentError if
        ``pose`` is not a pose or ``name`` not a name; ModelError if the name is in use.
        """
        if not isinstance(name, str) or not name:
            raise ArgumentError(f"name must be that of a frame; got {name!r}")
        base, C = self.frames[parent], checks.pose("pose", checks.numbers("pose", pose, (4, 4)))
        if name in self.frames:
            raise ModelError(f"there is a frame {name!r} already; choose another name")
        frame = Frame(name, base.body, base.placement @ C, parent=parent)
        return replace(self, frames={**self.frames, name: frame})

    def attached(
        self, tool: Model, to: str, placement: ArrayLike | None = None, prefix: str = ""
    ) -> Model:
        """Return this model with another one mounted on the link ``to``.

        ``placement`` (4, 4) is the pose of the tool's root link in the frame of ``to``, None: the
        same frame. Names of the tool's links, joints and frames get the ``prefix``. Coordinates of
        the tool come after those of this model; gravity is that of this model. Links that are fixed
        to the root of the tool belong to the body with ``to``. Raises UnknownBodyError for ``to``,
        ArgumentError for a placement that is not a pose, and ModelError for names that are in use,
        as those of a tool that is mounted twice.
        """
        if not isinstance(tool, Model):
            raise ArgumentError(f"tool must be a Model; got {tool!r}")
        C = np.eye(4) if placement is None else checks.numbers("placement", placement, (4, 4))
        at = checks.pose("placement", C)
        parts = editing.attached(self._parts, tool._parts, self.frames[to], at, prefix, self.n)
        return self._of(parts, self.diagnostics + tool.diagnostics)

    def locked(self, positions: Mapping[str, ArrayLike]) -> Model:
        """Return this model with joints fixed at positions in rad or m, by name.

        Joints that mimic them are fixed as well. Inertias are merged, frames are kept; positions of
        the other joints keep their order. A position outside the limits is a ModelWarning. Raises
        UnknownJointError; ModelError for a joint that mimics another one; ArgumentError for values
        that are no positions of the joint.
        """
        checks.mapping("positions", positions, "joint")
        given = {
            name: editing.positions_of(self.joint(name), value) for name, value in positions.items()
        }
        return self._of(editing.locked(self._parts, given), self.diagnostics)

    def reduced(self, joints: Iterable[str], q: ArrayLike | None = None) -> Model:
        """Return this model with all joints locked but the named ones and those that mimic them.

        They are locked at their positions in ``q`` (nq,), None: the neutral ones within limits.
        Raises UnknownJointError, and ArgumentError as :meth:`locked` does.
        """
        if isinstance(joints, str):
            raise ArgumentError(f"joints must be names of joints; got the text {joints!r}")
        kept = [self.joint(name).mimics or name for name in joints]
        at = self.neutral(within_limits=True) if q is None else self.checked_positions("q", q)
        others = [joint for joint in self.joints if joint.name not in kept]
        return self.locked({joint.name: at[self.positions_of(joint)] for joint in others})

    def rerooted(self, link: str) -> Model:
        """Return this model with a link as its ground, in whose frame poses are given then.

        The joints between the link and the former root are reversed, and keep their positions;
        gravity keeps its numbers, in the axes of the link. The former root becomes a body with the
        inertia of its link, which is that of the description.

        If a free joint moves the root, as with ``floating_base``, it moves the link instead: its
        positions are then the pose of the link, its velocities the body-fixed twist of the link,
        and the ground stays what it is, with gravity.

        Raises UnknownBodyError, and ModelError for a link that does not move, or if a joint that
        must be reversed has several degrees of freedom.
        """
        frame = self._moving("another root", link)
        at_origin = [
            one.name
            for one in self.frames.values()
            if one.body == GROUND and np.array_equal(one.placement, np.eye(4))
        ]
        ground = at_origin[0] if at_origin else "ground"
        return self._of(editing.rerooted(self._parts, frame, ground), self.diagnostics)

    @property
    def _parts(self) -> editing.Parts:
        return editing.Parts(self.bodies, self.frames, self.payloads)

    def _of(self, parts: editing.Parts, diagnostics: tuple[Diagnostic, ...]) -> Model:
        return replace(self, **parts._asdict(), diagnostics=diagnostics, placed=())

    def _sharing_kernels(self, **changes: Any) -> Model:
        """Return this model with other properties that are inputs of kernels."""
        model = object.__new__(type(self))
        model.__dict__.update(self.__dict__, **changes, _compiled=Compiled(self._compiled))
        if "frames" in changes:
            model.__dict__.pop("fixed_joints", None)  # where a link was
        return model

    def loaded(self) -> Model:
        """Return the model with its loads merged into the bodies that carry them."""
        loads = zip(self.payloads.bodies, self.payloads.parameters, strict=True)
        frames = dict(self.frames)
        for load in self.payloads:
            own = frames[load.link].inertia
            if own is not None:
                total = own + Inertia.from_parameters(load.parameters)
                frames[load.link] = frames[load.link]._replace(inertia=total)
        bodies = loaded(self.bodies, loads)
        return replace(self, bodies=bodies, frames=frames, payloads=Payloads())
