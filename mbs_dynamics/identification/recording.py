# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings of joints, and their cleaning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import MbsError, UnknownJointError
from mbs_dynamics.model.model import Model

SHORTEST = 50
"""Smallest number of samples of a recording."""

STILL = 1e-3
"""Motion in rad or m below which a joint is at rest."""

GAP = 5.0
"""Pause, in periods, that ends a stretch of samples."""


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
    """(N, k) in rad/s or m/s; None if not measured."""
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
        UnknownJointError if none of the names is in the model.
        """
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
        found = self.columns([names.index(name) for name in known])
        return replace(found, joints=tuple(known)).noted(*note)


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
        found = {
            name: ours + name.removeprefix(theirs) for name in names if name.startswith(theirs)
        }
        found = {name: one for name, one in found.items() if one in known}
        best = max(best, found, key=len)
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


def cleaned(recording: Recording, model: Model) -> list[Recording]:
    """Return the usable stretches of a recording, each with a uniform clock.

    Invalid samples are removed, wrapped angles unwrapped, and a clock that is coarser than the
    measurements is replaced by that of the velocities. Raises RecordingError for a recording that
    cannot be used: no torques, too few samples, joints that never move, or wrong units or signs.
    """
    name, notes = recording.name, list(recording.notes)
    found = _without_silent(recording, notes)
    unknown = np.isnan(found.tau).all(axis=0)
    if unknown.any() or not found.tau.any():
        raise RecordingError(f"{name}: holds no efforts of {found.named(unknown) or 'any joint'}")
    finite = np.isfinite(np.column_stack([found.t, found.q, found.tau])).all(axis=1)
    found = found.samples(finite)
    dropped = ~found.tau.any(axis=1)
    if dropped.mean() < 0.5 and dropped.any():
        notes.append(f"{int(dropped.sum())} samples without any torque were left out")
        found = found.samples(~dropped)
    if len(found.t) < SHORTEST:
        raise RecordingError(
            f"{name}: has {len(found.t)} samples; at least {SHORTEST} are needed, and some ten "
            "seconds"
        )
    if not finite.all():
        notes.append(f"{int((~finite).sum())} samples that are not finite were left out")
    if found.qd is not None and not np.isfinite(found.qd).all():
        found = replace(found, qd=None)
        notes.append("velocities are not all finite, and are not used")
    _check_units(found, model)
    found = _unwrapped(found, model, notes)
    if not np.ptp(found.q, axis=0).any():
        raise RecordingError(f"{name}: no joint moves: positions are constant")
    found = _advancing(found, notes)
    period = float(np.median(np.diff(found.t)))
    ends = np.flatnonzero(np.diff(found.t) > GAP * period) + 1
    if len(ends):
        notes.append(f"{len(ends)} gap(s) in time: the recording is taken as {len(ends) + 1} parts")
    rows = [each for each in np.split(np.arange(len(found.t)), ends) if len(each) >= SHORTEST]
    if not rows:
        raise RecordingError(f"{name}: no stretch without gaps has {SHORTEST} samples")
    parts = [_uniform(found.samples(each), period) for each in rows]
    return [replace(part, notes=tuple(notes)) for part in parts]


def _without_silent(recording: Recording, notes: list[str]) -> Recording:
    """Return the recording without joints that neither move nor have torques, such as grippers."""
    silent = ~np.nan_to_num(recording.tau).any(axis=0)
    leave = silent & (np.ptp(np.nan_to_num(recording.q), axis=0) < STILL)
    if not leave.any() or leave.all():
        return recording
    named = recording.named(leave)
    notes.append(f"left out, as they neither move nor have torques: {named}")
    return recording.columns(np.flatnonzero(~leave).tolist())


def _uniform(recording: Recording, period: float) -> Recording:
    """Return a recording sampled at equal distances in time, from zero on."""
    t = recording.t
    times = t[0] + period * np.arange(round((t[-1] - t[0]) / period) + 1)
    if len(times) == len(t) and np.abs(np.diff(t) - period).max() < 0.01 * period:
        return replace(recording, t=times - t[0])

    def sampled(x: FloatArray) -> FloatArray:
        return np.stack([np.interp(times, t, column) for column in x.T], axis=1)

    qd = None if recording.qd is None else sampled(recording.qd)
    q, tau = sampled(recording.q), sampled(recording.tau)
    return replace(recording, t=times - t[0], q=q, tau=tau, qd=qd)


def _joints(recording: Recording, model: Model) -> list[int]:
    """Return the coordinates of the recorded joints."""
    return [model.joint_names.index(name) for name in recording.joints]


def _check_units(recording: Recording, model: Model) -> None:
    """Raise RecordingError for positions in degrees."""
    far, fits = [], []
    for k, q in zip(_joints(recording, model), recording.q.T, strict=True):
        low, high = float(model.lower[k]), float(model.upper[k])
        if model.joints[k].kind != "revolute" or not np.isfinite([low, high]).all():
            continue
        low, high = low - 0.2 * (high - low), high + 0.2 * (high - low)
        inside, small = (q >= low) & (q <= high), np.radians(q)
        far.append(inside.mean() < 0.5)
        fits.append(bool(((small >= low) & (small <= high)).all()))
    largest = np.abs(recording.q).max()
    if any(far) and all(fits) and largest > 10.0:
        raise RecordingError(
            f"{recording.name}: positions of {largest:.4g} are far outside the limits of the "
            "joints, and inside them if taken for degrees: convert them to rad"
        )


def _unwrapped(recording: Recording, model: Model, notes: list[str]) -> Recording:
    """Return the recording with angles without jumps by whole turns."""
    turning = [model.joints[k].kind == "revolute" for k in _joints(recording, model)]
    jumps = (np.abs(np.diff(recording.q, axis=0)) > np.pi).any(axis=0) & np.array(turning)
    if not jumps.any():
        return recording
    notes.append(f"wrapped angles were unwrapped: {recording.named(jumps)}")
    return replace(recording, q=np.where(jumps, np.unwrap(recording.q, axis=0), recording.q))


def _advancing(recording: Recording, notes: list[str]) -> Recording:
    """Return the samples whose time advances, after a check of time and velocities.

    Velocities that are not the rates of the positions are not used. If they are by a constant
    factor, or if stamps are counted, the clock is wrong: the period is the one that makes both
    agree.
    """
    t, q, qd = recording.t, recording.q, recording.qd
    later = np.concatenate([[True], np.diff(np.maximum.accumulate(t)) > 0.0])
    if qd is not None:
        together = t[2:] - t[:-2] < 0.5 * GAP * np.median(t[2:] - t[:-2])  # no gap between
        half, middle = 0.5 * (q[2:] - q[:-2])[together], qd[1:-1][together]
        power = float((middle**2).sum())
        period = float((half * middle).sum()) / power if power else 0.0
        rest = float(((half - period * middle) ** 2).sum() / (half**2).sum()) if power else 1.0
        stated = float(np.median(np.diff(t[later])))
        counted = np.array_equal(t, np.round(t)) or float((~later).mean()) > 0.01
        if power == 0.0:
            notes.append("velocities are zero throughout, and are not used")
            recording = replace(recording, qd=None)
        elif period <= 0.0 or rest > 0.5:
            notes.append("velocities are not the rates of the positions, and are not used")
            recording = replace(recording, qd=None)
        elif counted or abs(period / stated - 1.0) > 0.02:
            notes.append(
                f"the clock is not that of the velocities: a period of {stated:.4g} is taken for "
                f"{period:.6g} s"
            )
            return replace(recording, t=period * np.arange(len(t), dtype=float))
    if not later.all():
        notes.append(f"{int((~later).sum())} samples whose time does not advance were left out")
    return recording.samples(later)
