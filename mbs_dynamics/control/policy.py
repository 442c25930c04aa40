# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Decides when torques are commanded: a state machine with ramps, and a limiter. No ROS is needed.

Every call has the time as an argument, in s of one steady clock. A command never exceeds the effort
limits, never changes faster than the rate limit, and exists only while the policy is engaged or
reduces its last torques to zero.

Only gravity torques are ramped out. Assist ends with the release. Damping continues while it is
computed from fresh states, and ends within two of their periods without them: torques against a
motion that is over would drive the robot back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from operator import add, ge, le, sub
from typing import NamedTuple

from mbs_dynamics.control.faults import Doubt as Doubt
from mbs_dynamics.control.faults import Fault as Fault
from mbs_dynamics.errors import ArgumentError

ON_FAULT = ("hold", "ramp_down", "zero")
"""Reactions to a fault."""

STOP_PERIOD = 0.01
"""Period in s of the commands of a stop without new states of the robot."""

LATEST_STATE = 0.1
"""Age in s of the latest state up to which a release is known to hold the robot."""


class GuardState(Enum):
    """State of an arm under guard. The values are the names that users read."""

    DISABLED = "disabled"
    RAMPING_IN = "ramping in"
    ENABLED = "enabled"
    RAMPING_OUT = "ramping out"
    FAULT = "fault"


ENGAGED = (GuardState.RAMPING_IN, GuardState.ENABLED)
"""States in which bad input is a fault. Ramping out always continues to zero."""


class Torques(NamedTuple):
    """Torques that the commanded joints need, each (n,) in N m or N."""

    gravity: list[float]
    damping: list[float]
    """Dissipates energy; empty if there is none."""
    assist: list[float]
    """Friction compensation and springs; empty if there are none."""

    def assisted(self, torques: list[float]) -> Torques:
        """Return these torques with others (n,) added to the assist."""
        return self._replace(
            assist=list(map(add, self.assist, torques)) if self.assist else torques
        )


class CommandLimits(NamedTuple):
    """Limits of every command for n joints."""

    effort: tuple[float, ...]
    """(n,) largest magnitudes in N m or N, positive."""
    rate: tuple[float, ...]
    """(n,) largest change of each per second, in N m/s or N/s."""
    ramp_time: float
    """Time in s of the ramp out."""
    ramp_in_time: float = 0.0
    """Time in s of the ramp in."""
    release_time: float = 0.0
    """Time in s after a release in which gravity torques do not ramp out yet, while states come.

    In it, another controller may take over."""

    def check(self) -> None:
        """Raise ArgumentError for limits under which torques could not ramp out in time."""
        if not self.effort or not all(0.0 < x < math.inf for x in self.effort):
            raise ArgumentError(f"effort limits must be positive and finite; got {self.effort}")
        if len(self.rate) != len(self.effort) or not all(0.0 < x < math.inf for x in self.rate):
            raise ArgumentError(f"effort_rate_limit must be positive and finite; got {self.rate}")
        if not 0.0 < self.ramp_time < math.inf:
            raise ArgumentError(f"ramp_time must be positive and finite; got {self.ramp_time:g}")
        for effort, rate in zip(self.effort, self.rate, strict=True):
            if effort / rate > self.ramp_time:
                raise ArgumentError(
                    f"ramp_time is {self.ramp_time:g} s, but with effort_rate_limit {rate:g} the "
                    f"largest torque of {effort:g} needs {effort / rate:g} s to ramp out"
                )


class Limited(NamedTuple):
    """Indices of the joints whose command was clipped."""

    effort: tuple[int, ...] = ()
    rate: tuple[int, ...] = ()


NOT_LIMITED = Limited()


class CommandPolicy:
    """Converts wanted torques to commands, or to no command, and stores who holds the arm.

    Parameters: ``on_fault`` is one of ON_FAULT; it may be changed at any time and applies to
    the next fault. Call :meth:`command` with the torques for each valid state of the robot, and
    without them after the time that :meth:`due_in` returns.
    """

    def __init__(self, on_fault: str = "ramp_down") -> None:
        self.on_fault = on_fault
        self.since: float
        """When torques were enabled or released the last time, in s."""
        self.state = GuardState.DISABLED
        self.fault: Fault | None = None
        """The latest fault; it stays until it is cleared."""
        self.limits = CommandLimits((), (), 0.0)
        self.latest: tuple[float, ...] = ()
        """(n,) the latest command, which the controller holds; empty before the first."""
        self.limited = Limited()
        self.most_share = 1.0
        """Largest share of gravity torques while they ramp in."""
        self._commanded_at = 0.0
        self._begin = self.since = 0.0
        self._dismissed = False
        self._share = 0.0
        self._from: tuple[float, ...] = ()
        self._torques: Torques | None = None
        self._damps_until: Sequence[float] = ()
        self._saturated_since: dict[int, float] = {}
        self._stop = "hold"

    @property
    def engaged(self) -> bool:
        """Whether torques follow the state of the robot, and faults stop them."""
        return self.state in ENGAGED

    @property
    def settled(self) -> bool:
        """Whether torques alone hold the arm, none of them at its limit."""
        return self.state is GuardState.ENABLED and not self.limited.effort

    @property
    def stopping(self) -> bool:
        """Whether torques still change towards zero or held values, with or without states."""
        if self.state not in (GuardState.FAULT, GuardState.RAMPING_OUT):
            return False
        if self._stop == "hold":
            return self.latest != tuple(self._wanted(self._begin))
        return self.state is GuardState.RAMPING_OUT or any(self.latest)

    @property
    def holding(self) -> bool:
        """Whether a controller holds the torques of a stop by ``hold``, also once it is cleared."""
        return not self.engaged and self._stop == "hold" and any(self.latest)

    @property
    def at_rest(self) -> bool:
        """Whether no torque is commanded, nor held by a controller."""
        released = self.state in (GuardState.DISABLED, GuardState.FAULT)
        return released and not any(self.latest)

    def enable(
        self, now: float, limits: CommandLimits, start: Sequence[float] | None = None
    ) -> None:
        """Ramp in from the torques ``start`` (n,) that hold the robot now.

        None: from those of the latest command, which are zero after a stop. Raises ArgumentError
        for invalid limits, if the torques exceed them, and while a fault is latched.
        """
        if self.state is GuardState.FAULT:
            raise ArgumentError(f"a fault is latched: {self.fault}; clear it first")
        limits.check()
        if start is not None:
            held = tuple(start)
        elif len(self.latest) == len(limits.effort):
            held = self.latest
        else:
            held = (0.0,) * len(limits.effort)
        if any(abs(x) > most for x, most in zip(held, limits.effort, strict=True)):
            raise ArgumentError(
                "the controller still holds torques beyond the effort limits; disable first "
                "to ramp them out"
            )
        self.limits = limits
        self.latest = self._from = held
        self._commanded_at = now
        self._begin = self.since = now
        self._share, self._torques = 0.0, None
        self._saturated_since = {}
        self._dismissed = False
        self.limited = Limited()
        self.state = GuardState.RAMPING_IN

    def disable(self, now: float) -> None:
        """Ramp out. Torques that are held after a fault ramp out as well."""
        if self.engaged:
            self.state = GuardState.RAMPING_OUT
            self._release(now, "ramp_down")
        elif self.holding:
            if self.state is GuardState.DISABLED:
                self.state = GuardState.RAMPING_OUT
            self._from, self._share, self._torques = self.latest, 0.0, None
            self._release(now, "ramp_down")

    def dismiss(self) -> None:
        """End a release: another controller holds the robot. A fault stays latched.

        The next command is zero, so that nobody takes the last torque for one that acts.
        """
        if self.engaged:
            return
        self._dismissed = any(self.latest)
        self.latest = (0.0,) * len(self.latest)
        if self.state is GuardState.RAMPING_OUT:
            self.state = GuardState.DISABLED
        else:
            self._stop = "zero"

    def bears(self, now: float) -> bool:
        """Return whether commands of a release still hold the robot: whole gravity torques."""
        ramps = not self.engaged and self._stop == "ramp_down" and self.stopping
        return ramps and not self._doubts_gravity and now - self._begin <= LATEST_STATE

    def trip(self, now: float, fault: Fault) -> None:
        """Latch a fault and begin the stop, if the policy is engaged."""
        if self.engaged:
            self.state, self.fault = GuardState.FAULT, fault
            self._release(now, "ramp_down" if self._doubts_gravity else self.on_fault)

    def clear(self) -> None:
        """Forget the fault, once it has stopped the torques; whoever holds the arm goes on."""
        if self.state is GuardState.FAULT and not self.stopping:
            self.state, self.fault = GuardState.DISABLED, None

    def _release(self, now: float, how: str) -> None:
        self._stop = how
        self._begin = self.since = now

    @property
    def _doubts_gravity(self) -> bool:
        return self.fault is not None and self.fault.doubt is Doubt.GRAVITY

    # -- commands ----------------------------------------------------------------------------------

    def command(
        self,
        now: float,
        torques: Torques | None = None,
        damps_until: Sequence[float] = (),
    ) -> list[float] | None:
        """Return the command that is due now; None: no command.

        ``torques`` are those for a new state of the robot; None without a new state.
        ``damps_until`` (n,) are the times after which the damping and assist of each joint no
        longer act, since its state is too old; empty if they always act.
        """
        if self._dismissed:
            self._dismissed = False
            return list(self.latest)
        if torques is not None and self._takes(now, torques):
            self._torques, self._damps_until = torques, damps_until
            if not self.engaged and now - self.since < self.limits.release_time:
                self._begin = now
        elif self.engaged and not self._outdated(now):
            return None
        if self.state is GuardState.DISABLED:
            return None
        if self.state is GuardState.FAULT and not self.stopping:
            return None
        if self.state is GuardState.RAMPING_IN and torques is not None:
            elapsed, whole = now - self._begin, self.limits.ramp_in_time
            self._share = 1.0 if elapsed >= whole else max(0.0, elapsed) / whole
            self._share = min(self._share, self.most_share)
            if self._share == 1.0:
                self.state = GuardState.ENABLED
        command = self._limit(now, self._wanted(now))
        if self.state is GuardState.RAMPING_OUT and self._released_by(now, command):
            self.state = GuardState.DISABLED
        return command

    def follow(
        self,
        now: float,
        torques: Torques,
        command: list[float],
        damps_until: Sequence[float] = (),
    ) -> None:
        """Store a command of torques in a state that is ``settled``, known to be within limits."""
        self._torques, self._damps_until = torques, damps_until
        self.limited, self.latest = NOT_LIMITED, tuple(command)
        self._commanded_at = max(now, self._commanded_at)

    def _released_by(self, now: float, command: Sequence[float]) -> bool:
        """Return whether a ramp out is over with this command."""
        if self._stop == "hold":
            return not self.stopping
        return self._left(now) == 0.0 and not any(command)

    def due_in(self, now: float) -> float:
        """Return in how many s :meth:`command` must be called without a new state; or inf."""
        torques = self._torques
        ends = torques is not None and (torques.damping or torques.assist)
        if self.engaged and not ends:  # mostly
            return math.inf
        if self.stopping:
            waits = [max(0.0, self._commanded_at + STOP_PERIOD - now)]
        elif self.engaged:
            waits = [0.0] if self._outdated(now) else [math.inf]
        else:
            return math.inf
        if ends:
            waits += [until - now for until in self._damps_until if until > now]
        return min(waits)

    def saturation(self, now: float) -> tuple[int, float] | None:
        """Return the joint, by index, that has been at its effort limit the longest, and since.

        None if none is.
        """
        if not self._saturated_since:
            return None
        since, k = min((since, k) for k, since in self._saturated_since.items())
        return k, now - since

    def _takes(self, now: float, torques: Torques) -> bool:
        """Return whether torques can be used: not in a stop by hold, nor if one is not finite."""
        if self.state is GuardState.DISABLED:
            return False
        if self.state is GuardState.FAULT and self._stop != "ramp_down":
            return False
        # mostly; a sum may overflow where no number does
        if math.isfinite(sum(torques.gravity) + sum(torques.damping) + sum(torques.assist)):
            return True
        bad = [
            f"{x} at joint {k}"
            for part in torques
            for k, x in enumerate(part)
            if not math.isfinite(x)
        ]
        if bad:
            message = f"a computed torque is NaN or infinite: {', '.join(bad)}"
            self.trip(now, Fault("torque_not_finite", message))
        return not bad

    def _outdated(self, now: float) -> bool:
        """Return whether the latest command damps or assists a joint whose state is too old."""
        if self._torques is None or not (self._torques.damping or self._torques.assist):
            return False
        expired = any(until <= now for until in self._damps_until)
        return expired and tuple(self._wanted(now)) != self.latest

    # -- wanted torques ----------------------------------------------------------------------------

    def _gravity(self) -> list[float]:
        """Return the gravity torques, as far as they have ramped in."""
        if self._torques is None:
            return list(self._from)
        share = self._share
        if share == 1.0:
            return self._torques.gravity
        pairs = zip(self._from, self._torques.gravity, strict=True)
        return [held + share * (needed - held) for held, needed in pairs]

    def _wanted(self, now: float) -> list[float]:
        """Return the torques (n,) to command, within the effort limits."""
        wanted = self._gravity()
        torques, damps, assists = self._torques, True, self.engaged
        if not self.engaged:
            left = self._left(now)
            wanted = [left * x for x in self._held_back(wanted)]
            damps = self._stop == "ramp_down" and left > 0.0
            if self._doubts_gravity:
                wanted = [0.0] * len(wanted)
            if self.fault is not None and self.fault.doubt is Doubt.MOTOR:
                for k in self.fault.joints:
                    wanted[k] = 0.0
        if torques is not None and damps and torques.damping:
            if self._damps_until:
                pairs = zip(wanted, torques.damping, self._damps_until, strict=True)
                wanted = [x + (y if now < until else 0.0) for x, y, until in pairs]
            else:
                wanted = list(map(add, wanted, torques.damping))
        if torques is not None and assists and torques.assist:
            share, until = self._share, self._damps_until or (math.inf,) * len(wanted)
            rows = zip(wanted, torques.assist, until, strict=True)
            wanted = [x + (share * y if now < end else 0.0) for x, y, end in rows]
        return list(self._held_back(wanted))

    def _held_back(self, torques: Sequence[float]) -> tuple[float, ...]:
        """Return torques (n,) within the effort limits, without any -0.0."""
        limits = self.limits.effort
        if all(map(le, map(abs, torques), limits)):
            return tuple([x + 0.0 for x in torques])
        pairs = zip(torques, limits, strict=True)
        return tuple([min(most, max(-most, x)) + 0.0 for x, most in pairs])

    def _left(self, now: float) -> float:
        """Return the remaining share of the release."""
        if self._stop == "hold":
            return 1.0
        if self._stop == "zero":
            return 0.0
        return min(1.0, max(0.0, 1.0 - (now - self._begin) / self.limits.ramp_time))

    def elapsed(self, now: float) -> float:
        """Return the time in s since the latest command."""
        return max(0.0, now - self._commanded_at)

    def _limit(self, now: float, wanted: list[float]) -> list[float]:
        """Return the wanted torques, clipped by the rate limit.

        Wanted torques are within the effort limits, and so are the commands on the way to them.
        """
        elapsed = self.elapsed(now)
        limits, latest = self.limits, self.latest
        steps = [rate * elapsed for rate in limits.rate]
        command = wanted
        too_fast: list[int] = []
        if not all(map(le, map(abs, map(sub, wanted, latest)), steps)):
            command = list(wanted)
            for k, (value, before, step) in enumerate(zip(wanted, latest, steps, strict=True)):
                change = value - before
                if not -step <= change <= step:
                    command[k] = before + math.copysign(step, change)
                    too_fast.append(k)
        too_much: list[int] = []
        if any(map(ge, map(abs, wanted), limits.effort)):
            pairs = zip(wanted, limits.effort, strict=True)
            too_much = [k for k, (value, most) in enumerate(pairs) if abs(value) >= most]
        if too_much or self.limited.effort:
            since = self._saturated_since
            self._saturated_since = {k: since.get(k, now) for k in too_much}
        self.limited = Limited(tuple(too_much), tuple(too_fast))
        self.latest = tuple(command)
        self._commanded_at = max(now, self._commanded_at)
        return command
