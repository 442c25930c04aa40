# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Motors of an arm: signs, zeros, units, limits and gains, and conversions between them and SI.

A table states for the motor of each joint, with q in rad, tau in N m (prismatic: m, N):

    position of the drive = zero + sign * position_per_radian * q
    velocity of the drive = sign * velocity_per_radian * dq/dt
    effort that it reports = sign * feedback_per_newton_metre * tau
    effort that it takes   = sign * command_per_newton_metre * tau

with the units of the drive on the left: rad, degrees, ticks; N m, A, per mille of a rated torque.
In hold mode the drive itself adds kp (position - measured position) + kd (velocity - measured
velocity) to the effort, in its own units, as drives with the MIT protocol do.

Two motors on one joint are a list of two tables: they share the torque, and their positions are
averaged. Differentials, where two motors move two joints together, are not covered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from operator import add, itemgetter, mul, sub
from pathlib import Path
from typing import Any, NamedTuple

from mbs_dynamics.checks import positive
from mbs_dynamics.control.motor_table import (
    MAX_AGE,
    WHEN_SILENT,
    check_keys,
    coordinate_of,
    motors_of,
)
from mbs_dynamics.control.turns import turning, turns_to
from mbs_dynamics.errors import ArgumentError, listed, quoted
from mbs_dynamics.model.model import Model
from mbs_dynamics.yaml_files import parsed_yaml

CACHED_LAYOUTS = 32
"""Number of cached layouts of frames."""

PER_UNIT = ("position_per_radian", "velocity_per_radian", "feedback_per_newton_metre")
"""Factors of a motor by which its states are divided."""


class Frame(NamedTuple):
    """Measurements of a drive, in its own units."""

    motor: int | str
    stamp: float
    """Time of the measurement in s, of the clock of the loop."""
    position: float
    velocity: float
    effort: float
    error: int = 0
    """Error code of the drive; 0 if there is none."""
    temperature: float = math.nan
    """In degrees Celsius; NaN if unknown."""


class MotorCommand(NamedTuple):
    """A command in the units of a drive: the contents of an MIT frame."""

    motor: int | str
    position: float
    velocity: float
    kp: float
    kd: float
    effort: float


class Measured(NamedTuple):
    """Measurements in SI units by joint; all lists have the length of ``joints``."""

    joints: Sequence[int]
    """Indices into ``Motors.joint_names``, ascending."""
    positions: Sequence[float]
    velocities: Sequence[float]
    efforts: Sequence[float]
    stamps: Sequence[float]
    """In s; for two motors the older one."""
    errors: Sequence[int]
    temperatures: Sequence[float]
    """In degrees Celsius; for two motors the higher one."""
    unknown: Sequence[int | str] = ()
    """Motors that sent frames but are not in the table."""
    apart: Sequence[float] = ()
    """How far the positions of motors of one joint differ, in rad or m; empty if no joint of the
    table has two motors."""


_NOTHING = Measured((), (), (), (), (), (), ())


class Layout(NamedTuple):
    """Places of the motors in frames of one order, and their factors."""

    pick: Callable[[Sequence[Any]], Sequence[Any]]
    rows: Sequence[int]
    """Rows of the table, ascending."""
    zeros: Sequence[float]
    factors: Sequence[Sequence[float]]
    """To SI: of positions, velocities and efforts."""
    unknown: Sequence[int | str]


_command: Callable[[Iterable[Any]], MotorCommand] = partial(tuple.__new__, MotorCommand)


class Motors:
    """The motors of an arm: conversions between the units of drives and SI.

    ``table`` has the keys ``when_silent`` (damp, hold, zero or last), ``max_age`` in s (0.02 if
    absent) and ``motors``: by joint a table, or a list of two, with the keys ``motor`` (number or
    name on the bus), ``sign`` (1 or -1), ``position_per_radian``, ``command_per_newton_metre``,
    ``feedback_per_newton_metre``, and optionally ``zero`` (default 0), ``velocity_per_radian``
    (that of positions), ``limit`` (the effort limit of the URDF, divided among the motors of a
    joint), ``kp`` and ``kd`` (0), ``stiffness`` and ``damping`` (what kp and kd amount to at the
    joint in SI, if that does not follow from the factors of positions, velocities and commands).
    Factors of efforts are negative where a drive counts efforts against its positions; all other
    factors and limits are positive.

    Raises ArgumentError, UnknownKeyError and UnknownJointError, which name the joint, the key, the
    value and the valid values.
    """

    def __init__(self, table: Mapping[str, Any], model: Model) -> None:
        check_keys("the table of motors", table, ("when_silent", "motors"), ("max_age",))
        self.when_silent: str = table["when_silent"]
        if not isinstance(self.when_silent, str) or self.when_silent not in WHEN_SILENT:
            raise ArgumentError(
                f"when_silent is {quoted(self.when_silent)}; valid: {listed(WHEN_SILENT)}"
            )
        self.max_age = positive("max_age", table.get("max_age", MAX_AGE))
        """Age in s from which a frame is stale."""
        by_joint = table["motors"]
        if not isinstance(by_joint, Mapping) or not by_joint:
            raise ArgumentError(f"motors is {quoted(by_joint)}; valid: tables by joint")
        joints = {name: coordinate_of(model, name) for name in by_joint}
        self.joint_names = tuple(sorted(joints, key=lambda name: joints[name]))
        """Joints with motors, in the order of the model."""
        self.coordinates = tuple(joints[name] for name in self.joint_names)
        """(m,) indices of these joints among the velocities of the model."""
        stated = dict(
            zip(self.joint_names, model.effort_limits[list(self.coordinates)], strict=True)
        )
        self.motors = tuple(
            motor
            for name in self.joint_names
            for motor in motors_of(name, by_joint[name], float(stated[name]))
        )
        """The rows of the table, in the order of the joints."""
        for motor in self.motors:
            owners = [each.joint for each in self.motors if str(each.motor) == str(motor.motor)]
            if len(owners) > 1:
                raise ArgumentError(
                    f"motor {motor.motor!r} is used by {listed(owners)}; each row must name "
                    "another motor"
                )
        self._joints = [self.joint_names.index(motor.joint) for motor in self.motors]
        self._shared = len(self.motors) > len(self.joint_names)
        self._groups = [
            [row for row, joint in enumerate(self._joints) if joint == k]
            for k in range(len(self.joint_names))
        ]
        groups = [[self.motors[row] for row in rows] for rows in self._groups]
        self.limits = tuple(len(group) * min(m.limit for m in group) for group in groups)
        """(m,) largest torques, in N m or N: the least of its motors times their number."""
        self.stiffness = tuple(sum(m.stiffness for m in group) for group in groups)
        """(m,) of the drives that hold, in N m/rad or N/m."""
        self.damping = tuple(sum(m.damping for m in group) for group in groups)
        """(m,) of the drives that hold, in N m s/rad or N s/m."""
        self.can_hold = all(motor.kp > 0.0 for motor in self.motors)
        """Whether all drives can hold their position."""
        self.remarks = tuple(_remarks(self, stated))
        """Warnings about the table."""

        self._names = [motor.motor for motor in self.motors]
        self._rows = {name: row for row, name in enumerate(self._names)}
        self._latest: dict[int, tuple[Any, ...]] = {}  # of motors that share a joint
        turns = turning(model)
        self._turning = [turns[k] for k in self.coordinates]
        self._turned = [0.0] * len(self.motors)
        """Whole turns in rad from a motor's position to that of the first motor of its joint."""
        self._zeros = [motor.zero for motor in self.motors]
        self._positions = [motor.sign * motor.position_per_radian for motor in self.motors]
        self._efforts = [
            motor.sign * motor.command_per_newton_metre / len(self._groups[joint])
            for motor, joint in zip(self.motors, self._joints, strict=True)
        ]
        self._none = [0.0] * len(self.motors)
        self._kp = [motor.kp for motor in self.motors]
        self._kd = [motor.kd for motor in self.motors]
        self._layouts = lru_cache(CACHED_LAYOUTS)(self._layout)

    @classmethod
    def read(cls, path: str | Path, model: Model) -> Motors:
        """Return the motors of a YAML file; see the class for its keys and errors."""
        return parsed_yaml(path, lambda table: cls(table, model))

    # -- frames to SI ------------------------------------------------------------------------------

    def measured(self, frames: Sequence[Frame | tuple[Any, ...]]) -> Measured:
        """Return what frames report, in SI units by joint.

        Frames may be of any motors, in any order, and tuples without error and temperature. Of
        several frames of one motor the last one counts; a value that is not a number is NaN. Where
        a joint has two motors, the latest frame of each counts.
        """
        try:
            names, stamps, positions, velocities, efforts, *rest = zip(*frames, strict=True)
            errors, temperatures = rest or ((0,) * len(names), (math.nan,) * len(names))
            pick, rows, zeros, factors, unknown = self._layouts(names)
            q = list(map(mul, factors[0], map(sub, pick(positions), zeros)))
            qd = list(map(mul, factors[1], pick(velocities)))
            tau = list(map(mul, factors[2], pick(efforts)))
        except (TypeError, ValueError):
            return self.measured(_clean(frames)) if len(frames) else _NOTHING
        measured = Measured(
            rows, q, qd, tau, pick(stamps), pick(errors), pick(temperatures), unknown
        )
        return self._merged(measured) if self._shared else measured

    def _layout(self, names: tuple[Any, ...]) -> Layout:
        places = {self._rows[name]: k for k, name in enumerate(names) if name in self._rows}
        rows = sorted(places)
        motors = [self.motors[row] for row in rows]
        order = [places[row] for row in rows]
        pick: Any = tuple
        if len(order) == 1:
            pick = itemgetter(slice(order[0], order[0] + 1))
        elif order != list(range(len(names))):
            pick = itemgetter(*order) if order else lambda values: ()
        return Layout(
            pick,
            rows,
            [motor.zero for motor in motors],
            [[motor.sign / getattr(motor, name) for motor in motors] for name in PER_UNIT],
            tuple(dict.fromkeys(name for name in names if name not in self._rows)),
        )

    def _merged(self, measured: Measured) -> Measured:
        self._latest.update(zip(measured.joints, zip(*measured[1:7], strict=True), strict=True))
        joints, merged, apart = [], [], []
        for joint in sorted({self._joints[row] for row in measured.joints}):
            rows = self._groups[joint]
            if not all(row in self._latest for row in rows):
                continue
            q, qd, tau, stamps, errors, temperatures = zip(
                *(self._latest[row] for row in rows), strict=True
            )
            if self._turning[joint]:
                for row, x in zip(rows, q, strict=True):
                    self._turned[row] = turns_to(x, q[0])
                q = tuple(x + self._turned[row] for row, x in zip(rows, q, strict=True))
            joints.append(joint)
            apart.append(max(q) - min(q))
            merged.append(
                (
                    sum(q) / len(q),
                    sum(qd) / len(qd),
                    sum(tau),
                    min(stamps),
                    next(filter(None, errors), 0),
                    max(temperatures, key=lambda x: -math.inf if math.isnan(x) else x),
                )
            )
        columns: Any = zip(*merged, strict=True) if merged else _NOTHING[1:7]
        return Measured._make((joints, *columns, measured.unknown, apart))

    # -- SI to commands ----------------------------------------------------------------------------

    def commands(
        self,
        torques: Sequence[float],
        positions: Sequence[float],
        kp: float | Sequence[float] = 0.0,
        kd: float | Sequence[float] = 0.0,
    ) -> list[MotorCommand]:
        """Return the commands of all motors.

        ``torques`` (m,) in N m or N and ``positions`` (m,) in rad or m are those of
        ``joint_names``; ``kp`` and ``kd`` are shares of the gains of the table, one for all joints
        or (m,): both 0 for torques alone, both 1 to hold the positions, kp 0 and kd 1 to damp.
        """
        if not len(torques) == len(positions) == len(self.joint_names):
            raise ArgumentError(
                f"{len(torques)} torques and {len(positions)} positions; valid: those of "
                f"{listed(self.joint_names)}"
            )
        kp, kd = (
            [share] * len(torques) if isinstance(share, (int, float)) else share
            for share in (kp, kd)
        )
        if self._shared:
            torques, positions, kp, kd = (
                [values[joint] for joint in self._joints] for values in (torques, positions, kp, kd)
            )
            positions = list(map(sub, positions, self._turned))
        columns = (
            self._names,
            map(add, self._zeros, map(mul, self._positions, positions)),
            self._none,
            map(mul, self._kp, kp),
            map(mul, self._kd, kd),
            map(mul, self._efforts, torques),
        )
        return list(map(_command, zip(*columns, strict=True)))


def _remarks(motors: Motors, stated: Mapping[str, float]) -> Iterable[str]:
    if motors.when_silent == "last":
        yield (
            "when_silent is 'last': when the loop ends, the drives continue the last torque, and "
            "the arm moves away; set a timeout in the drives if they have one"
        )
    without = [motor.joint for motor in motors.motors if not motor.kp]
    if without and motors.when_silent == "hold":
        yield f"when_silent is 'hold', but kp is 0 for {listed(without)}"
    if without and len(without) < len(motors.motors):
        yield f"the drives cannot hold the arm: kp is 0 for {listed(without)}"
    for name, limit in zip(motors.joint_names, motors.limits, strict=True):
        if limit > stated[name]:
            yield f"{name}: limit {limit:g} is above the effort limit {stated[name]:g} of the model"


def _clean(frames: Iterable[Any]) -> list[Frame]:
    """Return frames whose values are numbers, NaN for others, and whose names are comparable."""
    cleaned = []
    for frame in frames:
        try:
            motor, stamp, position, velocity, effort, error, temperature = Frame(*frame)
        except TypeError:
            raise ArgumentError(
                f"frames holds {quoted(frame)}; valid: (motor, stamp, position, velocity, "
                "effort), with error and temperature if known"
            ) from None
        name = motor if isinstance(motor, int | str) else str(motor)
        values: Any = map(_float, (stamp, position, velocity, effort))
        cleaned.append(Frame._make((name, *values, error, _float(temperature))))
    return cleaned


def _float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
