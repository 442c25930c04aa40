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


class _Block:
    def __init__(self, state: FloatArray, rows: FloatArray) -> None:
        self.start, self.count, self.rows = state, 0, rows
        self.settings: list[tuple[int, FloatArray]] = []


class History:
    """Stores samples, requests and settings of the latest periods of an arm."""

    def __init__(self, layouts: Period, state: FloatArray) -> None:
        self._layouts = layouts
        self._now = _Block(state, self._rows())
        self._before: _Block | None = None

    def _rows(self) -> FloatArray:
        return np.zeros((KEPT, self._layouts.sample.size + self._layouts.request.size))

    def store(
        self, state: FloatArray, sample: FloatArray, request: FloatArray, settings: FloatArray
    ) -> None:
        """Store a period that begins with a state."""
        block = self._now
        if block.count == KEPT:
            rows = self._rows() if self._before is None else self._before.rows
            self._before, self._now = block, _Block(state, rows)
            block = self._now
        row = block.rows[block.count]
        row[: len(sample)], row[len(sample) :] = sample, request
        if not block.settings or block.settings[-1][1] is not settings:
            block.settings.append((block.count, settings))
        block.count += 1

    def write(self, path: str | Path, state: FloatArray) -> None:
        """Write an .npz file of plain arrays; ``state`` is the latest one.

        Raises OSError if it cannot be written.
        """
        blocks = [one for one in (self._before, self._now) if one is not None]
        rows = [one.rows[: one.count] for one in blocks]
        offsets = np.cumsum([0, *(one.count for one in blocks[:-1])])
        settings = [
            (offset + index, vector)
            for offset, one in zip(offsets.tolist(), blocks, strict=True)
            for index, vector in one.settings
        ]
        model = self._layouts.model
        with Path(path).open("wb") as stream:
            np.savez_compressed(
                stream,
                state=blocks[0].start,
                last=state,
                algorithm=np.array(self._layouts.representation),
                rows=np.concatenate(rows),
                settings=np.array([vector for _, vector in settings]),
                settings_from=np.array([index for index, _ in settings], dtype=np.int64),
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
    except (ValueError, zipfile.BadZipFile) as error:
        raise ArgumentError(f"{str(path)!r} is not a history of a guarded arm: {error}") from error
    missing = set(STORED) - stored.keys()
    if missing:
        raise ArgumentError(f"{str(path)!r} is not a history of a guarded arm: it lacks {missing}")
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
