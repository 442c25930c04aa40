# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The driver of all simulations: steps, events, progress, and the record up to a failure."""

from __future__ import annotations

import math
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
"""Share of a duration up to which its difference from a whole number of steps counts as rounding.
"""

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
        """Return the course for the arguments of a simulation, or raise ArgumentError."""
        h, total = checks.positive("step", step), checks.number("duration", duration)
        if not 0.0 < total <= 1e9 * h:
            raise ArgumentError(
                f"duration must be positive and at most 1e9 steps of {h:g} s; got {total:g} s"
            )
        stored, steps = checks.count("every", every), math.ceil(total / h * (1.0 - WHOLE))
        return cls(h, steps, total, stored, Watch(events, stop), progress)

    @property
    def whole(self) -> bool:
        """Whether the duration is a whole number of steps, to rounding."""
        return abs(self.steps * self.h - self.duration) <= WHOLE * self.duration

    def length(self, k: int) -> float:
        """Return the length of step k in s: the last one ends with the duration."""
        last = k == self.steps - 1 and not self.whole
        return self.duration - k * self.h if last else self.h


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
        course: TimeSteps,
        problem: Problem,
        method: str,
        interpolated: Interpolation,
    ) -> None:
        self.course, self.problem, self.method = course, problem, method
        self.batch, self.interpolated = problem.start[0].shape[:-1], interpolated
        self.steps = 0
        self.end: float | None = None
        """Time at which all simulations have stopped; None while any is running."""
        self.states: list[Arrays] = [tuple(x[None] for x in problem.start)]
        self.acted: list[Arrays] = []
        self.events: list[Event] = []
        self._running = np.ones(self.batch, dtype=bool)

    def go(self, made: Callable[[], Scheme], result: Callable[[Record], Result]) -> Result:
        """Make the scheme, advance it, and return the result of the record.

        Raises SimulationError, which carries the result up to the failure.
        """
        progress = Progress(self.course.duration, self.course.progress)
        with np.errstate(over="ignore", invalid="ignore"):  # reported by SimulationError
            try:
                self._go(made, progress)
            except SimulationError as error:
                error.motion = result(self._record())
                raise
            finally:
                progress.close()
            return result(self._record())

    def _go(self, made: Callable[[], Scheme], progress: Progress) -> None:
        h, watch = self.course.h, self.course.watch
        try:
            scheme = made()
            watch.begin(0.0, scheme.seen(scheme.x), self.batch)
            # laws are not evaluated beyond a stop; each member of a batch ends at its own
            single = watch and (self.problem.laws or (watch.stops and self.batch))
            while self.steps < self.course.steps and self.end is None:
                left = self.course.steps - self.steps
                count = 1 if single else min(CHUNK, left if self.course.whole else max(left - 1, 1))
                scheme.step = self.course.length(self.steps)
                self._advance(scheme, count)
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
        if self.course.watch and good:
            states, good = self._watched(scheme, before, states, good)
        if good:
            self._keep(scheme.seen(states[:good]), acted, good)
            self.steps += good
        if self.end is None and good < len(states):
            t, h = self.steps * self.course.h, self.course.length(self.steps)
            raise SimulationError(
                f"{self.method}: the state is not finite after the step of {h:g} s from "
                f"t = {t:.9g} s; take smaller steps, or see what accelerates",
                time=t,
            )

    def _keep(self, states: Arrays, acted: Arrays, count: int) -> None:
        """Record every ``every``-th state and the values of the drives then."""
        begin = self.steps + np.arange(count)
        begun, picked = begin % self.course.every == 0, (begin + 1) % self.course.every == 0
        if self.steps + count == self.course.steps and self.end is None:
            self.end = self.course.duration
        picked[-1] |= self.end is not None  # the end is always recorded
        self.states.append(tuple(x[picked] for x in states))
        kept = []
        for drive, x in zip(self.problem.drives, acted, strict=True):
            inner = (1,) * (len(self.batch) - (x.ndim - 1 - len(drive.shape)))  # one for all
            x = x.reshape(len(x), *inner, *x.shape[1:])
            x = x if len(x) == 1 else x[:count]
            kept.append(np.broadcast_to(x, (count, *self.batch, *drive.shape))[begun])
        self.acted.append(tuple(kept))

    def _watched(
        self, scheme: Scheme, before: FloatArray, states: FloatArray, good: int
    ) -> tuple[FloatArray, int]:
        """Look for events in the first ``good`` steps; return the states up to the last stop."""
        watch, seen = self.course.watch, scheme.seen
        path = seen(np.concatenate([before[None], states[:good]]))
        for k in range(good):
            t, h = (self.steps + k) * self.course.h, self.course.length(self.steps + k)
            pair = (tuple(x[k] for x in path), tuple(x[k + 1] for x in path))
            events = watch.between(t, *pair, h, self.interpolated)
            self.events += events
            stopped = [event for event in events if event.name == STOP]
            if stopped:
                states = states[: k + 1].copy()
                states[k] = self._stopped(scheme, states[k], stopped)
                if not self._running.any():
                    self.end = stopped[-1].t if not self.batch else t + h
                return states, k + 1
        return states, good

    def _stopped(self, scheme: Scheme, x: FloatArray, stopped: list[Event]) -> FloatArray:
        """Return the array x with stopped simulations at their stop, and hold these."""
        state = tuple(np.array(part) for part in scheme.seen(x))
        members = np.zeros(self.batch, dtype=bool)
        for event in stopped:
            members[event.member] = True
            for part, value in zip(state, (event.q, event.qd), strict=True):
                part[event.member] = value
        self._running &= ~members
        mask = members.reshape(members.shape + (1,) * scheme.states.axes)
        x = np.where(mask, scheme.pack(*state), x)
        if self._running.any():
            scheme.hold(~self._running, x)
        return x

    def _record(self) -> Record:
        states = tuple(np.concatenate(x) for x in zip(*self.states, strict=True))
        h, every, count = self.course.h, self.course.every, len(states[0])
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
        seen, k = tuple(x[-1] for x in states), int(t / self.course.h * (1.0 + 1e-12))
        try:
            value: FloatArray = drive.at(k, t, seen, self.batch)
        except SimulationError:  # results of laws for states that are not finite are undefined
            value = np.full(drive.shape, np.nan)
        return value
