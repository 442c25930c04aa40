# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Signs and units of motors from still poses, by the gravity torques of the model.

At rest a drive reports e = a g(q - d), where a is its signed factor and d the error of its zero.
The masses of the model are uncertain: their errors are estimated as well, with priors of usual
sizes, so that the standard errors of a and d contain them. Still poses show nothing about joints
with vertical axes, nor whether commands are in the units of the feedback.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.gravity_fit import GravityFit, fit_gravity, load_misfit
from mbs_dynamics.control.motor_table import line_of, row_of
from mbs_dynamics.control.motors import Motors
from mbs_dynamics.control.poses import Poses
from mbs_dynamics.errors import ArgumentError, UnknownJointError, listed, quoted
from mbs_dynamics.model.coordinates import at_limits, check_arm
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.orders import tools
from mbs_dynamics.yaml_files import yaml_text

FEWEST = 4
"""Least number of different poses."""

SAME = 0.02
"""Width in rad or m of the cells in which samples count as one pose."""

CERTAIN = 5.0
"""Number of standard errors by which a factor or a zero must differ from zero."""

UNEXPLAINED = 0.5
"""Largest share of the efforts of a joint, root mean square, that gravity may leave unexplained."""

UNEXPLAINED_FOR_ZERO, POSES_FOR_ZERO = 0.2, 10
"""The same share, and least number of poses, for the correction of a zero."""

MATTERS, BETTER = 0.01, 2.0
"""Smallest share of the largest torque at which efforts of a joint are compared, and ratio of
squared residuals above which a load alone explains them better than the arm."""

TURNS = 10.0
"""Size in rad or m above which positions must be in another unit."""


class Calibrated(NamedTuple):
    """Sign, zero and factors of the motor of a joint, as poses show them."""

    joint: str
    sign: int
    position_per_radian: float
    zero: float
    feedback: float
    """``feedback_per_newton_metre``."""
    feedback_error: float
    """Its standard error, as a share."""
    command: float
    """``command_per_newton_metre``."""
    command_error: float
    """Its standard error, as a share; NaN if the poses do not show it."""


class MotorCalibration(NamedTuple):
    """Result of :func:`calibrate`."""

    joints: tuple[Calibrated, ...]
    unseen: dict[str, str]
    """Why the poses do not show the other joints, by name."""
    notes: tuple[str, ...]
    poses: int
    """Number of different poses."""

    def yaml(self, start: Motors | None = None, source: str = "still poses") -> str:
        """Return a table of motors, completed from ``start``; unseen joints become comments."""
        rows = {} if start is None else {motor.joint: motor for motor in start.motors}
        lines = [f"# signs and factors of {source}, by mbs-dynamics calibrate-motors"]
        if start is None:
            lines.append("when_silent: last  # unknown: state what the drives do")
        else:
            given = {"when_silent": start.when_silent, "max_age": start.max_age}
            lines += yaml_text(given, flow=False).splitlines()
        lines.append("motors:")
        for one in self.joints:
            row = rows.get(one.joint)
            values = row_of(row) | {
                "motor": one.joint if row is None else row.motor,
                "sign": one.sign,
                "zero": one.zero,
                "position_per_radian": one.position_per_radian,
                "command_per_newton_metre": one.command,
                "feedback_per_newton_metre": one.feedback,
            }
            commands = f"+- {100.0 * one.command_error:.2g} %"
            if math.isnan(one.command_error):
                commands = "as before" if row else "in the unit of the feedback: an assumption"
            lines.append(line_of(one.joint, values))
            lines.append(
                f"    # feedback +- {100.0 * one.feedback_error:.2g} %; commands {commands}"
            )
        for name, why in self.unseen.items():
            if name in rows:
                lines.append(line_of(name, row_of(rows[name])))
            lines.append(f"  # {name}: {why}")
        return "\n".join(lines) + "\n"


def calibrate(
    model: Model,
    poses: Poses,
    *,
    start: Motors | None = None,
    signs: Mapping[str, int] = {},
) -> MotorCalibration:
    """Return signs, factors and zeros of the motors of an arm from still poses.

    The signs of the positions of drives are those of ``signs``, 1 or -1 by joint, or of the table
    ``start``, or follow from ``poses.q`` beside ``poses.positions``; with ``poses.q`` alone the
    sign is that of the efforts. Zeros and units of positions are those of ``start`` or of
    ``poses``. Factors of efforts are negative where a drive counts efforts against its positions.

    Poses with a joint at a limit are left out, since a stop may carry part of the load.

    Raises ArgumentError for too few poses, drives with an unknown sign, positions in other
    units, joints without efforts, two motors on one joint, and efforts from which the drives
    subtract gravity; UnknownJointError for a name that is not a joint.
    """
    check_arm(model.joints, "calibration")
    if start is not None and len(start.motors) > len(start.joint_names):
        raise ArgumentError(
            "start has two motors on one joint; valid: tables with one: calibrate one by one"
        )
    UnknownJointError.check(signs, model.joint_names)
    for name, sign in signs.items():
        if sign not in (1, -1):
            raise ArgumentError(f"signs has {quoted(sign)} for {name}; valid: 1 and -1")
    data = _Data(model, poses, start, signs)
    fit = data.fit()
    data.check_weight(fit)
    calibrated, unseen = [], {name: "no efforts were recorded" for name in data.without}
    for k, name in enumerate(data.joints):
        why = data.why_not(fit, k)
        if why:
            unseen[name] = why
        else:
            calibrated.append(data.calibrated(fit, k))
    return MotorCalibration(tuple(calibrated), unseen, tuple(data.notes), len(data.u))


class _Positions(NamedTuple):
    """Positions of a joint in still poses, and parameters of its drive."""

    q: FloatArray
    """(N,) in rad or m."""
    sign: int
    """Sign of the drive's positions, 1 or -1."""
    zero: float
    unit: float
    """``position_per_radian``."""
    inferred: bool = False
    """Whether the sign of the drive is that of its efforts."""


class _Data:
    """Merged poses of an arm, and what they show of its drives."""

    def __init__(
        self,
        model: Model,
        poses: Poses,
        start: Motors | None,
        signs: Mapping[str, int],
    ) -> None:
        self.model, self.poses = model, poses
        self.notes: list[str] = []
        self.table = {} if start is None else {m.joint: m for m in start.motors}
        measured = [n for n in model.joint_names if n in poses.q or n in poses.positions]
        self.joints = [name for name in measured if name in poses.efforts]
        self.without = [name for name in measured if name not in poses.efforts]
        if not self.joints:
            raise ArgumentError(
                f"efforts are those of {listed(poses.efforts)}, positions those of "
                f"{listed(measured)}; valid: both of the same joints of {listed(model.joint_names)}"
            )
        positions = {name: self._position(name, signs) for name in measured}
        self.drives = [positions[name] for name in self.joints]
        """Positions and drives of the joints with efforts."""
        absent = [name for name in model.joint_names if name not in measured]
        if absent:
            self.notes.append(f"taken to be at zero, or the nearest limit: {listed(absent)}")
        self.places = [model.joint_names.index(name) for name in measured]
        self.own = [measured.index(name) for name in self.joints]
        self.rows = [model.joint_names.index(name) for name in self.joints]
        efforts = [poses.efforts[name] for name in self.joints]
        columns = np.broadcast_arrays(*(each.q for each in positions.values()), *efforts)
        whole = np.stack(columns, axis=1)
        self._used = self._usable(whole, measured)
        """(N,) whether each recorded pose is used."""
        cells = np.round(whole[self._used, : len(measured)] / SAME)
        self._pose = np.unique(cells, axis=0, return_inverse=True)[1].ravel()
        """Number of the merged pose to which each used pose belongs."""
        count = len(np.unique(self._pose))
        if count < FEWEST:
            why = f" ({'; '.join(self.notes)})" if self.notes else ""
            raise ArgumentError(
                f"poses has {count} different poses; must be at least {FEWEST}{why}"
            )
        self.u, self.e = np.split(self._merged(whole), [len(measured)], axis=1)
        self.size = np.sqrt(np.square(self.e).mean(axis=0))  # of the efforts
        self.scale = np.where(self.size > 0.0, self.size, 1.0)
        self.rest = model.neutral(within_limits=True)

    def _usable(self, whole: FloatArray, measured: Sequence[str]) -> NDArray[np.bool_]:
        """Return (N,) which poses are complete and away from stops; note how many are not.

        The first columns of ``whole`` (N, k) are the positions of the ``measured`` joints.
        """
        complete = np.isfinite(whole).all(axis=1)
        if not complete.all():
            self.notes.append(
                f"{int((~complete).sum())} poses have missing values, and are left out"
            )
        lower, upper = self.model.lower[self.places], self.model.upper[self.places]
        stopped = at_limits(whole[:, : len(measured)], lower, upper)
        stopped &= [name in self.joints for name in measured]
        at_stop = stopped.any(axis=1)
        if at_stop.any():
            joints = [name for name, x in zip(measured, stopped.T, strict=True) if x.any()]
            self.notes.append(
                f"{int((complete & at_stop).sum())} poses are left out: {listed(joints)} are at a "
                "limit there, where a stop may carry a part of the load"
            )
        return np.asarray(complete & ~at_stop)

    def _merged(self, columns: FloatArray) -> FloatArray:
        """Return the means of columns (N, k) over the samples of each pose."""
        values = columns[self._used]
        sums = np.stack([np.bincount(self._pose, x) for x in values.T], axis=1)
        return np.asarray(sums / np.bincount(self._pose)[:, None])

    def _position(self, name: str, signs: Mapping[str, int]) -> _Positions:
        poses, row = self.poses, self.table.get(name)
        q, raw = poses.q.get(name), poses.positions.get(name)
        zero, unit = 0.0, poses.position_per_radian.get(name, 1.0)
        sign = int(signs.get(name, 0))
        if row is not None:
            zero, unit = row.zero, row.position_per_radian
            sign = sign or int(row.sign)
        if q is None:
            assert raw is not None
            if not sign:
                raise ArgumentError(
                    f"position_{name} has an unknown direction; state --signs: 1 if the position "
                    "of the drive increases in the direction in which the URDF counts, -1 if not"
                )
            q = sign * (raw - zero) / unit
            self._check_unit(f"position_{name}", q)
            return _Positions(q, sign, zero, unit)
        self._check_unit(f"q_{name}", q)
        if raw is None:
            return _Positions(q, sign or 1, zero, unit, inferred=not sign)
        good = np.isfinite(q) & np.isfinite(raw)
        A = np.stack([q, np.ones_like(q)], axis=1)[good]
        slope, zero = np.linalg.lstsq(A, raw[good], rcond=None)[0]
        rest = raw[good] - A @ (slope, zero)
        if good.sum() < FEWEST or not rest.std() < 0.05 * abs(slope) * q[good].std():
            raise ArgumentError(
                f"position_{name} does not follow q_{name}; valid: readings of one joint"
            )
        return _Positions(q, int(np.sign(slope)), float(zero), float(abs(slope)))

    def _check_unit(self, what: str, q: FloatArray) -> None:
        largest = np.nanmax(np.abs(q), initial=0.0)
        if largest > TURNS:
            raise ArgumentError(
                f"{what} is up to {largest:.4g}; valid: rad or m up to {TURNS:g}: state the "
                "unit in brackets, or position_per_radian in a table of motors"
            )

    # -- estimates -------------------------------------------------------------------------------

    def _whole(self, zeros: Any = 0.0) -> FloatArray:
        """Return positions (N, n) of all joints of the model."""
        q = np.tile(self.rest, (len(self.u), 1))
        measured = self.u.copy()
        measured[:, self.own] -= zeros
        q[:, self.places] = measured
        return q

    def fit(self) -> GravityFit:
        """Return the most probable factors, zeros, and errors of masses."""
        return fit_gravity(self.model, self.rows, self._whole, self.e)

    # -- decisions -------------------------------------------------------------------------------

    def check_weight(self, fit: GravityFit) -> None:
        """Raise ArgumentError if a load on the tool explains the efforts far better than the arm.

        Each joint has a factor in both cases. Drives that subtract the known weight of the arm
        report the load alone. If noise hides the difference, or the arm does not show it, such as
        one with a single joint under gravity, this is noted.
        """
        used = [k for k in range(len(self.joints)) if self._matters(fit, k)]
        efforts = self.e[:, used] / self.scale[used]
        left = efforts - (fit.a * fit.torques)[:, used] / self.scale[used]
        by_arm = np.square(left).mean(axis=0)
        q = self._whole()
        for tool in tools(self.model) if used else ():
            by_load = load_misfit(self.model, tool, q, [self.rows[k] for k in used], efforts)
            # noise may hide the load at joints near it, so that these are left out
            seen = by_load < UNEXPLAINED_FOR_ZERO**2
            arm, load = float(by_arm[seen].sum()), float(by_load[seen].sum())
            if seen.sum() > 1 and load * BETTER < arm and by_load.sum() < by_arm.sum():
                raise ArgumentError(
                    f"the efforts are those of a load on {tool!r} alone: it leaves "
                    f"{100.0 * math.sqrt(load / seen.sum()):.1f} % of them unexplained, the weight "
                    f"of the arm {100.0 * math.sqrt(arm / seen.sum()):.1f} %. These drives "
                    "subtract gravity from their efforts, which show no factors then: record "
                    "efforts with gravity. If the arm does carry a load, remove it, or describe it "
                    "in the URDF"
                )
            if by_load.sum() < BETTER * by_arm.sum():
                self.notes.append(
                    f"a load on {tool!r} alone would explain these efforts as well: the factors "
                    "are right only if the drives do not subtract gravity from their efforts"
                )

    def _matters(self, fit: GravityFit, k: int) -> bool:
        """Return whether gravity exerts a considerable torque about a joint in these poses."""
        sizes = np.sqrt(np.square(fit.torques).mean(axis=0))
        return bool(self.size[k] > 0.0 and sizes[k] > MATTERS * sizes.max())

    def why_not(self, fit: GravityFit, k: int) -> str:
        """Return why the poses do not show the factor of a joint; empty if they do."""
        torque = float(np.sqrt(np.square(fit.torques[:, k]).mean()))
        largest = float(np.sqrt(np.square(fit.torques).mean(axis=0)).max())
        if not self.size[k]:
            return "not seen: all its efforts are zero"
        if torque < 1e-3 * largest or not torque:
            return (
                f"not seen: gravity exerts {torque:.2g} N m about it in these poses (root mean "
                "square); its axis is vertical, or nothing hangs on it"
            )
        unexplained = self._unexplained(fit, k)
        if unexplained > UNEXPLAINED:
            return (
                f"not seen: gravity leaves {100.0 * unexplained:.0f} % of its efforts unexplained "
                f"(at most {100.0 * UNEXPLAINED:.0f} %): friction, an arm that was held or that "
                "moved, or positions in another unit or direction"
            )
        if abs(fit.a[k]) < CERTAIN * fit.a_error[k]:
            return (
                f"not seen: its factor is {fit.a[k]:.3g} +- {fit.a_error[k]:.2g}; take more poses, "
                f"with more torque than {torque:.2g} N m about it"
            )
        return ""

    def _unexplained(self, fit: GravityFit, k: int) -> float:
        """Return the share of the efforts of a joint that gravity leaves unexplained."""
        left = self.e[:, k] - fit.a[k] * fit.torques[:, k]
        return float(np.sqrt(np.square(left).mean()) / self.size[k])

    def calibrated(self, fit: GravityFit, k: int) -> Calibrated:
        """Return the calibration of a joint."""
        name, drive, d = self.joints[k], self.drives[k], float(fit.zeros[k])
        sign = drive.sign
        if drive.inferred:
            sign = int(np.sign(fit.a[k]))
            self.notes.append(
                f"{name}: its drive is taken to count positions and efforts in the same direction, "
                f"position = {sign} q; check it, or record position_{name}"
            )
        elif sign * fit.a[k] < 0.0:
            self.notes.append(f"{name}: its drive counts efforts against its positions")
        error, shift = float(fit.zero_errors[k]), 0.0
        clear = len(self.e) >= POSES_FOR_ZERO and self._unexplained(fit, k) < UNEXPLAINED_FOR_ZERO
        if clear and abs(d) > CERTAIN * error:
            shift = round(d, 4)
            self.notes.append(f"{name}: its zero is off by {d:.3f} +- {error:.2g} rad or m")
        share = float(fit.a_error[k] / abs(fit.a[k]))
        feedback = sign * float(f"{fit.a[k]:.6g}")
        command, command_error = sign * float(f"{self._command(fit, k):.6g}"), share
        if not command:
            command_error = math.nan
            command = self.table[name].command_per_newton_metre if name in self.table else feedback
        zero = drive.zero + sign * drive.unit * shift
        return Calibrated(name, sign, drive.unit, zero, feedback, share, command, command_error)

    def _command(self, fit: GravityFit, k: int) -> float:
        """Return the factor of commands, with a sign; 0.0 if they do not show it."""
        recorded = self.poses.commands.get(self.joints[k])
        if recorded is None:
            return 0.0
        commands, g = self._merged(recorded[:, None])[:, 0], fit.torques[:, k]
        factor = float(commands @ g / (g @ g))
        left, whole = (math.sqrt(x @ x) for x in (commands - factor * g, commands))
        if left < UNEXPLAINED * whole:
            return factor
        self.notes.append(f"{self.joints[k]}: its commands do not follow gravity, and are left out")
        return 0.0
