# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The robot of dynamics_node: a model under gravity and loads with its kernels.

It persists while descriptions, settings, gravity and loads change. No ROS is needed.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.algorithms import GeneralizedMomentum
from mbs_dynamics.algorithms.kernels import model_inputs
from mbs_dynamics.algorithms.verification import verify
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import default_backend
from mbs_dynamics.control.environment import (
    Environment,
    LinkGravity,
    LinkLoad,
    check_gravity,
    fixed_links,
    with_gravity,
    with_load,
)
from mbs_dynamics.control.joint_states import fixed_coordinates
from mbs_dynamics.control.position_arm import PositionArm
from mbs_dynamics.errors import ArgumentError, ModelError, UnknownJointError
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.orders import tools
from mbs_dynamics.model.separation import separated
from mbs_dynamics.ros.dynamics.base import BaseState
from mbs_dynamics.ros.dynamics.interface import DynamicsSettings
from mbs_dynamics.ros.dynamics.outputs import GravityTorques
from mbs_dynamics.ros.robot_description import loads_of, model_of, remarks_about

if TYPE_CHECKING:
    from mbs_dynamics.integrate import JointForces

COMPARED = {"gravity_torques", "bias_torques", "mass_matrix"}
"""Results that may become commands: their code is compared with the equations."""

Results = Mapping[str, Any]
"""Outputs of the kernel by name; without velocities only those that do not need them."""


def momentum_of(results: Results) -> GeneralizedMomentum | None:
    """Return the momentum for the observer; None if it does not run, or without velocities."""
    if "momentum_p" not in results:
        return None
    return GeneralizedMomentum(results["momentum_p"], results["momentum_rate"])


class Robot:
    """A model with the kernels that the settings ask for.

    Raises UnknownBodyError or ModelError if the settings name links that are not there or do not
    move, UnknownJointError if they name joints that are not there.
    """

    def __init__(self, model: Model, settings: DynamicsSettings) -> None:
        self.model = model
        self.settings = settings
        self.bodies = settings.bodies or tools(model)
        if model.n == 0:
            raise ModelError(f"robot {model.name!r} has no joint that moves")
        for body in self.bodies:
            if model.frames[body].body == GROUND:
                raise ModelError(f"link {body!r} in bodies does not move: it has no twist")
        UnknownJointError.check(settings.desired_joints, model.joint_names)
        children = {body.joint.name: body.name for body in model.bodies}
        children |= {name: joint.child.name for name, joint in model.fixed_joints.items()}
        UnknownJointError.check(settings.joint_wrenches, children)
        fixed_coordinates(self.joint_names, settings.fixed)
        self.servos: PositionArm | None = None
        if settings.servos_file:
            try:
                self.servos = PositionArm.read(settings.servos_file, model)
            except ArgumentError as error:
                raise ArgumentError(f"servos_file: {error}") from error
        self.wrench_links = [children[joint] for joint in settings.joint_wrenches]
        self.friction: JointForces | None = None
        if settings.joint_friction and settings.observed:
            from mbs_dynamics.integrate import JointForces  # slow to import, and rarely needed

            self.friction = JointForces.of(model)
        self.backend = default_backend()
        self._rest = np.zeros(model.n)
        self._compile()
        self._bind()
        rest = np.zeros(len(self.joint_names))
        base = BaseState(model.neutral()[:7], np.zeros(6)) if settings.floating_base else None
        self.evaluate(rest, rest, base)  # compiles what remains
        if settings.answers_desired:
            self.torques_for(rest, rest, rest)

    def _compile(self) -> None:
        # gravity is in it always: no kernel is empty, and resting efforts are compared with it
        self.algorithms: dict[str, Any] = {**GravityTorques().algorithms(self)}
        """The algorithms in the kernel, by the names of their results."""
        for one in self.settings.asked:
            self.algorithms.update(one.algorithms(self))
        self._kernel = mbs.compile_together(self.algorithms, self.model, defaults=False)
        for name in COMPARED & self.algorithms.keys():
            verify(self._kernel, getattr(mbs, name), self._model_of_kernel, name)
        inputs = [port.name for port in self._kernel.inputs]
        # acceleration inputs imply velocity inputs, and these imply positions
        self._takes = sum(name in inputs for name in ("q", "qd", "qdd"))
        self._outputs = [port.name for port in self._kernel.outputs]
        resting = [one for one in self.settings.asked if not one.needs_velocity]
        still = {name for one in (GravityTorques(), *resting) for name in one.algorithms(self)}
        self._moving = set(self._outputs) - still

    def _bind(self) -> None:
        """Store the inputs of the kernel that belong to the model."""
        self._of_model = model_inputs(self._model_of_kernel, self._kernel)

    @property
    def _model_of_kernel(self) -> Model:
        return separated(self.model, self.settings.joint_wrenches)

    def with_environment(self, model: Model) -> Robot:
        """Return this robot with another gravity or other loads; ``model`` is the same otherwise.

        It compiles only if other bodies carry loads than before.
        """
        if model.payloads.bodies != self.model.payloads.bodies:
            return Robot(model, self.settings)
        changed = copy.copy(self)
        changed.model = model
        changed._bind()
        return changed

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints of joint_states: all but that of a floating base."""
        return self.model.joint_names[self.settings.floating_base :]

    @property
    def root(self) -> str:
        """The root link; its frame is the inertial one. Empty if the model has no such frame.

        With a floating base the frame of its pose.
        """
        if self.settings.floating_base:
            return self.settings.odom_frame
        ground = (self.model.frames[name] for name in fixed_links(self.model))
        return next((x.name for x in ground if (x.placement == np.eye(4)).all()), "")

    def frame(self, link: str = "") -> str:
        """Return the frame of TF of a link, by default of the root."""
        return self.settings.frame_prefix + (link or self.root)

    def twist_frame(self, body: str) -> str:
        """Return the frame in whose axes the twist of a body is resolved."""
        return body if self.settings.body_representation == "body_fixed" else self.root

    def evaluate(
        self, q: FloatArray, qd: FloatArray | None, base: BaseState | None = None
    ) -> Results:
        """Return the requested results; without velocities, only those that do not need them.

        One kernel computes them all. ``q`` and ``qd`` are those of :attr:`joint_names`, ``base`` is
        the state of a floating base.
        """
        if base is not None:
            q = np.concatenate([base.q, q])
            qd = None if qd is None else np.concatenate([base.qd, qd])
        rest = self._rest
        values = self._computed(q, rest if qd is None else qd, rest)
        if qd is None:
            values = {name: x for name, x in values.items() if name not in self._moving}
        if base is not None:
            for name in ("gravity_torques", "bias_torques"):  # the wrench is that of the latter
                if name in values:
                    values["base_wrench"], values[name] = values[name][:6], values[name][6:]
        return values

    def momentum(self, q: FloatArray, qd: FloatArray) -> GeneralizedMomentum:
        """Return the momentum in a state; only if the observer runs."""
        momentum = momentum_of(self._computed(q, qd, self._rest))
        assert momentum is not None
        return momentum

    def torques_for(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """Return the torques (n,) of a motion, by inverse dynamics, without friction."""
        by = self.settings.algorithm
        return mbs.inverse_dynamics(self.model, q, qd, qdd, representation=by)

    def _computed(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> dict[str, Any]:
        """Return the outputs of the kernel by name."""
        outputs = self._kernel(*(q, qd, qdd)[: self._takes], *self._of_model)
        several = outputs if len(self._outputs) > 1 else (outputs,)
        return dict(zip(self._outputs, several, strict=True))


class ModelManager:
    """The robot in force, with the gravity and loads that persist when it changes.

    Every method either succeeds, or raises MbsError and changes nothing.
    """

    def __init__(self, settings: DynamicsSettings) -> None:
        self.settings = settings
        self.robot: Robot | None = None
        self.environment = Environment(LinkGravity("", settings.gravity))
        """Requested gravity and loads, with or without a robot."""
        self._text = ""

    def describe(self, text: str) -> list[str] | None:
        """Put the robot of a URDF in force; None if the text is that of the robot in force.

        Return warnings about it, and about gravity and loads that do not fit it and are dropped.
        """
        if text == self._text:
            return None
        settings = self.settings
        model = model_of(
            text,
            settings.root,
            settings.tip,
            loads_of(settings.loads),
            floating_base=settings.floating_base,
        )
        environment, dropped = self.environment.fitted(
            model, settings.gravity, lambda some: with_load(model, some.loads[-1])
        )
        self.robot = Robot(environment.applied_to(model), settings)
        self._text, self.environment = text, environment
        return [*remarks_about(model), *dropped]

    def check(self, settings: DynamicsSettings) -> None:
        """Raise MbsError if these settings do not fit the robot in force."""
        if self.robot is not None:
            Robot(self.robot.model, settings)

    def configure(self, settings: DynamicsSettings) -> None:
        """Put other settings in force, except for gravity."""
        if self.robot is not None:
            self.robot = Robot(self.robot.model, settings)
        self.settings = settings

    def set_gravity(self, gravity: LinkGravity) -> None:
        """Put another gravity in force. Nothing is compiled again.

        Without a robot it waits for one.
        """
        check_gravity("gravity", gravity.vector)
        if self.robot is not None:
            self.robot = self.robot.with_environment(with_gravity(self.robot.model, gravity))
        self.environment = self.environment._replace(gravity=gravity)

    def set_load(self, load: LinkLoad) -> None:
        """Put a load in force, in place of the present one of the same link.

        The first load at a body compiles once, another one there does not. Without a robot it waits
        for one.
        """
        environment = self.environment.with_load(load)
        if self.robot is not None:
            self.robot = self.robot.with_environment(with_load(self.robot.model, load))
        self.environment = environment
