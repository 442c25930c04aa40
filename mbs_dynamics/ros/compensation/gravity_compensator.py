# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The robot of nodes that command an arm: descriptions, gravity, loads, laws and settings. No ROS.

What is received becomes calls of the guard of the arm, and what that commands is published. Every
call has the time as an argument, in s of one steady clock, so that the same calls give the same
commands.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from mbs_dynamics.control import enabling
from mbs_dynamics.control.collision import Collision
from mbs_dynamics.control.environment import (
    LinkGravity,
    LinkLoad,
    Vector,
    carried_over,
    check_earthly,
    check_load,
    replaced,
    root_gravity,
)
from mbs_dynamics.control.gravity_and_loads import (
    aim_gravity,
    aim_loads,
    check_gravity,
    loads_goal,
)
from mbs_dynamics.control.input_checks import Freshness
from mbs_dynamics.control.motors import Motors
from mbs_dynamics.control.old_guard import IDLE_PERIOD, Answer, Guard
from mbs_dynamics.control.period.evidence import GROWTH
from mbs_dynamics.control.policy import CommandLimits, CommandPolicy, Fault, GuardState
from mbs_dynamics.control.references import Target
from mbs_dynamics.errors import LONGEST_MESSAGE, ArgumentError, MbsError, ModelError, shortened
from mbs_dynamics.ros.compensation.impedance import MODES, OF_LAWS, ImpedanceControlSettings
from mbs_dynamics.ros.compensation.interface import GravityCompensationSettings
from mbs_dynamics.ros.performance import cost_of
from mbs_dynamics.ros.robot_description import loads_of, model_of, remarks_about
from mbs_dynamics.settings import parameters_of

MOST_JOINTS = 500
"""Joints of the largest robot; the time to compile grows faster than their number."""

LONGEST_COMPARED = 200_000
"""Characters of the longest description that is compared without its comments."""


def plain(text: str) -> str:
    """Return a description without comments, or as it is if it is very long."""
    if len(text) > LONGEST_COMPARED:
        return text
    begin, *parts = text.split("<!--")  # a pattern would search for each missing "-->" to the end
    return "".join([begin, *(part.partition("-->")[2] for part in parts)]).strip()


def _within(
    settings: GravityCompensationSettings, motors: Motors | None
) -> GravityCompensationSettings:
    """Return settings with the effort limits of motors, where the settings state none."""
    if motors is None:
        return settings
    by_joint = dict(zip(motors.joint_names, motors.limits, strict=True))
    pairs = zip(settings.joints, settings.effort_limits, strict=True)
    limits = tuple(own or by_joint[name] for name, own in pairs)
    return settings.changed({"effort_limits": limits})


class Effects(NamedTuple):
    """Changes of the core since its latest effects, and the time of its next call."""

    entered: GuardState | None
    """The state, if it is another one."""
    collision: Collision | None
    """The latest collision, if it is a new one."""
    remark: str
    """Changes of the reference of a law, for the log; empty if there are none."""
    torques_are_in: bool
    """Whether torques have ramped in."""
    engaged: bool
    """Whether torques are enabled, or ramp in."""
    at_rest: bool
    """Whether no torque is commanded or held."""
    due_in: float
    """In how many seconds ``tick`` must be called, if nothing else happens."""
    warning: str = ""
    """A warning for the log; empty if there is none."""


class GravityCompensator:
    """Converts what the node receives to calls of the guard of the arm that is described."""

    def __init__(self, settings: GravityCompensationSettings) -> None:
        self.settings = settings
        self.policy = CommandPolicy(settings.on_fault)
        self.arm: Guard | None = None
        self.motors: Motors | None = None
        """The units of joint_states and commands; None: SI units."""
        self.forbidden = ""
        """Why torques must not be enabled in any state of the robot; empty if they may."""
        self.refused = ""
        """Why the latest description was refused; empty if it was not."""
        self.remarks: list[str] = []
        """Warnings about the robot in force, and about gravity or loads that were dropped."""
        self.pending: str | None = None
        """A description that waits until no torque is commanded or held."""
        self.gravity = LinkGravity("", settings.gravity)
        self.loads: list[LinkLoad] = []
        self._text: str | None = None
        self._state: GuardState | None = None
        self._collision: Collision | None = None
        """Those of the latest effects."""
        self._forget_imu()

    def _forget_imu(self) -> None:
        self.imu_watch = Freshness("imu")
        self._imu_at = -math.inf
        self._imu_stamp = 0
        self._imu = np.zeros(3)

    def effects(self, now: float) -> Effects:
        """Return the changes since the last call, and the time of the next ``tick``."""
        policy, arm, before = self.policy, self.arm, (self._state, self._collision)
        remark = warning = ""
        if arm is not None:
            remark = "; ".join(filter(None, (arm.remark, arm.following.remark())))
            warning, arm.remark, arm.warning = arm.warning, "", ""
        self._state, self._collision = policy.state, None if arm is None else arm.collision
        return Effects(
            entered=None if self._state is before[0] else self._state,
            collision=None if self._collision is before[1] else self._collision,
            remark=remark,
            torques_are_in=policy.state is GuardState.ENABLED and not policy.limited.rate,
            engaged=policy.engaged,
            at_rest=policy.at_rest,
            due_in=self.due_in(now),
            warning=warning,
        )

    # -- the robot ---------------------------------------------------------------------------------

    def describe(self, text: str, now: float) -> bool:
        """Store a description; False if it is that of the robot in force.

        Another one while engaged is a fault. It waits in :attr:`pending` for :meth:`adopt`, which
        reads it. Here texts are compared, which takes little time whatever they contain.
        """
        if text == (self._text if self.pending is None else self.pending):
            return False
        if self._text is not None and plain(text) == plain(self._text):
            self._text, self.pending = text, None
            return False
        self.pending = text
        message = "the robot_description of another robot came while enabled"
        self.policy.trip(now, Fault("new_description", message))
        return True

    def adopt(self, now: float) -> bool:
        """Put the pending description in force, if no torque is commanded or held.

        False if there is nothing to adopt yet. Raises MbsError if it is refused: the robot before
        it stays in force for diagnostics, but cannot be enabled.
        """
        if self.pending is None or not self.policy.at_rest:
            return False
        text, self._text, self.pending = self.pending, self.pending, None
        self.refused = "it led to an internal error"  # unless what follows ends otherwise
        try:
            settings = self.settings
            model = model_of(text, settings.root, settings.tip, loads_of(settings.loads))
            if model.n > MOST_JOINTS:
                raise ModelError(f"it has {model.n} joints; valid are at most {MOST_JOINTS}")
            motors = None
            if settings.motors_file:
                motors = Motors.read(settings.motors_file, model)
                motors.check_single(settings.joints)
            within = _within(settings, motors)
            if isinstance(settings, ImpedanceControlSettings):
                rotors = dict(zip(settings.joints, settings.armature, strict=True))
                model = model.with_armature(rotors)
            arm = Guard(model, within, self.policy, source="joint_states")
            self._follow(arm, settings, now, every=True)
            initial = LinkGravity("", settings.gravity)
            gravity, loads, dropped = carried_over(
                model, self.gravity, initial, self.loads, partial(loads_goal, arm)
            )
            arm.law.gravity.aim(root_gravity(model, gravity), now, 0.0)
            arm.law.loads.aim(loads_goal(arm, loads), now, 0.0)
        except MbsError as error:
            self.refused = str(error)
            raise
        self.refused = ""
        self.arm, self.gravity, self.loads, self.motors = arm, gravity, loads, motors
        self.remarks = [*remarks_about(model), *dropped]
        self._forget_imu()
        if settings.use_imu:
            arm.watches.append(self.imu_watch)
        return True

    def _follow(
        self, arm: Guard, settings: GravityCompensationSettings, now: float, *, every: bool = False
    ) -> None:
        """Let an arm follow the law of the mode; ``every``: compile those of all modes before."""
        if not isinstance(settings, ImpedanceControlSettings):
            return
        for mode in MODES if every else ():
            if mode != "law" or settings.law:
                arm.prepare(settings.law_of(mode), now)
        arm.switch(settings.law_of(settings.mode), now)

    def aim(self, target: Target | None, now: float, *, stamp: int = 0, clock: int = 0) -> None:
        """Let the law follow another reference. Raises MbsError, and changes nothing, if invalid.

        ``stamp`` and ``clock`` as for :meth:`accelerate`.
        """
        if self.arm is None:
            raise ArgumentError("there is no robot_description yet")
        aged = self.arm.aged(stamp, clock)
        if aged:
            raise ArgumentError(aged)
        self.arm.aim(target, now)

    def pace(self, rate: float) -> None:
        """Play the trajectory at a share of its speed. Raises ArgumentError if there is none."""
        if self.arm is None:
            raise ArgumentError("there is no robot_description yet")
        self.arm.following.pace(rate)

    # -- gravity and loads ------------------------------------------------------------------------

    def set_gravity(self, gravity: LinkGravity, now: float) -> None:
        """Move to another gravity, along a ramp while engaged. Raises MbsError if it is refused."""
        if self.settings.use_imu:
            raise ArgumentError("use_imu is true: gravity comes from the imu alone")
        check_earthly("gravity", gravity.vector, self.settings.gravity_tolerance)
        if self.arm is not None:
            aim_gravity(self.arm, root_gravity(self.arm.model, gravity), now)
        self.gravity = gravity

    def set_load(self, load: LinkLoad, now: float) -> None:
        """Move to another load of the link that carries it. Raises MbsError if it is refused."""
        check_load(load)
        loads = replaced(self.loads, load)
        if self.arm is not None:
            own = self.settings.payload_time
            time = None if own < 0.0 else own
            aim_loads(self.arm, loads, now, check=load.mass > 0.0, time=time)
        self.loads = loads

    def accelerate(
        self, link: str, acceleration: Vector, now: float, *, stamp: int, clock: int = 0
    ) -> None:
        """Process the proper acceleration (3,) in m/s^2 that an imu fixed to ``link`` measures.

        Its negative is the free fall as the base sees it: gravity less the acceleration of the
        base. ``stamp`` in ns is that of the measurement, 0 if it has none; ``clock`` the time of
        stamps now, 0 if it is not checked. The same stamp again is no new measurement. A
        bad one is a fault; it raises MbsError as well.
        """
        if self.arm is None or (stamp and stamp == self._imu_stamp):
            return
        try:
            if not stamp:
                raise ArgumentError("it has no time stamp")
            silent = now - self._imu_at >= self.settings.stale_timeout
            if stamp < self._imu_stamp and not silent:
                late = 1e-9 * (self._imu_stamp - stamp)
                raise ArgumentError(f"its stamp is {late:.6f} s before that of the message before")
            aged = self.arm.aged(stamp, clock)
            if aged:
                raise ArgumentError(aged)
            gravity = LinkGravity(link, tuple(-x for x in acceleration))  # type: ignore[arg-type]
            root_gravity(self.arm.model, gravity)
            elapsed, constant = now - self._imu_at, self.settings.imu_time_constant
            share = 1.0 if elapsed >= 20.0 * constant else 1.0 - math.exp(-elapsed / constant)
            smooth = self._imu + share * (np.array(gravity.vector) - self._imu)
            check_earthly("linear_acceleration", smooth, self.settings.gravity_tolerance)
            gravity = gravity._replace(vector=tuple(smooth.tolist()))
            goal = root_gravity(self.arm.model, gravity)
        except MbsError as error:
            trouble = Fault("imu", f"imu refused: {error}")
            self.imu_watch.refuse(trouble)
            self.policy.trip(now, trouble)
            raise
        self.arm.law.gravity.aim(goal, now, 0.0)
        self._imu, self._imu_at, self._imu_stamp, self.gravity = smooth, now, stamp, gravity
        self.imu_watch.feed(now)

    # -- settings ---------------------------------------------------------------------------------

    def check(self, settings: GravityCompensationSettings, now: float = 0.0) -> None:
        """Raise ArgumentError, ModelError or BackendError if these settings cannot be applied."""
        changed = [
            one.name
            for one in parameters_of(type(settings))
            if one.at_rest_only and getattr(settings, one.name) != getattr(self.settings, one.name)
        ]
        if changed and not self.policy.at_rest:
            raise ArgumentError(
                f"{', '.join(sorted(changed))} can be changed only while no torque is commanded or "
                f"held: the state is {self.policy.state.value!r}; disable first"
            )
        if self.arm is not None:
            self.arm.check(_within(settings, self.motors))
            if isinstance(settings, ImpedanceControlSettings) and self._law_differs(settings):
                self.arm.prepare(settings.law_of(settings.mode), now)
        if settings.gravity != self.settings.gravity:
            if settings.use_imu:
                raise ArgumentError("use_imu is true: gravity comes from the imu alone")
            if self.arm is not None:
                check_gravity(
                    self.arm, root_gravity(self.arm.model, LinkGravity("", settings.gravity))
                )

    def change(self, settings: GravityCompensationSettings, now: float) -> None:
        """Apply settings that :meth:`check` accepts."""
        gravity = settings.gravity != self.settings.gravity
        differs = self._law_differs(settings)
        self.settings = settings
        self.policy.on_fault = settings.on_fault
        if self.arm is not None:
            self.arm.change(_within(settings, self.motors), now)
            if differs:
                self._follow(self.arm, settings, now)
        if gravity:
            self.gravity = LinkGravity("", settings.gravity)
            if self.arm is not None:
                goal = root_gravity(self.arm.model, self.gravity)
                self.arm.law.gravity.aim(goal, now, self.arm.ramp)

    def _law_differs(self, settings: GravityCompensationSettings) -> bool:
        return any(getattr(settings, k, 0) != getattr(self.settings, k, 0) for k in OF_LAWS)

    # -- commands ---------------------------------------------------------------------------------

    def receive(
        self,
        names: Sequence[str],
        positions: Sequence[float],
        velocities: Sequence[float],
        efforts: Sequence[float] = (),
        *,
        stamp: int,
        now: float,
        clock: int = 0,
    ) -> Answer:
        """Process a message on joint_states; arguments as for ``Guard.receive``."""
        if self.arm is None:
            return Answer(None)
        if self.motors is not None:
            states = self.motors.states(names, positions, velocities, efforts)
            positions, velocities, efforts = states
        return self.arm.receive(
            names, positions, velocities, efforts, stamp=stamp, now=now, clock=clock
        )

    @property
    def command_factors(self) -> list[float]:
        """Values that the controller takes for 1 N m or N, in the order of joints; empty: 1."""
        if self.motors is None:
            return []
        by_joint = dict(zip(self.motors.joint_names, self.motors.command_factors, strict=True))
        return [by_joint[name] for name in self.settings.joints]

    def tick(self, now: float) -> list[float] | None:
        """Return the command that is due without a new state of the robot; None: no command."""
        return self.policy.command(now) if self.arm is None else self.arm.tick(now)

    def due_in(self, now: float) -> float:
        """Return in how many seconds :meth:`tick` must be called, if nothing else happens."""
        return IDLE_PERIOD if self.arm is None else self.arm.due_in(now)

    def fail(self, fault: Fault, now: float) -> list[float] | None:
        """Stop for an external reason: a callback that overran, an error."""
        self.policy.trip(now, fault)
        return self.policy.command(now)

    def overran(self, what: str, elapsed: float, now: float) -> list[float] | None:
        """Stop if a callback worked for too long; ``elapsed`` in s."""
        most = self.settings.callback_timeout
        if elapsed <= most:
            return None
        message = f"the callback of {what} took {elapsed:.4f} s; callback_timeout is {most:g}"
        return self.fail(Fault("overrun", message), now)

    # -- the service ------------------------------------------------------------------------------

    def problems(self, now: float, rivals: int = 0) -> list[str]:
        """Return all reasons why torques must not be enabled now; empty if there are none.

        ``rivals`` is the number of other publishers on the command topic.
        """
        settings = self.settings
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
        elif self.arm is None:
            problems.append("there is no robot_description yet")
        if self.arm is not None:
            held = settings.adds_to_position_control or bool(settings.position_controller)
            problems += enabling.problems(self.arm, now, held=held)
        if self.policy.state is GuardState.FAULT and self.policy.stopping:
            problems.append("the stop after a fault is not over")
        return [shortened(one, LONGEST_MESSAGE) for one in problems]

    def supported(self) -> bool:
        """Return whether measured efforts show that motors hold the arm."""
        return self.arm is not None and enabling.supported(self.arm)

    @property
    def ramp_in_time(self) -> float:
        """Time in s in which torques come in whose sign nothing has shown, of an arm at rest."""
        return max(self.limits.ramp_in_time, GROWTH)

    def cost(self) -> dict[str, object]:
        """Return the cost of the gravity torques at the latest positions; empty without these."""
        if self.arm is None or not self.arm.q:
            return {}
        law = self.arm.law
        return cost_of(law.kernel, np.array(self.arm.q), *law.goal_inputs())

    @property
    def limits(self) -> CommandLimits:
        """The limits that would be in force if torques were enabled now."""
        settings = self.settings
        waits = settings.release_timeout if settings.hands_over else 0.0
        limits = CommandLimits((), (), settings.ramp_time) if self.arm is None else self.arm.limits
        if settings.adds_to_position_control:  # the arm is held meanwhile, and must not jerk
            limits = limits._replace(ramp_in_time=max(settings.ramp_in_time, settings.ramp_time))
        return limits._replace(release_time=waits)

    def enable(self, now: float, rivals: int = 0) -> str:
        """Begin to ramp in; return why not, empty if it does. ``rivals`` as for problems."""
        if self.policy.engaged:
            return ""
        problems = self.problems(now, rivals)
        if not problems and self.arm is not None:
            try:
                self._follow(self.arm, self.settings, now)  # a collision may have let it float
                self.arm.enable(now, self.limits)
            except MbsError as error:
                problems.append(str(error))
        return "; ".join(problems)

    def taken_over(self, now: float) -> None:
        """Watch the arm, which ``position_controller`` has just let go of."""
        if self.arm is not None:
            self.arm.taken_over(now)

    def clear(self, now: float) -> str:
        """Forget the fault; return which. Raises ArgumentError if there is none, or too early."""
        policy, fault = self.policy, self.policy.fault
        if policy.state is not GuardState.FAULT:
            raise ArgumentError(f"there is no fault: the state is {policy.state.value!r}")
        if policy.stopping:
            raise ArgumentError("the stop after the fault is not over; try again once it is")
        if self.arm is None:
            policy.clear()
        else:
            self.arm.clear()
        return f"cleared: {fault}"

    def disable(self, now: float) -> None:
        """Begin to ramp out; after a fault with on_fault hold, release the held torques."""
        self.policy.disable(now)
