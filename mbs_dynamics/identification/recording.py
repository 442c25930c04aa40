# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings of joints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import MbsError, UnknownJointError
from mbs_dynamics.model.coordinates import check_single
from mbs_dynamics.model.model import Model

STILL = 1e-3
"""Motion in rad or m below which a joint is at rest."""


class RecordingError(MbsError, ValueError):
    """A recording cannot be read or used."""


@dataclass(frozen=True)
class Recording:
    """Positions, velocities and torques of k joints at N instants."""

    name: str
    joints: tuple[str, ...]
    """Names; empty if the source has none: then the order is that of the model."""
    t: FloatArray
    """(N,) in s, increasing."""
    q: FloatArray
    """(N, k) in rad or m."""
    tau: FloatArray
    """(N, k) in N m or N."""
    qd: FloatArray | None = None
    """(N, k) in rad/s or m/s; NaN for joints without, None if not measured."""
    notes: tuple[str, ...] = ()
    """Corrections that were applied."""

    def noted(self, *notes: str) -> Recording:
        """Return the recording with additional notes."""
        return replace(self, notes=(*self.notes, *notes))

    def samples(self, which: Any) -> Recording:
        """Return the samples of a mask (N,), or of indices."""
        qd = None if self.qd is None else self.qd[which]
        return replace(self, t=self.t[which], q=self.q[which], tau=self.tau[which], qd=qd)

    def columns(self, places: Sequence[int]) -> Recording:
        """Return the joints of some columns."""
        index = list(places)
        return replace(
            self,
            joints=tuple(self.joints[k] for k in index),
            q=self.q[:, index],
            tau=self.tau[:, index],
            qd=None if self.qd is None else self.qd[:, index],
        )

    def named(self, which: Any) -> str:
        """Return the names of the joints of a mask (k,), separated by commas."""
        return ", ".join(name for name, one in zip(self.joints, which, strict=True) if one)

    def of(self, model: Model) -> Recording:
        """Return the joints of a model that were recorded, in the model's order.

        Names that differ from those of the model by a common prefix are matched. Raises
        RecordingError if a recording without names has another number of joints than the model,
        ModelError for a model with joints of several degrees of freedom, UnknownJointError if none
        of the names is in the model.
        """
        check_single(model.joints, "recordings of joints", instead="a model with a fixed base")
        if not self.joints:
            if self.q.shape[1] != model.n:
                raise RecordingError(
                    f"{self.name}: has {self.q.shape[1]} joints without names; the model has "
                    f"{model.n}: {', '.join(model.joint_names)}"
                )
            return replace(self, joints=model.joint_names)
        names, note = matched(self.joints, model.joint_names)
        known = [name for name in model.joint_names if name in names]
        if not known:
            raise UnknownJointError(", ".join(self.joints), model.joint_names)
        absent = [name for name in model.joint_names if name not in known]
        if absent:
            note += (f"assumed to be at rest, as they were not recorded: {', '.join(absent)}",)
        recorded = self.columns([names.index(name) for name in known])
        return replace(recorded, joints=tuple(known)).noted(*note)


def scaled(recording: Recording, model: Model, gains: Mapping[str, float]) -> Recording:
    """Return a recording of motor currents as one of torques, with gains in N m/A or N/A.

    The joints are those of the model. Joints without a gain keep their efforts. Raises
    UnknownJointError for a joint that was not recorded, RecordingError for a gain of zero.
    """
    own = recording.of(model)
    for joint, gain in gains.items():
        if joint not in own.joints:
            raise UnknownJointError(joint, own.joints)
        if not np.isfinite(gain) or gain == 0.0:
            raise RecordingError(f"the gain of {joint} is {gain:g}; valid is what is not zero")
    factors = np.array([gains.get(joint, 1.0) for joint in own.joints])
    return replace(own, tau=factors * own.tau)


def matched(names: Sequence[str], known: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return names as the model has them, and a note if they differed."""
    if set(names) & set(known):
        return list(names), ()
    swaps = {_beginnings(name, one) for name in names for one in known if name[-1:] == one[-1:]}
    best: dict[str, str] = {}
    for theirs, ours in sorted(swaps):
        renamed = {
            name: ours + name.removeprefix(theirs) for name in names if name.startswith(theirs)
        }
        renamed = {name: one for name, one in renamed.items() if one in known}
        best = max(best, renamed, key=len)
    if not best:
        return list(names), ()
    name, one = next(iter(best.items()))
    note = f"joints {name}, ... of the recording are taken for {one}, ... of the model"
    return [best.get(name, name) for name in names], (note,)


def _beginnings(name: str, other: str) -> tuple[str, str]:
    """Return the beginnings of two names up to their common end."""
    pairs = zip(reversed(name), reversed(other), strict=False)
    same = next((k for k, (a, b) in enumerate(pairs) if a != b), min(len(name), len(other)))
    return name[: len(name) - same], other[: len(other) - same]


def merged(
    name: str, samples: Iterable[tuple[float, Mapping[str, tuple[float, float, float]]]]
) -> Recording:
    """Return a recording of samples (time, {joint: (q, qd, tau)}), joints in any combination.

    Joints that are reported in separate messages are interpolated linearly to the times of the
    joint reported most often. Unknown values are NaN.
    """
    series: dict[str, list[tuple[float, float, float, float]]] = {}
    for t, joints in samples:
        for joint, values in joints.items():
            series.setdefault(joint, []).append((t, *values))
    if not series:
        raise RecordingError(f"{name}: has no joint states")
    tables = {joint: np.array(sorted(rows)) for joint, rows in series.items()}
    times: FloatArray = max(tables.values(), key=len)[:, 0]
    split = any(not np.array_equal(table[:, 0], times) for table in tables.values())
    columns = [
        np.array([np.interp(times, table[:, 0], table[:, k]) for k in (1, 2, 3)])
        if split
        else table[:, 1:].T
        for table in tables.values()
    ]
    q, qd, tau = np.stack(columns, axis=-1)
    notes = ("joints come in several messages, and were interpolated",) if split else ()
    velocities = None if np.isnan(qd).all() else qd
    return Recording(name, tuple(tables), times, q, tau, velocities, notes)
