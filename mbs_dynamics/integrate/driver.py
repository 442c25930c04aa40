# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The driver of all simulations: steps, events, progress, and the record up to a failure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, SimulationError, SingularError
from mbs_dynamics.integrate.events import STOP, EventFunction, Interpolation, Watch
from mbs_dynamics.integrate.forces import Arrays, finite
from mbs_dynamics.integrate.results import Event
from mbs_dynamics.integrate.schemes import Problem, Scheme
from mbs_dynamics.progress import Progress

Result = TypeVar("Result")

WHOLE = 1e-9
"""Share of a duration up to which its distance from a whole number of steps is rounding."""

CHUNK = 1000
"""Steps between two checks that the states are finite."""


class TimeSteps(NamedTuple):
    """Duration, steps, events and progress of a simulation."""

    h: float
    steps: int
    duration: float
    every: int
    watch: Watch
    progress: bool | None

    @classmethod
    def of(
        cls,
        duration: float,
        step: float,
        every: int = 1,
        events: Mapping[str, EventFunction] | None = None,
        stop: EventFunction | None = None,
        progress: bool | None = None,
    ) -> TimeSteps:
        """Return the steps for the arguments of a simulation, or raise ArgumentError."""
        h, total = checks.positive("step", step), checks.number("duration", duration)
        if not 0.0 < total <= 1e9 * h:
            raise ArgumentError(
                f"duration must be positive and at most 1e9 steps of {h:g} s; got {total:g} s"
            )
        steps = max(round(total / h), 1)
        if abs(steps * h - total) > WHOLE * total:
            raise ArgumentError(
                f"duration must be a whole number of steps of {h:g} s, such as {steps * h:.9g} s; "
                f"got {total:g} s"
            )
        return cls(h, steps, total, checks.count("every", every), Watch(events, stop), progress)


class Record(NamedTuple):
    """States that a run has stored, at N instants."""

    t: FloatArray
    state: Arrays
    """Arrays (N, ..., *shape) that the layout records."""
    acted: Arrays
    """Arrays (N, ..., *shape) of the values of each drive."""
    events: list[Event]


class Run:
    """State of a running simulation."""

    def __init__(
        self,
        timing: TimeSteps,
        problem: Problem,
        method: str,
        interpolated: Interpolation,
    ) -> None:
        self.timing, self.problem, self.method = timing, problem, method
        self.batch, self.interpolated = problem.start[0].shape[:-1], interpolated
        self.steps = 0
        self.end: float | None = None
        """Time at which the simulation has ended; None while it is running."""
        self.states: list[Arrays] = [tuple(x[None] for x in problem.start)]
        self.acted: list[Arrays] = []
        self.events: list[Event] = []

    def go(self, make_scheme: Callable[[], Scheme], result: Callable[[Record], Result]) -> Result:
        """Make the scheme, advance it, and return the result of the record.

        Raises SimulationError, which carries the result up to the failure.
        """
        progress = Progress(self.timing.duration, self.timing.progress)
        with np.errstate(over="ignore", invalid="ignore"):  # reported by SimulationError
            try:
                self._go(make_scheme, progress)
            except SimulationError as error:
                error.motion = result(self._record())
                raise
            finally:
                progress.close()
            return result(self._record())

    def _go(self, make_scheme: Callable[[], Scheme], progress: Progress) -> None:
        h, watch = self.timing.h, self.timing.watch
        try:
            scheme = make_scheme()
            watch.begin(0.0, scheme.seen(scheme.x), self.batch)
            one_by_one = watch.functions and self.problem.laws  # no law is asked beyond a stop
            chunk = 1 if one_by_one else CHUNK
            while self.steps < self.timing.steps and self.end is None:
                self._advance(scheme, min(chunk, self.timing.steps - self.steps))
                progress.update(self.steps * h)
        except SingularError as error:
            t = self.steps * h
            why = "a motion that diverges ends so too: take smaller steps"
            message = f"at t = {t:.9g} s: {error}; {why}"
            raise SimulationError(message, time=t) from error

    def _advance(self, scheme: Scheme, count: int) -> None:
        """Make some steps, record the finite ones, and search for events."""
        before = scheme.x
        states, acted = scheme.advance(count)
        good = len(states)
        if not finite(states):
            good = int(np.argmin(np.isfinite(states).all(axis=tuple(range(1, states.ndim)))))
        if self.timing.watch.functions and good:
            states, good = self._watched(scheme, before, states, good)
        if good:
            self._keep(scheme.seen(states[:good]), acted, good)
            self.steps += good
        if self.end is None and good < len(states):
            h = self.timing.h
            t = self.steps * h
            raise SimulationError(
                f"{self.method}: the state is not finite after the step of {h:g} s from "
                f"t = {t:.9g} s; take smaller steps, or see what accelerates",
                time=t,
            )

    def _keep(self, states: Arrays, acted: Arrays, count: int) -> None:
        """Record every ``every``-th state and the values of the drives then."""
        begin = self.steps + np.arange(count)
        begun, picked = begin % self.timing.every == 0, (begin + 1) % self.timing.every == 0
        if self.steps + count == self.timing.steps and self.end is None:
            self.end = self.timing.duration
        picked[-1] |= self.end is not None  # the end is always recorded
        self.states.append(tuple(x[picked] for x in states))
        picked_values = []
        for drive, x in zip(self.problem.drives, acted, strict=True):
            inner = (1,) * (len(self.batch) - (x.ndim - 1 - len(drive.shape)))  # one for all
            x = x.reshape(len(x), *inner, *x.shape[1:])
            x = x if len(x) == 1 else x[:count]
            picked_values.append(np.broadcast_to(x, (count, *self.batch, *drive.shape))[begun])
        self.acted.append(tuple(picked_values))

    def _watched(
        self, scheme: Scheme, before: FloatArray, states: FloatArray, good: int
    ) -> tuple[FloatArray, int]:
        """Look for events in the first ``good`` steps; return the states up to the stop."""
        watch, h = self.timing.watch, self.timing.h
        path = scheme.seen(np.concatenate([before[None], states[:good]]))
        for k in range(good):
            t = (self.steps + k) * h
            pair = (tuple(x[k] for x in path), tuple(x[k + 1] for x in path))
            self.events += watch.between(t, *pair, h, self.interpolated)
            if self.events and (stop := self.events[-1]).name == STOP:
                states = states[: k + 1].copy()
                states[k], self.end = scheme.pack(stop.q, stop.qd), stop.t
                return states, k + 1
        return states, good

    def _record(self) -> Record:
        states = tuple(np.concatenate(x) for x in zip(*self.states, strict=True))
        h, every, count = self.timing.h, self.timing.every, len(states[0])
        t: FloatArray = h * every * np.arange(count, dtype=np.float64)
        if self.end is not None:
            t[-1] = self.end
        acted = []
        for i, drive in enumerate(self.problem.drives):
            rows = [x[i] for x in self.acted]
            missing = count - sum(map(len, rows))
            last = self._last(drive, float(t[-1]), states)
            rows += [np.broadcast_to(last, (1, *self.batch, *drive.shape))] * missing
            acted.append(np.concatenate(rows))
        return Record(t, states, tuple(acted), self.events)

    def _last(self, drive: Any, t: float, states: Arrays) -> FloatArray:
        """Return the value of a drive in the last recorded state."""
        seen, k = tuple(x[-1] for x in states), int(t / self.timing.h * (1.0 + 1e-12))
        try:
            value: FloatArray = drive.at(k, t, seen, self.batch)
        except SimulationError:  # results of laws for states that are not finite are undefined
            value = np.full(drive.shape, np.nan)
        return value
