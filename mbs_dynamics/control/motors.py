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
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray, positive
from mbs_dynamics.control.motor_table import (
    MAX_AGE,
    WHEN_SILENT,
    check_keys,
    coordinate_of,
    motors_of,
)
from mbs_dynamics.control.period.records import REPORTS
from mbs_dynamics.control.turns import turning, turns_to
from mbs_dynamics.errors import ArgumentError, listed, quoted
from mbs_dynamics.model.model import Model
from mbs_dynamics.yaml_files import parsed_yaml

CACHED_LAYOUTS = 256
"""Number of cached layouts of frames."""

ABSURD = 1e100
"""Numbers of this size in a frame are none: conversions of larger ones may overflow."""

PER_UNIT = {
    "q": "position_per_radian",
    "qd": "velocity_per_radian",
    "effort": "feedback_per_newton_metre",
}
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
    errors: Sequence[float]
    temperatures: Sequence[float]
    """In degrees Celsius; for two motors the higher one."""
    unknown: Sequence[int | str] = ()
    """Motors that sent frames but are not in the table."""
    apart: Sequence[float] = ()
    """How far the positions of motors of one joint differ, in rad or m; empty if no joint of the
    table has two motors."""


class Layout(NamedTuple):
    """Places of the numbers of frames whose motors come in one order."""

    numbers: Any
    """(9 N,) numbers of N frames, by the fields of REPORTS."""
    pack: Callable[..., None]
    """Writes stamps, stamps again, positions, velocities, efforts, errors and temperatures."""
    rows: list[int]
    """(k,) rows of the table, ascending."""
    coordinates: tuple[int, ...]
    """(k,) coordinates of their joints."""
    order: Any
    """(9, k) places of their numbers among those of the frames."""
    zeros: FloatArray
    factors: FloatArray
    """(9, k) to SI: (number - zero) * factor."""
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
        self._latest = np.zeros((len(REPORTS), len(self.motors)))
        """Latest numbers of motors that share a joint, in SI units by the fields of REPORTS."""
        self._nothing = (), np.zeros((len(REPORTS), 0)), ()
        turns = turning(model)
        self._turning = [turns[k] for k in self.coordinates]
        m = len(self.joint_names)
        self._picked = m * np.arange(4)[:, None] + self._joints
        """(4, motors) places of torques, positions and shares of gains in a row of all joints."""
        shared = [len(self._groups[joint]) for joint in self._joints]
        self._to_drives = np.array(
            [
                [motor.sign * motor.command_per_newton_metre for motor in self.motors],
                [motor.sign * motor.position_per_radian for motor in self.motors],
                [motor.kp for motor in self.motors],
                [motor.kd for motor in self.motors],
            ]
        )
        self._to_drives[0] /= shared
        self._offsets = np.zeros_like(self._to_drives)
        self._offsets[1] = [motor.zero for motor in self.motors]
        self._standing = [0.0] * len(self.motors)
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
        coordinates, values, unknown = self.reports(frames)
        row = dict(zip(REPORTS, values.tolist(), strict=True))
        joints = [self.coordinates.index(k) for k in coordinates]
        return Measured(
            joints, row["q"], row["qd"], row["effort"], row["stamp"], row["error"],
            row["temperature"], unknown, row["apart"] if self._shared else (),
        )  # fmt: skip

    def reports(
        self, frames: Sequence[Frame | tuple[Any, ...]]
    ) -> tuple[tuple[int, ...], FloatArray, Sequence[int | str]]:
        """Return what frames report as a period takes it; see :meth:`measured`.

        These are the coordinates (k,) of joints, ascending, the fields (9, k) of REPORTS in SI
        units, and the motors that sent frames but are not in the table.
        """
        try:
            names, stamps, positions, velocities, efforts, errors, temperatures = zip(
                *frames,
                strict=False,  # if one is shorter, too few columns are left to unpack
            )
            layout = self._layouts(names)
            numbers, pack, rows, coordinates, order, zeros, factors, unknown = layout
            pack(*stamps, *stamps, *positions, *velocities, *efforts, *errors, *temperatures)
            values = (numbers[order] - zeros) * factors
        except (TypeError, ValueError, ArithmeticError, RuntimeWarning, struct.error):
            return self.reports(_clean(frames)) if len(frames) else self._nothing
        if self._shared:
            coordinates, values = self._merged(rows, values)
        return coordinates, values, unknown

    def _layout(self, names: tuple[Any, ...]) -> Layout:
        N, places = len(names), {name: k for k, name in enumerate(names)}
        rows = [row for row, name in enumerate(self._names) if name in places]
        numbers: Any = np.zeros(len(REPORTS) * N)
        numbers[:N] = 1.0  # reported
        order = [[r * N + places[self._names[row]] for row in rows] for r in range(len(REPORTS))]
        zeros, factors = np.zeros((len(REPORTS), len(rows))), np.ones((len(REPORTS), len(rows)))
        motors = [self.motors[row] for row in rows]
        zeros[REPORTS.index("q")] = [motor.zero for motor in motors]
        for field, factor in PER_UNIT.items():
            factors[REPORTS.index(field)] = [m.sign / getattr(m, factor) for m in motors]
        unknown = tuple(dict.fromkeys(name for name in names if name not in self._rows))
        packed = struct.Struct(f"{7 * N}d")
        return Layout(
            numbers, partial(packed.pack_into, numbers, numbers.nbytes - packed.size), rows,
            tuple(self.coordinates[self._joints[row]] for row in rows),
            np.array(order, dtype=np.intp), zeros, factors, unknown,
        )  # fmt: skip

    def _merged(self, rows: list[int], values: FloatArray) -> tuple[tuple[int, ...], FloatArray]:
        """Return coordinates (k,) and numbers (9, k) of joints, from those of motors."""
        self._latest[:, rows] = values
        coordinates, merged = [], []
        for joint in sorted({self._joints[row] for row in rows}):
            group = self._groups[joint]
            of_motors = dict(zip(REPORTS, self._latest[:, group], strict=True))
            if not of_motors["reported"].all():
                continue
            q = of_motors["q"]
            if self._turning[joint]:
                turned = [turns_to(x, q[0]) for x in q.tolist()]
                q = q + turned
                zeros = [self.motors[row].zero for row in group]
                self._offsets[1, group] = zeros - self._to_drives[1, group] * turned
            of_joint = {name: numbers.mean() for name, numbers in of_motors.items()}
            of_joint |= {
                "apart": np.ptp(q),
                "stamp": of_motors["stamp"].min(),
                "received": of_motors["stamp"].min(),
                "q": q.mean(),
                "effort": of_motors["effort"].sum(),
                "error": next(filter(None, of_motors["error"].tolist()), 0.0),
                "temperature": np.fmax.reduce(of_motors["temperature"]),
            }
            coordinates.append(self.coordinates[joint])
            merged.append(list(of_joint.values()))
        return tuple(coordinates), np.reshape(merged, (-1, len(REPORTS))).T

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
        m = len(self.joint_names)
        if not len(torques) == len(positions) == m:
            raise ArgumentError(
                f"{len(torques)} torques and {len(positions)} positions; valid: those of "
                f"{listed(self.joint_names)}"
            )
        rows = [np.broadcast_to(x, m) for x in (torques, positions, kp, kd)]
        return self.drive_commands(np.concatenate(rows))

    def drive_commands(self, row: FloatArray) -> list[MotorCommand]:
        """Return the commands of all motors from a row of numbers (4 m,), a period's output.

        They are torques, positions, and shares of kp and kd; see :meth:`commands`.
        """
        numbers = row[self._picked] * self._to_drives + self._offsets
        efforts, positions, kp, kd = numbers.tolist()
        rows = zip(self._names, positions, self._standing, kp, kd, efforts, strict=False)
        return list(map(_command, rows))


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
        numbers = map(_float, (stamp, position, velocity, effort, error, temperature))
        cleaned.append(Frame._make((name, *numbers)))
    return cleaned


def _float(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return number if abs(number) < ABSURD else math.nan
