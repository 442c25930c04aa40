# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The equations of recordings: prepared, filtered, and with checked torques."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mbs_dynamics.algorithms.regressor import BaseParameters
from mbs_dynamics.identification.preparation import joints_with_torques, prepared
from mbs_dynamics.identification.signals import cutoff_of, filtered
from mbs_dynamics.identification.torque_checks import check_torques
from mbs_dynamics.identification.torque_model import Equations, TorqueModel
from mbs_dynamics.model.model import Model
from mbs_dynamics.timeseries import TimeSeries, TimeSeriesError

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
        model, notes, stretches = model.loaded(), list[str](), list[TimeSeries]()
        for recording in recordings:
            found, remarks = prepared(recording, model)
            stretches += found
            begin = f"{recording.name}: " if recording.name else ""
            notes += [begin + remark for remark in remarks]
        joints = joints_with_torques(stretches[0])
        if any(joints_with_torques(one) != joints for one in stretches):
            raise TimeSeriesError(
                "the recordings have different joints; they must have the same ones"
            )
        cutoff = cutoff_of(stretches) if cutoff is None else cutoff
        torque_model = TorqueModel(model, joints, friction_speed)

        def equations_of(series: TimeSeries) -> Equations:
            return torque_model.equations(filtered(series, cutoff), cutoff)

        equations = [equations_of(one) for one in stretches]
        names = tuple(dict.fromkeys(one.name for one in stretches))
        independent = torque_model.independent()
        if check:
            notes += check_torques(torque_model, stretches, equations, equations_of, independent)
        return cls(torque_model, equations, independent, notes, cutoff, names)
