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
"""When torques are commanded and which: a state machine with ramps, and a limiter.

Knows no ROS and no clock: every call says the time, in s of one steady clock. A command never
leaves the effort limits, never changes faster than the rate limit, and exists only while the
policy is engaged or brings its last torques to zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from mbs_dynamics.errors import ArgumentError

ON_FAULT = ("hold", "ramp_down", "zero")
"""What can be done at a fault."""


class State(Enum):
    """What the policy does. The values are the names that users read."""

    DISABLED = "disabled"
    RAMPING_IN = "ramping in"
    ENABLED = "enabled"
    RAMPING_OUT = "ramping out"
    FAULT = "fault"


ENGAGED = (State.RAMPING_IN, State.ENABLED)
"""The states in which bad input is a fault. Ramping out goes on whatever comes: it ends at zero."""


class Fault(NamedTuple):
    """Why the node stopped, or must not start."""

    kind: str
    """A short key to count by, such as ``"stale"``."""
    reason: str
    """What happened, with names and numbers, for a person."""


class Limits(NamedTuple):
    """What every command keeps, for n joints."""

    effort: tuple[float, ...]
    """(n,) largest magnitudes in N m or N, positive."""
    rate: float
    """Largest change of each per second, in N m/s or N/s."""
    ramp_time: float
    """Seconds in which torques come in, and go out."""

    def check(self) -> None:
        """Raise ArgumentError for limits under which torques could not go out in time."""
        if not self.effort or not all(0.0 < x < math.inf for x in self.effort):
            raise ArgumentError(f"effort limits must be positive and finite; got {self.effort}")
        if not (0.0 < self.rate < math.inf and 0.0 < self.ramp_time < math.inf):
            raise ArgumentError(
                "effort_rate_limit and ramp_time must be positive and finite; got "
                f"{self.rate:g} and {self.ramp_time:g}"
            )
        needed = max(self.effort) / self.rate
        if needed > self.ramp_time:
            raise ArgumentError(
                f"ramp_time is {self.ramp_time:g} s, but with effort_rate_limit {self.rate:g} the "
                f"largest torque of {max(self.effort):g} needs {needed:g} s to come and go"
            )


class Limited(NamedTuple):
    """Which joints a command was held back for, by index."""

    effort: tuple[int, ...] = ()
    rate: tuple[int, ...] = ()


class CommandPolicy:
    """Turns the torques that are wanted into the torques that are commanded, or into silence.

    Parameters: ``on_fault`` is one of ON_FAULT; it may be set anew at any time and counts when a
    fault comes. Call :meth:`command` with each valid state of the robot, and without target again
    and again while :attr:`stopping`.
    """

    def __init__(self, on_fault: str = "ramp_down") -> None:
        self.on_fault = on_fault
        self.state = State.DISABLED
        self.fault: Fault | None = None
        """The latest fault; it stays until torques are enabled again."""
        self.limits = Limits((), 0.0, 0.0)
        self.latest: tuple[float, ...] = ()
        """(n,) what was commanded last, which the controller holds; empty before the first."""
        self.limited = Limited()
        self._commanded_at = 0.0
        self._begin = 0.0
        self._share = 0.0
        self._from: tuple[float, ...] = ()
        self._target: tuple[float, ...] = ()
        self._too_much: tuple[int, ...] = ()
        self._stop = "hold"

    @property
    def engaged(self) -> bool:
        """Whether torques follow the state of the robot, and faults stop them."""
        return self.state in ENGAGED

    @property
    def stopping(self) -> bool:
        """Whether torques must go to zero, with or without news of the robot."""
        if self.state is State.FAULT:
            return self._stop != "hold" and any(self.latest)
        return self.state is State.RAMPING_OUT

    @property
    def at_rest(self) -> bool:
        """Whether no torque is commanded, nor held by a controller that heard the last command."""
        return self.state in (State.DISABLED, State.FAULT) and not any(self.latest)

    def enable(self, now: float, limits: Limits) -> None:
        """Ramp in, from zero or from the torques that the controller holds.

        Raises ArgumentError for limits that cannot be kept.
        """
        limits.check()
        if len(self.latest) != len(limits.effort):
            self.latest = (0.0,) * len(limits.effort)
        if any(abs(x) > most for x, most in zip(self.latest, limits.effort, strict=True)):
            raise ArgumentError(
                "the controller still holds torques beyond the effort limits; disable first, "
                "which ramps them out"
            )
        self.limits = limits
        self.fault = None
        self._from = self.latest
        self._commanded_at = now
        self._begin = now
        self._share, self._target = 0.0, ()
        self.state = State.RAMPING_IN

    def disable(self, now: float) -> None:
        """Ramp out. After a fault that held the torques, let them go in the same way."""
        if self.state in (State.RAMPING_IN, State.ENABLED):
            self._target = self._target or self.latest
            self.state = State.RAMPING_OUT
            self._begin = now
        elif self.state is State.FAULT and self._stop == "hold" and any(self.latest):
            self._release(now, "ramp_down")

    def trip(self, now: float, fault: Fault) -> bool:
        """Latch a fault and begin the stop. False if nothing is engaged that could be stopped."""
        if not self.engaged:
            return False
        self.state = State.FAULT
        self.fault = fault
        self._release(now, self.on_fault)
        return True

    def command(self, now: float, target: Sequence[float] | None = None) -> list[float] | None:
        """Return what to command now, None for silence.

        ``target`` (n,) is what the robot needs in its present state, finite; None if there is no
        news of it, so that only a stop goes on.
        """
        if target is not None and self.state is not State.DISABLED and self._finite(now, target):
            self._aim(target)
        else:
            target = None
        if self.state is State.FAULT:
            return self._stopped(now) if self.stopping else None
        if self.state is State.RAMPING_OUT:
            return self._out(now)
        if target is None or self.state is State.DISABLED:
            return None
        if self.state is State.RAMPING_IN:
            self._share = min(1.0, max(0.0, (now - self._begin) / self.limits.ramp_time))
            if self._share == 1.0:
                self.state = State.ENABLED
        return self._limit(now, self._blended())

    def _finite(self, now: float, target: Sequence[float]) -> bool:
        if math.isfinite(sum(target)):  # mostly; a sum may overflow where no number does
            return True
        bad = [f"{x} at joint {k}" for k, x in enumerate(target) if not math.isfinite(x)]
        if bad:
            said = f"a torque came out as no number: {', '.join(bad)}"
            self.trip(now, Fault("torque_not_finite", said))
        return not bad

    def _aim(self, target: Sequence[float]) -> None:
        """Take a target, within the effort limits."""
        self._target = tuple(target)
        self._too_much = ()
        for most, value in zip(self.limits.effort, self._target, strict=True):
            if not -most <= value <= most:
                self._clip()
                return

    def _clip(self) -> None:
        limits = self.limits.effort
        pairs = list(zip(self._target, limits, strict=True))
        self._too_much = tuple(k for k, (x, most) in enumerate(pairs) if abs(x) > most)
        self._target = tuple(min(most, max(-most, x)) for x, most in pairs)

    # -- ramps -------------------------------------------------------------------------------------

    def _release(self, now: float, how: str) -> None:
        self._stop = how
        self._begin = now
        self._from = self.latest

    def _left(self, now: float) -> float:
        """Return the share of the ramp that is still to come."""
        return min(1.0, max(0.0, 1.0 - (now - self._begin) / self.limits.ramp_time))

    def _blended(self) -> list[float]:
        share = self._share
        if share == 1.0:
            return list(self._target)
        pairs = zip(self._from, self._target, strict=True)
        return [held + share * (wanted - held) for held, wanted in pairs]

    def _out(self, now: float) -> list[float]:
        left = self._left(now)
        command = self._limit(now, [left * x for x in self._blended()])
        if left == 0.0 and not any(command):
            self.state = State.DISABLED
        return command

    def _stopped(self, now: float) -> list[float]:
        left = self._left(now) if self._stop == "ramp_down" else 0.0
        return self._limit(now, [left * x for x in self._from])

    def _limit(self, now: float, wanted: list[float]) -> list[float]:
        """Return what is wanted, as far as the rate limit lets it come.

        All that is wanted lies within the effort limits, and so do commands on the way there.
        """
        step = self.limits.rate * max(0.0, now - self._commanded_at)
        command = [x + 0.0 for x in wanted]  # which leaves no -0.0
        too_fast: list[int] = []
        for k, before in enumerate(self.latest):
            change = wanted[k] - before
            if not -step <= change <= step:
                command[k] = before + math.copysign(step, change)
                too_fast.append(k)
        self.limited = Limited(self._too_much, tuple(too_fast))
        self.latest = tuple(command)
        self._commanded_at = max(now, self._commanded_at)
        return command
