# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings of joints: what was measured when, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import MbsError, UnknownJointError
from mbs_dynamics.model.model import Model

Mask = NDArray[np.bool_]

SHORTEST = 50
"""A recording needs at least this many samples."""

STILL = 1e-3
"""A joint that moves by less than this, in rad or m, stands still."""

GAP = 5.0
"""A pause of so many periods ends a stretch of samples."""


class RecordingError(MbsError, ValueError):
    """A recording cannot be read, or cannot be what it should be."""


@dataclass(frozen=True)
class Recording:
    """Positions, velocities and torques of joints over time."""

    name: str
    joints: tuple[str, ...]
    """Names; empty where the source has none: then the order is that of the model."""
    t: FloatArray
    """(N,) in s, increasing."""
    q: FloatArray
    """(N, k) in rad or m."""
    tau: FloatArray
    """(N, k) in N m or N."""
    qd: FloatArray | None = None
    """(N, k) in rad/s or m/s; None if they were not measured."""
    notes: tuple[str, ...] = ()
    """What was found and mended."""

    def noted(self, *notes: str) -> Recording:
        """Return the recording with further notes."""
        return replace(self, notes=(*self.notes, *notes))

    def of(self, model: Model) -> Recording:
        """Return the joints of a model that were recorded, in the model's order.

        Names that differ from those of the model by a common prefix are taken for theirs. Raises
        RecordingError for a recording without names that has another number of joints than the
        model, UnknownJointError if none of the names is in the model.
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
        columns = [names.index(name) for name in known]
        found = replace(
            self,
            joints=tuple(known),
            q=self.q[:, columns],
            tau=self.tau[:, columns],
            qd=None if self.qd is None else self.qd[:, columns],
        )
        absent = [name for name in model.joint_names if name not in known]
        if absent:
            note += (f"taken to stand still, as they were not recorded: {', '.join(absent)}",)
        return found.noted(*note)


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
    """Return names in the words of the model, and a note if they were others."""
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
    """Return what two names begin with before they are the same to the end."""
    pairs = zip(reversed(name), reversed(other), strict=False)
    same = next((k for k, (a, b) in enumerate(pairs) if a != b), min(len(name), len(other)))
    return name[: len(name) - same], other[: len(other) - same]


def merged(
    name: str, samples: Iterable[tuple[float, Mapping[str, tuple[float, float, float]]]]
) -> Recording:
    """Return a recording of samples (time, {joint: (q, qd, tau)}), joints in any combination.

    Where drivers report joints in messages of their own, all are taken at the times of the joint
    that is reported most often, by linear interpolation. NaN stands for what is not known.
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
    """Return the stretches of a recording that can be used, each on a uniform clock.

    Bad samples are left out, wrapped angles unwrapped, and a clock that is coarser than the
    measurements replaced by that of the velocities. Raises RecordingError for what cannot be used:
    no torques, too few samples, joints that never move, units or signs that are not those of SI.
    """
    name, notes = recording.name, list(recording.notes)
    recording = _without_silent(recording, notes)
    finite = np.isfinite(recording.t) & np.isfinite(recording.q).all(axis=1)
    finite &= np.isfinite(recording.tau).all(axis=1)
    if np.isnan(recording.tau).all(axis=0).any() or not recording.tau.any():
        silent = _named(recording.joints, np.isnan(recording.tau).all(axis=0))
        raise RecordingError(f"{name}: holds no efforts of {silent or 'any joint'}")
    t, q, tau = (x[finite] for x in (recording.t, recording.q, recording.tau))
    qd = None if recording.qd is None else recording.qd[finite]
    dropped = ~tau.any(axis=1)
    if dropped.mean() < 0.5 and dropped.any():
        notes.append(f"{int(dropped.sum())} samples without any torque were left out")
        t, q, tau = t[~dropped], q[~dropped], tau[~dropped]
        qd = None if qd is None else qd[~dropped]
    if len(t) < SHORTEST:
        raise RecordingError(
            f"{name}: has {len(t)} samples; at least {SHORTEST} are needed, and some ten seconds"
        )
    if not finite.all():
        notes.append(f"{int((~finite).sum())} samples that are not finite were left out")
    if qd is not None and not np.isfinite(qd).all():
        qd = None
        notes.append("velocities are not all finite, and are not used")
    _check_units(name, recording.joints, model, q, qd)
    q = _unwrapped(q, recording.joints, model, notes)
    if not np.ptp(q, axis=0).any():
        raise RecordingError(f"{name}: no joint moves: positions are constant")
    later = np.concatenate([[True], np.diff(np.maximum.accumulate(t)) > 0.0])
    if qd is not None:
        t, qd, later = _by_velocities(t, q, qd, later, notes)
    if not later.all():
        notes.append(f"{int((~later).sum())} samples whose time does not advance were left out")
    t, q, tau = t[later], q[later], tau[later]
    qd = None if qd is None else qd[later]
    period = float(np.median(np.diff(t)))
    ends = np.flatnonzero(np.diff(t) > GAP * period) + 1
    if len(ends):
        notes.append(f"{len(ends)} gap(s) in time: the recording is taken as {len(ends) + 1} parts")
    parts = []
    for rows in np.split(np.arange(len(t)), ends):
        if len(rows) >= SHORTEST:
            parts.append(_uniform(name, recording.joints, period, t, q, tau, qd, rows))
    if not parts:
        raise RecordingError(f"{name}: no stretch without gaps has {SHORTEST} samples")
    return [replace(part, notes=tuple(notes)) for part in parts]


def _without_silent(recording: Recording, notes: list[str]) -> Recording:
    """Return the recording without joints that neither move nor have torques, such as grippers."""
    silent = ~np.nan_to_num(recording.tau).any(axis=0)
    still = np.ptp(np.nan_to_num(recording.q), axis=0) < STILL
    leave = silent & still
    if not leave.any() or leave.all():
        return recording
    notes.append(
        f"left out, as they neither move nor have torques: {_named(recording.joints, leave)}"
    )
    keep = ~leave
    return replace(
        recording,
        joints=tuple(j for j, one in zip(recording.joints, keep, strict=True) if one),
        q=recording.q[:, keep],
        tau=recording.tau[:, keep],
        qd=None if recording.qd is None else recording.qd[:, keep],
    )


def _uniform(
    name: str,
    joints: tuple[str, ...],
    period: float,
    t: FloatArray,
    q: FloatArray,
    tau: FloatArray,
    qd: FloatArray | None,
    index: NDArray[np.intp],
) -> Recording:
    """Return some samples at equal distances in time."""
    at, begin = t[index], t[index[0]]
    times = begin + period * np.arange(round((at[-1] - begin) / period) + 1)
    even = len(times) == len(at) and np.abs(np.diff(at) - period).max() < 0.01 * period

    def sampled(x: FloatArray) -> FloatArray:
        x = x[index]
        if even:
            return x
        return np.stack([np.interp(times, at, column) for column in x.T], axis=1)

    velocities = None if qd is None else sampled(qd)
    return Recording(name, joints, times - begin, sampled(q), sampled(tau), velocities)


def _named(joints: Sequence[str], which: Any) -> str:
    return ", ".join(joint for joint, one in zip(joints, which, strict=True) if one)


def _check_units(
    name: str,
    joints: Sequence[str],
    model: Model,
    q: FloatArray,
    qd: FloatArray | None,
) -> None:
    """Raise RecordingError for positions in degrees."""
    far, fits = [], []
    for k, joint in enumerate(joints):
        i = model.joint_names.index(joint)
        low, high = float(model.lower[i]), float(model.upper[i])
        if model.joints[i].kind != "revolute" or not np.isfinite([low, high]).all():
            continue
        margin = 0.2 * (high - low)
        inside = (q[:, k] >= low - margin) & (q[:, k] <= high + margin)
        small = np.radians(q[:, k])
        far.append(inside.mean() < 0.5)
        fits.append(bool(((small >= low - margin) & (small <= high + margin)).all()))
    if far and any(far) and all(fits) and np.abs(q).max() > 10.0:
        raise RecordingError(
            f"{name}: positions of {np.abs(q).max():.4g} are far outside the limits of the joints, "
            "and inside them if taken for degrees: convert them to rad"
        )


def _unwrapped(q: FloatArray, joints: Sequence[str], model: Model, notes: list[str]) -> FloatArray:
    """Return angles without jumps by whole turns."""
    turning = [model.joints[model.joint_names.index(one)].kind == "revolute" for one in joints]
    jumps = (np.abs(np.diff(q, axis=0)) > np.pi).any(axis=0) & np.array(turning)
    if not jumps.any():
        return q
    notes.append(f"wrapped angles were unwrapped: {_named(joints, jumps)}")
    return np.where(jumps, np.unwrap(q, axis=0), q)


def _by_velocities(
    t: FloatArray, q: FloatArray, qd: FloatArray, later: Mask, notes: list[str]
) -> tuple[FloatArray, FloatArray | None, Mask]:
    """Return the time, the velocities and which samples count, by comparing the two with positions.

    Velocities that are not those of the positions are not used. If they are by a constant factor,
    or if stamps are counted, the clock is wrong: the period is the one that makes both agree.
    """
    together = t[2:] - t[:-2] < 0.5 * GAP * np.median(t[2:] - t[:-2])  # no gap between
    half, middle = 0.5 * (q[2:] - q[:-2])[together], qd[1:-1][together]
    power = float((middle**2).sum())
    if power == 0.0:
        notes.append("velocities are zero throughout, and are not used")
        return t, None, later
    period = float((half * middle).sum()) / power
    stated = float(np.median(np.diff(t[later])))
    rest = float(((half - period * middle) ** 2).sum() / (half**2).sum())
    if period <= 0.0 or rest > 0.5:
        notes.append("velocities are not the rates of the positions, and are not used")
        return t, None, later
    counted = np.array_equal(t, np.round(t)) or float((~later).mean()) > 0.01
    if counted or abs(period / stated - 1.0) > 0.02:
        notes.append(
            f"the clock is not that of the velocities: a period of {stated:.4g} is taken for "
            f"{period:.6g} s"
        )
        uniform: FloatArray = period * np.arange(len(t), dtype=float)
        return uniform, qd, np.ones(len(t), dtype=np.bool_)
    return t, qd, later
