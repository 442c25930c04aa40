# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Checks the states of a robot while torques are commanded. No ROS and no clock are needed."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from mbs_dynamics.compiler import less, select
from mbs_dynamics.control.faults import Doubt, Fault
from mbs_dynamics.model.model import Model

SLACK = 0.05
"""Accepted jump of a joint in rad or m beyond what its velocity explains, for jitter of stamps."""

WINDOW = 0.05
"""Time in s over which speeds are averaged, so that one encoder sample stops nothing."""

MOVING = 0.1
"""Speed in rad/s or m/s above which a position must change."""

NOISE, STANDING = 1e-7, 1e-3
"""Change of values in SI units that is noise, and largest distance from one place in rad or m that
is rest."""

LEARNED, QUIET = 50, 0.3
"""Number of states at rest, and time in s, in which noise shows."""

RETURNS, RETURNS_WITHIN = 5, 1.0
"""How often messages that are used follow one that is not, and within how many s, if two sources
report one robot in turn."""

LAG = 4
"""Number of commands of which a measured effort may be that of the oldest."""

DEVIATIONS = 5
"""Number of successive deviations of an effort after which its motor is doubted."""

SMALL, SMALL_DEVIATIONS = 0.4, 15
"""Share of the tolerance from which on deviations count that exceed half of what is commanded, and
their number."""


class JointStates(NamedTuple):
    """Merged states of the joints of a model. The lists are not changed later."""

    positions: Sequence[float]
    """(n,) in rad or m."""
    rates: Sequence[float]
    """(n,) in rad/s or m/s."""
    stamp: int
    """The newest time stamp, in ns."""
    stamps: Sequence[int]
    """(n,) in ns, of the measurement of each joint."""


class Check(Protocol):
    """A check of states of joints, which may store them until the next.

    ``passes`` of each returns conditions, arrays of symbols, under which it finds no fault; the
    kernel in ``fast_path.py`` combines them.
    """

    def note(self, state: JointStates) -> None:
        """Store a state that passes."""

    def check(self, state: JointStates) -> Fault | None:
        """Return the fault that a state shows, with what it makes doubtful, or None."""


def size(x: Any) -> Any:
    """Return absolute values of symbols."""
    return select(less(x, 0.0), -x, x)


class Freshness:
    """Checks that valid messages arrive. Times are those of one steady clock, in s."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.trouble: Fault | None = None
        """The problem with the latest message; None if it was valid."""
        self._valid_at: float | None = None

    def feed(self, now: float) -> None:
        """Record a valid message."""
        self._valid_at, self.trouble = now, None

    def refuse(self, trouble: Fault) -> None:
        """Record an invalid message."""
        self.trouble = trouble

    def stale(self, now: float, timeout: float) -> Fault | None:
        """Return the fault that no valid message has come for ``timeout``, or None."""
        if self._valid_at is None:
            return Fault("stale", f"no valid {self.what} so far")
        age = now - self._valid_at
        if age < timeout:
            return None
        return Fault("stale", f"no valid {self.what} for {age:.3f} s; stale_timeout is {timeout:g}")

    def fresh_for(self, now: float, timeout: float) -> float:
        """Return in how many seconds this input is stale if nothing arrives; 0.0 if it is now."""
        return 0.0 if self._valid_at is None else max(0.0, self._valid_at + timeout - now)


class Periods:
    """Periods of the states of the joints.

    A state of a joint is valid for two of its periods.
    """

    def __init__(self, n: int) -> None:
        self._at = [-math.inf] * n
        self._period = [0.0] * n
        self._together = True
        """Whether the states of all joints have arrived together so far."""
        self.longest = 0.0
        """The longest period in s; 0 before two states have arrived."""

    def note(self, received: Sequence[float], longest: float) -> list[float]:
        """Return until when the state of each joint is valid.

        ``received`` (n,) are the times at which the latest states of the joints arrived, in s. A
        gap of more than ``longest`` s is no period.
        """
        if not received:
            return []
        n, first = len(received), received[0]
        self._together = self._together and received.count(first) == n
        if self._together:  # mostly: the joints of one message
            self.longest = period = _mean(self.longest, first - self._at[0], longest)
            self._at, self._period = [first] * n, [period] * n
            return [first + 2.0 * period] * n
        rows = zip(received, self._at, self._period, strict=True)
        self._period = [_mean(period, at - last, longest) for at, last, period in rows]
        self._at, self.longest = list(received), max(self._period)
        return [at + 2.0 * period for at, period in zip(self._at, self._period, strict=True)]


def _mean(period: float, gap: float, longest: float) -> float:
    """Return a mean period after a gap; one of more than ``longest`` s is no period."""
    if not 0.0 < gap < longest:
        return period
    before = period or gap
    return before + 0.1 * (min(gap, 3.0 * before) - before)  # limits the influence of a pause


class Envelope:
    """The positions within which torques may be commanded.

    Parameters: ``joints`` are coordinates of the model. Limits that the robot's description does
    not state, or states as empty ranges, do not apply. ``margin`` in rad or m.
    """

    def __init__(self, model: Model, joints: Sequence[int], margin: float) -> None:
        self._rows = []
        self.low, self.high = [-math.inf] * model.n, [math.inf] * model.n
        """(n,) infinite where there is no limit."""
        for k in joints:
            lower, upper = float(model.lower[k]), float(model.upper[k])
            if lower < upper:
                self.low[k], self.high[k] = lower - margin, upper + margin
                self._rows.append((model.joint_names[k], k, self.low[k], self.high[k]))

    @staticmethod
    def passes(q: Any, low: Any, high: Any) -> tuple[Any, ...]:
        """Return conditions for positions (n,) between limits (n,)."""
        return less(low, q), less(q, high)

    def note(self, state: JointStates) -> None:
        """Store nothing."""

    def check(self, state: JointStates) -> Fault | None:
        """Return the fault that a joint is beyond a limit, or None."""
        positions = state.positions
        for name, k, low, high in self._rows:
            if not low <= positions[k] <= high:
                return Fault(
                    "position_limit",
                    f"{name} is at {positions[k]:.4g}; valid is {low:.4g} to {high:.4g}, "
                    "position_margin included",
                )
        return None


def _with_limits(model: Model, joints: Sequence[int]) -> list[tuple[str, int, float]]:
    """Return name, coordinate and velocity limit of joints that have one."""
    fastest: list[float] = model.velocity_limits.tolist()
    return [(model.joint_names[k], k, fastest[k]) for k in joints if fastest[k] < math.inf]


def largest_step(fastest: Any, elapsed: Any) -> Any:
    """Return how far joints with these velocity limits may be from where they were, else a jump."""
    return SLACK + 2.0 * fastest * elapsed


class Speeds:
    """Checks the speeds of joints over a window of 50 ms, by velocities and by positions.

    The mean of the reported velocities may not exceed the velocity limit, so that a single sample
    of a quantised encoder stops nothing. Nor may the displacement exceed what that limit allows, so
    that a runaway is detected although a sensor reports no velocity. Where the reported velocities
    exceed the limit and the displacement is less than half of theirs, the fault is of the kind
    ``"velocity_reading"``: they are implausible. Joints without a velocity limit are not watched;
    ``unlimited`` names them.
    """

    def __init__(self, model: Model, joints: Sequence[int]) -> None:
        self._rows = _with_limits(model, joints)
        watched = [name for name, *_ in self._rows]
        self.unlimited = [x for k in joints if (x := model.joint_names[k]) not in watched]
        self._window: deque[tuple[int, Sequence[float], Sequence[float]]] = deque()

    def restart(self) -> None:
        """Forget all states, since a jump of positions is no speed."""
        self._window.clear()

    def since(self, state: JointStates) -> tuple[float, Sequence[float]]:
        """Return the time in s since the first state of the window before a new one, and that."""
        window, stamp = self._window, state.stamp
        if window and stamp <= window[-1][0]:
            self.restart()
        while len(window) > 1 and 1e-9 * (stamp - window[1][0]) >= WINDOW:
            window.popleft()
        if not window:
            return 0.0, state.positions
        return 1e-9 * (stamp - window[0][0]), window[0][1]

    @staticmethod
    def passes(q: Any, qd: Any, first: Any, fastest: Any, reach: Any) -> tuple[Any, ...]:
        """Return conditions for positions and velocities (n,).

        ``first`` (n,) are the positions ``reach`` s before, infinite if that is not a window yet,
        and ``fastest`` (n,) velocity limits.
        """
        return less(size(qd), fastest), less(size(q - first), fastest * reach)

    def note(self, state: JointStates) -> None:
        """Store a state, after ``since``."""
        self._window.append((state.stamp, state.positions, state.rates))

    def check(self, state: JointStates) -> Fault | None:
        """Return the fault that a joint is too fast, or None."""
        positions, rates, _, _ = state
        window = self._window
        elapsed, before = self.since(state)
        self.note(state)
        for name, k, fastest in self._rows:
            moved = positions[k] - before[k]
            if abs(rates[k]) > fastest:
                mean = sum(state[2][k] for state in window) / len(window)
                if abs(mean) > fastest:
                    believed = moved * mean >= 0.5 * mean * mean * elapsed
                    kind = "velocity_limit" if believed else "velocity_reading"
                    return Fault(
                        kind,
                        f"{name} moves at {rates[k]:.4g} by its reported velocity, at {mean:.4g} "
                        f"on average over {elapsed:.3f} s, in which it moved by {moved:.4g}; its "
                        f"velocity limit is {fastest:.4g}",
                        Doubt.NOTHING if believed else Doubt.VELOCITY,
                    )
            if elapsed >= WINDOW and abs(moved) > fastest * elapsed:
                return Fault(
                    "velocity_limit",
                    f"{name} moved by {moved:.4g} in {elapsed:.3f} s, at {moved / elapsed:.4g}; "
                    f"its velocity limit is {fastest:.4g}",
                )
        return None


class Continuity:
    """Checks that positions can follow from those before within the velocity limits.

    They cannot if two publishers report one robot, an encoder slips, or a simulation is reset.
    Joints without a velocity limit are not watched.
    """

    def __init__(self, model: Model) -> None:
        self._rows = _with_limits(model, range(model.n))
        self._trusted: Sequence[float] = ()
        self._stamps: Sequence[int] = ()
        self._jumped: dict[int, float] = {}
        """Positions of joints that have jumped, in the latest states that are not trusted."""

    def note(self, state: JointStates) -> None:
        """Store a state that is trusted, with which the following are compared."""
        self._trusted, self._stamps = state.positions, list(state.stamps)
        if self._jumped:
            self._jumped = {}

    def check(self, state: JointStates) -> Fault | None:
        """Return the fault that a joint has jumped since the trusted state; else None, and note it.

        A joint that has jumped and stays there is not trusted later either, when it could have
        moved as far.
        """
        positions, trusted, jumped = state.positions, self._trusted, self._jumped
        fault = None
        for name, k, fastest in self._rows if len(trusted) else ():
            moved = positions[k] - trusted[k]
            if abs(moved) <= SLACK and not jumped:
                continue
            elapsed = 1e-9 * (state.stamps[k] - self._stamps[k])
            stays = k in jumped and abs(positions[k] - jumped[k]) < abs(moved)
            if elapsed > 0.0 and (stays or abs(moved) > largest_step(fastest, elapsed)):
                jumped[k] = positions[k]
                fault = fault or Fault(
                    "position_jump",
                    f"{name} jumped by {moved:.4g} in {elapsed:.4g} s; its velocity limit is "
                    f"{fastest:.4g}. Was the robot or its simulation reset, does an encoder slip, "
                    "or do two sources report it?",
                    Doubt.STATE,
                )
        if fault is None:
            self.note(state)
        return fault


class Sources:
    """Detects two sources that report one robot in turn: messages that fit, and others.

    A single bad message is no second source. Times are those of one steady clock, in s.
    """

    def __init__(self) -> None:
        self.refused = False
        """Whether the latest message was not used."""
        self._returns: deque[float] = deque(maxlen=RETURNS)

    def note(self, now: float, *, used: bool) -> None:
        """Store whether a message was used."""
        if used and self.refused:
            self._returns.append(now)
        self.refused = not used

    def in_turn(self, now: float) -> bool:
        """Return whether messages that fit come in turn with others."""
        return len(self._returns) == RETURNS and now - self._returns[0] < RETURNS_WITHIN


class Frozen:
    """Checks that positions change while velocities are reported, or while they always did.

    A joint whose position stays exactly the same for ``timeout`` s, while its velocity is above
    MOVING all the time, reports old values with fresh stamps. So does one at rest that repeats
    position and velocity for as long, if noise has changed them in every state until then: in
    LEARNED states and for QUIET s in a row, by more than NOISE, within STANDING of one place. One
    that stands still in between, such as a coarse encoder or a simulation without noise, is not
    judged so.
    """

    def __init__(self, model: Model, joints: Sequence[int], timeout: float) -> None:
        self._names, self._joints, self._timeout = model.joint_names, tuple(joints), timeout
        self._before: Sequence[float] = ()
        self._rates_before: Sequence[float] = ()
        self._changed_at = 0
        """When all positions had changed the last time, in ns."""
        self._since: list[int] = []
        """(n,) likewise, of each; empty if that was in the latest state."""
        self.moving = [MOVING] * len(self._joints)
        """(m,) speeds above which positions must change: 0 where noise changes them at rest."""
        self._noisy = [_Noise() for _ in self._joints]
        self._learning = list(range(len(self._joints)))

    @staticmethod
    def passes(moved: Any, qd: Any, moving: Any) -> tuple[Any, ...]:
        """Return conditions for differences of positions and velocities (m,) of watched joints.

        ``moving`` (m,) is ``moving`` of the check, or infinite where no joint is watched.
        """
        return (less(select(less(size(qd), moving), -1.0, 0.0), size(moved)),)

    def note(self, state: JointStates) -> None:
        """Store a state in which all positions have changed, or are those of slow joints."""
        if self._learning and len(self._rates_before):
            self._learn(state)
        self._before, self._changed_at, self._since = state.positions, state.stamp, []
        self._rates_before = state.rates

    def _learn(self, state: JointStates) -> None:
        """Find joints whose values noise changes in every state at rest."""
        positions, rates, stamp, _ = state
        left = []
        for place in self._learning:
            k = self._joints[place]
            changes = positions[k] - self._before[k], rates[k] - self._rates_before[k]
            if self._noisy[place].found(stamp, positions[k], *changes):
                self.moving[place] = 0.0
            else:
                left.append(place)
        if len(left) != len(self._learning):
            self.moving = list(self.moving)  # another list shows that it has changed
        self._learning = left

    def check(self, state: JointStates) -> Fault | None:
        """Return the fault that a joint does not change, or None."""
        positions, rates, stamp, _ = state
        before, rates_before = self._before, self._rates_before
        if len(before) != len(positions) or not len(rates_before):
            self.note(state)
            return None
        if self._learning:
            self._learn(state)
        self._before, self._rates_before = positions, rates
        since = self._since = self._since or [self._changed_at] * len(positions)
        for place, k in enumerate(self._joints):
            quiet = abs(rates[k]) < MOVING
            if quiet and self.moving[place] == 0.0:
                change = max(abs(positions[k] - before[k]), abs(rates[k] - rates_before[k]))
                quiet = change > 0.0
                if 0.0 < change <= NOISE:  # it comes to rest without noise
                    self._forget(place)
            if positions[k] != before[k] or quiet:
                since[k] = stamp
            elif 1e-9 * (stamp - since[k]) >= self._timeout:
                return Fault(
                    "frozen",
                    f"{self._names[k]} has been at {positions[k]:.6g} for "
                    f"{1e-9 * (stamp - since[k]):.3f} s, while its velocity is {rates[k]:.4g}"
                    + ("" if abs(rates[k]) >= MOVING else ", without the noise that it had before"),
                    Doubt.STATE,
                    (place,),
                )
        return None

    def _forget(self, place: int) -> None:
        self.moving = [MOVING if k == place else x for k, x in enumerate(self.moving)]
        self._noisy[place] = _Noise()
        self._learning.append(place)


class _Noise:
    """Whether noise changes the values of a joint at rest in every state.

    Noise changes them to and fro; a motion that dies down does not.
    """

    def __init__(self) -> None:
        self._start(0, math.inf)

    def _start(self, stamp: int, place: float) -> None:
        self._begin, self._place = stamp, place
        self._count = self._reversals = 0
        self._changes = 0.0, 0.0

    def found(self, stamp: int, position: float, *changes: float) -> bool:
        """Process the changes of position and velocity; return whether noise was found."""
        if max(map(abs, changes)) <= NOISE or not abs(position - self._place) < STANDING:
            self._start(stamp, position)
            return False
        self._count += 1
        pairs = zip(changes, self._changes, strict=True)
        self._reversals += any(now * before < 0.0 for now, before in pairs)
        self._changes = changes[0], changes[1]
        long = self._count >= LEARNED and 1e-9 * (stamp - self._begin) >= QUIET
        return long and self._reversals >= 0.25 * self._count


class Tracking:
    """Compares measured efforts with the commanded ones.

    A measured effort is accepted within ``tolerance`` times the effort limit of those that the last
    LAG commands ask for. Beyond it in DEVIATIONS successive states, the motor is doubted: it turns
    the other way, its factor is wrong, or it is dead. At a joint that bears little such errors are
    small. So deviations that exceed SMALL times the tolerance and half of what is commanded count
    as well, in SMALL_DEVIATIONS states. Efforts that are not known are accepted.
    """

    def __init__(self, names: Sequence[str], limits: Sequence[float], tolerance: float) -> None:
        self._names, self._limits = names, limits
        self._bounds = [tolerance * most for most in limits]
        self.small = [SMALL * bound for bound in self._bounds]
        """Deviations (n,) that are accepted at any command."""
        self.asked: deque[Sequence[float]] = deque(maxlen=LAG)
        """The efforts (n,) that the last commands ask for."""
        self._deviations = [0] * len(limits)
        """In units of 1 / (DEVIATIONS SMALL_DEVIATIONS)."""

    @staticmethod
    def passes(measured: Any, expected: Any, tolerance: Any) -> tuple[Any, ...]:
        """Return conditions for efforts (m,), NaN where unknown, that expected ones explain."""
        deviates = select(less(tolerance, size(measured - expected)), 1.0, 0.0)  # NaN does not
        return (less(deviates, 1.0),)

    def restart(self) -> None:
        """Forget all commands."""
        self.asked.clear()
        self._deviations = [0] * len(self._limits)

    def commanded(self, efforts: Sequence[float]) -> None:
        """Store the efforts (n,) that the latest command asks for, with the drives' own loops."""
        self.asked.append(efforts)

    def note(self) -> None:
        """Store that all efforts are as expected."""
        if len(self.asked) == LAG:
            self._deviations = [0] * len(self._limits)

    def check(self, measured: Sequence[float]) -> Fault | None:
        """Return the fault that a motor does not exert its torque, or None."""
        if len(self.asked) < LAG:
            return None
        bounds, small = self._bounds, self.small
        for k, most in enumerate(self._limits):
            asked = [min(most, max(-most, each[k])) for each in self.asked]
            asked.append(self.asked[-1][k])  # drives that hold may exert more than the limit
            low, high = min(asked), max(asked)
            beyond = max(low - measured[k], measured[k] - high)
            if beyond > bounds[k] or beyond > max(small[k], 0.5 * max(-low, high)):
                self._deviations[k] += SMALL_DEVIATIONS if beyond > bounds[k] else DEVIATIONS
                if self._deviations[k] >= DEVIATIONS * SMALL_DEVIATIONS:
                    return Fault(
                        "tracking",
                        f"{self._names[k]} commanded {asked[-1]:.4g}, measures {measured[k]:.4g}; "
                        f"the tolerance is {bounds[k]:.3g}",
                        Doubt.MOTOR,
                        (k,),
                    )
            else:
                self._deviations[k] = 0
        return None
