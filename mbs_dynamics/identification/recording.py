# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings of joints."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    rest: tuple[tuple[str, float], ...] = ()
    """Names and positions of joints that were left out, as they are at rest without torques."""
    torques_stated: bool = False
    """Whether the unit of all torques was stated."""

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

        Names that differ from those of the model by a common prefix or suffix are matched. Raises
        RecordingError if a recording without names has another number of joints than the model, or
        if several joints may be meant,
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
        names, note = matched(self.name, self.joints, model.joint_names)
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
            raise RecordingError(f"the gain of {joint} must be finite and nonzero, got {gain:g}")
    factors = np.array([gains.get(joint, 1.0) for joint in own.joints])
    stated = own.torques_stated or all(joint in gains for joint in own.joints)
    return replace(own, tau=factors * own.tau, torques_stated=stated)


def matched(
    recording: str, names: Sequence[str], known: Sequence[str]
) -> tuple[list[str], tuple[str, ...]]:
    """Return names as the model has them, and a note if they differed.

    Names match as a whole. If none does, they match without a prefix or suffix of whole words that
    all of them have, such as ``left_`` or ``/joint``, if most joints do. Raises RecordingError if
    several sets of names match equally well.
    """
    if set(names) & set(known):
        return list(names), ()
    renamings: dict[tuple[str, ...], dict[str, str]] = {}
    for cut in (_without_beginning, _without_end):
        for theirs, ours in _affixes(names, known, cut):
            short = {cut(one, ours): one for one in known if cut(one, ours)}
            renamed = {
                name: short[cut(name, theirs)] for name in names if cut(name, theirs) in short
            }
            if renamed:
                renamings.setdefault(tuple(sorted(renamed)), renamed)
    most = max((len(one) for one in renamings.values()), default=0)
    best = [one for one in renamings.values() if len(one) == most]
    if 2 * most <= min(len(set(names)), len(known)):
        return list(names), ()
    if len(best) > 1:
        sets = " or ".join(", ".join(list(one)[:8]) for one in best)
        columns = " ".join(f"q_{name}=q_{one}" for name, one in list(best[0].items())[:1])
        raise RecordingError(
            f"{recording}: which joints are those of the model ({', '.join(known)}): {sets}? "
            f"State them by --columns, as in {columns}, or give a recording of these joints only"
        )
    (renamed,) = best
    name, one = next(iter(renamed.items()))
    note = f"joints {name}, ... of the recording are taken for {one}, ... of the model"
    return [renamed.get(name, name) for name in names], (note,)


def _affixes(
    names: Sequence[str], known: Sequence[str], cut: Callable[[str, str], str]
) -> set[tuple[str, str]]:
    """Return the pairs of prefixes (or suffixes) without which some name and known one are equal.

    ``cut`` removes them.
    """
    own, other = ({(cut(x, end), end) for x in both for end in _ends(x)} for both in (names, known))
    rests: dict[str, list[str]] = {}
    for rest, end in other:
        rests.setdefault(rest, []).append(end)
    return {(end, one) for rest, end in own if rest for one in rests.get(rest, ())}


def _ends(name: str) -> list[str]:
    """Return the empty text, and the prefixes and suffixes of whole words of a name."""
    places = [match.span() for match in re.finditer("[_./ -]+", name)]
    return ["", *(name[:end] for _, end in places), *(name[begin:] for begin, _ in places)]


def _without_beginning(name: str, beginning: str) -> str:
    """Return a name without its beginning; empty if it has another one."""
    return name[len(beginning) :] if name.startswith(beginning) else ""


def _without_end(name: str, end: str) -> str:
    """Return a name without its end; empty if it has another one."""
    return name[: len(name) - len(end)] if name.endswith(end) else ""


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
