# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The robot of nodes that command an arm: descriptions, gravity, loads, laws and settings. No ROS.

The arm of a description reads messages and answers them. Every call has the time as an argument,
in s of one steady clock, so that equal calls give equal commands.
"""

from __future__ import annotations

from typing import Any

from mbs_dynamics.control.environment import (
    Environment,
    LinkGravity,
    LinkLoad,
    check_earthly,
    root_gravity,
)
from mbs_dynamics.control.faults import Fault
from mbs_dynamics.control.settings import GRAVITY_TOLERANCE
from mbs_dynamics.errors import (
    LONGEST_MESSAGE,
    ArgumentError,
    MbsError,
    ModelError,
    shortened,
)
from mbs_dynamics.ros.compensation.interface import GravityCompensationSettings
from mbs_dynamics.ros.compensation.reported_arm import ReportedArm
from mbs_dynamics.ros.robot_description import loads_of, model_of, remarks_about
from mbs_dynamics.settings import parameters_of

MOST_JOINTS = 60
"""Joints of the largest robot; the time to compile grows faster than their number."""

LONGEST_COMPARED = 200_000
"""Largest number of characters of a description that is compared without its comments."""

RELEASE = 5.0
"""Time in s after a release in which gravity torques hold the arm while ``position_controller``
cannot be activated: several attempts, and less than a drive takes to overheat."""


def without_comments(text: str) -> str:
    """Return a description without comments, or as it is if it is very long."""
    if len(text) > LONGEST_COMPARED:
        return text
    begin, *parts = text.split("<!--")  # a pattern would search for each missing "-->" to the end
    return "".join([begin, *(part.partition("-->")[2] for part in parts)]).strip()


class GravityCompensator:
    """Puts descriptions, settings, gravity and loads in force, and enables torques of the arm.

    :attr:`arm` is None until a description is in force. Descriptions wait until it is at rest.
    """

    def __init__(self, settings: GravityCompensationSettings) -> None:
        self.settings = settings
        self.arm: ReportedArm | None = None
        self.forbidden = ""
        """Why torques must not be enabled in any state of the robot; empty if they may."""
        self.refused = ""
        """Why the latest description was refused; empty if it was not."""
        self.remarks: list[str] = []
        """Warnings about the robot in force, and about gravity or loads that were dropped."""
        self.pending: str | None = None
        """A description that waits until no torque is commanded or held."""
        self.environment = Environment(LinkGravity("", settings.gravity))
        """Requested gravity and loads, with or without a robot."""
        self._text: str | None = None

    # -- state -------------------------------------------------------------------------------------

    @property
    def state(self) -> str:
        """The state: disabled, ramping in, enabled, ramping out, or fault."""
        return "disabled" if self.arm is None else self.arm.state

    @property
    def engaged(self) -> bool:
        """Whether torques are enabled, or ramp in."""
        return self.arm is not None and self.arm.engaged

    @property
    def at_rest(self) -> bool:
        """Whether no torque is commanded or held."""
        return self.arm is None or not (self.arm.moving or any(self.arm.latest))

    @property
    def fault(self) -> Fault | None:
        """The fault that stopped the arm, until it is cleared; None if there is none."""
        return None if self.arm is None else self.arm.fault

    # -- the robot ---------------------------------------------------------------------------------

    def describe(self, text: str, now: float) -> bool:
        """Store a description; False if it is that of the robot in force.

        Another one while engaged is a fault. It waits in :attr:`pending` for :meth:`adopt`, which
        reads it. Comparing texts takes little time for any content.
        """
        if text == (self._text if self.pending is None else self.pending):
            return False
        if self._text is not None and without_comments(text) == without_comments(self._text):
            self._text, self.pending = text, None
            return False
        self.pending = text
        message = "the robot_description of another robot came while enabled"
        if self.arm is not None:
            self.arm.trip(now, Fault("new_description", message))
        return True

    def adopt(self, now: float) -> bool:
        """Put the pending description in force, if no torque is commanded or held.

        False if there is nothing to adopt yet. Raises MbsError if it is refused: the robot before
        it stays in force for diagnostics, but cannot be enabled.
        """
        if self.pending is None or not self.at_rest:
            return False
        text, self._text, self.pending = self.pending, self.pending, None
        self.refused = "it led to an internal error"  # unless what follows ends otherwise
        try:
            settings = self.settings
            model = model_of(text, loads=loads_of(settings.loads))
            if model.n > MOST_JOINTS:
                raise ModelError(f"it has {model.n} joints; must be at most {MOST_JOINTS}")
            model = model.with_armature(settings.rotors)
            used = settings.laws()
            arm = ReportedArm(model, settings, self._options, used, imu=settings.use_imu)
            arm.prepare(now, *used)
            arm.switch(now, settings.law_of_mode())
            environment, dropped = self.environment.fitted(
                model, settings.gravity, lambda some: arm.parameters_of(some.loads)
            )
            arm.set_gravity(root_gravity(model, environment.gravity))
            arm.set_loads(environment.loads)
            if self.fault is not None:
                arm.latch(self.fault)
        except MbsError as error:
            self.refused = str(error)
            raise
        self.refused = ""
        self.arm, self.environment = arm, environment
        self.remarks = [*remarks_about(model), *dropped]
        return True

    @property
    def _options(self) -> dict[str, Any]:
        """Settings of the period in addition to those of an arm."""
        given, adds = self.settings, self.settings.adds_to_position_control
        options: dict[str, Any] = {
            "release": RELEASE if given.hands_over else 0.0,
            "watches_efforts": adds or bool(given.position_controller),
        }
        if adds:  # the arm is held meanwhile, and must not jerk
            options |= {"ramp_in": max(given.ramp_in_time, given.ramp_time), "settle_time": 0.0}
        return options

    @property
    def described(self) -> ReportedArm:
        """The arm. Raises ArgumentError if there is no description yet."""
        if self.arm is None:
            raise ArgumentError("there is no robot_description yet")
        return self.arm

    # -- gravity and loads ------------------------------------------------------------------------

    def set_gravity(self, gravity: LinkGravity) -> None:
        """Change gravity, along a ramp while engaged. Raises MbsError if it is refused."""
        if self.settings.use_imu:
            raise ArgumentError("use_imu is true: gravity comes from the imu alone")
        check_earthly("gravity", gravity.vector, GRAVITY_TOLERANCE)
        if self.arm is not None:
            self.arm.set_gravity(root_gravity(self.arm.model, gravity))
        self.environment = self.environment._replace(gravity=gravity)

    def set_load(self, load: LinkLoad) -> None:
        """Change the load of a link. Raises MbsError if it is refused."""
        environment = self.environment.with_load(load)
        if self.arm is not None:
            self.arm.set_loads(environment.loads, check=load.mass > 0.0)
        self.environment = environment

    # -- settings ---------------------------------------------------------------------------------

    def check(self, settings: GravityCompensationSettings, now: float = 0.0) -> None:
        """Raise ArgumentError or ModelError if these settings cannot be applied."""
        changed = self._changed(settings)
        fixed = changed & {one.name for one in parameters_of(type(settings)) if one.at_rest_only}
        if fixed and not self.at_rest:
            raise ArgumentError(
                f"{', '.join(sorted(fixed))} can be changed only while no torque is commanded or "
                f"held: the state is {self.state!r}; disable first"
            )
        if "gravity" in changed and settings.use_imu:
            raise ArgumentError("use_imu is true: gravity comes from the imu alone")
        if self.arm is not None:
            if not changed.isdisjoint(settings.law_settings):
                self.arm.prepare(now, settings.law_of_mode())
            if "gravity" in changed:
                gravity = LinkGravity("", settings.gravity)
                self.arm.check_gravity(root_gravity(self.arm.model, gravity))

    def _changed(self, settings: GravityCompensationSettings) -> set[str]:
        """Return the names of the settings that differ from those in force."""
        names = {one.name for one in parameters_of(type(settings))}
        return {name for name in names if getattr(settings, name) != getattr(self.settings, name)}

    def change(self, settings: GravityCompensationSettings, now: float) -> None:
        """Apply settings that :meth:`check` accepts."""
        changed = self._changed(settings)
        self.settings = settings
        if self.arm is not None:
            self.arm.change(settings, self._options)
            if not changed.isdisjoint(settings.law_settings):
                self.arm.switch(now, settings.law_of_mode())
        if "gravity" in changed:
            self.set_gravity(LinkGravity("", settings.gravity))

    # -- the service ------------------------------------------------------------------------------

    def problems(self, now: float, rivals: int = 0, trouble: str = "") -> list[str]:
        """Return all reasons why torques must not be enabled now; empty if there are none.

        ``rivals`` is the number of other publishers on the command topic, ``trouble`` a problem
        with the controllers.
        """
        settings, arm = self.settings, self.arm
        problems = [self.forbidden] if self.forbidden else []
        if rivals:
            problems.append(f"{rivals} other publisher(s) on {settings.command_topic}")
        if not settings.joints:
            problems.append(
                "the parameter joints is empty: name the controller's joints in its order"
            )
        if settings.compensates_itself is None:
            problems.append("the parameter compensates_itself is not set")
        elif settings.compensates_itself:
            problems.append("compensates_itself is true: commands would double the compensation")
        if self.pending is not None:
            problems.append(
                "a new robot_description waits until all torques are gone: disable first"
            )
        if self.refused:
            problems.append(f"the latest robot_description was refused: {self.refused}")
        elif arm is None:
            problems.append("there is no robot_description yet")
        if arm is not None:
            problems += arm.problems(now)
        problems += [trouble] if trouble else []
        return [shortened(one, LONGEST_MESSAGE) for one in problems]

    def enable(self, now: float, rivals: int = 0, trouble: str = "") -> str:
        """Begin to ramp in; return why not, empty if it does. Arguments as for problems."""
        problems = [] if self.engaged else self.problems(now, rivals, trouble)
        if not problems and self.arm is not None:
            problems = self.arm.enable(now)
        return "; ".join(problems)

    def set_holds(self, holds: bool) -> None:
        """State whether ``position_controller`` holds the arm."""
        if self.arm is not None:
            self.arm.set_holder(exists=self.settings.hands_over, holds=holds)

    def clear(self, now: float) -> str:
        """Clear the fault; return it in words. Raises ArgumentError without one, or too early."""
        fault = self.fault
        if fault is None or self.arm is None:
            raise ArgumentError(f"there is no fault: the state is {self.state!r}")
        if self.arm.stopping:
            raise ArgumentError("the stop after the fault is not over; try again once it is")
        self.arm.clear(now)
        return f"cleared: {fault}"

    def disable(self, now: float) -> None:
        """Begin to ramp out; after a fault with on_fault hold, release the held torques."""
        if self.arm is not None:
            self.arm.disable(now)
