# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The type of motion data: positions, rates and torques of joints over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, UnknownJointError, listed, quoted
from mbs_dynamics.model.coordinates import position_names, velocity_names
from mbs_dynamics.model.model import Model

KINDS = ("q", "qd", "qdd", "tau", "goal")
"""Names of the arrays with a column for each joint, in the order in files."""


class TimeSeriesError(ArgumentError):
    """Motion data cannot be read, or contradicts itself or the description."""


@dataclass(frozen=True, eq=False)
class TimeSeries:
    """Times, and positions, rates, accelerations, torques and goals of joints, in SI units.

    All arrays are finite and read-only. Only the column of a joint whose quantity was not measured
    is NaN throughout, in any array but ``q``.

    Raises TimeSeriesError, which names the array, for wrong shapes, values that are not finite, or
    times that do not increase.
    """

    t: FloatArray
    """(N,) times in s, increasing."""
    joints: tuple[str, ...]
    """k unique names."""
    q: FloatArray
    """(N, k) positions in rad or m; (N, nq) with ``positions``."""
    qd: FloatArray | None = None
    """(N, k) rates in rad/s or m/s; None, as below, if no joint has any."""
    qdd: FloatArray | None = None
    """(N, k) accelerations in rad/s^2 or m/s^2."""
    tau: FloatArray | None = None
    """(N, k) torques in N m or forces in N."""
    goal: FloatArray | None = None
    """(N, k) commanded positions in rad or m."""
    columns: Mapping[str, FloatArray] = field(default_factory=dict)
    """Further columns (N,) by name, such as energies or readings of a drive."""
    positions: tuple[str, ...] = ()
    """Names of the nq columns of q for joints with more coordinates than rates; by default those
    of the joints."""
    name: str = ""
    """Name of the file, for messages."""
    notes: tuple[str, ...] = ()
    """Notes on data that were left out when the file was read."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Names of columns in the file by their names here, such as ``q_joint1``; for messages."""
    declared: frozenset[str] = frozenset()
    """Quantities with a declared unit, such as ``t`` or ``tau``, and ``angle of <joint>`` for
    joints with a declared unit of angle."""

    def __post_init__(self) -> None:
        joints = tuple(self.joints)
        positions = tuple(self.positions) or joints
        for label, names in (("joints", joints), ("positions", positions)):
            for name in names:
                if not isinstance(name, str) or names.count(name) > 1:
                    raise self.error(f"{label} must be different names; got {quoted(name)}")
        t = self._array("t", self.t, (None,))
        count = len(t)
        arrays: dict[str, Any] = {"t": t, "q": self._array("q", self.q, (count, len(positions)))}
        for kind in KINDS[1:]:
            if (value := getattr(self, kind)) is not None:
                shape = (count, len(joints))
                arrays[kind] = self._array(kind, value, shape, absent=True)
        columns = {str(k): self._array(str(k), x, (count,)) for k, x in self.columns.items()}
        late = np.flatnonzero(np.diff(t) <= 0.0)
        if len(late):
            row = int(late[0])
            raise self.error(
                f"t must increase; got {t[row]:.9g} s in row {row + 1}, then {t[row + 1]:.9g} s"
            )
        arrays |= {"joints": joints, "positions": positions, "columns": columns}
        for name, value in arrays.items():
            object.__setattr__(self, name, value)

    def error(self, message: str) -> TimeSeriesError:
        """Return an error with the name of the file before the message."""
        return TimeSeriesError(f"{self.name}: {message}" if self.name else message)

    def _array(
        self, name: str, value: Any, shape: tuple[int | None, ...], *, absent: bool = False
    ) -> FloatArray:
        """Return a checked, read-only copy; with ``absent``, whole columns may be NaN."""
        try:
            array = checks.real(name, value)
        except ArgumentError as error:
            raise self.error(str(error)) from None
        fits = array.ndim == len(shape) and all(
            length is None or length == one for length, one in zip(shape, array.shape, strict=True)
        )
        if not fits:
            valid = ", ".join("N" if length is None else str(length) for length in shape)
            raise self.error(f"{name} has shape {array.shape}; must be ({valid})")
        bad = ~np.isfinite(array)
        if absent:
            bad &= ~np.isnan(array).all(axis=0)
        if bad.any():
            row = int(np.argwhere(bad)[0][0])
            found = array[tuple(np.argwhere(bad)[0])]
            raise self.error(f"{name} must be finite; got {found} in row {row + 1}")
        array.flags.writeable = False
        return array

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        kinds = ", ".join(kind for kind in KINDS if getattr(self, kind) is not None)
        last = f"to {self.t[-1]:g} s" if len(self.t) else "empty"
        return f"<TimeSeries {kinds} of {len(self.joints)} joints, {len(self.t)} rows, {last}>"

    @classmethod
    def read(
        cls,
        path: str | Path,
        *,
        columns: Mapping[str, str] | None = None,
        topic: str = "",
        timed: bool = True,
    ) -> TimeSeries:
        """Return the motion data in a file.

        .csv, .tsv, .txt: a header, then numbers. .npz: arrays. .db3, .mcap, .bag or a folder: joint
        states in a ROS bag, on ``topic`` if there are several topics. .parquet or a folder: a
        LeRobot dataset, where ``topic`` is the number of the episode. .yaml: the points of a
        JointTrajectory. ``columns`` declares names and units, such as ``{"q": "[deg]"}``. Without
        ``timed`` the rows are still poses: no time is needed, and t is the number of the row.

        Rows with missing values are left out, with a note in ``notes``. Rates or torques of a joint
        that are all missing, or have no column, are NaN. Raises TimeSeriesError for a file that
        cannot be read, with the option that declares missing information.
        """
        from mbs_dynamics.timeseries.reading import read

        return read(path, columns=columns, topic=topic, timed=timed)

    def write(self, path: str | Path) -> None:
        """Write a .csv or .npz file, which ``read`` reads.

        A CSV file has the columns ``t``, ``q_<joint>``, ``qd_<joint>``, ``qdd_<joint>``,
        ``tau_<joint>``, ``goal_<joint>`` and the further ones; quantities that were not measured
        have none. A .npz file has the arrays by their names here, and ``joints``. Raises
        TimeSeriesError for another ending, or a file that cannot be written.
        """
        from mbs_dynamics.timeseries.tables import write

        write(self, path)

    def rows(self, which: Any) -> TimeSeries:
        """Return the rows of a mask (N,), a slice, or increasing indices."""
        arrays = {kind: x[which] for kind in KINDS if (x := getattr(self, kind)) is not None}
        columns = {name: x[which] for name, x in self.columns.items()}
        return replace(self, t=self.t[which], columns=columns, **arrays)

    def of_joints(self, joints: Sequence[str]) -> TimeSeries:
        """Return the series of some joints, in this order.

        Raises UnknownJointError; TimeSeriesError where joints have several coordinates.
        """
        UnknownJointError.check(joints, self.joints)
        if self.positions != self.joints:
            raise self.error("joints with several coordinates cannot be selected")
        places = [self.joints.index(name) for name in joints]
        arrays = {kind: x[:, places] for kind in KINDS if (x := getattr(self, kind)) is not None}
        return replace(self, joints=tuple(joints), positions=(), **arrays)

    def of(self, model: Model) -> TimeSeries:
        """Return the joints of a model that are in the series, in the order of the model.

        Names must be equal, or equal without a common prefix or suffix of whole words. Undeclared
        units are SI, which is checked: the clock, the rates against the positions, and the
        positions against the limits of the description. Raises TimeSeriesError, with the option
        that declares the unit, also if none of the joints is in the model.
        """
        from mbs_dynamics.timeseries.joints import matched
        from mbs_dynamics.timeseries.plausibility import check

        if any(joint.nv > 1 for joint in model.joints):
            valid = position_names(model.joints), velocity_names(model.joints)
            if (self.positions, self.joints) != valid:
                raise self.error(f"must have the coordinates of the model, {listed(valid[0])}")
            return self
        pairs = matched(self.name, self.joints, model.joint_names, self.sources)
        for joint, name in pairs.items():
            if f"angle of {name}" in self.declared and not model.joint(joint).turns:
                column = self.column(f"q_{name}")
                raise self.error(
                    f"{joint} slides, but the declared unit of {column!r} is one of angle. "
                    f"Declare a length, as in --columns {column}=q_{joint}[m]"
                )
        sources = {"t": self.column("t")} | {
            f"{kind}_{joint}": self.column(f"{kind}_{name}")
            for joint, name in pairs.items()
            for kind in KINDS
        }
        series = replace(
            self.of_joints(list(pairs.values())), joints=tuple(pairs), positions=(), sources=sources
        )
        check(series, model)
        return series

    def column(self, name: str) -> str:
        """Return the name in the file of the column ``name``."""
        return self.sources.get(name, name)

    def columns_of(self, kind: str, which: Iterable[Any]) -> str:
        """Return, for messages, the columns in the file of a quantity of the joints of a mask."""
        chosen = [name for name, one in zip(self.joints, which, strict=True) if one]
        return listed(quoted(self.column(f"{kind}_{name}")) for name in chosen)

    def named(self, which: Iterable[Any], kind: str = "tau") -> str:
        """Return the names of the joints of a mask (k,), with their columns in the file.

        A column is stated if its name differs from ``<kind>_<joint>``.
        """
        found = []
        for name, one in zip(self.joints, which, strict=True):
            column = self.column(f"{kind}_{name}")
            known = column == f"{kind}_{name}"
            if one:
                found.append(name if known else f"{name} (column {quoted(column)})")
        return ", ".join(found)
