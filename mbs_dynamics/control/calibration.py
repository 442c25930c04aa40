# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Signs and factors of the efforts of motors, from still poses of an arm.

At rest a drive reports e = a g(q): g is the gravity torque of the model, and a the signed factor of
the drive, which least squares over all poses determine. Still poses show nothing about joints with
vertical axes, nor whether commands are in the units of the feedback.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import mbs_dynamics as mbs
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.motor_table import line_of
from mbs_dynamics.errors import ArgumentError, listed
from mbs_dynamics.model.coordinates import at_limits, check_arm
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.orders import tools
from mbs_dynamics.timeseries import TimeSeries
from mbs_dynamics.timeseries.columns import column_name
from mbs_dynamics.yaml_files import yaml_text

FEWEST = 4
"""Least number of different poses."""

SAME = 0.02
"""Width in rad or m of the cells in which samples count as one pose."""

STILL = 0.02
"""Largest velocity of a joint in a still pose, in rad/s or m/s."""

MASS_ERROR = 0.1
"""Standard error of the gravity torques of a description, as a share."""

CERTAIN = 5.0
"""Number of standard errors by which a factor must differ from zero."""

UNEXPLAINED = 0.5
"""Largest share of the efforts of a joint, root mean square, that gravity may leave unexplained."""

SEEN = 0.01
"""Least gravity torque about a joint as a share of the largest one of the arm."""

FOLLOWS, BETTER = 0.2, 2.0
"""Share of the efforts of a joint up to which a load alone may leave them unexplained to be
considered, and ratio of squared residuals above which it explains them better than the arm."""

LOAD_ROUNDS = 100
"""Rounds in which factors and the centre of mass of a load are fitted in turn."""

OFF_AXES = 0.05
"""Distance in m, along each axis, of a second first estimate of a centre of mass from the link's
frame, which may be on the axes of joints."""


class Calibrated(NamedTuple):
    """Sign and factor of the motor of a joint, as poses show them."""

    joint: str
    sign: int
    feedback: float
    """``feedback_per_newton_metre``."""
    error: float
    """Its standard error, as a share."""


class MotorCalibration(NamedTuple):
    """Result of :func:`calibrate`."""

    joints: tuple[Calibrated, ...]
    unseen: dict[str, str]
    """Why the poses do not show the other joints, by name."""
    notes: tuple[str, ...]
    poses: int
    """Number of different poses."""

    def yaml(self, start: Mapping[str, Any] = {}, source: str = "still poses") -> str:
        """Return a table of motors, completed from the table ``start``.

        Without a row in ``start``, commands are assumed to be in the unit of the feedback, and
        positions in rad or m from the zero of the joint; unseen joints become comments.
        """
        lines = [f"# signs and factors of {source}, by mbs-dynamics calibrate-motors"]
        settings = {key: value for key, value in start.items() if key != "motors"}
        if settings:
            lines += yaml_text(settings, flow=False).splitlines()
        else:
            lines.append("when_silent: last  # unknown: state what the drives do")
        lines.append("motors:")
        rows = dict(start.get("motors", {}))
        for one in self.joints:
            assumed = {
                "motor": one.joint,
                "position_per_radian": 1.0,
                "command_per_newton_metre": one.feedback,
            }
            found = {"sign": one.sign, "feedback_per_newton_metre": one.feedback}
            lines.append(line_of(one.joint, assumed | rows.pop(one.joint, {}) | found))
            lines.append(f"    # feedback +- {100.0 * one.error:.2g} %")
        lines += [line_of(name, row) for name, row in rows.items()]
        lines += [f"  # {name}: {why}" for name, why in self.unseen.items()]
        return "\n".join(lines) + "\n"


def calibrate(
    model: Model, poses: TimeSeries, *, start: Mapping[str, Any] = {}
) -> MotorCalibration:
    """Return signs and factors of the motors of an arm from still poses, a row for each.

    Efforts, in any unit, are the columns ``raw_effort_<joint>`` of ``poses`` or else its torques.
    ``start`` is a valid table of motors, see :class:`~mbs_dynamics.control.Motors`, which states
    the signs of the positions of drives. Without it the sign is that of the efforts. Factors of
    efforts are negative where a drive counts efforts against its positions.

    Rows in motion, and with a joint at a limit, where a stop may carry part of the load, are left
    out. Raises ArgumentError for too few poses, positions in other units, poses without efforts,
    two motors on one joint, and efforts from which the drives subtract gravity.
    """
    check_arm(model.joints, "calibration")
    rows = start.get("motors", {})
    signs = {}
    for name, row in rows.items():
        if isinstance(row, Sequence):
            raise ArgumentError(
                f"the table of motors has two motors on {name!r}; must have one: calibrate them "
                "one by one"
            )
        signs[name] = int(row["sign"])
    series = replace(poses, qd=None, declared=poses.declared | {"t"}).of(model)
    still = np.ones(len(series), bool)
    if poses.qd is not None:
        still = (np.nan_to_num(np.abs(poses.qd)) <= STILL).all(axis=1)
    data = _Data(model, series, still)
    data.check_weight()
    calibrated = []
    for k, name in enumerate(data.joints):
        why = data.why_not(k)
        if why:
            data.unseen[name] = why
            continue
        sign = signs.get(name, int(np.sign(data.a[k])))
        if name not in signs:
            data.notes.append(
                f"{name}: its drive is taken to count positions and efforts in the same direction, "
                f"position = {sign} q; check it, or state its sign in a table of motors"
            )
        elif sign * data.a[k] < 0.0:
            data.notes.append(f"{name}: its drive counts efforts against its positions")
        feedback = sign * float(f"{data.a[k]:.6g}")
        calibrated.append(Calibrated(name, sign, feedback, float(data.error[k])))
    return MotorCalibration(tuple(calibrated), data.unseen, tuple(data.notes), len(data.q))


class _Data:
    """Different poses of an arm, and the factors of efforts that they show."""

    def __init__(self, model: Model, series: TimeSeries, still: NDArray[np.bool_]) -> None:
        self.model, self.notes, self.unseen = model, list(series.notes), dict[str, str]()
        absent = [name for name in model.joint_names if name not in series.joints]
        if absent:
            self.notes.append(f"taken to be at zero, or the nearest limit: {listed(absent)}")
        efforts = {}
        for k, name in enumerate(series.joints):
            e = series.columns.get(column_name("raw_effort", name))
            if e is None and series.tau is not None:
                e = series.tau[:, k]
            if e is None or np.isnan(e).all():
                self.unseen[name] = "no efforts were recorded"
            else:
                efforts[name] = e
        if not efforts:
            raise series.error(
                "holds no efforts; columns are effort_<joint>, or are declared, as in --columns "
                f"NAME=effort_{series.joints[0]}"
            )
        self.joints = tuple(efforts)
        """The k joints with efforts."""
        self.rows = [model.joint_names.index(name) for name in self.joints]
        q = np.tile(model.neutral(within_limits=True), (len(series), 1))
        q[:, [model.joint_names.index(name) for name in series.joints]] = series.q
        used = still & self._away_from_limits(q)
        cells, pose = np.unique(np.round(q[used] / SAME), axis=0, return_inverse=True)
        if len(cells) < FEWEST:
            why = f" ({'; '.join(self.notes)})" if self.notes else ""
            raise series.error(f"has {len(cells)} different poses; must be at least {FEWEST}{why}")
        self.q = _means(q[used], pose.ravel())
        """(N, n) in rad or m."""
        self.e = _means(np.stack(list(efforts.values()), axis=1)[used], pose.ravel())
        """(N, k) in the units of the drives."""
        self.size = np.sqrt(np.square(self.e).mean(axis=0))
        g = mbs.gravity_torques(model, self.q)[:, self.rows]
        self.torque = np.sqrt(np.square(g).mean(axis=0))
        """(k,) gravity torques in N m or N, root mean square."""
        power = np.maximum(np.square(g).sum(axis=0), 1e-12)
        self.a = (self.e * g).sum(axis=0) / power
        """(k,) factors."""
        left = self.e - self.a * g
        scale = np.where(self.size > 0.0, self.size, 1.0)
        self.left = np.sqrt(np.square(left).mean(axis=0)) / scale
        """(k,) shares of efforts that gravity leaves unexplained, root mean square."""
        spread = np.sqrt(np.square(left).sum(axis=0) / (len(left) - 1) / power)
        self.error = np.hypot(MASS_ERROR, spread / np.maximum(np.abs(self.a), 1e-12))
        """(k,) standard errors of the factors, as a share."""

    def _away_from_limits(self, q: FloatArray) -> NDArray[np.bool_]:
        """Return (N,) in which poses no joint with efforts is at a limit; note the others."""
        lower, upper = self.model.lower[self.rows], self.model.upper[self.rows]
        stopped = at_limits(q[:, self.rows], lower, upper)
        if stopped.any():
            joints = [name for name, x in zip(self.joints, stopped.T, strict=True) if x.any()]
            self.notes.append(
                f"{int(stopped.any(axis=1).sum())} poses are left out: {listed(joints)} are at a "
                "limit there, where a stop may carry a part of the load"
            )
        return np.asarray(~stopped.any(axis=1))

    def check_weight(self) -> None:
        """Raise ArgumentError if a load on the tool explains the efforts better than the arm.

        Each joint has a factor in both cases. Drives that subtract the known weight of the arm
        report the load alone. If noise hides the difference, this is noted.
        """
        used = [k for k in range(len(self.joints)) if self.size[k] and self._is_seen(k)]
        efforts, by_arm = self.e[:, used] / self.size[used], np.square(self.left[used])
        for tool in tools(self.model) if used else ():
            by_load = load_misfit(self.model, tool, self.q, [self.rows[k] for k in used], efforts)
            # noise may hide the load at joints near it, so that these are left out
            shown = by_load < FOLLOWS**2
            arm, load = float(by_arm[shown].sum()), float(by_load[shown].sum())
            if shown.sum() > 1 and BETTER * load < arm and by_load.sum() < by_arm.sum():
                raise ArgumentError(
                    f"the efforts are those of a load on {tool!r} alone: it leaves "
                    f"{100.0 * np.sqrt(load / shown.sum()):.1f} % of them unexplained, the weight "
                    f"of the arm {100.0 * np.sqrt(arm / shown.sum()):.1f} %. These drives "
                    "subtract gravity from their efforts, which show no factors then: record "
                    "efforts with gravity. If the arm does carry a load, remove it, or describe it "
                    "in the URDF"
                )
            if by_load.sum() < BETTER * by_arm.sum():
                self.notes.append(
                    f"a load on {tool!r} alone would explain these efforts as well: the factors "
                    "are right only if the drives do not subtract gravity from their efforts"
                )

    def _is_seen(self, k: int) -> bool:
        """Return whether gravity exerts a considerable torque about a joint in these poses."""
        return bool(self.torque[k] > SEEN * self.torque.max())

    def why_not(self, k: int) -> str:
        """Return why the poses do not show the factor of a joint; empty if they do."""
        if not self.size[k]:
            return "not seen: all its efforts are zero"
        if not self._is_seen(k):
            return (
                f"not seen: gravity exerts {self.torque[k]:.2g} N m about it in these poses (root "
                "mean square); its axis is vertical, or nothing hangs on it"
            )
        if self.left[k] > UNEXPLAINED or self.error[k] * CERTAIN > 1.0:
            return (
                f"not seen: gravity leaves {100.0 * self.left[k]:.0f} % of its efforts "
                f"unexplained, and its factor is {self.a[k]:.3g} +- "
                f"{100.0 * self.error[k]:.0f} %: friction, an arm that was held or that moved, "
                "positions in another unit or direction, or too few poses"
            )
        return ""


def _means(columns: FloatArray, pose: NDArray[np.intp]) -> FloatArray:
    """Return the means of columns (N, k) over the rows of each pose, by the numbers (N,) of it."""
    sums = np.stack([np.bincount(pose, x) for x in columns.T], axis=1)
    return np.asarray(sums / np.bincount(pose)[:, None])


def load_misfit(
    model: Model, link: str, q: FloatArray, joints: Sequence[int], efforts: FloatArray
) -> FloatArray:
    """Return the mean squares (k,) of the part of efforts (N, k) that a load does not explain.

    In poses q (N, n) a joint reports its factor times the gravity torque of the load, whose centre
    of mass is common to all. The factors and the centre of mass are fitted in turn, from two first
    estimates; the better fit counts.
    """
    frame = model.frames[link]
    rest = np.zeros((len(q), model.n))
    columns = slice(10 * frame.body, 10 * frame.body + 4)
    Y = mbs.inverse_dynamics_regressor(model, q, rest, rest)[:, list(joints), columns]
    misfits = []
    for start in (0.0, OFF_AXES):
        com, left = frame.placement[:3, 3] + start, efforts
        for _ in range(LOAD_ROUNDS):
            g = Y[..., 0] + Y[..., 1:] @ com  # of a mass of 1 kg
            a = (efforts * g).sum(axis=0) / np.maximum(np.square(g).sum(axis=0), 1e-12)
            left = efforts - a * g
            A = (a[:, None] * Y[..., 1:]).reshape(-1, 3)
            com = np.linalg.lstsq(A, (efforts - a * Y[..., 0]).ravel(), rcond=1e-9)[0]
        misfits.append(np.asarray(np.square(left).mean(axis=0)))
    return min(misfits, key=np.sum)
