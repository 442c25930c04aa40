# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Models from Denavit-Hartenberg parameters, with links that are bent slender rods.

Mohan and Saha, "A recursive, numerically stable, and efficient simulation algorithm for serial
robots": Appendix A for the parameters, eqs. (9) to (17) for the links.

**Frames.** Frame i + 1 of the paper has the pose Rz(theta_i) Tz(d_i) Tx(a_i) Rx(alpha_i) in frame
i. Z_i is the axis of joint i, X_{i+1} the common normal from Z_i to Z_{i+1}. Frame 1 is fixed to
the ground and is the inertial frame here; frame i + 1 is fixed to link i. This is the classical
convention. In the modified one (Craig, Introduction to Robotics, section 3.4) frame i, fixed to
link i, has the pose Rx(alpha) Tx(a) Rz(theta) Tz(d) in frame i - 1, where a and alpha, which Craig
numbers i - 1, are in row i: ``DHTable(rows, convention="modified")``.

**Body frames.** Frame i + 1 does not have the axis of joint i as its z axis. The frame of body i is
the frame i of the paper, with its origin O_i on that axis, turned by theta_i and, if the joint is
prismatic, moved by q_i. It is fixed to link i, has the axes X_{i+1} and Z_i, and in it

- the joint screw X_i is (0, 0, 1, 0, 0, 0), or (0, 0, 0, 0, 0, 1) if prismatic;
- B_i = Tz(d_{i-1}) Tx(a_{i-1}) Rx(alpha_{i-1}) Rz(theta_i);
- the link is constant: a rod along z from O_i to the height d_i, then one along x, a_i long.

``theta`` and ``d`` of a row are the values at q_i = 0; the paper calls d_i b_i. A revolute joint
adds q_i to theta, a prismatic one adds it to d; the rods of a prismatic link have their lengths at
q_i = 0.

In the modified convention frame i has the axis of joint i as its z axis, and is the frame of body
i: B_i is the transformation above. Only the classical convention has the two rods; here the mass is
at ``com`` or, without one, a point at the origin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import pi
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, ModelError
from mbs_dynamics.lie.se3 import exp_screw
from mbs_dynamics.model.body import Body, Frame
from mbs_dynamics.model.diagnostics import Description, Diagnostic, diagnose
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.joint import Joint, Limits, one_screw
from mbs_dynamics.model.screws import checked_names

SCREWS = {
    "revolute": np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0]),
    "prismatic": np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0]),
}
"""The joint screw X_i in the frame of its body, for each kind of joint."""

_Rz, _Tz = (partial(exp_screw, screw) for screw in SCREWS.values())

TOOL = "tool"
"""Name of frame n + 1, the frame at the end of the last link."""


class DHRow(NamedTuple):
    """One joint and the link that it moves."""

    a: float
    """Distance from Z_i to Z_{i+1} along X_{i+1}, in m; unlike in the paper, it may be negative."""
    d: float
    """Coordinate on Z_i of the foot of X_{i+1}, in m, of any sign; at q = 0 if prismatic. The paper
    calls it b."""
    alpha: float
    """Angle from Z_i to Z_{i+1} about X_{i+1}, in rad."""
    theta: float = 0.0
    """Angle from X_i to X_{i+1} about Z_i, in rad; at q = 0 if revolute."""
    mass: float = 0.0
    """Mass of the link, in kg, spread evenly over its two rods."""
    kind: str = "revolute"
    """``"revolute"`` or ``"prismatic"``."""
    com: Sequence[float] | None = None
    """(3,) centre of mass in m, in the frame that the convention fixes to the link; None: rods."""
    inertia_at_com: Any = None
    """(3, 3) inertia tensor in kg m^2 about ``com``, in the axes of that frame; None: a point."""
    position_limits: Sequence[float] | None = None
    """Least and greatest position q_i, in rad or m."""
    velocity_limit: float | None = None
    """In rad/s or m/s."""
    effort_limit: float | None = None
    """In N m or N, at the joint."""
    motor_inertia: float = 0.0
    """Moment of inertia of the rotor about its own axis, in kg m^2."""
    gear_ratio: float = 1.0
    """Turns of the rotor for one of the joint, or rad for 1 m; the armature of the joint is its
    square times ``motor_inertia``."""
    damping: float = 0.0
    """Viscous friction at the joint, in N m s/rad or N s/m."""
    friction: float = 0.0
    """Coulomb friction at the joint, in N m or N."""


NOT_NUMBERS = ("kind", "com", "inertia_at_com", "position_limits")
OPTIONAL = ("velocity_limit", "effort_limit")
NOT_NEGATIVE = ("mass", "motor_inertia", "damping", "friction", *OPTIONAL)


@dataclass(frozen=True)
class DHTable:
    """A serial robot by its Denavit-Hartenberg parameters."""

    rows: tuple[DHRow, ...]
    """One row for each joint, from the ground to the tool."""
    name: str = "mechanism"
    body_names: tuple[str, ...] | None = None
    """One name for each row; body1, body2, ... if None."""
    joint_names: tuple[str, ...] | None = None
    """One name for each row; joint1, joint2, ... if None."""
    convention: str = "classical"
    """``"classical"``, of Denavit and Hartenberg, or ``"modified"``, of Craig; see the module."""


def describe(
    table: DHTable | Sequence[DHRow | Mapping[str, Any] | Sequence[Any]], gravity: ArrayLike
) -> Description:
    """Return the bodies of a table; see :meth:`mbs_dynamics.Model.from_dh`."""
    rows = _checked_rows(table.rows if isinstance(table, DHTable) else table)
    described = table if isinstance(table, DHTable) else DHTable(rows)
    checks.one_of("convention", described.convention, ("classical", "modified"))
    modified = described.convention == "modified"
    if modified:
        shapes = [np.eye(4)] * (len(rows) + 1)
        homes = [_Rx_Tx(row) @ _Rz(row.theta) @ _Tz(row.d) for row in rows]
    else:
        shapes = [np.eye(4)] + [_Tz(row.d) @ _Rx_Tx(row) for row in rows]
        homes = [shape @ _Rz(row.theta) for shape, row in zip(shapes[:-1], rows, strict=True)]
    body_names = checked_names("body_names", described.body_names, "body", len(rows))
    joint_names = checked_names("joint_names", described.joint_names, "joint", len(rows))
    bodies = tuple(
        Body(
            body_names[i],
            i - 1,
            homes[i],
            _joint(joint_names[i], i, row),
            _inertia(f"table[{i}]", row, shapes[i + 1], modified),
        )
        for i, row in enumerate(rows)
    )
    if TOOL in (body.name for body in bodies):
        raise ModelError(f"no body may be named {TOOL!r}: it is the frame at the end of the robot")
    frames = {TOOL: Frame(TOOL, len(rows) - 1, checks.snap(shapes[-1]), parent=bodies[-1].name)}
    diagnostics = [*_warnings(bodies, rows, modified), *diagnose(bodies, if_massless="note")]
    return Description(described.name, bodies, gravity, frames, diagnostics)


def _joint(name: str, i: int, row: DHRow) -> Joint:
    """Return the joint of a row, with its limits, motor and friction."""
    lower, upper = row.position_limits or (None, None)
    return Joint(
        name,
        one_screw(f"joint {name!r}", SCREWS[row.kind]),
        i,
        limits=Limits(lower, upper, row.velocity_limit, row.effort_limit),
        damping=row.damping,
        friction=row.friction,
        armature=row.gear_ratio**2 * row.motor_inertia,
    )


def link_inertia(row: DHRow) -> Inertia:
    """Return the inertia of a link in the frame of its body: Mohan and Saha, eq. (17a).

    Rod 1 runs along z from 0 to d, rod 2 along x from 0 to a at the height d, both with the mass
    per length rho = mass / (|a| + |d|). A link without length is a point at O_i. The hub and the
    payload of the paper are left out: a row with ``com`` and ``inertia_at_com`` can include them.

    Section 4.1 of the paper expands the same integrals. There, a negative d would make the mass
    negative, and C_5 must be rho a^2 d / 2 instead of rho a^2 d.
    """
    a, d = row.a, row.d
    length = abs(a) + abs(d)
    if length == 0.0:
        return Inertia.from_com(row.mass, np.zeros(3), np.zeros((3, 3)))
    m_a, m_d = row.mass * abs(a) / length, row.mass * abs(d) / length
    along_x = m_a * a**2 / 12 * np.diag([0.0, 1.0, 1.0])
    along_z = m_d * d**2 / 12 * np.diag([1.0, 1.0, 0.0])
    rod = Inertia.from_com(m_d, (0.0, 0.0, d / 2), along_z)
    return rod + Inertia.from_com(m_a, (a / 2, 0.0, d), along_x)


def _inertia(where: str, row: DHRow, shape: FloatArray, modified: bool) -> Inertia:
    """Return the inertia of a link in the frame of its body; ``shape`` is the pose of its frame."""
    if row.com is None and row.inertia_at_com is not None:
        raise ModelError(f"{where} has an inertia_at_com without a com")
    if row.com is None and not modified:
        return link_inertia(row)
    com = np.zeros(3) if row.com is None else row.com
    tensor = np.zeros((3, 3)) if row.inertia_at_com is None else row.inertia_at_com
    return Inertia.from_com(row.mass, com, tensor, f" of {where}").transformed(shape)


def _Rx_Tx(row: DHRow) -> FloatArray:
    """Return Rx(alpha) Tx(a), (4, 4)."""
    turn, slide = np.eye(6)[[0, 3]]
    return np.asarray(exp_screw(turn, row.alpha) @ exp_screw(slide, row.a))


def _checked_rows(table: Any) -> tuple[DHRow, ...]:
    if not isinstance(table, Iterable):
        raise ArgumentError(f"table must be a DHTable or a sequence of rows; got {table!r}")
    rows = []
    for i, given in enumerate(table):
        try:
            row = DHRow(**given) if isinstance(given, Mapping) else DHRow(*given)
        except TypeError:
            raise ArgumentError(
                f"table[{i}] must be a DHRow, or have its fields {', '.join(DHRow._fields)}, the "
                f"last {len(DHRow._field_defaults)} of them optional; got {given!r}"
            ) from None
        rows.append(_checked_row(f"table[{i}]", row))
    if not rows:
        raise ModelError("a mechanism needs a body that moves; got a table without rows")
    return tuple(rows)


def _checked_row(argument: str, row: DHRow) -> DHRow:
    checks.one_of(f"the kind of {argument}", row.kind, SCREWS)
    values = row._asdict()
    for field, value in values.items():
        if field in NOT_NUMBERS or (value is None and field in OPTIONAL):
            continue
        values[field] = x = checks.number(f"{field} of {argument}", value)
        if x < 0.0 and field in NOT_NEGATIVE:
            raise ModelError(f"{field} of {argument} must not be negative; got {x:g}")
    if not values["gear_ratio"]:
        raise ModelError(f"gear_ratio of {argument} must not be 0; 1 is a motor without gear")
    if row.position_limits is not None:
        name = f"position_limits of {argument}"
        low, high = checks.numbers(name, row.position_limits, (2,)).tolist()
        if low > high:
            raise ModelError(f"{name} must be the lower and the upper one; got {low:g}, {high:g}")
        values["position_limits"] = low, high
    return DHRow(**values)


def _warnings(
    bodies: Sequence[Body], rows: Sequence[DHRow], modified: bool
) -> Iterator[Diagnostic]:
    for body, row in zip(bodies, rows, strict=True):
        link = f"link {body.name!r}"
        if row.mass > 0.0 and row.com is None and (modified or row.a == row.d == 0.0):
            lacking = "com" if modified else "length (a = d = 0)"
            yield Diagnostic(
                link,
                f"has a mass of {row.mass:g} kg but no {lacking}: taken as a point at the origin "
                "of its frame, without inertia about it",
            )
        for angle, value in (("alpha", row.alpha), ("theta", row.theta)):
            if abs(value) > 2 * pi:
                text = f"{angle} is {value:g} rad, more than a turn; are these degrees?"
                yield Diagnostic(link, text)
