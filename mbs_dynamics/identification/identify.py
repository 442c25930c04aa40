# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Identification: from recordings and a description to a description with the measured torques."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import UnknownJointError
from mbs_dynamics.identification.consistent import is_consistent
from mbs_dynamics.identification.estimation import (
    BaseEstimate,
    Choice,
    ConsistentEstimate,
    base_estimate,
    correlated,
    friction_estimate,
    least_squares_residual,
)
from mbs_dynamics.identification.preparation import Stretch, prepared_all, recorded
from mbs_dynamics.identification.signals import cutoff_of, filtered
from mbs_dynamics.identification.torque_checks import Torques, check_torques, check_unit
from mbs_dynamics.identification.torque_model import JOINT_TERMS, Equations, TorqueModel, stacked
from mbs_dynamics.model.coordinates import bounded
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.payloads import Payloads
from mbs_dynamics.timeseries import TimeSeries, TimeSeriesError

FRICTION_SPEEDS = (0.02, 0.05, 0.1)
"""Candidate speeds in rad/s or m/s, at which Coulomb friction reaches 76 %."""

HELD_OUT = (2, 5, 8)
"""Stretches, of ten of each recording, that are held out without a validation recording."""

WORST = 0.5
"""Relative error of held-out torques of a result that is useless."""

CERTAIN = 0.1
"""Largest relative standard error of a gain that is fitted."""


@dataclass(frozen=True)
class Errors:
    """Relative errors of the torques of all joints, on held-out data."""

    description: float
    description_with_friction: float
    identified: float | None = None


@dataclass(frozen=True)
class Identification:
    """Result of :func:`identify`."""

    torque_model: TorqueModel
    x: FloatArray
    """(p,) the parameters, in the order of ``torque_model.names``."""
    cutoff: float
    """Frequency in Hz below which torques were compared."""
    errors: Errors
    choice: Choice
    base: BaseEstimate
    validation: tuple[Equations, ...]
    notes: tuple[str, ...]
    recordings: tuple[str, ...] = ()
    """Names of the recordings from which it was identified."""

    @property
    def model(self) -> Model:
        """The model with the identified inertias, and armature, damping and friction of joints."""
        model = self.torque_model.model
        terms = {"armature": "inertia", "damping": "viscous", "friction": "coulomb"}
        found = self.joint_parameters
        bodies = []
        for body, x in zip(model.bodies, self.inertial, strict=True):
            joint = body.joint
            own: dict[str, Any] = {}
            if joint.name in found:
                own = {name: found[joint.name][term] for name, term in terms.items()}
            elif joint.mimics in found:  # the values are those of the coordinate
                own = dict.fromkeys(terms, 0.0)
            inertia = Inertia.from_parameters(x)
            bodies.append(replace(body, inertia=inertia, joint=replace(joint, **own)))
        return replace(model, bodies=tuple(bodies), payloads=Payloads())

    @property
    def inertial(self) -> FloatArray:
        """(nb, 10) the inertial parameters of the bodies."""
        return self.x[: self.torque_model.rigid].reshape(-1, 10)

    @property
    def joint_parameters(self) -> dict[str, dict[str, float]]:
        """Friction, motor inertia and offset of the recorded joints, by name."""
        rows = self.x[self.torque_model.rigid :].reshape(-1, len(JOINT_TERMS)).tolist()
        pairs = zip(self.torque_model.joints, rows, strict=True)
        return {joint: dict(zip(JOINT_TERMS, row, strict=True)) for joint, row in pairs}

    @property
    def consistent(self) -> bool:
        """Whether bodies are physically consistent, and friction and motor inertia nonnegative."""
        joints = self.x[self.torque_model.rigid :].reshape(-1, len(JOINT_TERMS))
        bodies = all(is_consistent(parameters) for parameters in self.inertial)
        return bodies and bool((joints[:, :3] >= 0.0).all())

    @property
    def better(self) -> bool:
        """Whether it predicts better than the description, with friction or without, and well."""
        errors = self.errors
        most = min(errors.description, errors.description_with_friction, WORST)
        return errors.identified is not None and errors.identified <= most


def identify(
    model: Model,
    recordings: Sequence[TimeSeries],
    validation: TimeSeries | None = None,
    *,
    progress: Callable[[float], None] = lambda share: None,
) -> Identification:
    """Return the inertias and friction with which a model reproduces recorded torques.

    All identified links are physically consistent. Parameters that the motions do not show remain
    near those of the description. Without ``validation``, three of ten stretches of each recording
    are held out. Raises TimeSeriesError for recordings that cannot be used, with the reason.
    """
    if not recordings:
        raise TimeSeriesError("at least one recording is needed")
    model = model.loaded()
    stretches, notes = prepared_all(recordings, model)
    others, remarks = prepared_all([] if validation is None else [validation], model)
    joints = stretches[0].series.joints
    if others and others[0].series.joints != joints:
        raise others[0].series.error("its joints are not those of the training")
    cutoff = cutoff_of(stretches)
    torque_model = TorqueModel(model, joints, FRICTION_SPEEDS[0])
    known, unseen = (
        [torque_model.equations(filtered(one, cutoff), cutoff) for one in each]
        for each in (stretches, others)
    )
    check_ranges(torque_model, known + unseen, stretches + others, cutoff)
    notes += [*remarks, *checked_torques(torque_model, known + unseen, stretches + others)]

    speed = min(FRICTION_SPEEDS, key=lambda v: _misfit(torque_model, known, v, cutoff))
    torque_model = replace(torque_model, friction_speed=speed)
    known, unseen = (
        [torque_model.at_speed(speed, one, cutoff) for one in each] for each in (known, unseen)
    )
    held = unseen
    if not held:
        known, held = _held_out(known)
    estimate = ConsistentEstimate(torque_model, known, progress)
    choice = estimate.cross_validated()
    x = estimate.estimate(choice.weight)

    errors = Errors(
        relative_error(held, torque_model.described()),
        relative_error(held, friction_estimate(torque_model, known)),
        relative_error(held, x),
    )
    names = tuple(dict.fromkeys(one.series.name for one in stretches))
    every = tuple(dict.fromkeys((*notes, *_remarks(model, validation))))
    base = base_estimate(torque_model, known)
    return Identification(torque_model, x, cutoff, errors, choice, base, tuple(held), every, names)


def _misfit(
    torque_model: TorqueModel, equations: Sequence[Equations], speed: float, cutoff: float
) -> float:
    """Return the residual of plain least squares with this speed of Coulomb friction."""
    A, b = stacked([torque_model.at_speed(speed, one, cutoff) for one in equations])
    return float(np.linalg.norm(least_squares_residual(A, b)))


def _remarks(model: Model, validation: TimeSeries | None) -> list[str]:
    """Return notes on what was not given."""
    remarks = []
    massless = [body.name for body in model.bodies if not body.inertia.mass > 0.0]
    if massless:
        remarks.append(
            f"the description states no mass of {', '.join(massless)}: what the data do not show "
            "of these stays next to nothing"
        )
    if validation is None:
        remarks.append("no recording to validate with was given: three tenths were held out")
    return remarks


def validate(model: Model, recording: TimeSeries) -> tuple[Errors, tuple[str, ...]]:
    """Return the errors of the torques that a description predicts for a recording, and notes.

    Friction is fitted to seven tenths of the recording, and both are compared on the other three.
    Raises TimeSeriesError for a recording that cannot be used.
    """
    torque_model, equations, notes = equations_of(model, recording, FRICTION_SPEEDS[0])
    known, held = _held_out(equations)
    fitted = friction_estimate(torque_model, known)
    described = relative_error(equations, torque_model.described())
    return Errors(described, relative_error(held, fitted)), tuple(notes)


def with_gains(series: TimeSeries, model: Model, gains: Mapping[str, float]) -> TimeSeries:
    """Return a recording of motor currents as one of torques, with gains in N m/A or N/A.

    The joints are those of the model. Joints without a gain keep their efforts. Raises
    UnknownJointError for a joint that was not recorded, TimeSeriesError for a gain of zero.
    """
    own, tau, _ = recorded(series, model)
    UnknownJointError.check(gains, own.joints)
    for joint, gain in gains.items():
        if not np.isfinite(gain) or gain == 0.0:
            raise TimeSeriesError(f"the gain of {joint} must be finite and nonzero, got {gain:g}")
    factors = np.array([gains.get(joint, 1.0) for joint in own.joints])
    every = {"tau"} if set(own.joints) <= set(gains) else set()
    return replace(own, tau=factors * tau, declared=own.declared | every)


def fitted_gains(
    model: Model, recording: TimeSeries, *, known: Collection[str] = ()
) -> dict[str, float]:
    """Return gains of the drives, by joint, with which currents best fit the description.

    Currents alone determine the inertias up to a factor per joint, which the description sets here:
    the result is only as accurate as its total masses. Raises TimeSeriesError for joints whose gain
    the motion does not show, unless they are among those with a ``known`` one.
    """
    speed = FRICTION_SPEEDS[0]
    torque_model, equations, _ = equations_of(model, recording, speed, check=False)
    A, currents = stacked(equations)
    expected = A @ torque_model.described()
    gains, each = {}, len(JOINT_TERMS)
    for j, joint in enumerate(torque_model.joints):
        place = torque_model.rigid + each * j
        columns = np.column_stack([expected[:, j], A[:, j, place : place + each]])
        columns = columns / np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
        fit = np.linalg.lstsq(columns, currents[:, j], rcond=1e-9)[0]
        residual = currents[:, j] - columns @ fit
        alike = correlated(residual[:, None], [one._replace(b=one.b[:, :1]) for one in equations])
        variance = np.square(residual).mean() * alike * np.linalg.pinv(columns.T @ columns)[0, 0]
        if np.sqrt(variance) < CERTAIN * fit[0]:
            gains[joint] = float(np.linalg.norm(expected[:, j]) / fit[0])
    without = [joint for joint in torque_model.joints if joint not in {*gains, *known}]
    if without:
        given = " ".join(f"{joint}=..." for joint in without)
        raise TimeSeriesError(
            f"{recording.name}: the motion does not show the gain of {', '.join(without)}: their "
            f"torques are too small. Give it, as in --gains {given}"
        )
    return {joint: gain for joint, gain in gains.items() if joint not in known}


def relative_error(equations: Sequence[Equations], x: FloatArray) -> float:
    """Return the norm of the residuals of parameters over that of the torques, for all joints."""
    A, b = stacked(equations)
    return float(np.linalg.norm(A @ x - b) / np.linalg.norm(b))


def check_ranges(
    torque_model: TorqueModel,
    equations: Sequence[Equations],
    stretches: Sequence[Stretch],
    cutoff: float,
) -> None:
    """Raise TimeSeriesError for positions in per cent of the ranges that were declared as degrees.

    Such positions are within all limits. ``equations`` are those of the positions as declared.
    """
    model, places = torque_model.model, torque_model.places
    low, high = model.lower[places], model.upper[places]
    turning = all(model.joint(name).turns for name in torque_model.joints)
    largest = max(float(np.abs(one.series.q).max()) for one in stretches)
    if not turning or not bounded(low, high).all() or largest > np.radians(100.0):
        return
    others = []
    for one in stretches:
        q = 0.5 * (low + high) + 0.5 * (high - low) * np.degrees(one.series.q) / 100.0
        converted = one._replace(series=replace(one.series, q=q, qd=None))
        others.append(torque_model.equations(filtered(converted, cutoff), cutoff))
    check_unit(
        ", ".join(dict.fromkeys(one.series.name for one in stretches)),
        torques_of(torque_model, equations, stretches[0].series),
        torques_of(torque_model, others, stretches[0].series),
        "per cent of the ranges of the joints, -100 to 100, that were declared as degrees: convert "
        "them to rad, as lower + (upper - lower) (p + 100) / 200",
    )


def checked_torques(
    torque_model: TorqueModel, equations: Sequence[Equations], stretches: Sequence[Stretch]
) -> list[str]:
    """Return notes on the torques of a motion; raise TimeSeriesError for those of no such arm."""
    name = ", ".join(dict.fromkeys(one.series.name for one in stretches))
    stated = all("tau" in one.series.declared for one in stretches)
    torques = torques_of(torque_model, equations, stretches[0].series)
    return check_torques(name, torques, stated=stated)


def torques_of(
    torque_model: TorqueModel, equations: Sequence[Equations], series: TimeSeries
) -> Torques:
    """Return the torques of a motion, to be checked; ``series`` is the recording."""
    A, b = stacked(equations)
    k, rigid = len(torque_model.joints), torque_model.rigid
    own = A[..., rigid:].reshape(len(A), k, k, len(JOINT_TERMS))[:, range(k), range(k)]
    masses = [place for place in torque_model.independent().columns if place < rigid]
    gravity = np.concatenate([one.gravity for one in equations])
    described = A @ torque_model.described()
    own = own[..., : JOINT_TERMS.index("offset")]
    columns = [series.column(f"tau_{joint}") for joint in torque_model.joints]
    return Torques(torque_model.joints, columns, b, described, gravity, own, A[..., masses])


def equations_of(
    model: Model, recording: TimeSeries, friction_speed: float, *, check: bool = True
) -> tuple[TorqueModel, list[Equations], list[str]]:
    """Return the torque model and equations of one recording, and the notes on it.

    Raises TimeSeriesError for torques that cannot be those of the arm, unless ``check`` is False.
    """
    model = model.loaded()
    stretches, notes = prepared_all([recording], model)
    cutoff = cutoff_of(stretches)
    torque_model = TorqueModel(model, stretches[0].series.joints, friction_speed)
    equations = [torque_model.equations(filtered(one, cutoff), cutoff) for one in stretches]
    if check:
        check_ranges(torque_model, equations, stretches, cutoff)
        notes += checked_torques(torque_model, equations, stretches)
    return torque_model, equations, notes


def _held_out(equations: Sequence[Equations]) -> tuple[list[Equations], list[Equations]]:
    known: list[Equations] = []
    held: list[Equations] = []
    for one in equations:
        edges = np.linspace(0, len(one.b), 11).astype(int)
        for k in range(10):
            part = one.part(slice(edges[k], edges[k + 1]))
            (held if k in HELD_OUT else known).append(part)
    return known, held
