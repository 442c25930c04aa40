# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Brings an arm up: nudges each joint while its drive holds it, and evaluates the response.

Still poses show neither a joint with an upright axis nor an error of commands alone. A torque a
that is added while the drive holds with a stiffness K moves the joint by a / K, which shows the
sign and the factor of its commands, relative to its position loop.

    check = BringUp(arm)
    while not check.done:
        command = check.step(now(), bus.read())
        ...                                        # write command.motors
    print(check)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mbs_dynamics.control.guarded_arm import Command, GuardedArm
from mbs_dynamics.control.motors import Frame

SETTLE = 0.4
"""Time in s in which a nudged joint comes to rest."""

AVERAGED = 0.1
"""Time in s at the end of it over which positions are averaged."""

LARGEST_MOTION = 0.05
"""Motion in rad or m for which nudges are chosen."""

SHARES = (0.05, 0.1, 0.2)
"""Sizes of nudges as shares of the limit, tried until the joint moves despite friction."""

STILL = 0.1
"""Share of the expected motion up to which a joint stands still."""

RIGHT = (0.4, 1.6)
"""Accepted ratios of found to expected values: friction, model errors and noise matter."""

FIRST_FRAMES = 1.0
"""Time in s within which the first frames of all motors must arrive."""

STOP = 3.0
"""Motion at which a nudge is ended at once, as a multiple of the largest expected one."""


class JointResponse(NamedTuple):
    """Response of a joint to nudges."""

    joint: str
    nudge: float
    """The largest torque that was added, in N m or N."""
    command: float
    """Found over expected motion: 1 where the command is right."""

    @property
    def problem(self) -> str:
        """The problem with the motor; empty if none was found."""
        if abs(self.command) < STILL:
            return (
                f"{self.joint} does not move by {self.nudge:.3g}: does its drive take efforts, or "
                "does friction hold it?"
            )
        if RIGHT[0] <= self.command <= RIGHT[1]:
            return ""
        turned = " against the expected direction" if self.command < 0.0 else ""
        return (
            f"{self.joint} moves{turned}, {abs(self.command):.2g} times as large as expected: see "
            "command_per_newton_metre"
        )


class BringUp:
    """Nudges the joints of an arm one after the other; see the module.

    Parameters: ``arm`` must be disabled, and its drives able to hold. It must be free to move by
    0.15 rad or m. ``problems`` is empty if all was as expected.
    """

    def __init__(self, arm: GuardedArm) -> None:
        self.arm = arm
        self.done = False
        self.problems: list[str] = []
        self.responses: list[JointResponse] = []
        self._limits, self._stiffness = arm.motors.limits, arm.motors.stiffness
        self._joints = arm.joints
        self._joint = 0
        self._begun = False
        self._start_phase(math.inf, 0.0)
        self._trials = list(SHARES)
        self._at: list[float] = []
        """Mean positions at rest, under the positive, and under the negative nudge."""

    def __str__(self) -> str:
        lines = [
            f"{one.joint}: moves by {one.command:.2f} of the expected" for one in self.responses
        ]
        return "\n".join(lines + [f"problem: {one}" for one in self.problems])

    def _start_phase(self, t: float, nudge: float) -> None:
        self._since, self._nudge = t, nudge
        self._positions: list[float] = []
        m = len(self._limits)
        self.arm.nudge = [nudge if k == self._joint else 0.0 for k in range(m)]

    def _stop(self, *problems: str) -> None:
        self.done = True
        self.problems += problems
        self.arm.nudge = ()

    def step(self, t: float, frames: Sequence[Frame] = ()) -> Command:
        """Return the command for the motors, as the step of the arm does."""
        command = self.arm.step(t, frames)
        self._since = min(self._since, t)
        if self.done:
            return command
        if not self._begun:
            problems = self.arm.hold(t)
            if not problems:
                self._begun = True
                self._start_phase(t, 0.0)
            elif (
                np.isfinite(self.arm.state_record.q[self._joints]).all()
                or t - self._since >= FIRST_FRAMES
            ):
                self._stop(*problems)
            return command
        if problem := self.arm.input_problem(t):
            self._stop(problem)
        elif self.arm.state_record.weighing:  # what holds the arm still changes
            self._start_phase(t, 0.0)
        else:
            self._observe(t)
        return command

    def _observe(self, t: float) -> None:
        k, s = self._joint, self.arm.state_record
        joint = self._joints[k]
        position, held = float(s.q[joint]), float(s.held[joint])
        name = self.arm.motors.joint_names[k]
        if abs(position - held) > STOP * LARGEST_MOTION:
            self._stop(
                f"{name} moved by {position - held:.3g} under a nudge of "
                f"{self._nudge:.3g}; expected was {self._nudge / self._stiffness[k]:.3g}: are "
                "stiffness and units of its drive as in the table?"
            )
            return
        elapsed = t - self._since
        if elapsed >= SETTLE - AVERAGED:
            self._positions.append(position)
        if elapsed >= SETTLE:
            self._advance(t)

    def _advance(self, t: float) -> None:
        """Proceed to the next nudge of the joint, or to the next joint."""
        k = self._joint
        self._at.append(sum(self._positions) / len(self._positions))
        most = LARGEST_MOTION * self._stiffness[k]
        nudge = min(self._trials[0] * self._limits[k], most)
        if len(self._at) < 3:
            self._start_phase(t, nudge if len(self._at) == 1 else -nudge)
            return
        ratio = 0.5 * (self._at[1] - self._at[2]) * self._stiffness[k] / nudge
        if abs(ratio) < RIGHT[0] and len(self._trials) > 1 and nudge < most:
            self._trials.pop(0)  # friction may hold it
            self._at = self._at[:1]
            self._start_phase(t, min(self._trials[0] * self._limits[k], most))
            return
        response = JointResponse(self.arm.motors.joint_names[k], nudge, ratio)
        self.responses.append(response)
        if response.problem:
            self.problems.append(response.problem)
        self._joint, self._at, self._trials = k + 1, [], list(SHARES)
        if self._joint == len(self._limits):
            self._stop()
        else:
            self._start_phase(t, 0.0)
