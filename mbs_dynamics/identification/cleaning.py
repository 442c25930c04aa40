# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Cleaning of recordings: usable stretches with uniform clocks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.identification.clocks import GAP, SAMPLES, checked
from mbs_dynamics.identification.estimation import least_squares_residual
from mbs_dynamics.identification.recording import STILL, Recording, RecordingError
from mbs_dynamics.identification.torque_model import TorqueModel
from mbs_dynamics.model.model import Model

SHORTEST = 50
"""Smallest number of samples of a recording."""

LARGEST = 1e9
"""No position, rate or torque is larger."""

JUMP, AROUND, LEAST_JUMP = 4.0, 4, 0.02
"""Ratio of a step of the positions to the largest of so many before and after it, and step in rad
or m, beyond which samples were lost."""

SHOWN = 20
"""Largest number of instants that a note lists."""

COARSE = 0.01
"""Share of stamps that do not advance above which the clock is coarser than the measurements."""


def cleaned(recording: Recording, model: Model, *, currents: bool = False) -> list[Recording]:
    """Return the usable stretches of a recording, each with a uniform clock.

    Invalid samples are removed, wrapped angles unwrapped, and velocities in other units left out.
    Efforts may be ``currents``, in any units. Raises RecordingError for a recording that cannot be
    used: no torques, too few samples, joints that never move, or wrong units or clocks.
    """
    name, notes = recording.name, list(recording.notes)
    usable = _without_silent(recording, notes)
    unknown = np.isnan(usable.tau).all(axis=0)
    if unknown.any() or not usable.tau.any():
        raise RecordingError(f"{name}: holds no efforts of {usable.named(unknown) or 'any joint'}")
    constant = (np.ptp(usable.tau, axis=0) == 0.0) & (np.ptp(usable.q, axis=0) > STILL)
    if not currents:  # joints that swing freely have no torque, see torque_checks
        constant &= usable.tau.any(axis=0)
    if constant.any():
        raise RecordingError(
            f"{name}: holds no efforts of {usable.named(constant)}: they do not change, although "
            "these joints move"
        )
    finite = np.isfinite(usable.t) & (np.abs([usable.q, usable.tau]) < LARGEST).all(axis=(0, 2))
    usable = usable.samples(finite)
    dropped = ~usable.tau.any(axis=1)
    if dropped.mean() < 0.5 and dropped.any():
        notes.append(f"{int(dropped.sum())} samples without any torque were left out")
        usable = usable.samples(~dropped)
    if len(usable.t) < SHORTEST:
        raise RecordingError(
            f"{name}: has {len(usable.t)} samples; at least {SHORTEST} are needed, and some ten "
            "seconds"
        )
    if not finite.all():
        notes.append(f"{int((~finite).sum())} samples that are not finite were left out")
    if usable.qd is not None:
        valid = np.abs(usable.qd) < LARGEST
        some = valid.any(axis=0) & ~valid.all(axis=0)
        usable = replace(usable, qd=np.where(valid.all(axis=0), usable.qd, np.nan))
        if some.any():
            notes.append(f"velocities of {usable.named(some)} are not all finite, and are not used")
    _check_units(usable, model)
    usable = _unwrapped(usable, model, notes)
    if not np.ptp(usable.q, axis=0).any():
        raise RecordingError(f"{name}: no joint moves: positions are constant")
    usable = _advancing(usable, notes)
    jumps = jumps_of(usable)
    usable = checked(usable, model, notes, jumps, currents=currents)
    period = float(np.median(np.diff(usable.t)))
    gaps = np.flatnonzero(np.diff(usable.t) > GAP * period) + 1
    jumps = jumps[~np.isin(jumps, gaps)]
    if len(gaps):
        notes.append(f"{len(gaps)} gap(s) in time: the recording is taken as {len(gaps) + 1} parts")
    if len(jumps):
        times = ", ".join(f"{usable.t[k]:.6g}" for k in jumps[:SHOWN])
        more = ", ..." if len(jumps) > SHOWN else ""
        notes.append(
            f"positions jump {len(jumps)} time(s), as if samples were lost, at t = {times}{more} s:"
            " the recording is divided there"
        )
    ends = np.union1d(gaps, jumps)
    rows = [each for each in np.split(np.arange(len(usable.t)), ends) if len(each) >= SHORTEST]
    if not rows:
        raise RecordingError(
            f"{name}: no stretch without gaps and jumps has {SHORTEST} samples"
            + (f"; {notes[-1]}" if len(ends) else "")
        )
    parts = [_uniform(usable.samples(each), period) for each in rows]
    return [replace(part, notes=tuple(notes)) for part in parts]


def jumps_of(recording: Recording) -> NDArray[np.intp]:
    """Return the indices of samples before which positions jump.

    There a step is many times those around it, so that an arm would stand still again at once.
    """
    steps = np.abs(np.diff(recording.q, axis=0))
    if len(steps) <= 2 * AROUND:
        return np.zeros(0, dtype=np.intp)
    padded = np.pad(steps, ((AROUND, AROUND), (0, 0)))
    shifts = [k for k in range(2 * AROUND + 1) if k != AROUND]
    around = np.max([padded[k : k + len(steps)] for k in shifts], axis=0)
    jump = (steps > np.maximum(JUMP * around, LEAST_JUMP)).any(axis=1)
    return np.flatnonzero(jump) + 1


def _without_silent(recording: Recording, notes: list[str]) -> Recording:
    """Return the recording without joints that neither move nor have torques, such as grippers."""
    silent = ~np.nan_to_num(recording.tau).any(axis=0)
    leave = silent & (np.ptp(np.nan_to_num(recording.q), axis=0) < STILL)
    if not leave.any() or leave.all():
        return recording
    named = recording.named(leave)
    notes.append(f"left out, as they neither move nor have torques: {named}")
    where = [(k, recording.q[np.isfinite(recording.q[:, k]), k]) for k in np.flatnonzero(leave)]
    rest = tuple((recording.joints[k], float(np.median(q))) for k, q in where if len(q))
    kept = recording.columns(np.flatnonzero(~leave).tolist())
    return replace(kept, rest=(*kept.rest, *rest))


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
    return [model.joint_names.index(name) for name in recording.joints]


def _check_units(recording: Recording, model: Model) -> None:
    far = []
    for k, q in zip(_joints(recording, model), recording.q.T, strict=True):
        low, high = float(model.lower[k]), float(model.upper[k])
        if not model.joints[k].turns or not np.isfinite([low, high]).all():
            continue
        low, high = low - 0.2 * (high - low), high + 0.2 * (high - low)
        if ((q >= low) & (q <= high)).mean() < 0.5:
            far.append(model.joint_names[k])
    largest = np.abs(recording.q).max()
    if largest > 10.0 and (any(far) or _in_degrees(recording, model)):
        beyond = f", beyond the limits of {', '.join(far)}" if far else ""
        raise RecordingError(
            f"{recording.name}: positions up to {largest:.4g} are not in rad{beyond}. State their "
            "unit if it is known, as in --columns NAME=q_joint1[deg]; convert per cent of the "
            "ranges, counts and others to rad"
        )


def _in_degrees(recording: Recording, model: Model) -> bool:
    """Return whether gravity of any masses explains the torques far better by q in degrees."""
    torque_model = TorqueModel(model.loaded(), recording.joints, 1.0)
    step = -(-len(recording.t) // SAMPLES)
    q, tau = recording.q[::step], recording.tau[::step]
    turning = [torque_model.model.joints[k].turns for k in torque_model.places]

    def unexplained(q: FloatArray) -> float:
        A = torque_model.at_rest(q)
        each = [least_squares_residual(A[:, j], tau[:, j]) for j in range(q.shape[1])]
        return float((np.std(each, axis=1) / np.maximum(tau.std(axis=0), 1e-12)).mean())

    return unexplained(np.where(turning, np.radians(q), q)) < 0.5 * unexplained(q)


def _unwrapped(recording: Recording, model: Model, notes: list[str]) -> Recording:
    turning = [model.joints[k].turns for k in _joints(recording, model)]
    jumps = (np.abs(np.diff(recording.q, axis=0)) > np.pi).any(axis=0) & np.array(turning)
    if not jumps.any():
        return recording
    notes.append(f"wrapped angles were unwrapped: {recording.named(jumps)}")
    return replace(recording, q=np.where(jumps, np.unwrap(recording.q, axis=0), recording.q))


def _advancing(recording: Recording, notes: list[str]) -> Recording:
    """Return the samples whose time advances; equal periods if stamps are coarser than samples."""
    t = recording.t
    later = np.concatenate([[True], np.diff(np.maximum.accumulate(t)) > 0.0])
    if later.all():
        return recording
    again = ~later[1:] & (np.diff(recording.q, axis=0) == 0.0).all(axis=1)
    if (~later).mean() - again.mean() > COARSE and t[-1] > t[0] and (np.diff(t) >= 0.0).all():
        notes.append("stamps are coarser than the samples, and were spaced equally")
        return replace(recording, t=np.linspace(t[0], t[-1], len(t)))
    notes.append(f"{int((~later).sum())} samples whose time does not advance were left out")
    return recording.samples(later)
