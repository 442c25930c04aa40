# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Bias of a wrist force-torque sensor and weight of its tool, from still poses.

Wrenches (6,) have the moment first, in N m and N, at the origin and in the axes of the sensor's
frame. A reading is the wrench that the tool exerts on the sensor: a tool of mass m and centre of
mass c that hangs still under the free-fall acceleration g, resolved in these axes, reads

    force = m g + f0,    moment = c x m g + m0,

with the bias (m0, f0).
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.environment import LARGEST_LOAD
from mbs_dynamics.control.motor_table import check_keys
from mbs_dynamics.errors import ArgumentError, MbsError, quoted
from mbs_dynamics.lie import so3
from mbs_dynamics.output_files import expanded, missing_file, write_at_once

POSES = 4
"""Least number of poses."""

SPREAD = 0.1
"""Least root mean square in a direction by which unit vectors of gravity differ from their mean."""

TURNED = math.radians(15.0)
"""Largest rotation between the readings and the weight that may be an inaccuracy of the frame."""

SIGNIFICANT = 30.0
"""Ratio of variances (F) above which a rotation of the sensor explains the readings better."""

LIGHTEST, ERRORS = 0.001, 5.0
"""A lighter tool in kg is none; so is one within this number of standard errors of zero."""

UNEXPLAINED, NOISE = 0.05, (0.5, 0.05)
"""Largest share of the variance of forces or moments that gravity may leave unexplained, unless
its root is below this noise in N or N m."""

FARTHEST = 2.0
"""Largest distance in m of a centre of mass from the sensor."""

EXPLAINED = 0.25
"""Largest share of the squared forces that a sensor that is turned may leave unexplained."""

FALLS = (1.5, 30.0)
"""Range of lengths of gravity in m/s^2 that are accepted; unit vectors are refused."""

LARGEST, LARGEST_FILE = 1e9, 2**16
"""Size beyond which a reading is not a measurement, and bytes of the largest file that is read."""


class Calibration(NamedTuple):
    """Bias of a sensor, and mass and centre of mass of its tool in the sensor's frame."""

    bias: FloatArray
    """(6,) moment first, in N m and N."""
    mass: float
    """In kg; zero without a tool."""
    com: FloatArray
    """(3,) in m."""

    def write(self, path: Path, frame: str) -> None:
        """Write a JSON file; a file there is replaced at once, or kept as it is.

        Raises ArgumentError for a file that cannot be written or is not a calibration.
        """
        if expanded(path).exists():
            try:
                self.read(path)
            except ArgumentError as error:
                raise ArgumentError(
                    f"will not replace what is not a calibration: {error}"
                ) from error
        moment, force = np.split(self.bias, 2)
        fields = {"frame": frame, "mass": self.mass, "com": self.com.tolist()}
        fields |= {"bias_force": force.tolist(), "bias_torque": moment.tolist()}
        write_at_once("the calibration", path, json.dumps(fields, indent=2) + "\n")

    @classmethod
    def read(cls, path: Path, frame: str = "") -> Calibration:
        """Return the calibration in a file that :meth:`write` or a user has written.

        Raises ArgumentError, with the reason, for one that is missing or damaged, or is
        that of another ``frame``.
        """
        try:
            source = expanded(path)
            if not source.is_file():  # nor a pipe, which would block
                raise ArgumentError(missing_file(source))
            with source.open("rb") as file:
                fields = json.loads(file.read(LARGEST_FILE))
            check_keys("the file", fields, ("frame", "mass", "com", "bias_force", "bias_torque"))
            if frame and fields["frame"] != frame:
                raise ArgumentError(f"it is of frame {quoted(fields['frame'])}; must be {frame!r}")
            force, moment, com = (
                checks.numbers(key, fields[key], (3,))
                for key in ("bias_force", "bias_torque", "com")
            )
            mass = checks.number("mass", fields["mass"])
            if mass < 0.0:
                raise ArgumentError(f"mass must not be negative; got {mass:g}")
            largest = max(mass, *np.abs([force, moment, com]).flat)
            if largest > LARGEST_LOAD:
                raise ArgumentError(f"{largest:g} is too large; must be at most {LARGEST_LOAD:g}")
        except (MbsError, OSError, ValueError, RecursionError) as error:
            raise ArgumentError(f"{str(path)!r} is not a valid calibration: {error}") from error
        return cls(np.concatenate([moment, force]), mass, com)


class Fit(NamedTuple):
    """A calibration out of N poses, with standard errors."""

    calibration: Calibration
    bias_error: FloatArray
    """(6,) moment first, in N m and N."""
    mass_error: float
    com_error: FloatArray
    """(3,)"""
    residuals: FloatArray
    """(N, 6) readings less those of the calibration, moment first."""

    def __str__(self) -> str:
        (moment, force), (dm, df) = np.split(self.calibration.bias, 2), np.split(self.bias_error, 2)
        moments, forces = (np.linalg.norm(x, axis=1) for x in np.split(self.residuals, 2, axis=1))
        tool = (
            f"{self.calibration.mass:.3f} +- {self.mass_error:.3f} kg, centre of mass "
            f"{_shown(self.calibration.com)} +- {self.com_error.max():.3f} m"
        )
        return (
            f"{tool if self.calibration.mass else 'no tool (its mass is zero)'}; bias "
            f"{_shown(force, 2)} +- {df.max():.2f} N, {_shown(moment)} +- {dm.max():.3f} N m; "
            f"residual of {len(forces)} poses up to {forces.max():.2f} N (pose "
            f"{forces.argmax() + 1}), {moments.max():.3f} N m (pose {moments.argmax() + 1})"
        )


def fit(gravities: ArrayLike, wrenches: ArrayLike) -> Fit:
    """Return bias of a sensor and mass and centre of mass of its tool by linear least squares.

    ``gravities`` (N, 3) are free-fall accelerations in m/s^2 in the sensor's axes, ``wrenches``
    (N, 6) the readings in these still poses, moment first, in N m and N.

    Raises ArgumentError for invalid numbers; for poses that do not show the parameters, with what
    is missing; for readings that do not follow gravity; for a bias that changes between the poses,
    with the pose; for a sensor that is turned in its frame or reports the opposite wrench, with the
    rotation; and for weights that the sensor's controller has subtracted wrongly.
    """
    g = checks.real("gravities", gravities)
    N = len(g) if g.ndim else 0
    g, W = checks.numbers("gravities", g, (N, 3)), checks.numbers("wrenches", wrenches, (N, 6))
    missing = unseen(g)
    if missing:
        raise ArgumentError(missing)
    if np.abs(W).max() >= LARGEST:
        raise ArgumentError(f"wrenches have numbers up to {np.abs(W).max():g}, which are too large")
    to_com, same, none = -so3.hat(g), np.tile(np.eye(3), (N, 1)), np.zeros((3 * N, 0))
    moment, force = W[:, :3], W[:, 3:]
    x, e_m, left_f = _solved(g.reshape(-1, 1), same, force)
    m, f0 = float(x[0]), x[1:]
    mountings = _mountings(g, force)
    changes = [_bias_change(g.reshape(-1, 1), force, "N", min(mountings)[0])]
    to_any: FloatArray = np.array(np.kron(g, np.eye(3)), dtype=float)  # also of a turned sensor
    changes.append(_bias_change(to_any, moment, "N m", math.inf))
    for change in filter(None, changes):
        raise ArgumentError(change)
    _check_mounting(mountings, g, force, m, e_m[0], left_f)
    mc, e_mc, left_m = _solved(to_com.reshape(-1, 3), same, moment)
    for k, (what, unit, b, left) in enumerate(
        (("forces", "N", force, left_f), ("moments", "N m", moment, left_m))
    ):
        variance = np.square(left).sum() / (left.size - (4, 6)[k])
        explicable = UNEXPLAINED * np.square(b - b.mean(axis=0)).sum() / (3 * (N - 1))
        if variance > max(explicable, NOISE[k] ** 2):
            worst = np.linalg.norm(left, axis=1)
            raise ArgumentError(
                f"the {what} do not follow gravity: {m:.3g} +- {e_m[0]:.2g} kg, residual up to "
                f"{worst.max():.3g} {unit} (pose {worst.argmax() + 1}); valid: readings in SI "
                "units of a tool that nothing touches, and the gravity in the same poses"
            )
    if m < max(LIGHTEST, ERRORS * e_m[0]):
        if np.linalg.norm(mc[:3]) > max(NOISE[1] / _length(g), ERRORS * np.linalg.norm(e_mc[:3])):
            raise ArgumentError(
                "the forces show no tool, but the moments follow gravity like a mass times centre "
                f"of mass of {_shown(mc[:3])} kg m: the sensor's controller probably subtracts a "
                "payload of the right mass at a wrong centre of mass; correct the centre of mass "
                "there, or set that payload to zero"
            )
        m, e_mass, c, e_c = 0.0, e_m[0], np.zeros(3), np.zeros(3)
        f0, e_m, left_f = _solved(none, same, force)
        m0, e_mc, left_m = _solved(none, same, moment)
    else:
        e_mass, c, m0 = e_m[0], mc[:3] / m, mc[3:]
        e_c = np.sqrt(e_mc[:3] ** 2 + (c * e_mass) ** 2) / m
        if np.linalg.norm(c) > FARTHEST:
            raise ArgumentError(
                f"the moments show a centre of mass at {_shown(c)} m; must be at most "
                f"{FARTHEST:g} m from the sensor. Are the moments in N m, and does the sensor's "
                "controller subtract a payload with a wrong centre of mass?"
            )
    calibration = Calibration(np.concatenate([m0, f0]), m, c)
    errors = np.concatenate([e_mc[-3:], e_m[-3:]])
    return Fit(calibration, errors, float(e_mass), e_c, np.hstack([left_m, left_f]))


def unseen(gravities: FloatArray) -> str:
    """Return which parameters gravities (N, 3) in a sensor's axes do not show; empty if none."""
    N = len(gravities)
    length = np.linalg.norm(gravities, axis=1, keepdims=True)
    wrong = (length < FALLS[0]) | (length > FALLS[1])
    if wrong.any():
        raise ArgumentError(
            f"gravities have lengths such as {length[wrong][0]:g}; must be {FALLS[0]:g} to "
            f"{FALLS[1]:g} m/s^2"
        )
    needed = f"{N} pose(s); at least {POSES} are needed, with different directions of gravity"
    if not N:
        return needed
    directions = gravities / length
    _, spread, axes = np.linalg.svd(directions - directions.mean(axis=0), full_matrices=True)
    seen = int((spread / math.sqrt(N) >= SPREAD).sum())
    if seen == 0 and N > 1:
        return (
            f"in all {N} poses gravity has the same direction in the sensor's frame: they show "
            "neither mass, bias nor centre of mass; tilt the sensor between poses"
        )
    if seen == 1 and N >= POSES:
        other = -axes[1] if directions.mean(axis=0) @ axes[1] > 0.0 else axes[1]
        return (
            f"gravity differs between the poses along {_shown(axes[0], 2)} alone: they do not show "
            "the centre of mass along this axis, nor the bias of the moment across it; add a pose "
            f"in which gravity points to {_shown(other, 2)} in the sensor's frame"
        )
    return needed if N < POSES else ""


def _solved(A: FloatArray, same: FloatArray, b: FloatArray) -> list[FloatArray]:
    """Return x, its standard errors, and residuals (N, 3) of b = [A, same] x."""
    A = np.hstack([A, same])
    x = np.linalg.lstsq(A, b.ravel(), rcond=None)[0]
    left = b.ravel() - A @ x
    variance = left @ left / (left.size - x.size)
    errors = np.sqrt(variance * np.diag(np.linalg.inv(A.T @ A)))
    return [x, errors, left.reshape(-1, 3)]


def _length(g: FloatArray) -> float:
    """Return the mean length of gravities (N, 3)."""
    return float(np.linalg.norm(g, axis=1).mean())


def _bias_change(A: FloatArray, readings: FloatArray, unit: str, rival: float) -> str:
    """Return where the bias of readings (N, 3) changes between poses; empty if it does not.

    Readings are A x plus a bias, which takes another value from one pose on, or in one pose. Such a
    change must explain the readings significantly better than one bias, and leave a smaller sum of
    squares than ``rival``.
    """
    N = len(readings)
    from_one_on = {k: np.arange(N) >= k for k in range(1, N)}
    in_one = {k: np.arange(N) == k for k in range(1, N - 1)}
    same, b = np.tile(np.eye(3), (N, 1)), readings.ravel()
    freedom = b.size - A.shape[1] - 6
    if freedom <= 0:
        return ""
    before = np.linalg.norm(b - np.hstack([A, same]) @ _least(np.hstack([A, same]), b)) ** 2
    found: list[tuple[float, float, str]] = []
    for single, masks in ((False, from_one_on), (True, in_one)):
        for k, mask in masks.items():
            columns = np.hstack([A, same, np.kron(mask[:, None], np.eye(3))])
            x = _least(columns, b)
            left, step = float(np.square(b - columns @ x).sum()), x[-3:]
            pose = k + 1 if single or k == N - 1 else 1 if k == 1 else 0
            where = f"pose {pose} differs" if pose else f"the poses from {k + 1} on differ"
            text = (
                f"{where} from the others by {_shown(step, 2)} {unit}, and all follow gravity "
                "otherwise: the bias changed, or the tool was touched. Was the sensor zeroed "
                "between two poses? Take all poses again without that"
            )
            found.append((left, float(np.linalg.norm(step)), text))
    left, size, text = min(found)
    rounding = 1e-12 * np.square(b).sum()
    significant = before - left > 3.0 * SIGNIFICANT * left / freedom + rounding
    large = size > NOISE[unit != "N"]
    return text if significant and large and left < rival else ""


def _least(A: FloatArray, b: FloatArray) -> FloatArray:
    """Return the least-squares solution of A x = b."""
    return np.asarray(np.linalg.lstsq(A, b, rcond=None)[0])


class _Orientation(NamedTuple):
    """An orientation of the sensor in its frame, and the sign of its readings."""

    missed: float
    """Sum of the squared forces that it leaves unexplained."""
    sign: float
    rotation: tuple[float, ...]
    """(3,) in rad."""
    mass: float


def _mountings(g: FloatArray, force: FloatArray) -> list[_Orientation]:
    """Return the best rotation for either sign of the readings.

    It is that of Kabsch (1976), of forces and gravities less their means.
    """
    g, force = g - g.mean(axis=0), force - force.mean(axis=0)
    U, s, Vt = np.linalg.svd(force.T @ g)
    proper, total = np.sign(np.linalg.det(U @ Vt)), np.square(g).sum()
    mountings = []
    for sign in (1.0, -1.0):
        Q = sign * U @ np.diag([1.0, 1.0, sign * proper]) @ Vt  # the rotation of -force for -1
        mass = float((s[0] + s[1] + sign * proper * s[2]) / total)
        missed = float(np.square(force - sign * mass * g @ Q.T).sum())
        mountings.append(_Orientation(missed, sign, tuple(so3.log(Q).tolist()), mass))
    return mountings


def _check_mounting(
    mountings: Sequence[_Orientation],
    g: FloatArray,
    force: FloatArray,
    m: float,
    error: float,
    left: FloatArray,
) -> None:
    """Raise ArgumentError if the tool has a negative mass, or a turned sensor fits the forces."""
    spread, weight = (np.square(x - x.mean(axis=0)).sum() for x in (force, g))
    best = min(mountings)
    rounding = 1e-12 * spread
    variance = best.missed / (left.size - 7)
    spared = np.square(left).sum() - best.missed
    explained = (
        best.mass * math.sqrt(weight / len(g)) > NOISE[0] and best.missed <= EXPLAINED * spread
    )
    turned = explained and spared > 3.0 * SIGNIFICANT * variance + rounding
    close = [one for one in mountings if one.missed <= best.missed + 9.0 * variance + rounding]
    fits = any(one.sign > 0.0 and np.linalg.norm(one.rotation) <= TURNED for one in close)
    negative = m < -max(LIGHTEST, ERRORS * error)
    names = sorted(_mounting(one.sign, np.array(one.rotation)) for one in close)
    if negative and (not explained or any(_as_mounted(one) for one in close)):
        raise ArgumentError(
            f"the readings show a tool of {m:.3g} kg. Either the sensor's controller subtracts a "
            f"payload that is stated {-m:.3g} kg too heavy: correct it there, or set it to zero. "
            f"Or it is {' or '.join(names) if explained else OPPOSITE}. To tell, push the tool "
            "along +z of the sensor's frame: the force along z must increase; reverse the readings "
            "only if it decreases"
        )
    if negative or (turned and not fits):
        described = ", or ".join(names) if explained else "no rotation of the sensor"
        raise ArgumentError(
            f"the readings fit {described}; as it is mounted they show a tool of {m:.3g} kg"
        )


OPPOSITE = "a sensor that reports the opposite wrench (or gravity points the other way)"


def _as_mounted(one: _Orientation) -> bool:
    """Return whether readings are the opposite of those of a sensor that is not turned."""
    return one.sign < 0.0 and bool(np.linalg.norm(one.rotation) <= TURNED)


def _mounting(sign: float, x: FloatArray) -> str:
    angle = float(np.linalg.norm(x))
    described = []
    if angle > TURNED:
        k = int(np.abs(x).argmax())
        axis = x * np.sign(x[k]) / angle  # the sign of a half turn is arbitrary
        degrees = math.degrees(angle) * (1.0 if angle > 3.1 else float(np.sign(x[k])))
        name = "xyz"[k] if axis[k] > math.cos(TURNED) else _shown(axis, 2)
        described.append(f"turned by {degrees:.0f} degrees about {name}")
    if sign < 0.0:
        described.append("that reports the opposite wrench (or gravity points the other way)")
    return f"a sensor {' and '.join(described) or 'as it is mounted'}"


def _shown(x: Sequence[float] | FloatArray, digits: int = 3) -> str:
    return f"({', '.join(f'{round(float(one), digits) + 0.0:.{digits}f}' for one in x)})"
