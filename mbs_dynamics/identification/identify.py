# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Identification: a description whose torques match recordings, from one whose torques do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import listed
from mbs_dynamics.identification.consistent import is_consistent
from mbs_dynamics.identification.data import FRICTION_SPEEDS, Data
from mbs_dynamics.identification.estimation import (
    BaseEstimate,
    Choice,
    base_estimate,
    consistent_estimate,
    friction_estimate,
    least_squares_residual,
)
from mbs_dynamics.identification.torque_model import JOINT_TERMS, Equations, TorqueModel, stacked
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.payloads import Payloads
from mbs_dynamics.timeseries import TimeSeries, TimeSeriesError

HELD_OUT = (2, 5, 8)
"""Indices of the tenths of each recording that are held out without a validation recording."""

WORST = 0.3
"""Largest relative error of held-out torques of a useful result."""


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
    """Weight of the distance to the description."""
    base: BaseEstimate
    validation: tuple[Equations, ...]
    """The data of the errors."""
    notes: tuple[str, ...]
    recordings: tuple[str, ...] = ()
    """Names of the recordings from which the parameters were identified."""

    @property
    def model(self) -> Model:
        """The model with the identified inertias, and armature, damping and friction of joints."""
        model, found = self.torque_model.model, self.joint_parameters
        bodies = []
        for body, parameters in zip(model.bodies, self.inertial, strict=True):
            joint = body.joint
            terms = found.get(joint.mimics or joint.name)
            if terms is not None:
                # those of a coordinate are with the joint that drives it
                share = 0.0 if joint.mimics else 1.0
                joint = replace(
                    joint,
                    armature=share * terms["inertia"],
                    damping=share * terms["viscous"],
                    friction=share * terms["coulomb"],
                )
            inertia = Inertia.from_parameters(parameters)
            bodies.append(replace(body, inertia=inertia, joint=joint))
        return replace(model, bodies=tuple(bodies), payloads=Payloads())

    @property
    def inertial(self) -> FloatArray:
        """The inertial parameters (nb, 10) of the bodies."""
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
        """Whether the error is at most 30 %, and not above those of the description."""
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

    All identified links are physically consistent. Parameters that the motions do not excite remain
    near those of the description. Without ``validation``, three tenths of each recording are held
    out. ``progress`` is called with the share of the completed work. Raises TimeSeriesError for
    recordings that cannot be used, with the reason.
    """
    if not recordings:
        raise TimeSeriesError("at least one recording is needed")
    data = Data.read(model, recordings)
    torque_model, notes = data.torque_model, [*data.notes]
    massless = [b.name for b in torque_model.model.bodies if not b.inertia.mass > 0.0]
    if massless:
        notes.append(
            f"the description states no mass of {', '.join(massless)}: their parameters that the "
            "data do not determine stay almost zero"
        )
    held: list[Equations] = []
    if validation is None:
        notes.append("no recording for validation was given: three tenths were held out")
    else:
        other = Data.read(model, [validation], cutoff=data.cutoff)
        check_joints(validation, other, torque_model)
        held, notes = other.equations, [*notes, *other.notes]

    def at_speed(speed: float, equations: Sequence[Equations]) -> list[Equations]:
        return [torque_model.at_speed(speed, one, data.cutoff) for one in equations]

    def misfit(speed: float) -> float:
        residual = least_squares_residual(*stacked(at_speed(speed, data.equations)))
        return float(np.linalg.norm(residual))

    speed = min(FRICTION_SPEEDS, key=misfit)
    known, held = at_speed(speed, data.equations), at_speed(speed, held)
    if not held:
        known, held = _held_out(known)
    torque_model = replace(torque_model, friction_speed=speed)
    return estimated(data._replace(torque_model=torque_model, notes=notes), known, held, progress)


def check_joints(recording: TimeSeries, data: Data, other: TorqueModel) -> None:
    """Raise TimeSeriesError if a recording has not the joints of another one."""
    if data.torque_model.joints != other.joints:
        raise recording.error(
            f"its joints with torques are {listed(data.torque_model.joints)}; those of the other "
            f"recordings are {listed(other.joints)}. Give recordings in which the same joints have "
            "torques"
        )


def estimated(
    data: Data,
    known: Sequence[Equations],
    held: Sequence[Equations],
    progress: Callable[[float], None] = lambda share: None,
) -> Identification:
    """Return the consistent parameters that best fit ``known`` data, with the errors on ``held``.

    Both are parts of the equations of ``data``, or ``held`` are those of another recording. Without
    ``held`` the error is that of cross-validation.
    """
    torque_model = data.torque_model
    described = torque_model.described()
    bodies = described[: torque_model.rigid].reshape(-1, 10)
    x, choice = consistent_estimate(bodies, known, progress=progress)
    judged = held or known
    errors = Errors(
        relative_error(judged, described),
        relative_error(judged, friction_estimate(torque_model, known)),
        relative_error(held, x) if held else choice.error,
    )
    return Identification(
        torque_model,
        x,
        data.cutoff,
        errors,
        choice,
        base_estimate(torque_model, known, data.independent),
        tuple(judged),
        tuple(dict.fromkeys(data.notes)),
        data.names,
    )


def validate(model: Model, recording: TimeSeries) -> tuple[Errors, tuple[str, ...]]:
    """Return the errors of the torques that a description predicts for a recording, and notes.

    The error without friction is computed on the whole recording. Friction is fitted to seven
    tenths of it, and the error with friction is computed on the other three. Raises
    TimeSeriesError for a recording that cannot be used.
    """
    data = Data.read(model, [recording])
    known, held = _held_out(data.equations)
    fitted = friction_estimate(data.torque_model, known)
    described = relative_error(data.equations, data.torque_model.described())
    return Errors(described, relative_error(held, fitted)), tuple(data.notes)


def relative_error(equations: Sequence[Equations], x: FloatArray) -> float:
    """Return the norm of the residuals for parameters x over the norm of all torques."""
    A, b = stacked(equations)
    return float(np.linalg.norm(A @ x - b) / np.linalg.norm(b))


def _held_out(equations: Sequence[Equations]) -> tuple[list[Equations], list[Equations]]:
    """Divide each recording into tenths, and return those to learn from and the held-out ones."""
    known: list[Equations] = []
    held: list[Equations] = []
    for one in equations:
        edges = np.linspace(0, len(one.b), 11).astype(int)
        for k in range(10):
            part = one.part(slice(edges[k], edges[k + 1]))
            (held if k in HELD_OUT else known).append(part)
    return known, held
