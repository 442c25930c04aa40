# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Zeros of joints, and placements of links, from postures of which one thing is known.

The tip touched one point in all of them, the pose of a link was measured, or two arms held one
another.

The joint position is the reading plus the zero. The placement D of a link, Mueller (kinematics),
eq. (3), becomes D exp(xi), with the twist xi in the frame of the link. A zero is the component of
xi along the joint screw. The estimate maximizes the posterior probability under normal errors of
the measurements, with a wide prior for zeros and a narrow prior for the other components of xi. A
few outliers are left out. A zero whose posterior is as wide as its prior is not observable.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

from mbs_dynamics.algorithms.kinematics import forward_kinematics
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import listed
from mbs_dynamics.lie import se3
from mbs_dynamics.model.coordinates import check_arm
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.urdf_document import UrdfDocument
from mbs_dynamics.model.urdf_tree import tree_of
from mbs_dynamics.timeseries import TimeSeries

ZERO_PRIOR, ANGLE_PRIOR, LENGTH_PRIOR = 0.3, 0.02, 0.003
"""Standard deviations of a zero, and of angles and lengths of placements, in rad and m."""

LEVER = 0.1
"""Lever arm in m that converts errors of orientation to errors of position."""

FIRST_NOISE, SMALLEST_NOISE = 0.002, 1e-5
"""Standard deviation of a measured coordinate in m: assumed at first, and smallest one."""

OUTLIER, MOST_OUTLIERS = 4.0, 0.3
"""Number of standard deviations above which a posture is left out, and largest share of these."""

OBSERVABLE, MOST_HIDDEN = 0.09, 0.4
"""Standard error of a zero, in rad or m, from which on it counts as not observable, and largest
share of such zeros."""

LARGEST_DEVIATION, LARGEST_ERROR = 0.02, 0.005
"""Largest standard error of a zero, in rad or m, and largest residual in m that are accepted."""

MEASURED = ("x", "y", "z", "qx", "qy", "qz", "qw")
"""Columns of a measured pose: position in m, and quaternion."""

Residuals = Callable[[Model, FloatArray, FloatArray], FloatArray]
"""(N, k) differences in m of a model, at positions (N, n), with unknown constants (c,)."""


class Calibration(NamedTuple):
    """Result of a kinematic calibration."""

    zeros: dict[str, float]
    """Zeros by joint in rad or m, to be added to readings."""
    deviations: dict[str, float]
    """Their standard errors."""
    unobservable: tuple[str, ...]
    """Joints whose zeros the postures do not determine, and which are unchanged."""
    twists: dict[str, FloatArray]
    """Twists xi (6,) by joint, angular part first, zeros included."""
    before: float
    """Root mean square residual of the postures in m, with the description."""
    after: float
    """Root mean square residual in m, with the calibrated model."""
    outliers: tuple[int, ...]
    """Rows of the postures that were left out, from 0."""
    model: Model
    """The calibrated model."""

    @property
    def better(self) -> bool:
        """Whether the calibrated model fits the postures better than the description."""
        return self.after < self.before


def calibrated_urdf(source: str | os.PathLike[str], result: Calibration) -> bytes:
    """Return a URDF file with calibrated origins of joints, unchanged elsewhere.

    Position limits are shifted by the zeros, so that they stay where they are on the arm.
    """
    document, joints = UrdfDocument(source), tree_of(source).joints
    for name, xi in result.twists.items():
        if xi.any():
            pose = joints[name].origin.pose() @ se3.exp(xi)
            document.set_origin(name, pose, result.zeros[name])
    return document.to_bytes()


def calibrate_touches(
    model: Model, postures: TimeSeries, tip: str, *, placements: bool = False
) -> Calibration:
    """Return the calibration of an arm whose tip touched one point in all postures.

    ``tip`` is the link or frame whose origin touched it. With ``placements``, those of links are
    calibrated as well.

    Raises UnknownBodyError; TimeSeriesError for too few, uninformative or contradictory postures.
    """

    def residuals(arm: Model, q: FloatArray, point: FloatArray) -> FloatArray:
        return _poses(arm, q, tip)[:, :3, 3] - point

    return _calibrated(model, postures, residuals, 3, placements)


def calibrate_poses(
    model: Model, postures: TimeSeries, link: str, *, camera: bool = False, placements: bool = False
) -> Calibration:
    """Return the calibration of an arm from measured poses of a link.

    ``postures`` have the columns x, y, z in m and qx, qy, qz, qw, a unit quaternion, in the frame
    of the root link. With ``camera`` they are poses of a marker on the link in the frame of a
    camera; the placements of both are unknown. All else is as for :func:`calibrate_touches`.
    """
    absent = [name for name in MEASURED if name not in postures.columns]
    if absent:
        raise postures.error(
            f"has no columns {listed(absent)}; a measured pose needs {', '.join(MEASURED)}"
        )
    rows = np.column_stack([postures.columns[name] for name in MEASURED])
    if not np.allclose(np.linalg.norm(rows[:, 3:], axis=1), 1.0, atol=0.01):
        raise postures.error("qx, qy, qz, qw must be unit quaternions")
    measured = se3.pose(Rotation.from_quat(rows[:, 3:]).as_matrix(), rows[:, :3])
    A, B = np.eye(4), np.eye(4)
    if camera:
        A, B = _hand_eye(measured, _poses(model, _positions(model, postures)[0], link))

    def residuals(arm: Model, q: FloatArray, constants: FloatArray) -> FloatArray:
        C = _poses(arm, q, link)
        if camera:
            C = A @ se3.exp(constants[:6]) @ C @ se3.exp(constants[6:]) @ B
        return _differences(measured, C)

    return _calibrated(model, postures, residuals, 12 if camera else 0, placements)


def calibrate_hold(
    model: Model, postures: TimeSeries, first: str, second: str, *, placements: bool = False
) -> Calibration:
    """Return the calibration of two arms that held one another in all postures.

    The pose of the link ``second`` in the frame of ``first`` is constant and unknown. All else is
    as for :func:`calibrate_touches`.
    """

    def relative(arm: Model, q: FloatArray) -> FloatArray:
        return np.asarray(np.linalg.inv(_poses(arm, q, first)) @ _poses(arm, q, second))

    held = relative(model, _positions(model, postures)[0])[0]

    def residuals(arm: Model, q: FloatArray, constants: FloatArray) -> FloatArray:
        return _differences(held @ se3.exp(constants), relative(arm, q))

    return _calibrated(model, postures, residuals, 6, placements)


def _positions(model: Model, postures: TimeSeries) -> tuple[FloatArray, tuple[str, ...]]:
    """Return the positions (N, n) of all joints, neutral if not recorded, and the recorded joints.

    Rates are not used, and times are not checked.
    """
    check_arm(model.joints, "postures")
    recorded = replace(postures, qd=None, declared=postures.declared | {"t"}).of(model)
    q = np.tile(model.neutral(within_limits=True), (len(recorded), 1))
    q[:, [model.joint_names.index(name) for name in recorded.joints]] = recorded.q
    return q, recorded.joints


def _poses(model: Model, q: FloatArray, link: str) -> FloatArray:
    """Return the poses (N, 4, 4) of a link."""
    return np.asarray(forward_kinematics(model, q, bodies=[link])[..., 0, :, :])


def _differences(measured: FloatArray, C: FloatArray) -> FloatArray:
    """Return the differences (N, 6) of poses in m: positions, and rotation vectors times LEVER."""
    R = np.swapaxes(np.broadcast_to(measured, C.shape)[:, :3, :3], 1, 2) @ C[:, :3, :3]
    turned = LEVER * Rotation.from_matrix(R).as_rotvec()
    return np.hstack([C[:, :3, 3] - measured[..., :3, 3], turned])


def _hand_eye(measured: FloatArray, C: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return poses A, B with measured = A C B in the sense of least squares.

    Rotations first: R_A takes the axes of R_C R_C0^T to those of R_m R_m0^T (Park and Martin 1994).
    Then positions: r_m = R_A (R_C r_B + r_C) + r_A.
    """
    R_m, R_C = (Rotation.from_matrix(x[:, :3, :3]) for x in (measured, C))
    quaternions = [(R * R[0].inv()).as_quat() for R in (R_m, R_C)]
    axes = [x[:, :3] * x[:, 3:] for x in quaternions]  # times half the sine, smooth at half a turn
    R_A = Rotation.align_vectors(*axes)[0]
    R_B = (R_C.inv() * R_A.inv() * R_m).mean()
    A = R_A.as_matrix()
    lhs = np.vstack([np.hstack([np.eye(3), A @ K[:3, :3]]) for K in C])
    r = np.linalg.lstsq(lhs, (measured[:, :3, 3] - C[:, :3, 3] @ A.T).ravel(), rcond=None)[0]
    return se3.pose(A, r[:3]), se3.pose(R_B.as_matrix(), r[3:])


class _Problem:
    """The parameters x: zeros, with ``placements`` a twist (6,) for each joint, and constants.

    Constants have no prior.
    """

    def __init__(
        self,
        model: Model,
        postures: TimeSeries,
        residuals: Residuals,
        constants: int,
        placements: bool,
    ) -> None:
        self.model, self.residuals, self.constants = model, residuals, constants
        self.q, joints = _positions(model, postures)
        self.bodies = [
            body for body in model.bodies if body.joint.name in joints and not body.joint.mimics
        ]
        self.screws = np.array([body.joint.screw for body in self.bodies])
        self.count = len(self.bodies)
        others = [ANGLE_PRIOR] * 3 + [LENGTH_PRIOR] * 3 if placements else []
        self.prior = np.array(
            [ZERO_PRIOR] * self.count + others * self.count + [np.inf] * constants
        )
        self.estimated = np.ones(len(self.prior), dtype=bool)

    def twists(self, x: FloatArray) -> FloatArray:
        """Return the twists (count, 6): zeros along the joint screws, and the other components."""
        S, xi = self.screws, self.screws * x[: self.count, None]
        others = x[self.count : len(x) - self.constants].reshape(-1, 6)
        if len(others):
            along = np.sum(others * S, axis=1, keepdims=True) / np.sum(S * S, axis=1, keepdims=True)
            xi = xi + others - along * S
        return np.asarray(xi)

    def model_of(self, x: FloatArray) -> Model:
        """Return the model with these placements."""
        pairs = zip(self.bodies, se3.exp(self.twists(x)), strict=True)
        return self.model.with_placements({b.name: b.home_rel @ C for b, C in pairs})

    def differences(self, x: FloatArray) -> FloatArray:
        """Return the residuals (N, k) in m of all postures."""
        return self.residuals(self.model_of(x), self.q, x[len(x) - self.constants :])

    def fit(self, x: FloatArray, rows: Any, noise: float, loss: str) -> tuple[FloatArray, Any]:
        """Return the estimate from a start x by the postures ``rows``, and its Jacobian."""
        x, free = x.copy(), self.estimated

        def weighted(y: FloatArray) -> FloatArray:
            x[free] = y
            return np.append(self.differences(x)[rows].ravel() / noise, y / self.prior[free])

        found = least_squares(weighted, x[free], loss=loss, x_scale="jac")
        x[free] = found.x
        return x, found.jac


def _calibrated(
    model: Model, postures: TimeSeries, residuals: Residuals, constants: int, placements: bool
) -> Calibration:
    """Return the calibration: a robust fit, then without outliers and unobservable zeros."""
    problem = _Problem(model, postures, residuals, constants, placements)
    count, x = problem.count, np.zeros(len(problem.prior))
    rows, unknown = np.ones(len(problem.q), dtype=bool), count + constants
    if constants:  # with the zeros of the description, for the residuals before the calibration
        problem.estimated[:-constants] = False
        x, _ = problem.fit(x, rows, FIRST_NOISE, "cauchy")
    described = problem.differences(x)
    if described.size < unknown + described.shape[1]:
        raise postures.error(
            f"{len(described)} postures are too few for {count} zeros; at least "
            f"{2 + unknown // described.shape[1]} are needed, and twice as many are better"
        )
    problem.estimated[:] = True
    x, _ = problem.fit(x, rows, FIRST_NOISE, "cauchy")
    sizes = np.abs(problem.differences(x))
    rows = sizes.max(axis=1) < OUTLIER * max(1.4826 * float(np.median(sizes)), SMALLEST_NOISE)
    freedoms = max(int(rows.sum()) * described.shape[1] - unknown, 1)
    noise = max(math.sqrt(float(np.square(sizes[rows]).sum()) / freedoms), SMALLEST_NOISE)
    deviations = np.zeros(len(x))
    while True:  # without the least observable zero in each turn, since others depend on it
        x, J = problem.fit(x, rows, noise, "linear")
        deviations[problem.estimated] = np.sqrt(np.diag(np.linalg.pinv(J.T @ J)))
        known = np.nan_to_num(deviations[:count])
        worst = int(np.argmax(known))
        if known[worst] < OBSERVABLE:
            break
        problem.estimated[worst], x[worst], deviations[worst] = False, 0.0, math.nan
    names = [body.joint.name for body in problem.bodies]
    result = Calibration(
        zeros=dict(zip(names, x[:count].tolist(), strict=True)),
        deviations=dict(zip(names, deviations[:count].tolist(), strict=True)),
        unobservable=tuple(names[k] for k in np.flatnonzero(~problem.estimated[:count])),
        twists=dict(zip(names, problem.twists(x), strict=True)),
        before=_distance(described[rows]),
        after=_distance(problem.differences(x)[rows]),
        outliers=tuple(np.flatnonzero(~rows).tolist()),
        model=problem.model_of(x),
    )
    _check(postures, result, placements)
    return result


def _check(postures: TimeSeries, result: Calibration, placements: bool) -> None:
    """Raise TimeSeriesError for contradictory or uninformative postures.

    With ``placements`` the standard errors of zeros are not checked, since their priors alone may
    separate a zero from the placement of the next joint.
    """
    out = [str(row + 1) for row in result.outliers]
    if len(out) > MOST_OUTLIERS * len(postures) or result.after > LARGEST_ERROR:
        left = f" without rows {', '.join(out)}" if out else ""
        raise postures.error(
            f"with the best zeros the postures differ by {1e3 * result.after:.3g} mm{left}; must "
            f"be at most {1e3 * LARGEST_ERROR:g} mm without at most {100 * MOST_OUTLIERS:g} % of "
            "the rows. Was one point touched in all of them, and are tip and units right?"
        )
    hidden = result.unobservable
    poor = [name for name, x in result.deviations.items() if x > LARGEST_DEVIATION]
    if len(hidden) > MOST_HIDDEN * len(result.zeros) or (poor and not placements):
        raise postures.error(
            f"the postures hardly determine the zeros of {listed([*hidden, *poor])}; standard "
            f"errors must be at most {LARGEST_DEVIATION:g} rad or m. Record postures in which "
            "these joints and those next to them differ more"
        )


def _distance(differences: FloatArray) -> float:
    """Return the root mean square distance in m."""
    return float(np.sqrt(np.mean(np.sum(differences**2, axis=1))))
