# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The table of the motors of an arm: its keys, its checks, and rows as text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mbs_dynamics.checks import number
from mbs_dynamics.errors import ArgumentError, UnknownJointError, UnknownNameError, listed, quoted
from mbs_dynamics.model.model import Model
from mbs_dynamics.yaml_files import yaml_text

WHEN_SILENT = {
    "damp": "the drives damp",
    "hold": "the drives hold their position",
    "zero": "the drives exert no torque",
    "last": "the drives continue the last command",
}
"""Reactions of drives when commands stop."""

MAX_AGE = 0.02
"""Age in s from which the frame of a motor is stale, unless the table states another."""

SMALLEST, LARGEST = 1e-9, 1e9
"""Range of the sizes of factors."""

SIGNED = ("sign", "zero", "command_per_newton_metre", "feedback_per_newton_metre")
"""Numbers that may be negative."""

SIZES = {"sign": (1.0, 1.0), "zero": (0.0, math.inf), "kp": (0.0, LARGEST), "kd": (0.0, LARGEST)}
"""Ranges of the sizes of numbers that are not factors."""

FACTORS = ("position_per_radian", "command_per_newton_metre", "feedback_per_newton_metre")
OPTIONAL = ("zero", "velocity_per_radian", "limit", "kp", "kd", "stiffness", "damping")
"""Keys of the table of a motor that may be absent."""


class UnknownKeyError(UnknownNameError, kind="key"):
    """A table has a key that is not known."""

    def __init__(self, where: str, key: object, valid: Iterable[str]) -> None:
        self.kind = f"key of {where}:"
        super().__init__(key, valid)


class Motor(NamedTuple):
    """A row of the table: the motor of a joint."""

    motor: int | str
    joint: str
    sign: float
    zero: float
    """Position of the drive at q = 0."""
    position_per_radian: float
    velocity_per_radian: float
    command_per_newton_metre: float
    feedback_per_newton_metre: float
    limit: float
    """Largest torque of this motor at the joint, in N m or N."""
    kp: float
    kd: float
    """Gains with which the drive holds, in its units; 0 if it cannot hold."""
    stiffness: float
    damping: float
    """kp and kd as they act at the joint, in N m/rad and N m s/rad, or N/m and N s/m."""


def coordinate_of(model: Model, name: object) -> int:
    """Return the index of the velocity of a joint that can have a motor."""
    joints = {body.joint.name: body.joint for body in model.bodies}
    possible = [joint.name for joint in joints.values() if joint.nv == 1 and not joint.mimics]
    joint = joints.get(name) if isinstance(name, str) else None
    if joint is None:
        raise UnknownJointError(name, possible)
    if joint.name not in possible:
        why = f"mimics {joint.mimics}" if joint.mimics else f"has {joint.nv} degrees of freedom"
        raise ArgumentError(
            f"joint {quoted(name)} {why} and cannot be commanded; valid: {listed(possible)}"
        )
    return joint.coordinate


def check_keys(
    where: str, table: Any, required: Sequence[str], optional: Sequence[str] = ()
) -> None:
    """Raise ArgumentError, or UnknownKeyError, unless a table has these keys."""
    if not isinstance(table, Mapping):
        raise ArgumentError(f"{where} is {quoted(table)}; must be a table with keys and values")
    for key in table:
        if key not in (*required, *optional):
            raise UnknownKeyError(where, key, (*required, *optional))
    for key in required:
        if key not in table:
            raise ArgumentError(f"{where} lacks {key!r}; valid: tables with {listed(required)}")


def motors_of(joint: str, tables: Any, stated: float) -> list[Motor]:
    """Return the motors of a joint with this effort limit; inf if it has none."""
    if not isinstance(tables, list | tuple):
        return [_motor(joint, joint, tables, stated)]
    if len(tables) != 2:
        raise ArgumentError(f"{joint} has a list of {len(tables)} motors; must be a table, or two")
    rows = [f"{joint}[{k}]" for k in range(2)]
    return [_motor(joint, row, t, stated / 2) for row, t in zip(rows, tables, strict=True)]


def _motor(joint: str, where: str, table: Any, stated: float) -> Motor:
    check_keys(where, table, ("motor", "sign", *FACTORS), OPTIONAL)

    row = {"zero": 0.0, "kp": 0.0, "kd": 0.0, "limit": stated, **table}
    name = row.pop("motor")
    if isinstance(name, bool) or not isinstance(name, int | str) or name == "":
        raise ArgumentError(f"{where}: motor is {quoted(name)}; must be a number or a name")
    if math.isinf(stated) and "limit" not in table:
        raise ArgumentError(f"{where} lacks 'limit', and the model states no effort limit of it")
    for key, given in row.items():
        if isinstance(given, bool | str) or given is None:
            hint = "; YAML takes 1e-3 for text, 1.0e-3 for a number" if given else ""
            raise ArgumentError(f"{where}: {key} is {quoted(given)}; valid: numbers{hint}")
        row[key] = value = number(f"{where}: {key}", given)
        low, high = SIZES.get(key, (SMALLEST, LARGEST))
        signed = key in SIGNED
        if not low <= (abs(value) if signed else value) <= high:
            valid = f"{'sizes' if signed else 'numbers'} from {low:g} to {high:g}"
            raise ArgumentError(f"{where}: {key} is {value:g}; valid: {valid}")
    position, command, kp, kd = (
        row[key] for key in ("position_per_radian", "command_per_newton_metre", "kp", "kd")
    )
    velocity = row.setdefault("velocity_per_radian", position)
    if kp and not kd:
        raise ArgumentError(f"{where}: kp is {kp:g} without kd; state a positive kd as well")
    effects = {
        "stiffness": (kp, kp * position / abs(command)),
        "damping": (kd, kd * velocity / abs(command)),
    }
    for key, (gain, effect) in effects.items():
        if key in table and not gain:
            raise ArgumentError(f"{where}: {key} is stated without the gain that causes it")
        row.setdefault(key, effect)
    return Motor(motor=name, joint=joint, **row)


def line_of(joint: str, values: Mapping[str, Any]) -> str:
    """Return the line of a joint in the YAML of a table."""
    return "  " + yaml_text({joint: dict(values)}).rstrip("\n")
