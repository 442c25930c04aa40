# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Results of simulations: states, energies and events, as motion data and in files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.timeseries import TimeSeries

MOMENTUM_NAMES = ("Lx", "Ly", "Lz", "Px", "Py", "Pz")
"""Columns of the momentum in motion data."""


class Event(NamedTuple):
    """A zero of an event function."""

    name: str
    t: float
    """Time in s."""
    q: FloatArray
    """(nq,) positions at t."""
    qd: FloatArray
    """(n,) rates at t."""
    member: tuple[int, ...] = ()
    """Index of the simulation in a batch."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Motion:
    """The result of :func:`simulate`: states at N instants, energies, and events.

    Units are SI. Arrays of a batch of simulations have its axes after the first. ``series`` is the
    motion of one simulation as :class:`~mbs_dynamics.timeseries.TimeSeries`.
    """

    t: FloatArray
    """(N,) time in s."""
    q: FloatArray
    """(N, ..., nq) positions in rad or m."""
    qd: FloatArray
    """(N, ..., n) rates in rad/s or m/s, continuous: stops and contacts are springs and dampers."""
    qdd: FloatArray
    """(N, ..., n) accelerations; NaN where the mass matrix is singular."""
    tau: FloatArray
    """(N, ..., n) motor torques in N m or N; if held, those of the step that begins."""
    kinetic: FloatArray
    """(N, ...) kinetic energy in J."""
    potential: FloatArray
    """(N, ...) potential energy in the field of gravity, in J."""
    momentum: FloatArray
    """(N, ..., 6) total momentum about the inertial origin, angular part first."""
    joint_names: tuple[str, ...]
    """Names of the n rates: those of the joints, with an index where a joint has several."""
    position_names: tuple[str, ...]
    """Names of the nq positions."""
    method: str
    events: tuple[Event, ...]

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.q.shape}, to {self.t[-1]:g} s, {self.method}>"

    @property
    def energy(self) -> FloatArray:
        """(N, ...) sum of kinetic and potential energy, in J."""
        return self.kinetic + self.potential

    @property
    def series(self) -> TimeSeries:
        """The motion data, with energies and momentum as further columns; no events.

        Its columns are finite: accelerations, energies and momenta that are not finite throughout
        are left out, and after a failed simulation the last state, whose torque is unknown. Raises
        ArgumentError for a batch.
        """
        batch = self.kinetic.shape[1:]
        if batch:
            raise ArgumentError(f"motion data takes one simulation, not a batch {batch}")
        known = np.isfinite(self.tau).all(axis=1)
        count = len(self) if known.all() else max(int(known.argmin()), 1)
        finite = np.isfinite(self.qdd[:count]).all(axis=0)
        columns = {"kinetic": self.kinetic, "potential": self.potential}
        columns |= dict(zip(MOMENTUM_NAMES, self.momentum.T, strict=True))
        return TimeSeries(
            self.t[:count],
            self.joint_names,
            self.q[:count],
            qd=self.qd[:count],
            qdd=np.where(finite, self.qdd[:count], np.nan) if finite.any() else None,
            tau=self.tau[:count],
            columns={k: x[:count] for k, x in columns.items() if np.isfinite(x[:count]).all()},
            positions=self.position_names,
            name=self.method,
        )

    def save(self, path: str | Path) -> None:
        """Write ``series`` to a file .csv or .npz, which ``TimeSeries.read`` reads.

        Raises ArgumentError for another ending, or for a batch.
        """
        self.series.write(path)
