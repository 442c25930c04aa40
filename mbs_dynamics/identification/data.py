# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The equations of recordings: prepared, filtered, and with checked torques."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mbs_dynamics.algorithms.regressor import BaseParameters
from mbs_dynamics.identification.preparation import prepared_all
from mbs_dynamics.identification.range_shares import range_shares
from mbs_dynamics.identification.signals import cutoff_of, filtered
from mbs_dynamics.identification.torque_checks import (
    check_arm,
    check_ranges,
    check_torques,
)
from mbs_dynamics.identification.torque_evidence import SAMPLES, Torques
from mbs_dynamics.identification.torque_model import (
    JOINT_TERMS,
    Equations,
    TorqueModel,
    joint_columns,
    stacked,
)
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.orders import tools
from mbs_dynamics.timeseries import TimeSeries

FRICTION_SPEEDS = (0.02, 0.05, 0.1)
"""Candidates for the speed in rad/s or m/s at which Coulomb friction reaches 76 %."""


class Data(NamedTuple):
    """Recordings of the same joints, motions or still poses, as equations of their torques."""

    torque_model: TorqueModel
    equations: list[Equations]
    independent: BaseParameters
    """Parameter combinations that such data can determine."""
    notes: list[str]
    cutoff: float = 0.0
    """Frequency in Hz below which torques are compared; 0 for still poses."""
    names: tuple[str, ...] = ()
    """Names of the recordings of motions."""

    @classmethod
    def read(
        cls,
        model: Model,
        recordings: Sequence[TimeSeries],
        friction_speed: float = FRICTION_SPEEDS[0],
        *,
        cutoff: float | None = None,
        check: bool = True,
    ) -> Data:
        """Return the equations of motions, below ``cutoff`` in Hz.

        By default the cutoff frequency follows from the motion. Raises TimeSeriesError for
        recordings that cannot be used and, unless ``check`` is False, for torques that cannot be
        those of the arm.
        """
        model = model.loaded()
        stretches, notes = prepared_all(recordings, model)
        joints = stretches[0].series.joints
        cutoff = cutoff_of(stretches) if cutoff is None else cutoff
        torque_model = TorqueModel(model, joints, friction_speed)
        equations = [torque_model.equations(filtered(one, cutoff), cutoff) for one in stretches]
        names = tuple(dict.fromkeys(one.series.name for one in stretches))
        independent = torque_model.independent()
        if check:
            declared = frozenset.intersection(*(one.series.declared for one in stretches))
            columns = [stretches[0].series.column(f"tau_{joint}") for joint in joints]
            masses = [place for place in independent.columns if place < torque_model.rigid]
            given = _torques(torque_model, equations, columns, masses)
            q = np.concatenate([one.series.q for one in stretches])
            for share in range_shares(torque_model, q, stated="q" in declared):
                others = []
                for one in stretches:
                    series = replace(one.series, q=share.positions(one.series.q), qd=None)
                    signals = filtered(one._replace(series=series), cutoff)
                    others.append(torque_model.equations(signals, cutoff))
                shared = _torques(torque_model, others, columns, masses)
                check_ranges(", ".join(names), given, shared, str(share))
            notes += check_torques(", ".join(names), given, stated="tau" in declared)
            _check_weight(", ".join(names), torque_model, equations, stated="tau" in declared)
        return cls(torque_model, equations, independent, notes, cutoff, names)


def _check_weight(
    name: str, torque_model: TorqueModel, equations: Sequence[Equations], *, stated: bool
) -> None:
    """Raise TimeSeriesError for torques of a load on a tool without the weight of the arm."""
    A, b = stacked(equations)
    gravity = np.concatenate([one.gravity for one in equations])
    step = slice(None, None, -(-len(b) // SAMPLES))
    A, b, gravity = A[step], b[step], gravity[step]
    tau = b - A @ torque_model.described() + gravity
    places = np.arange(torque_model.rigid, A.shape[-1])
    last = (places - torque_model.rigid) % len(JOINT_TERMS) == JOINT_TERMS.index("offset")
    terms, offsets = places[~last], places[last]
    for tool in tools(torque_model.model):
        body = 10 * torque_model.model.frames[tool].body
        parts = A[..., body : body + 10], A[..., terms], A[..., offsets]
        check_arm(name, tool, parts, tau, gravity, stated=stated)


def _torques(
    torque_model: TorqueModel,
    equations: Sequence[Equations],
    columns: Sequence[str],
    masses: Sequence[int],
) -> Torques:
    """Return the torques of a motion for the checks; ``masses`` are columns of A."""
    A, b = stacked(equations)
    gravity = np.concatenate([one.gravity for one in equations])
    described = A @ torque_model.described()
    joint_terms = joint_columns(A)[..., : JOINT_TERMS.index("offset")]
    used = A[..., list(masses)]
    return Torques(torque_model.joints, columns, b, described, gravity, used, joint_terms)
