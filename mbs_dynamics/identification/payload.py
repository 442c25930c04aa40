# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Mass, centre of mass and inertia of a load, from a motion with it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.identification.data import FRICTION_SPEEDS, Data
from mbs_dynamics.identification.estimation import (
    WEIGHTS,
    autocorrelation_time,
    column_lengths,
    consistent_estimate,
    weighted,
    weights_of,
)
from mbs_dynamics.identification.identify import WORST, check_joints, identify
from mbs_dynamics.identification.torque_checks import ADVICE, CERTAIN, check_weight
from mbs_dynamics.identification.torque_model import stacked
from mbs_dynamics.model.body import Frame
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.urdf_elements import TENSOR
from mbs_dynamics.timeseries import TimeSeries
from mbs_dynamics.yaml_files import yaml_text

GYRATION = 0.001
"""Squared radius of gyration in m^2 of the prior, a load of some centimetres in size."""

FARTHEST = 0.5
"""Largest distance in m from the link to the centre of mass of the prior."""

LIGHTEST, HEAVIEST = 0.01, 2.0
"""Smallest load in kg, and largest load relative to the mass of the arm. A heavier one is accepted
if the unit of torques was stated."""


class PayloadEstimate(NamedTuple):
    """A load in the frame of the link that carries it."""

    link: str
    inertia: Inertia
    """Physically consistent."""
    mass_deviation: float
    """Standard deviation in kg."""
    com_deviation: FloatArray
    """(3,) standard deviations in m."""
    error: float
    """Relative error of the torques with the load."""
    error_without: float
    """Relative error of the torques without the load."""
    notes: tuple[str, ...] = ()
    """Notes on the recordings, such as samples that were left out."""

    @property
    def better(self) -> bool:
        """Whether the torques are explained well, and better with the load than without."""
        return self.error <= min(self.error_without, WORST)

    def message(self) -> str:
        """Return a geometry_msgs/InertiaStamped as YAML, for ~/payload of the nodes."""
        tensor = self.inertia.tensor_at_com
        com = {axis: _rounded(c) for axis, c in zip("xyz", self.inertia.com, strict=True)}
        inertia = {"m": _rounded(self.inertia.mass), "com": com}
        inertia |= {name: _rounded(tensor[place]) for name, place in TENSOR.items()}
        message = {"header": {"frame_id": self.link}, "inertia": inertia}
        return yaml_text(message, flow=True).rstrip("\n")


def _prior(rows: FloatArray, right: FloatArray) -> Inertia:
    """Return the prior of a load: its best mass and centre of mass by least squares, if plausible.

    The first ten columns of ``rows`` (N, p) are those of the inertial parameters of the load.
    """
    columns = rows[:, [*range(4), *range(10, rows.shape[1])]]
    lengths = column_lengths(columns)  # infinite if unseen, such as by a planar arm
    mass, *moment = (np.linalg.lstsq(columns / lengths, right, rcond=1e-6)[0] / lengths)[:4]
    if mass < LIGHTEST or np.linalg.norm(moment) > FARTHEST * mass:
        return Inertia.from_com(1.0, (0.0, 0.0, 0.0), GYRATION * np.eye(3))
    return Inertia.from_com(mass, np.array(moment) / mass, GYRATION * mass * np.eye(3))


def _to_body(frame: Frame) -> FloatArray:
    """Return the matrix (10, 10) that takes inertial parameters from a frame to its body."""
    moved = (Inertia.from_parameters(unit).transformed(frame.placement) for unit in np.eye(10))
    return np.stack([each.parameters for each in moved], axis=1).astype(float)


def _rounded(x: Any) -> float:
    """Return a number rounded to six digits."""
    return float(f"{float(x):.6g}")


def identify_payload(
    model: Model, recording: TimeSeries, link: str, without: TimeSeries | None = None
) -> PayloadEstimate:
    """Return the load on a link that best explains the torques of a recording.

    With ``without``, a recording of the arm alone, the arm is identified first, and the load is the
    difference; both recordings must have the same joints. Otherwise the masses of the description
    are assumed, and friction is fitted. Raises UnknownBodyError, ModelError for a link that does
    not move, TimeSeriesError for recordings that cannot be used, and for torques that cannot be
    those of the arm with such a load.
    """
    frame = model.with_payload(link, 0.0).frames[link]  # raises for a link that carries no load
    arm = None if without is None else identify(model, [without])
    speed = FRICTION_SPEEDS[1] if arm is None else arm.torque_model.friction_speed
    data = Data.read(model, [recording], speed, check=False)
    torque_model = data.torque_model
    if arm is not None:
        check_joints(recording, data, arm.torque_model)

    # what the arm leaves of the torques, in the parameters of the load and of the joints: friction
    # is fitted anew, since it may have changed
    x = torque_model.described() if arm is None else arm.x
    columns = slice(10 * frame.body, 10 * frame.body + 10)
    to_body = _to_body(frame)
    equations = []
    for one in data.equations:
        A = np.concatenate([one.A[..., columns] @ to_body, one.A[..., torque_model.rigid :]], -1)
        equations.append(one._replace(A=A, b=one.b - one.A @ x))
    A, rest = stacked(equations)
    gravity = np.concatenate([one.gravity for one in equations])
    check_weight(recording.name, link, A, rest + gravity, gravity)

    rows, right = weighted(A, rest, weights_of(A, rest))
    prior = np.array([_prior(rows, right).parameters], dtype=float)
    parameters, _ = consistent_estimate(prior, equations, WEIGHTS[-1:])
    inertia = Inertia.from_parameters(parameters[:10])
    arm_mass = sum(float(body.inertia.mass) for body in model.bodies)
    if inertia.mass > HEAVIEST * arm_mass and "tau" not in recording.declared:
        raise recording.error(
            f"the torques show a load of {inertia.mass:.4g} kg on {link!r}, more than "
            f"{HEAVIEST:g} times the mass of the arm ({arm_mass:.4g} kg). {ADVICE}"
        )
    # the checks need a model with the load
    carrying = (model if arm is None else arm.model).with_payload(
        link, inertia.mass, inertia.com, inertia.tensor_at_com
    )
    notes = [*(arm.notes if arm else ()), *Data.read(carrying, [recording], speed).notes]
    residual = (right - rows @ parameters).reshape(rest.shape)
    variance = float(np.square(residual).mean()) * autocorrelation_time(residual, equations)
    spread = variance * np.linalg.pinv(rows.T @ rows)[:4, :4]
    _, b = stacked(data.equations)
    mass, com = float(inertia.mass), inertia.com
    slopes = np.column_stack([-com / mass, np.eye(3) / mass])  # of com by mass and first moment
    mass_deviation, *com_deviations = np.sqrt(
        [spread[0, 0], *np.maximum(np.diag(slopes @ spread @ slopes.T), 0.0)]
    )
    if not mass >= max(CERTAIN * mass_deviation, LIGHTEST):
        raise recording.error(
            f"the torques do not show the load on {link!r}: {mass:.3g} +- {mass_deviation:.2g} kg. "
            "Are they those of this arm, in N m?"
        )
    return PayloadEstimate(
        link,
        inertia,
        float(mass_deviation),
        np.array(com_deviations),
        float(np.linalg.norm(rest - A @ parameters) / np.linalg.norm(b)),
        float(np.linalg.norm(rest) / np.linalg.norm(b)),
        tuple(dict.fromkeys(notes)),
    )
