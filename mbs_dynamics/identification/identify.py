# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Identification: from recordings and a description to a description with the measured torques."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.identification.cleaning import cleaned
from mbs_dynamics.identification.consistent import is_consistent
from mbs_dynamics.identification.estimation import (
    BaseEstimate,
    Choice,
    ConsistentEstimate,
    base_estimate,
    correlated,
    friction_estimate,
)
from mbs_dynamics.identification.friction_terms import FrictionTerms, columns_of, friction_terms
from mbs_dynamics.identification.recording import Recording, RecordingError
from mbs_dynamics.identification.signals import cutoff_of, filtered
from mbs_dynamics.identification.torque_checks import Torques, check_torques, check_unit
from mbs_dynamics.identification.torque_model import JOINT_TERMS, Equations, TorqueModel, stacked
from mbs_dynamics.model.coordinates import bounded
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.model import Model, with_drivetrain
from mbs_dynamics.model.payloads import Payloads

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
    terms: FrictionTerms | None = None
    """Stribeck's effect and load-dependent friction of the recorded joints."""
    recordings: tuple[str, ...] = ()
    """Names of the recordings from which it was identified."""

    @property
    def model(self) -> Model:
        """The model with the identified inertias, and armature, damping and friction of joints."""
        model = self.torque_model.model
        terms = {"armature": "inertia", "damping": "viscous", "friction": "coulomb"}
        own = {
            joint: {name: parameters[term] for name, term in terms.items()}
            for joint, parameters in self.joint_parameters.items()
        }
        model = with_drivetrain(model, own)
        pairs = zip(model.bodies, self.inertial, strict=True)
        bodies = (replace(body, inertia=Inertia.from_parameters(x)) for body, x in pairs)
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
        parameters = {joint: dict(zip(JOINT_TERMS, row, strict=True)) for joint, row in pairs}
        if self.terms is not None and self.terms.any:
            for j, one in enumerate(parameters.values()):
                one |= self.terms.of_joint(j, one["coulomb"])
        return parameters

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
    recordings: Sequence[Recording],
    validation: Recording | None = None,
    *,
    progress: Callable[[float], None] = lambda share: None,
) -> Identification:
    """Return the inertias and friction with which a model reproduces recorded torques.

    All identified links are physically consistent. Parameters that the motions do not show remain
    near those of the description. Without ``validation``, three of ten stretches of each recording
    are held out. Raises RecordingError for recordings that cannot be used, with the reason.
    """
    if not recordings:
        raise RecordingError("at least one recording is needed")
    model = model.loaded()
    parts, notes = parts_of(recordings, model)
    joints = parts[0].joints
    others: list[Recording] = []
    if validation is not None:
        others, more = parts_of([validation], model)
        notes += [note for note in more if note not in notes]
        if others[0].joints != joints:
            raise RecordingError(f"{validation.name}: its joints are not those of the training")
    massless = [body.name for body in model.bodies if not body.inertia.mass > 0.0]
    if massless:
        notes.append(
            f"the description states no mass of {', '.join(massless)}: what the data do not show "
            "of these stays next to nothing"
        )
    cutoff = cutoff_of(parts)
    signals = [filtered(part, cutoff) for part in parts]
    unseen = [filtered(part, cutoff) for part in others]
    candidates = []
    for count, speed in enumerate(FRICTION_SPEEDS):
        torque_model = TorqueModel(model, joints, speed)
        known = [torque_model.equations(one, cutoff) for one in signals]
        held = [torque_model.equations(one, cutoff) for one in unseen]
        if not held:
            known, held = _held_out(known)
        if not count:
            check_ranges(torque_model, known + held, [*parts, *others], cutoff)
            notes += checked_torques(torque_model, known + held, parts)

        def done(share: float, count: int = count) -> None:
            progress((count + share) / len(FRICTION_SPEEDS))

        estimate = ConsistentEstimate(torque_model, known, done)
        candidates.append((estimate.cross_validated(), estimate, known, held))
    choice, estimate, known, held = min(candidates, key=lambda one: one[0].best)
    x = estimate.estimate(choice.weight)
    torque_model = estimate.torque_model
    errors = Errors(
        relative_error(held, torque_model.described()),
        relative_error(held, friction_estimate(torque_model, known)),
        relative_error(held, x),
    )
    seen = [
        [columns_of(torque_model, one, cutoff, x) for one in part] for part in (signals, unseen)
    ]
    if not unseen:
        seen = list(_held_out(seen[0]))
    coulomb = x[torque_model.rigid :].reshape(-1, len(JOINT_TERMS))[:, 0]
    terms = friction_terms(torque_model, known, [one.A for one in seen[0]], coulomb)
    if terms.any:
        less = [
            [one.without(terms.torques(C.A)) for one, C in zip(part, columns, strict=True)]
            for part, columns in zip((known, held), seen, strict=True)
        ]
        better = ConsistentEstimate(torque_model, less[0])
        compared = better.cross_validated()
        if compared.best < choice.best:
            choice, (known, held), x = compared, less, better.estimate(compared.weight)
            errors = replace(errors, identified=relative_error(held, x))
        else:
            terms = terms.refused(choice.best, compared.best)
    notes += terms.notes
    if validation is None:
        notes.append("no recording to validate with was given: three tenths were held out")
    return Identification(
        torque_model,
        x,
        cutoff,
        errors,
        choice,
        base_estimate(torque_model, known),
        tuple(held),
        tuple(notes),
        terms,
        tuple(dict.fromkeys(part.name for part in parts)),
    )


def validate(model: Model, recording: Recording) -> tuple[Errors, tuple[str, ...]]:
    """Return the errors of the torques that a description predicts for a recording, and notes.

    Friction is fitted to seven tenths of the recording, and both are compared on the other three.
    Raises RecordingError for a recording that cannot be used.
    """
    model = model.loaded()
    parts, notes = parts_of([recording], model)
    torque_model, equations = _equations(model, parts, FRICTION_SPEEDS[0])
    check_ranges(torque_model, equations, parts, cutoff_of(parts))
    notes += checked_torques(torque_model, equations, parts)
    known, held = _held_out(equations)
    fitted = friction_estimate(torque_model, known)
    described = relative_error(equations, torque_model.described())
    return Errors(described, relative_error(held, fitted)), tuple(notes)


def fitted_gains(
    model: Model, recording: Recording, *, known: Collection[str] = ()
) -> dict[str, float]:
    """Return gains of the drives, by joint, with which currents best fit the description.

    Currents alone determine the inertias up to a factor per joint, which the description sets here:
    the result is only as accurate as its total masses. Raises RecordingError for joints whose gain
    the motion does not show, unless they are among those with a ``known`` one.
    """
    speed = FRICTION_SPEEDS[0]
    torque_model, equations, _ = equations_of(model, recording, speed, currents=True)
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
        raise RecordingError(
            f"{recording.name}: the motion does not show the gain of {', '.join(without)}: their "
            f"torques are too small. Give it, as in --gains {given}"
        )
    return {joint: gain for joint, gain in gains.items() if joint not in known}


def relative_error(equations: Sequence[Equations], x: FloatArray) -> float:
    """Return the norm of the residuals of parameters over that of the torques, for all joints."""
    A, b = stacked(equations)
    measured = np.concatenate([one.measured for one in equations])
    return float(np.linalg.norm(A @ x - b) / np.linalg.norm(measured))


def checked_torques(
    torque_model: TorqueModel, equations: Sequence[Equations], parts: Sequence[Recording]
) -> list[str]:
    """Return notes on the torques of a motion; raise RecordingError for those of no such arm."""
    name = ", ".join(dict.fromkeys(part.name for part in parts))
    stated = all(part.torques_stated for part in parts)
    return check_torques(name, torques_of(torque_model, equations), stated=stated)


def check_ranges(
    torque_model: TorqueModel,
    equations: Sequence[Equations],
    parts: Sequence[Recording],
    cutoff: float,
) -> None:
    """Raise RecordingError for positions in per cent of the ranges that were declared as degrees.

    Such positions are within all limits. ``equations`` are those of the ``parts`` as declared.
    """
    model, places = torque_model.model, torque_model.places
    low, high = model.lower[places], model.upper[places]
    turns = all(joint.turns for joint in model.joints if joint.coordinate in places)
    largest = max(float(np.abs(part.q).max()) for part in parts)
    if not turns or not bounded(low, high).all() or largest > np.radians(100.0):
        return
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    converted = [
        replace(part, q=middle + half * np.degrees(part.q) / 100.0, qd=None) for part in parts
    ]
    others = [torque_model.equations(filtered(part, cutoff), cutoff) for part in converted]
    check_unit(
        ", ".join(dict.fromkeys(part.name for part in parts)),
        torques_of(torque_model, equations),
        torques_of(torque_model, others),
        "per cent of the ranges of the joints, -100 to 100, that were declared as degrees: convert "
        "them to rad, as lower + (upper - lower) (p + 100) / 200",
    )


def torques_of(torque_model: TorqueModel, equations: Sequence[Equations]) -> Torques:
    """Return the torques of a motion, to be checked."""
    A, b = stacked(equations)
    k, rigid = len(torque_model.joints), torque_model.rigid
    own = A[..., rigid:].reshape(len(A), k, k, len(JOINT_TERMS))[:, range(k), range(k)]
    friction, inertia = (
        own[..., [JOINT_TERMS.index(term) for term in terms]]
        for terms in (("coulomb", "viscous"), ("inertia",))
    )
    columns = [place for place in torque_model.independent().columns if place < rigid]
    return Torques(
        torque_model.joints,
        b,
        A @ torque_model.described(),
        np.concatenate([one.gravity for one in equations]),
        friction,
        inertia,
        A[..., columns],
    )


def equations_of(
    model: Model, recording: Recording, friction_speed: float, *, currents: bool = False
) -> tuple[TorqueModel, list[Equations], list[str]]:
    """Return the torque model and equations of one recording, and the notes on it."""
    model = model.loaded()
    parts, notes = parts_of([recording], model, currents=currents)
    return (*_equations(model, parts, friction_speed), notes)


def _equations(
    model: Model, parts: Sequence[Recording], friction_speed: float
) -> tuple[TorqueModel, list[Equations]]:
    cutoff = cutoff_of(parts)
    torque_model = TorqueModel(model, parts[0].joints, friction_speed)
    return torque_model, [torque_model.equations(filtered(part, cutoff), cutoff) for part in parts]


def parts_of(
    recordings: Sequence[Recording], model: Model, *, currents: bool = False
) -> tuple[list[Recording], list[str]]:
    """Return all usable stretches, of the same joints, and notes."""
    parts: list[Recording] = []
    notes: list[str] = []
    for recording in recordings:
        stretches = cleaned(recording.of(model), model, currents=currents)
        notes += [f"{recording.name}: {note}" for note in stretches[0].notes]
        parts += stretches
    joints = {part.joints for part in parts}
    if len(joints) > 1:
        raise RecordingError("the recordings are of different joints; give those of the same ones")
    return parts, notes


def _held_out(equations: Sequence[Equations]) -> tuple[list[Equations], list[Equations]]:
    known: list[Equations] = []
    held: list[Equations] = []
    for one in equations:
        edges = np.linspace(0, len(one.b), 11).astype(int)
        for k in range(10):
            part = one.part(slice(edges[k], edges[k + 1]))
            (held if k in HELD_OUT else known).append(part)
    return known, held
