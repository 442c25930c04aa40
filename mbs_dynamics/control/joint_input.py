# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Merges messages of joint states into a checked state of the robot, or rejects them with a reason.

Joints are matched by name, in any order; other joints are ignored. The joints of one robot may come
in several messages, at different rates: the latest measurement of each joint counts, and each joint
must be fresh. A doubtful message is rejected as a whole and changes nothing,
so that bad data never becomes a torque.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from struct import Struct
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.joint_states import LARGEST as LARGEST
from mbs_dynamics.control.joint_states import Rejection as Rejection
from mbs_dynamics.control.joint_states import fixed_coordinates as fixed_coordinates
from mbs_dynamics.control.turns import turning, turns_to
from mbs_dynamics.errors import listed
from mbs_dynamics.model.model import Model

KEPT_LAYOUTS = 32
"""Number of lists of names that are cached."""

MOST_NAMES = 10_000
"""Number of names in a message beyond which it is rejected: to find joints would take too long."""

NO_VELOCITIES = "the message holds no velocities"
NAN_VELOCITY = "the velocity is NaN: none is measured"
FIRST_POSITION = "velocities are differences of positions, and this is the first position"
UNSTAMPED = "velocities are differences of positions, and the message has no time stamp"
NO_EFFORTS = "the message holds no efforts"
NAN_EFFORT = "the effort is NaN: none is measured"
FIXED = "the joint is fixed"
NOT_REPORTED = "not reported yet"


class Efforts(NamedTuple):
    """Measured joint torques."""

    tau: FloatArray
    """(n,) in N m or N; NaN where it is unknown."""
    why_not: str = ""
    """Why some or all are unknown; empty if none is."""

    @property
    def complete(self) -> bool:
        """Whether all are known."""
        return not self.why_not


class Reading(NamedTuple):
    """A clean state, merged of all messages. The arrays are buffers: valid until the next read."""

    q: FloatArray
    """(n,) positions in rad or m."""
    qd: FloatArray | None
    """(n,) velocities in rad/s or m/s; None if that of an answered joint is unknown.

    Unknown velocities of other joints are zero."""
    why_no_velocity: str
    """Why ``qd`` is None."""
    efforts: Efforts
    """Joint torques of the latest message of each joint."""
    stamp: int
    """The newest time stamp among the answered joints, in ns; 0 if this message has none.

    It does not advance with a message that is older than the latest one of another joint."""
    repeated: bool
    """Whether no joint of this message advanced its time stamp: the same measurement again."""


class _Layout(NamedTuple):
    """Places of the joints in messages with one list of names, or the problem with them."""

    names: list[str]
    fault: Rejection | None
    coordinates: Sequence[int] = ()
    """Coordinates of the joints in such a message, ascending, without fixed joints."""
    pick: Callable[[Sequence[Any]], tuple[Any, ...]] = tuple
    """Returns the values of these joints in an array of the message."""
    turning: Sequence[tuple[int, int]] = ()
    """Place among these joints, and coordinate, of those that turn without limits."""
    all_reported: bool = False
    """Whether these are all joints, except for fixed ones."""
    whole: bool = False
    """Whether these are all joints."""
    unanswered: Rejection | None = None
    """The rejection if none of them is answered."""


class _Unknown:
    """The joints of which a quantity is unknown, and the reasons."""

    def __init__(self, what: str, joint_names: Sequence[str], watched: Sequence[int]) -> None:
        self._what, self._joint_names, self._watched = what, joint_names, watched
        self._reasons = [NOT_REPORTED] * len(joint_names)
        self.any = True
        """Whether it is unknown of any joint."""
        self.why = ""
        """Why it is unknown of some or all watched joints; empty if of none."""

    def copied(self) -> tuple[list[str], bool, str]:
        """Return a copy of what is stored."""
        return list(self._reasons), self.any, self.why

    def restore(self, copied: tuple[list[str], bool, str]) -> None:
        """Store a copy again."""
        self._reasons, self.any, self.why = list(copied[0]), copied[1], copied[2]

    def note(self, coordinates: Sequence[int], reason: str) -> bool:
        """Store why it is unknown of these joints, empty if known. False if nothing has changed."""
        reasons = self._reasons
        changed = [k for k in coordinates if reasons[k] != reason]
        if not changed:
            return False
        for k in changed:
            reasons[k] = reason
        self.any = any(reasons)
        self.why = self._summary()
        return True

    def _summary(self) -> str:
        lacking: dict[str, list[str]] = {}
        for k in self._watched:
            if self._reasons[k]:
                lacking.setdefault(self._reasons[k], []).append(self._joint_names[k])
        if [len(names) for names in lacking.values()] == [len(self._watched)]:
            return next(iter(lacking))
        return "; ".join(
            f"no {self._what} of {listed(names)}: {reason}" for reason, names in lacking.items()
        )


class JointInput:
    """Merges the state of one robot out of messages of joint states.

    Which entry of a message belongs to which coordinate is found once for each list of names.

    Parameters: ``joint_names`` of the n coordinates in order; ``wraps`` tells for each whether its
    position is an angle without limits: such angles are unwrapped, so that a driver that reports
    them within one turn and a driver that counts turns lead to the same motion;
    ``velocity_from_position`` takes differences of positions for messages that hold no velocities.
    ``answering`` are the coordinates whose messages are answered, None: all; they must be no older
    than ``stale_timeout`` in s, the others than ``others_timeout``, None: likewise. ``fixed`` are
    the positions in rad or m of joints that no driver reports: they are at rest and always fresh,
    and their entries in messages are ignored.

    Raises what :func:`fixed_coordinates` raises.
    """

    def __init__(
        self,
        joint_names: Sequence[str],
        *,
        wraps: Sequence[bool] | None = None,
        stale_timeout: float = 0.5,
        velocity_from_position: bool = False,
        answering: Sequence[int] | None = None,
        others_timeout: float | None = None,
        fixed: Mapping[str, float] = {},
    ) -> None:
        self.joint_names = tuple(joint_names)
        self.stale_timeout = stale_timeout
        self.others_timeout = others_timeout
        self.velocity_from_position = velocity_from_position
        n = len(self.joint_names)
        self._wraps = tuple(wraps if wraps is not None else [False] * n)
        self._fixed = fixed_coordinates(self.joint_names, fixed)
        reported = [k for k in range(n) if k not in self._fixed]
        answered = range(n) if answering is None else answering
        self._answering = [k for k in reported if k in answered]
        self._others = [k for k in reported if k not in answered]
        # between two messages the processor's caches go cold; arrays of Python are faster then than
        # a few calls of NumPy, which shares their memory
        self._whole: Any = memoryview(array("d", [0.0] * 2 * n + [math.nan] * n))
        self._positions, self._velocities = self._whole[:n], self._whole[n : 2 * n]
        self._torques = self._whole[2 * n :]
        self._q, self._qd = np.frombuffer(self._positions), np.frombuffer(self._velocities)
        self._tau = np.frombuffer(self._torques)
        self.buffers = self._q, self._qd, self._tau
        """Merged positions, velocities and efforts, each (n,), which later measurements change."""
        self._pack = Struct(f"{n}d").pack_into
        self._near = [math.nan] * n
        """Positions of which reported angles are the nearest equivalents; NaN before the first."""
        self.stamps = [0] * n
        """(n,) in ns, of the latest stamped measurement of each coordinate; 0 if there is none."""
        self._newest = 0  # of these
        self.received = [-math.inf] * n
        """(n,) when the latest measurement of each coordinate was received, in s."""
        self._previous_q, self._previous_stamps = [0.0] * n, [0] * n
        self._no_rate = _Unknown("velocity", self.joint_names, self._answering)
        self._no_effort = _Unknown("effort", self.joint_names, range(n))
        for k, position in self._fixed.items():
            self._positions[k], self.received[k] = position, math.inf
        if self._fixed:
            self._no_rate.note(list(self._fixed), "")
            self._no_effort.note(list(self._fixed), FIXED)
        self._efforts = Efforts(self._tau, self._no_effort.why)
        self._copied: tuple[Any, ...] | None = None
        """The state before the latest message; None if that was not merged."""
        self._layouts = lru_cache(KEPT_LAYOUTS)(self._learned)
        self._layout = _Layout([], None)
        self._effortless: _Layout | None = None
        """Layout of the latest message, if that held no efforts."""
        self._names: list[str] | None = None

    @classmethod
    def of_model(cls, model: Model, **options: Any) -> JointInput:
        """Return the input of a model; ``options`` are parameters of the class.

        Joints that mimic others have no coordinates, and are ignored in messages, and that of a
        floating base is no joint state.
        """
        joints = [joint for joint in model.joints if joint.nv == 1]
        turns = turning(model)
        wraps = [turns[joint.coordinate] for joint in joints]
        return cls([joint.name for joint in joints], wraps=wraps, **options)

    def keep_turns(self, positions: Sequence[float]) -> None:
        """Unwrap the next angles near trusted positions (n,), since the latest ones are doubted."""
        self._near[:] = positions

    def read(
        self,
        names: Sequence[str],
        positions: Sequence[float],
        velocities: Sequence[float],
        efforts: Sequence[float] = (),
        *,
        stamp: int,
        received: float,
    ) -> Reading | Rejection:
        """Merge a message; return the state of the robot, or the reason why there is none.

        ``stamp`` is the message's time stamp in ns, 0 if it has none; ``received`` a steady clock
        in s. ``velocities`` and ``efforts`` may be empty.

        A message with a stamp before that of the latest measurement of one of its joints is
        rejected. Once that joint has not been measured for its timeout, its time starts anew, so
        that a simulation that is reset or a recording that is played again is followed after that
        pause. A repeated stamp is no new measurement: it keeps no joint fresh.

        Two kinds of rejection belong to messages that are merged: ``"partial"`` where no joint of
        the message is answered, and ``"incomplete_joints"`` where another joint is not fresh.
        """
        self._copied = None
        layout = self._layout if names == self._names else self._layout_of(names)
        if layout.fault is not None:
            return layout.fault
        length = len(layout.names)
        if len(positions) != length:
            return _wrong_length(layout, "position", len(positions))
        if velocities and len(velocities) != length:
            return _wrong_length(layout, "velocity", len(velocities))
        q = layout.pick(positions)
        if not math.hypot(*q) < LARGEST:  # nor is it for NaN
            return wild_numbers("position", self._named(layout.coordinates), q)
        rates, no_rates = (math.nan,) * len(q), NO_VELOCITIES
        if velocities:
            rates, no_rates = layout.pick(velocities), ""
            if not math.hypot(*rates) < LARGEST:
                if not math.hypot(*[rate for rate in rates if rate == rate]) < LARGEST:
                    return wild_numbers("velocity", self._named(layout.coordinates), rates)
                no_rates = NAN_VELOCITY
        self._copied = self._copy()
        coordinates = advanced = layout.coordinates
        if stamp > self._newest:
            self._newest = stamp
        elif stamp:
            late = self._late(layout, stamp, received)
            if late is not None:
                self._copied = None
                return late
            advanced = [k for k in coordinates if stamp != self.stamps[k]]

        # from here on the message is accepted, and may change the state
        if layout.turning:
            q = self._unwrapped(layout, q)
        self._set_rates(layout, q, rates, no_rates, stamp)
        self._set_efforts(layout, efforts)
        self._put(self._positions, layout, q)
        if layout.whole and advanced is coordinates and stamp:  # mostly
            self.received[:], self.stamps[:] = [received] * len(q), [stamp] * len(q)
        else:
            for k in advanced:
                self.received[k] = received
                if stamp:
                    self.stamps[k] = stamp

        if layout.unanswered is not None:
            return layout.unanswered
        if not layout.all_reported or advanced is not coordinates:
            if self.fresh_for(received) == 0.0:
                return self._incomplete(received, repeated=not advanced)
            if stamp:
                stamp = max([self.stamps[k] for k in self._answering])
        why_not = self._no_rate.why
        qd = None if why_not else self._qd
        return Reading(self._q, qd, why_not, self._efforts, stamp, not advanced)

    @property
    def merged(self) -> bool:
        """Whether the latest message was merged."""
        return self._copied is not None

    def withdraw(self) -> None:
        """Restore the state before the latest message, whose content turned out to be wrong."""
        if self._copied is None:
            return
        whole, received, stamps, *lists, rates, efforts, self._newest, self._efforts = self._copied
        self._whole[:] = memoryview(whole)
        self.received[:], self.stamps[:] = received, stamps
        self._previous_q, self._previous_stamps = lists
        self._no_rate.restore(rates)
        self._no_effort.restore(efforts)
        self._copied = self._effortless = None

    def _copy(self) -> tuple[Any, ...]:
        return (
            array("d", self._whole),
            list(self.received),
            list(self.stamps),
            list(self._previous_q),
            list(self._previous_stamps),
            self._no_rate.copied(),
            self._no_effort.copied(),
            self._newest,
            self._efforts,
        )

    def stale(self, now: float) -> list[str]:
        """Return which joints are not fresh and for how long, in words; empty if all are."""
        if self.fresh_for(now) > 0.0:
            return []
        ages = []
        for k, name in enumerate(self.joint_names):
            age = now - self.received[k]
            if age == math.inf:
                ages.append(f"{name} {NOT_REPORTED}")
            elif age >= self._timeout(k):
                ages.append(f"{name} for {age:.3f} s")
        return ages

    def fresh_for(self, now: float) -> float:
        """Return in how many s the first joint is stale without messages; 0.0 if one is now."""
        left = math.inf
        for group in (self._answering, self._others):
            if group:
                oldest = min([self.received[k] for k in group])
                left = min(left, self._timeout(group[0]) - (now - oldest))
        return max(0.0, left)

    def _timeout(self, coordinate: int) -> float:
        if self.others_timeout is None or coordinate not in self._others:
            return self.stale_timeout
        return self.others_timeout

    def _incomplete(self, now: float, repeated: bool) -> Rejection:
        reason = f"joints without fresh measurement: {listed(self.stale(now))}"
        never = [
            name
            for name, received in zip(self.joint_names, self.received, strict=True)
            if received == -math.inf
        ]
        if never:
            reason += f"; if no driver reports {listed(never)}, list them in fixed_joints"
        if repeated:
            reason += "; the time stamp of this message did not advance"
        return Rejection("incomplete_joints", reason)

    # -- places of joints in messages --------------------------------------------------------------

    def _layout_of(self, names: Sequence[str]) -> _Layout:
        """Return the layout of messages with these names."""
        if len(names) > MOST_NAMES:
            message = f"the message names {len(names)} joints; valid are at most {MOST_NAMES}"
            return _Layout([], Rejection("too_many_names", message))
        layout = self._layout = self._layouts(tuple(names))
        self._names = layout.names
        return layout

    def _learned(self, given: tuple[str, ...]) -> _Layout:
        """Return a new layout of messages with these names, or the problem with them."""
        names = list(given)
        places: dict[str, int] = {}
        twice: set[str] = set()
        for place, name in enumerate(names):
            if name in places:
                twice.add(name)
            places[name] = place
        there = [k for k, name in enumerate(self.joint_names) if name in places]
        held = [k for k in there if k not in self._fixed]
        repeated = [self.joint_names[k] for k in held if self.joint_names[k] in twice]
        if not there:
            those = listed(names) if names else "no names at all"
            wanted = listed(self.joint_names)
            fault = Rejection(
                "no_joints",
                f"none of the robot's joints is in the message: it holds {those}; "
                f"the robot has {wanted}",
            )
            return _Layout(names, fault)
        if repeated:
            message = f"joints named more than once: {listed(repeated)}"
            return _Layout(names, Rejection("duplicate_joints", message))
        if not held:
            message = f"all joints in the message are fixed ones: {listed(self._named(there))}"
            return _Layout(names, Rejection("partial", message))
        unanswered = None
        if not any(k in self._answering for k in held):
            message = (
                f"the message holds no joint that is answered, but {listed(self._named(held))}"
            )
            unanswered = Rejection("partial", message)
        return _Layout(
            names,
            None,
            held,
            _picker([places[self.joint_names[k]] for k in held]),
            turning=[(place, k) for place, k in enumerate(held) if self._wraps[k]],
            all_reported=len(held) == len(self._answering) + len(self._others),
            whole=len(held) == len(self.joint_names),
            unanswered=unanswered,
        )

    def _named(self, coordinates: Sequence[int]) -> list[str]:
        return [self.joint_names[k] for k in coordinates]

    def _unwrapped(self, layout: _Layout, q: Sequence[float]) -> tuple[float, ...]:
        """Return positions, with angles without limits nearest to those before."""
        whole = list(q)
        for place, k in layout.turning:
            whole[place] += turns_to(whole[place], self._near[k])
            self._near[k] = whole[place]
        return tuple(whole)

    # -- velocities and efforts --------------------------------------------------------------------

    def _set_rates(
        self,
        layout: _Layout,
        q: Sequence[float],
        rates: Sequence[float],
        no_rates: str,
        stamp: int,
    ) -> None:
        """Store velocities; where they are NaN those by positions, or ``no_rates`` as the reason.

        The same measurement again has the same velocity.
        """
        differences = self.velocity_from_position
        if not (no_rates or differences):
            if self._no_rate.any:
                self._no_rate.note(layout.coordinates, "")
            self._put(self._velocities, layout, rates)
            return
        for k, position, rate in zip(layout.coordinates, q, rates, strict=True):
            why = no_rates if rate != rate else ""
            before = self._previous_stamps[k]
            if differences and why and stamp and stamp == before:
                continue
            if differences and why:
                rate, why = self._difference(k, position, stamp)
            if differences and not (stamp and stamp == before):
                self._previous_q[k], self._previous_stamps[k] = position, stamp
            self._velocities[k] = 0.0 if why else rate
            self._no_rate.note((k,), why)

    def _difference(self, k: int, position: float, stamp: int) -> tuple[float, str]:
        """Return the velocity of a joint since its position before, and why there is none."""
        before = self._previous_stamps[k]
        elapsed = 1e-9 * (stamp - before)
        if not stamp or not before or elapsed > self._timeout(k):
            return math.nan, FIRST_POSITION if stamp else UNSTAMPED
        return (position - self._previous_q[k]) / elapsed, ""

    def _set_efforts(self, layout: _Layout, efforts: Sequence[float]) -> None:
        """Store efforts; an invalid number makes all those of the message unknown."""
        if not efforts and self._effortless is layout:
            return  # they are unknown already
        self._effortless = None if efforts else layout
        coordinates, noted = layout.coordinates, self._no_effort
        tau: Sequence[float] = (math.nan,) * len(coordinates)
        why_not, missing = NO_EFFORTS, coordinates
        if len(efforts) == len(layout.names):
            tau = layout.pick(efforts)
            why_not, missing = NAN_EFFORT, []
            if not math.hypot(*tau) < LARGEST:  # nor is it for NaN
                pairs = list(zip(coordinates, tau, strict=True))
                missing = [k for k, value in pairs if value != value]
                names = self.joint_names
                wild = [f"{names[k]} = {value:g}" for k, value in pairs if abs(value) > LARGEST]
                if wild:
                    why_not, missing = f"effort is no measurement: {listed(wild)}", coordinates
                    tau = (math.nan,) * len(tau)
        elif efforts:
            why_not = f"{len(layout.names)} joint names but {len(efforts)} effort value(s)"
        changed = noted.any and noted.note([k for k in coordinates if k not in missing], "")
        if missing:
            changed = noted.note(missing, why_not) or changed
        self._put(self._torques, layout, tau)
        if changed:
            self._efforts = Efforts(self._tau, noted.why)

    def _put(self, buffer: Any, layout: _Layout, values: Sequence[float]) -> None:
        """Store values of the joints of a message."""
        if layout.whole:
            self._pack(buffer, 0, *values)
        else:
            for k, value in zip(layout.coordinates, values, strict=True):
                buffer[k] = value

    # -- rejections --------------------------------------------------------------------------------

    def _late(self, layout: _Layout, stamp: int, received: float) -> Rejection | None:
        """Return why this stamp is rejected, or restart the time of joints that are silent."""
        late = [k for k in layout.coordinates if stamp < self.stamps[k]]
        for k in late:
            if received - self.received[k] < self._timeout(k):
                ago = 1e-9 * (self.stamps[k] - stamp)
                return Rejection(
                    "time_backwards",
                    f"time goes backwards: the stamp {1e-9 * stamp:.6f} s is {ago:.6f} s before "
                    f"that of the latest measurement of {self.joint_names[k]}",
                )
        for k in late:
            self._previous_stamps[k] = self.stamps[k] = 0
        self._newest = max(stamp, *self.stamps)
        return None


def wild_numbers(what: str, names: Sequence[str], values: Sequence[float]) -> Rejection:
    """Return why numbers of these joints are rejected: not finite, or else too large."""
    pairs = list(zip(names, values, strict=True))
    bad = [f"{name} = {value}" for name, value in pairs if not math.isfinite(value)]
    if bad:
        return Rejection("not_finite", f"{what} is not finite: {listed(bad)}")
    name, value = max(pairs, key=lambda pair: abs(pair[1]))
    return Rejection("too_large", f"{what} is too large to be true: {name} = {value:g}")


def _wrong_length(layout: _Layout, what: str, length: int) -> Rejection:
    return Rejection(
        f"{what}_length", f"{len(layout.names)} joint names but {length} {what} value(s)"
    )


def _picker(places: Sequence[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Return a fast function that returns the values at these places of an array."""
    if len(places) > 1:
        return itemgetter(*places)
    return lambda values: tuple(values[place] for place in places)
