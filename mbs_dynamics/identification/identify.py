# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Identification: from recordings and a description to a description with the measured torques."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mbs_dynamics.algorithms.regressor import BaseParameters
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.identification.consistent import is_consistent
from mbs_dynamics.identification.data import FRICTION_SPEEDS, Data
from mbs_dynamics.identification.estimation import (
    BaseEstimate,
    Choice,
    ConsistentEstimate,
    base_estimate,
    friction_estimate,
    least_squares_residual,
)
from mbs_dynamics.identification.torque_model import JOINT_TERMS, Equations, TorqueModel, stacked
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.payloads import Payloads
from mbs_dynamics.timeseries import TimeSeries, TimeSeriesError

HELD_OUT = (2, 5, 8)
"""Stretches, of ten of each recording, that are held out without a validation recording."""

WORST = 0.3
"""Relative error of held-out torques of a result that is useless."""


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
    def masses(self) -> dict[str, float]:
        """Masses in kg by body."""
        names = self.torque_model.model.body_names
        return {name: float(row[0]) for name, row in zip(names, self.inertial, strict=True)}

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
    data = Data.read(model, recordings)
    torque_model, known = data.torque_model, data.equations
    held: list[Equations] = []
    notes = [*data.notes, *_remarks(torque_model.model, validation)]
    if validation is not None:
        other = Data.read(model, [validation], cutoff=data.cutoff)
        if other.torque_model.joints != torque_model.joints:
            raise validation.error("its joints are not those of the training")
        held, notes = other.equations, [*notes, *other.notes]

    speed = min(FRICTION_SPEEDS, key=lambda v: _misfit(torque_model, known, v, data.cutoff))
    torque_model = replace(torque_model, friction_speed=speed)
    known, held = (
        [torque_model.at_speed(speed, one, data.cutoff) for one in each] for each in (known, held)
    )
    if not held:
        known, held = _held_out(known)
    found = estimated(
        torque_model, known, held, notes, independent=data.independent, progress=progress
    )
    return replace(found, cutoff=data.cutoff, recordings=data.names)


def estimated(
    torque_model: TorqueModel,
    known: Sequence[Equations],
    held: Sequence[Equations],
    notes: Sequence[str],
    *,
    independent: BaseParameters | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> Identification:
    """Return the most probable consistent parameters by ``known`` data, judged by ``held`` data.

    Without ``held`` data the error is that of cross-validation. ``independent`` are the base
    parameters that the data may show, by default those of motions.
    """
    bodies = torque_model.described()[: torque_model.rigid].reshape(-1, 10)
    estimate = ConsistentEstimate(bodies, known)
    choice = estimate.cross_validated(progress)
    x, judged = estimate.estimate(choice.weight), held or known
    errors = Errors(
        relative_error(judged, torque_model.described()),
        relative_error(judged, friction_estimate(torque_model, known)),
        relative_error(held, x) if held else choice.best,
    )
    base = base_estimate(torque_model, known, independent)
    every = tuple(dict.fromkeys(notes))
    return Identification(torque_model, x, 0.0, errors, choice, base, tuple(judged), every)


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
    data = Data.read(model, [recording])
    known, held = _held_out(data.equations)
    fitted = friction_estimate(data.torque_model, known)
    described = relative_error(data.equations, data.torque_model.described())
    return Errors(described, relative_error(held, fitted)), tuple(data.notes)


def relative_error(equations: Sequence[Equations], x: FloatArray) -> float:
    """Return the norm of the residuals of parameters over that of the torques, for all joints."""
    A, b = stacked(equations)
    return float(np.linalg.norm(A @ x - b) / np.linalg.norm(b))


def _held_out(equations: Sequence[Equations]) -> tuple[list[Equations], list[Equations]]:
    known: list[Equations] = []
    held: list[Equations] = []
    for one in equations:
        edges = np.linspace(0, len(one.b), 11).astype(int)
        for k in range(10):
            part = one.part(slice(edges[k], edges[k + 1]))
            (held if k in HELD_OUT else known).append(part)
    return known, held
