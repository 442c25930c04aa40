# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""What the dynamics node computes with: a model under its gravity and loads, and its kernels.

Knows no ROS.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import MbsError, ModelError, SingularError, UnknownJointError
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.tree import STANDARD_GRAVITY, Model
from mbs_dynamics.ros.effort_input import NO_EFFORTS, Efforts
from mbs_dynamics.ros.joint_friction import JointFriction
from mbs_dynamics.ros.joint_input import Reading
from mbs_dynamics.ros.settings import Settings, check_gravity
from mbs_dynamics.tracing import default_backend

Vector = tuple[float, float, float]

LARGEST_LOAD = 1e6
"""A number of a load above this, in kg, m or kg m^2, is taken for a mistake."""


class Gravity(NamedTuple):
    """A free-fall acceleration in m/s^2, as it is asked for."""

    link: str
    """The link in whose frame it is resolved; empty for the root link."""
    vector: Vector


class Load(NamedTuple):
    """A load fixed to a link, as it is asked for. A mass of zero takes it off."""

    link: str
    mass: float
    """In kg."""
    com: Vector
    """Centre of mass in the link's frame, in m."""
    inertia_at_com: tuple[Vector, Vector, Vector]
    """(3, 3) in kg m^2, axes of the link's frame."""


class Results(NamedTuple):
    """What was computed from one reading."""

    gravity_torques: FloatArray | None
    """(n,); None if not asked for."""
    bias_torques: FloatArray | None
    """(n,); None if not asked for, or without velocities."""
    twists: FloatArray | None
    """(k, 6), one row per body, angular part first; None as for bias torques."""
    jacobians: list[FloatArray]
    """One (6, n) per body, angular part first; empty if not asked for."""
    mass_matrix: FloatArray | None = None
    """(n, n); None if not asked for."""
    energy: FloatArray | None = None
    """Kinetic and potential energy in J, and the power of the efforts in W where they are known."""
    joint_wrenches: FloatArray | None = None
    """(k, 6), one row per joint, moment first, in the frame of the body that the joint moves."""
    why_less: str = ""
    """Why something is missing for want of efforts."""


def fixed_links(model: Model) -> list[str]:
    """Return the links that do not move, the root link first."""
    return [frame.name for frame in model.frames.values() if frame.body == GROUND]


def root_gravity(model: Model, gravity: Gravity) -> FloatArray:
    """Return a gravity (3,) in m/s^2, resolved in the axes of the root link.

    Raises UnknownBodyError for an unknown link, ModelError for one that moves, and ArgumentError
    for numbers that cannot be.
    """
    vector = check_gravity("gravity", gravity.vector)
    if not gravity.link:
        return vector
    frame = model.frame(gravity.link)
    if frame.body != GROUND:
        raise ModelError(
            f"gravity is given in the frame of {gravity.link!r}, which moves; valid are "
            f"the links that do not: {', '.join(fixed_links(model))}"
        )
    return np.asarray(frame.placement[:3, :3] @ vector)


def under_gravity(model: Model, gravity: Gravity) -> Model:
    """Return the model under another gravity; it shares the compiled kernels.

    Raises what :func:`root_gravity` raises.
    """
    return model.with_gravity(root_gravity(model, gravity))


def check_load(load: Load) -> None:
    """Raise ModelError or ArgumentError for a load that no robot can carry."""
    if not load.link:
        raise ModelError("a payload must name the link that carries it in header.frame_id")
    what = f"payload at {load.link!r}"
    largest = max(np.abs([load.mass, *load.com, *np.ravel(load.inertia_at_com)]))
    if LARGEST_LOAD < largest < np.inf:  # before anything is computed that may overflow
        raise ModelError(f"{what}: {largest:g} is too large; valid is at most {LARGEST_LOAD:g}")
    try:
        doubts = Inertia.from_com(load.mass, load.com, load.inertia_at_com).doubts()
    except MbsError as error:
        raise ModelError(f"{what}: {error}") from error
    if doubts:
        raise ModelError(f"{what}: {doubts[0]}")
    if load.mass == 0.0 and np.any(load.inertia_at_com):
        raise ModelError(f"{what}: there is no inertia without mass")


def under_load(model: Model, load: Load) -> Model:
    """Return the model with a load in place of the present one of the body that carries it.

    Raises UnknownBodyError for an unknown link, ModelError or ArgumentError for one that does not
    move and for a load that cannot exist.
    """
    check_load(load)
    return model.with_payload(load.link, load.mass, load.com, load.inertia_at_com)


class Robot:
    """A model with everything compiled that the settings ask for.

    Raises UnknownBodyError or ModelError if the settings name links that are not there or do not
    move.
    """

    def __init__(self, model: Model, settings: Settings) -> None:
        self.model = model
        self.settings = settings
        self.bodies = settings.bodies or model.leaves
        if model.n == 0:
            raise ModelError(f"robot {model.name!r} has no joint that moves")
        for body in self.bodies:
            if model.frame(body).body == GROUND:
                raise ModelError(f"link {body!r} in bodies does not move: it has no twist")
        self.tool_body = settings.tool_body or self.bodies[0]
        if model.frame(self.tool_body).body == GROUND:
            raise ModelError(f"tool_body {self.tool_body!r} does not move: no joint feels a wrench")
        for joint in settings.desired_joints:
            if joint not in model.joint_names:
                raise UnknownJointError(joint, model.joint_names)
        moved = {body.joint.name: i for i, body in enumerate(model.bodies)}
        for joint in settings.joint_wrenches:
            model.joint(joint)  # or UnknownJointError
        self.wrench_bodies = [moved[joint] for joint in settings.joint_wrenches]
        self.friction = (
            JointFriction(model, settings.friction_speed) if settings.joint_friction else None
        )
        self.backend = default_backend()
        rep = settings.body_representation
        # twists and Jacobians depend on neither, and so are not compiled again with them
        plain = model.with_gravity(STANDARD_GRAVITY).without_payloads()
        self._twists = None
        if settings.publish_twists:
            twists = mbs.compile(mbs.twists, plain, bodies=self.bodies, representation=rep)
            self._twists = twists.call
        self._jacobians = [
            mbs.compile(mbs.jacobian, plain, body=body, representation=rep).call
            for body in (self.bodies if settings.publish_jacobians else ())
        ]
        rest = np.zeros(model.n)
        self.evaluate(Reading(rest, rest), Efforts(rest))  # compiles the rest
        if settings.observes:
            self.tool_jacobian(rest)
            mbs.mass_matrix(model, rest)
            mbs.coriolis_matrix(model, rest, rest)
            mbs.gravity_torques(model, rest)
        if settings.publish_desired_torques:
            self.torques_for(rest, rest, rest)

    def twist_frame(self, body: str) -> str:
        """Return the frame in which the twist of a body is resolved."""
        if self.settings.body_representation == "body_fixed":
            return body
        return next(iter(fixed_links(self.model)), "")

    def evaluate(self, reading: Reading, efforts: Efforts | None = None) -> Results:
        """Return what the settings ask for; without velocities, what can be had without them.

        Without the efforts of all joints there is no power, and no joint wrench that takes them.
        """
        model, settings = self.model, self.settings
        q, qd, _ = reading
        gravity, bias, twists, energy, wrenches, why_less = None, None, None, None, None, ""
        mass_matrix = mbs.mass_matrix(model, q) if settings.publish_mass_matrix else None
        if settings.publish_gravity_torques:
            gravity = mbs.gravity_torques(model, q)
        if qd is not None:
            if settings.publish_bias_torques:
                bias = mbs.bias_torques(model, q, qd)
            if self._twists is not None:
                twists = self._twists(q, qd)
            if settings.needs_effort:
                efforts = efforts or Efforts(np.full(model.n, np.nan), NO_EFFORTS)
                why_less = efforts.why_not
            if settings.publish_energy:
                energy = self._energy(q, qd, efforts)
            if self.wrench_bodies:
                try:
                    wrenches = self._joint_wrenches(q, qd, efforts)
                except SingularError as error:
                    why_less = f"no accelerations from efforts: {error}"
        jacobians = [jacobian(q) for jacobian in self._jacobians]
        return Results(gravity, bias, twists, jacobians, mass_matrix, energy, wrenches, why_less)

    def tool_jacobian(self, q: FloatArray) -> FloatArray:
        """Return the Jacobian (6, n) of ``tool_body``, body-fixed, angular part first."""
        J: FloatArray = mbs.jacobian(self.model, q, self.tool_body, representation="body_fixed")
        return J

    def torques_for(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """Return the torques (n,) of a motion, by inverse dynamics, without friction."""
        return mbs.inverse_dynamics(self.model, q, qd, qdd)

    def _energy(self, q: FloatArray, qd: FloatArray, efforts: Efforts | None) -> FloatArray:
        energies = [mbs.kinetic_energy(self.model, q, qd), mbs.potential_energy(self.model, q)]
        if efforts is not None and efforts.complete:
            energies.append(efforts.tau @ qd)
        return np.array(energies, dtype=float)

    def _joint_wrenches(
        self, q: FloatArray, qd: FloatArray, efforts: Efforts | None
    ) -> FloatArray | None:
        qdd = np.zeros(self.model.n)
        if self.settings.joint_wrench_acceleration == "effort":
            if efforts is None or not efforts.complete:
                return None
            friction = self.friction.torques(qd) if self.friction is not None else 0.0
            qdd = mbs.forward_dynamics(self.model, q, qd, efforts.tau + friction)
        wrenches: FloatArray = mbs.joint_wrenches(
            self.model, q, qd, qdd, representation="body_fixed"
        )
        return wrenches[self.wrench_bodies]
