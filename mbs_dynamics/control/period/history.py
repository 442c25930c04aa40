# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The latest periods of an arm, as a file that reproduces every command and verdict."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.period.following import Traced
from mbs_dynamics.control.period.function import Period
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.model.model import Model

KEPT = 5_000
"""Number of periods in each of two blocks, and least number of stored periods."""


class Replay(NamedTuple):
    """The inputs and results of the N periods of a history."""

    layouts: Period
    """The period that was replayed."""
    samples: FloatArray
    """(N, ...) vectors of :class:`~mbs_dynamics.control.period.records.Sample`."""
    requests: FloatArray
    """(N, ...) of Request."""
    commanded: FloatArray
    """(N, n) which joints were commanded, 1 or 0."""
    states: FloatArray
    """(N, ...) of State, after each period."""
    outputs: FloatArray
    """(N, ...) of Output."""
    verdicts: FloatArray
    """(N, ...) of Verdict."""
    difference: float
    """Largest difference between the last state and the stored one; 0: all numbers are equal."""

    @property
    def sent(self) -> FloatArray:
        """(N,) whether the command of a period was sent."""
        return np.asarray(self.layouts.request.unpacked(self.requests).sends > 0.5)


class History:
    """Stores the inputs of the latest periods of an arm, in two blocks."""

    def __init__(self, layouts: Period, state: FloatArray) -> None:
        self._layouts = layouts
        self._start, self._middle = state, state
        """States before the first period of each block."""
        self._before: list[tuple[FloatArray, ...]] = []
        self._now: list[tuple[FloatArray, ...]] = []
        """Samples, requests and settings of periods."""

    def store(
        self, state: FloatArray, sample: FloatArray, request: FloatArray, settings: FloatArray
    ) -> None:
        """Store a period that begins with a state. The vectors must not be changed later."""
        if len(self._now) == KEPT:
            self._before, self._now = self._now, []
            self._start, self._middle = self._middle, state
        self._now.append((sample, request, settings))

    def write(self, path: str | Path, state: FloatArray) -> None:
        """Write an .npz file of plain arrays; ``state`` is the latest one.

        Raises ArgumentError before the first period, OSError if it cannot be written.
        """
        periods = [*self._before, *self._now]
        if not periods:
            raise ArgumentError("there is no history before the first period")
        samples, requests, settings = zip(*periods, strict=True)
        changed = [k for k, vector in enumerate(settings) if not k or vector is not settings[k - 1]]
        model = self._layouts.model
        with Path(path).open("wb") as stream:
            np.savez_compressed(
                stream,
                state=self._start,
                last=state,
                algorithm=np.array(self._layouts.representation),
                rows=np.hstack([samples, requests]),
                settings=np.array([settings[k] for k in changed]),
                settings_from=np.array(changed, dtype=np.int64),
                joints=np.array(model.joint_names),
                masses=np.array([body.inertia.mass for body in model.bodies]),
                traced=np.array([str(x) for x in self._layouts.traced]),
            )


STORED = (
    "state", "last", "rows", "settings", "settings_from", "joints", "masses", "traced", "algorithm",
)  # fmt: skip
"""Arrays of a file."""


def replayed(model: Model, path: str | Path) -> Replay:
    """Return the results of the periods in a file.

    They are identical with the same description, version of this package and back end. Raises
    ArgumentError for a file that is not a history of this robot; OSError if it cannot be read.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            stored = {name: file[name] for name in file.files}
    except (ValueError, zipfile.BadZipFile):
        stored = {}  # NumPy's message is about pickles, whatever the file is
    if not set(STORED) <= stored.keys():
        raise ArgumentError(
            f"{str(path)!r} is not a history of a guarded arm; must be .npz from its write_history"
        )
    joints, masses = tuple(stored["joints"].tolist()), stored["masses"]
    own = np.array([body.inertia.mass for body in model.bodies])
    if joints != model.joint_names or masses.shape != own.shape or not np.allclose(masses, own):
        raise ArgumentError(
            f"{str(path)!r} is the history of another robot, with the joints {list(joints)}; valid "
            f"is one of this model, with {list(model.joint_names)} and the same masses"
        )
    if len(stored["traced"]) != len(Traced._fields):
        raise ArgumentError(f"{str(path)!r} was written by another version of this package")
    joints_too, link, collisions = stored["traced"].tolist()
    traced = Traced(joints_too == "True", link, collisions == "True")
    layouts = Period(model, str(stored["algorithm"]), traced)
    sizes = layouts.sample.size, layouts.request.size
    rows, state, settings = stored["rows"], stored["state"], stored["settings"]
    shapes = rows.shape[1:], state.shape, settings.shape[1:]
    if shapes != ((sum(sizes),), (layouts.state.size,), (layouts.settings.size,)):
        raise ArgumentError(f"{str(path)!r} was written by another version of this package")
    samples, requests = (np.ascontiguousarray(x) for x in np.split(rows, [sizes[0]], axis=1))
    from_row = np.searchsorted(stored["settings_from"], np.arange(len(rows)), side="right") - 1
    results: list[Any] = []
    for sample, request, k in zip(samples, requests, from_row, strict=True):
        results.append(layouts(state, sample, request, np.ascontiguousarray(settings[k])))
        state = results[-1].state
    states, outputs, verdicts = (
        np.array([getattr(one, name) for one in results]) for name in results[0]._fields
    )
    last = stored["last"]
    same = (state == last) | (np.isnan(state) & np.isnan(last))
    apart = np.abs(np.where(same, 0.0, state) - np.where(same, 0.0, last))
    difference = float(np.nan_to_num(apart, nan=np.inf).max())
    commanded = layouts.settings.unpacked(settings).commanded[from_row]
    return Replay(layouts, samples, requests, commanded, states, outputs, verdicts, difference)
