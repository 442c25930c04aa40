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

KEPT = 5_000
"""Number of periods in one of two blocks: so many are stored at least."""


class Replay(NamedTuple):
    """What a history led to, period by period, N in all."""

    samples: FloatArray
    """(N, ...) vectors of :class:`~mbs_dynamics.control.period.records.Sample`."""
    requests: FloatArray
    """(N, ...) of Request."""
    states: FloatArray
    """(N, ...) of State, after each period."""
    outputs: FloatArray
    """(N, ...) of Output."""
    verdicts: FloatArray
    """(N, ...) of Verdict."""


class _Block:
    def __init__(self, state: FloatArray, width: int) -> None:
        self.start, self.count = state, 0
        self.rows = np.zeros((KEPT, width))
        self.settings: list[tuple[int, FloatArray]] = []


class History:
    """Stores samples, requests and settings of the latest periods of an arm."""

    def __init__(self, layouts: Period, state: FloatArray) -> None:
        self._layouts = layouts
        self._width = layouts.sample.size + layouts.request.size
        self._now = _Block(state, self._width)
        self._before: _Block | None = None

    def note(
        self, state: FloatArray, sample: FloatArray, request: FloatArray, settings: FloatArray
    ) -> None:
        """Store a period that begins with a state."""
        block = self._now
        if block.count == KEPT:
            self._before, self._now = block, _Block(state, self._width)
            block = self._now
        row = block.rows[block.count]
        row[: len(sample)], row[len(sample) :] = sample, request
        if not block.settings or block.settings[-1][1] is not settings:
            block.settings.append((block.count, settings))
        block.count += 1

    def write(self, path: str | Path) -> None:
        """Write an .npz file of plain arrays. Raises OSError if it cannot be written."""
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
                rows=np.concatenate(rows),
                settings=np.array([vector for _, vector in settings]),
                settings_from=np.array([index for index, _ in settings], dtype=np.int64),
                joints=np.array(model.joint_names),
                masses=np.array([body.inertia.mass for body in model.bodies]),
                traced=np.array([str(x) for x in self._layouts.traced]),
            )


def replayed(layouts: Period, path: str | Path) -> Replay:
    """Return what the history in a file led to: the same as then, number by number.

    Raises ArgumentError for a file that is no history, or that of another robot; OSError if it
    cannot be read.
    """
    model = layouts.model
    try:
        with np.load(path, allow_pickle=False) as file:
            stored = {name: file[name] for name in file.files}
    except (ValueError, zipfile.BadZipFile) as error:
        raise ArgumentError(f"{str(path)!r} is no history of a guarded arm: {error}") from error
    missing = {
        "state",
        "rows",
        "settings",
        "settings_from",
        "joints",
        "masses",
        "traced",
    } - stored.keys()
    if missing:
        raise ArgumentError(f"{str(path)!r} is no history of a guarded arm: it lacks {missing}")
    joints, masses = tuple(stored["joints"].tolist()), stored["masses"]
    own = np.array([body.inertia.mass for body in model.bodies])
    if joints != model.joint_names or masses.shape != own.shape or not np.allclose(masses, own):
        raise ArgumentError(
            f"{str(path)!r} is the history of another robot, with the joints {list(joints)}; valid "
            f"is one of this model, with {list(model.joint_names)} and the same masses"
        )
    sizes = layouts.sample.size, layouts.request.size
    rows, state, traced = stored["rows"], stored["state"], stored["traced"].tolist()
    shapes = rows.shape[1:], state.shape, len(traced)
    if shapes != ((sum(sizes),), (layouts.state.size,), len(Traced._fields)):
        raise ArgumentError(f"{str(path)!r} was written by another version of this package")
    joints_too, link, collisions = traced
    layouts = layouts.tracing(Traced(joints_too == "True", link, collisions == "True"))
    samples, requests = (np.ascontiguousarray(x) for x in np.split(rows, [sizes[0]], axis=1))
    changes = dict(zip(stored["settings_from"].tolist(), stored["settings"], strict=True))
    results: list[Any] = []
    settings = changes[0]
    for k in range(len(rows)):
        settings = changes.get(k, settings)
        results.append(layouts(state, samples[k], requests[k], np.ascontiguousarray(settings)))
        state = results[-1].state
    columns = [np.array([getattr(one, name) for one in results]) for name in results[0]._fields]
    return Replay(samples, requests, *columns)
