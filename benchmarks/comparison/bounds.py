# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The bounds that a change of the compiler must keep, and what results say about them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from benchmarks.comparison.cases import BATCH_SIZES, CUBIC, FUNCTIONS, HUMANOIDS, LARGE

COMPILED, ONE = "compile", "one state"

OK, BROKEN, UNMEASURED = "OK", "BROKEN", "not measured"


def batch_of(states: int) -> str:
    """Return the name of what is measured with a batch."""
    return f"batch of {states}"


BATCHES = tuple(batch_of(states) for states in BATCH_SIZES)


@dataclass(frozen=True)
class Result:
    """Seconds of both versions, for a state or to compile; no times if something prevents it."""

    mechanism: str
    kind: str
    subject: str
    what: str
    old: float = math.nan
    new: float = math.nan
    fault: str = ""
    """Errors of the new version that the old one does not have."""
    left_out: str = ""
    """Why neither version can be measured, or only the new one."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Key that stays the same in repeated measurements."""
        return self.mechanism, self.subject, self.what

    @property
    def name(self) -> str:
        """The mechanism and the function."""
        return f"{self.mechanism}: {self.subject}"

    @property
    def ratio(self) -> float:
        """The time of the new version divided by that of the old one."""
        return self.new / self.old


@dataclass(frozen=True)
class Bound:
    """A limit on each of some results, or on their mean or sum."""

    title: str
    limit: float
    applies: Callable[[Result], bool]
    value: Callable[[Result], float] = lambda x: x.ratio
    over: Callable[[Iterable[float]], float] | None = None
    """Reduction over all values; None for a limit on each."""
    unit: str = "times"
    complete: int = 1
    """The least number of results that is judged."""


def mean(ratios: Iterable[float]) -> float:
    """Return the geometric mean."""
    logarithms = [math.log(x) for x in ratios]
    return math.exp(sum(logarithms) / len(logarithms))


def _of(kinds: str, what: Sequence[str]) -> Callable[[Result], bool]:
    return lambda x: (x.kind == LARGE) == (kinds == LARGE) and x.what in what


def _compiled(mechanisms: Sequence[str], left_out: Sequence[str] = ()) -> Callable[[Result], bool]:
    return lambda x: x.what == COMPILED and x.mechanism in mechanisms and x.subject not in left_out


def _seconds(x: Result) -> float:
    return x.new


def _fault(x: Result) -> float:
    return float(bool(x.fault))


PANDA = 0.064
"""Seconds of each function of the Panda, in the mean."""

WORKS = "every function: works where it did, with the same results"
CHAINS = "compilation: each function of a chain of 60, those in O(n^3) left out"
BOUNDS = (
    Bound(WORKS, 0.0, lambda x: True, _fault, unit="faults"),
    Bound("robots, one state: each function", 1.10, _of("", (ONE,))),
    Bound("robots, one state: geometric mean", 1.03, _of("", (ONE,)), over=mean),
    Bound("robots, batches: each function", 1.25, _of("", BATCHES)),
    Bound("robots, batches: geometric mean", 1.10, _of("", BATCHES), over=mean),
    Bound("chains and trees of 60 joints: each function", 2.0, _of(LARGE, (ONE,))),
    Bound(
        *("compilation: all functions of the Panda", PANDA * len(FUNCTIONS), _compiled(["Panda"])),
        *(_seconds, sum, "s", len(FUNCTIONS)),
    ),
    Bound(
        *("compilation: each function of a humanoid", 3.0, _compiled(HUMANOIDS), _seconds),
        unit="s",
    ),
    Bound(*(CHAINS, 20.0, _compiled(["chain of 60"], CUBIC), _seconds), unit="s"),
)


@dataclass(frozen=True)
class Verdict:
    """Verdict of the results on one bound."""

    bound: Bound
    state: str
    value: float | None = None
    """The mean, the sum or the worst."""
    worst: Result | None = None
    breaking: Sequence[Result] = ()
    """The results beyond a limit on each; all of a sum that is beyond its limit."""


def judge(bound: Bound, results: Iterable[Result]) -> Verdict:
    """Return the verdict of one bound."""
    everything = [x for x in results if bound.applies(x)]
    applying = [x for x in everything if not x.left_out]
    faults = [x for x in applying if x.fault]
    timed = [x for x in applying if not x.fault]
    if not applying or (len(everything) < bound.complete and not faults):
        return Verdict(bound, UNMEASURED)
    if not timed:
        return Verdict(bound, BROKEN, None, faults[0], faults)
    worst = max(timed, key=bound.value)
    if bound.over is None:
        value, breaking = bound.value(worst), [x for x in timed if bound.value(x) > bound.limit]
        broken = bool(breaking)
    else:
        value = bound.over([bound.value(x) for x in timed])
        broken = value > bound.limit
        breaking = timed if broken and bound.over is sum else []
    state = BROKEN if broken or faults else OK
    return Verdict(bound, state, value, worst, [*breaking, *faults])


def verdicts(results: Sequence[Result]) -> list[Verdict]:
    """Return the verdicts of all bounds."""
    return [judge(bound, results) for bound in BOUNDS]


def suspects(results: Sequence[Result]) -> list[Result]:
    """Return the results that break a bound, each once, in their order."""
    keys = {x.key for verdict in verdicts(results) for x in verdict.breaking if not x.fault}
    return [x for x in results if x.key in keys]


def merged(first: Result, again: Result) -> Result:
    """Return the least times of two measurements."""
    if again.fault or again.left_out:
        return again
    return replace(first, old=min(first.old, again.old), new=min(first.new, again.new))
