# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Kinematic calibration: zeros of joints, and placements of links, from postures of an arm.

The joint positions of several postures are recorded, and one of these is known:

- the tip touched one point in all of them (:func:`calibrate_touches`),
- the pose of a link was measured, by a jig or a camera (:func:`calibrate_poses`),
- two arms held one another (:func:`calibrate_hold`).

The joint position is the reading plus the zero. The placement D of a link, Mueller (kinematics),
eq. (3), becomes D exp(xi), with the twist xi in the frame of the link. A zero is the component of
xi along the joint screw. The estimate maximizes the posterior probability under normal errors of
the measurements, with a wide prior for zeros and a narrow prior for the other components of xi. A
few outliers are left out. A zero whose posterior is as wide as its prior is not observable.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import polar
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

from mbs_dynamics import checks
from mbs_dynamics.algorithms.kinematics import forward_kinematics
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import listed
from mbs_dynamics.lie import se3
from mbs_dynamics.model.coordinates import check_arm
from mbs_dynamics.model.model import Model
from mbs_dynamics.timeseries import TimeSeries

ZERO_PRIOR = 0.3
"""Standard deviation of a zero before the calibration, in rad or m."""

ANGLE_PRIOR, LENGTH_PRIOR = 0.02, 0.003
"""Standard deviations of the other components of placements, in rad and m."""

LEVER = 0.1
"""Lever arm in m that converts errors of orientation to errors of position."""

FIRST_NOISE = 0.002
"""Standard deviation of a measured coordinate in m that is assumed at first."""

SMALLEST_NOISE = 1e-5
"""Smallest assumed standard deviation of a measured coordinate, in m."""

OUTLIER = 4.0
"""Number of standard deviations above which a posture is left out."""

MOST_OUTLIERS = 0.3
"""Largest share of postures that may be left out."""

LARGEST_ERROR = 0.005
"""Largest residual of the postures in m that is accepted."""

OBSERVABLE = 0.3
"""Ratio of the posterior to the prior deviation from which on a zero counts as not observable."""

UNIT = 0.01
"""Largest deviation of the norm of a quaternion from 1."""

MOST_HIDDEN = 0.4
"""Largest share of zeros that may not be observable."""

LARGEST_DEVIATION = 0.02
"""Largest standard error of a zero, in rad or m, that is accepted."""

MEASURED = ("x", "y", "z", "qx", "qy", "qz", "qw")
"""Columns of a measured pose: position in m, and quaternion."""


class Calibration(NamedTuple):
    """Result of a kinematic calibration."""

    zeros: dict[str, float]
    """Zeros by joint in rad or m, to be added to readings."""
    deviations: dict[str, float]
    """Their standard errors."""
    unobservable: tuple[str, ...]
    """Joints whose zeros the postures do not determine, and which are unchanged."""
    twists: dict[str, FloatArray]
    """Twists xi (6,) by body, angular part first, zeros included."""
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


def calibrate_touches(
    model: Model,
    postures: TimeSeries,
    tip: str,
    *,
    point: Sequence[float] | None = None,
    placements: bool = False,
) -> Calibration:
    """Return the calibration of an arm whose tip touched one point in all postures.

    ``tip`` is the link or frame whose origin touched it. ``point`` (3,) is in m in the frame of the
    root link; None if it is not known. With ``placements``, those of links are calibrated as well.

    Raises UnknownBodyError; TimeSeriesError for too few, uninformative or contradictory postures.
    """
    known = None if point is None else checks.numbers("point", point, (3,))
    middle = _poses(model, _positions(model, postures)[0], tip)[:, :3, 3].mean(axis=0)

    def residuals(arm: Model, q: FloatArray, constants: FloatArray) -> FloatArray:
        touched = middle + constants if known is None else known
        return _poses(arm, q, tip)[:, :3, 3] - touched

    return _calibrated(model, postures, residuals, 3 if known is None else 0, placements)


def calibrate_poses(
    model: Model, postures: TimeSeries, link: str, *, camera: bool = False, placements: bool = False
) -> Calibration:
    """Return the calibration of an arm from measured poses of a link.

    ``postures`` have the columns x, y, z in m and qx, qy, qz, qw, a unit quaternion, in the frame
    of the root link. With ``camera`` they are poses of a marker on the link in the frame of a
    camera; the placements of both are unknown. With ``placements``, those of links are calibrated
    as well.

    Raises UnknownBodyError; TimeSeriesError for missing columns, and for too few, uninformative or
    contradictory postures.
    """
    absent = [name for name in MEASURED if name not in postures.columns]
    if absent:
        raise postures.error(
            f"has no columns {listed(absent)}; a measured pose needs {', '.join(MEASURED)}"
        )
    rows = np.column_stack([postures.columns[name] for name in MEASURED])
    lengths = np.linalg.norm(rows[:, 3:], axis=1, keepdims=True)
    wrong = np.flatnonzero(np.abs(lengths[:, 0] - 1.0) > UNIT)
    if len(wrong):
        row = int(wrong[0])
        raise postures.error(
            f"qx, qy, qz, qw must be a unit quaternion; its norm is {lengths[row, 0]:.4g} in "
            f"row {row + 1}"
        )
    measured = se3.pose(Rotation.from_quat(rows[:, 3:]).as_matrix(), rows[:, :3])
    described = _poses(model, _positions(model, postures)[0], link)
    A0, B0 = _hand_eye(measured, described) if camera else (np.eye(4), np.eye(4))

    def residuals(arm: Model, q: FloatArray, constants: FloatArray) -> FloatArray:
        C = _poses(arm, q, link)
        if camera:
            C = A0 @ se3.exp(constants[:6]) @ C @ se3.exp(constants[6:]) @ B0
        return _differences(measured, C)

    return _calibrated(model, postures, residuals, 12 if camera else 0, placements)


def calibrate_hold(
    model: Model, postures: TimeSeries, first: str, second: str, *, placements: bool = False
) -> Calibration:
    """Return the calibration of two arms that held one another in all postures.

    The pose of the link ``second`` in the frame of ``first`` is constant and unknown. With
    ``placements``, those of links are calibrated as well.

    Raises UnknownBodyError; TimeSeriesError for too few, uninformative or contradictory postures.
    """

    def relative(arm: Model, q: FloatArray) -> FloatArray:
        return np.asarray(np.linalg.inv(_poses(arm, q, first)) @ _poses(arm, q, second))

    held = relative(model, _positions(model, postures)[0])[0]

    def residuals(arm: Model, q: FloatArray, constants: FloatArray) -> FloatArray:
        return _differences(held @ se3.exp(constants), relative(arm, q))

    return _calibrated(model, postures, residuals, 6, placements)


# -- residuals of postures -------------------------------------------------------------------------


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

    Rotations first: R_m = R_A R_C R_B is linear in R_A^T and R_B, R_A^T R_m = R_C R_B. Then
    positions.
    """
    rows = [
        np.hstack([np.kron(M[:3, :3].T, np.eye(3)), -np.kron(np.eye(3), K[:3, :3])])
        for M, K in zip(measured, C, strict=True)
    ]
    solution = np.linalg.svd(np.vstack(rows))[2][-1]
    blocks = [x.reshape(3, 3).T for x in (solution[:9], solution[9:])]  # of any scale and sign
    R_A, R_B = (polar(np.sign(np.linalg.det(x)) * x)[0] for x in blocks)
    R_A = R_A.T
    # r_m = R_A (R_C r_B + r_C) + r_A
    lhs = np.vstack([np.hstack([np.eye(3), R_A @ K[:3, :3]]) for K in C])
    rhs = np.concatenate([M[:3, 3] - R_A @ K[:3, 3] for M, K in zip(measured, C, strict=True)])
    r = np.linalg.lstsq(lhs, rhs, rcond=None)[0]
    return se3.pose(R_A, r[:3]), se3.pose(R_B, r[3:])


# -- the estimate ----------------------------------------------------------------------------------

Residuals = Callable[[Model, FloatArray, FloatArray], FloatArray]
"""(N, k) differences in m of a model, at positions (N, n), with constants (c,)."""


class _Estimation:
    """Maximum a posteriori estimate of zeros, placements and constants.

    The parameters x are the zeros of the joints, with ``placements`` a twist (6,) for each joint,
    and the constants of the residuals, such as an unknown point, which have no prior.
    """

    def __init__(
        self,
        model: Model,
        postures: TimeSeries,
        residuals: Residuals,
        constants: int,
        placements: bool,
    ) -> None:
        self.model, self.residuals, self.placements = model, residuals, placements
        self.q, names = _positions(model, postures)
        owners = [body for body in model.bodies if body.joint.mimics is None]
        self.bodies = [body for body in owners if body.joint.name in names]
        self.screws = np.array([body.joint.screw for body in self.bodies])
        self.count, self.constants = len(self.bodies), constants
        others = [ANGLE_PRIOR] * 3 + [LENGTH_PRIOR] * 3
        self.prior = np.concatenate(
            [
                np.full(self.count, ZERO_PRIOR),
                np.tile(others, self.count if placements else 0),
                np.full(constants, np.inf),
            ]
        )
        self.estimated = np.ones(len(self.prior), dtype=bool)

    def twists(self, x: FloatArray) -> FloatArray:
        """Return the twists (count, 6): zeros along the joint screws, and the other components."""
        S, xi = self.screws, self.screws * x[: self.count, None]
        if self.placements:
            others = x[self.count : 7 * self.count].reshape(-1, 6)
            along = np.sum(others * S, axis=1, keepdims=True) / np.sum(S * S, axis=1, keepdims=True)
            xi = xi + others - along * S
        return np.asarray(xi)

    def model_of(self, x: FloatArray) -> Model:
        """Return the model with these placements."""
        pairs = zip(self.bodies, se3.exp(self.twists(x)), strict=True)
        return self.model.with_placements({b.name: b.home_rel @ C for b, C in pairs})

    def differences(self, x: FloatArray) -> FloatArray:
        """Return the residuals (N, k) in m of all postures."""
        constants = x[len(x) - self.constants :]
        return self.residuals(self.model_of(x), self.q, constants)

    def fit(self, x: FloatArray, rows: Any, noise: float, loss: str) -> tuple[FloatArray, Any]:
        """Return the estimate from a start x by the postures ``rows``, and its Jacobian."""
        free, prior = self.estimated, self.prior[self.estimated]

        def whole(y: FloatArray) -> FloatArray:
            parameters = x.copy()
            parameters[free] = y
            return np.asarray(parameters)

        def weighted(y: FloatArray) -> FloatArray:
            return np.concatenate([self.differences(whole(y))[rows].ravel() / noise, y / prior])

        found = least_squares(weighted, x[free], loss=loss, x_scale="jac")
        return whole(found.x), found.jac


def _calibrated(
    model: Model, postures: TimeSeries, residuals: Residuals, constants: int, placements: bool
) -> Calibration:
    """Return the calibration: a robust fit, then without outliers and unobservable zeros."""
    problem = _Estimation(model, postures, residuals, constants, placements)
    names = [body.joint.name for body in problem.bodies]
    count, x = problem.count, np.zeros(len(problem.prior))
    every = np.ones(len(problem.q), dtype=bool)
    if constants:  # with the zeros of the description, for the residuals before the calibration
        problem.estimated[: len(x) - constants] = False
        x, _ = problem.fit(x, every, FIRST_NOISE, "cauchy")
        problem.estimated[:] = True
    described = problem.differences(x)
    unknown = count + constants
    if described.size < unknown + described.shape[1]:
        raise postures.error(
            f"{len(described)} postures are too few for {count} zeros; at least "
            f"{2 + unknown // described.shape[1]} are needed, and twice as many are better"
        )
    x, _ = problem.fit(x, every, FIRST_NOISE, "cauchy")
    sizes = np.abs(problem.differences(x))
    noise = max(1.4826 * float(np.median(sizes)), SMALLEST_NOISE)
    rows = sizes.max(axis=1) < OUTLIER * noise
    deviations = np.zeros(len(x))
    while True:  # without the least observable zero in each turn, since others depend on it
        x, _ = problem.fit(x, rows, noise, "linear")
        squares = float(np.sum(problem.differences(x)[rows] ** 2))
        freedoms = rows.sum() * described.shape[1] - unknown
        noise = max(math.sqrt(squares / max(freedoms, 1)), SMALLEST_NOISE)
        x, J = problem.fit(x, rows, noise, "linear")
        deviations[problem.estimated] = np.sqrt(np.diag(np.linalg.pinv(J.T @ J)))
        hidden = np.where(problem.estimated, deviations, 0.0)[:count]
        worst = int(np.argmax(hidden))
        if hidden[worst] < OBSERVABLE * ZERO_PRIOR:
            break
        problem.estimated[worst], x[worst], deviations[worst] = False, 0.0, math.nan
    result = Calibration(
        zeros=dict(zip(names, x[:count].tolist(), strict=True)),
        deviations=dict(zip(names, deviations[:count].tolist(), strict=True)),
        unobservable=tuple(names[k] for k in np.flatnonzero(~problem.estimated[:count])),
        twists={b.name: xi for b, xi in zip(problem.bodies, problem.twists(x), strict=True)},
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
    if len(out) > MOST_OUTLIERS * len(postures):
        raise postures.error(
            f"{len(out)} of {len(postures)} postures contradict the others, rows {', '.join(out)}: "
            "was one point touched, or one place measured, in all of them? Record them again"
        )
    if result.after > LARGEST_ERROR:
        raise postures.error(
            f"with the best zeros the postures still differ by {1e3 * result.after:.3g} mm; must "
            f"be at most {1e3 * LARGEST_ERROR:g} mm. Was one point touched in all of them, and are "
            "tip and units right?"
        )
    hidden = result.unobservable
    if len(hidden) > MOST_HIDDEN * len(result.zeros):
        raise postures.error(
            f"the postures do not determine the zeros of {listed(hidden)}: record postures in "
            "which all joints differ more"
        )
    worst = max(result.deviations, key=lambda name: np.nan_to_num(result.deviations[name]))
    if not placements and result.deviations[worst] > LARGEST_DEVIATION:
        raise postures.error(
            f"the postures hardly determine the zero of {worst}: its standard error is "
            f"{result.deviations[worst]:.2g} rad or m. Record postures in which it and the joints "
            "next to it differ more"
        )


def _distance(differences: FloatArray) -> float:
    """Return the root mean square distance in m."""
    return float(np.sqrt(np.mean(np.sum(differences**2, axis=1))))
