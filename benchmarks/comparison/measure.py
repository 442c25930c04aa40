# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Timing of two versions in turn: every request to one is followed by the same to the other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from benchmarks.comparison.bounds import COMPILED, ONE, Result, batch_of
from benchmarks.comparison.cases import Job
from benchmarks.comparison.processes import CaseError, Versions, Worker

OLD, NEW = "old", "new"

SAMPLE = 2.5e6
"""Nanoseconds that one sample lasts at least."""

LONGEST = 0.5e9
"""Nanoseconds after which a sitting makes no further rounds of a call that is slow."""

SITTINGS = 3

QUICKLY = 0.3
"""Seconds; what compiles in less is compiled anew in each sitting."""

LARGEST_RESULT = 1 << 27
"""Bytes; where results of so many states would be larger, there are fewer states."""

AGREEMENT = 1e-6
"""Largest difference of the results of two versions, relative to the larger one."""

Workers = Mapping[str, Worker]
Least = dict[str, dict[str, float]]
"""Seconds by what is measured and by worker."""


@contextmanager
def workers(versions: Versions) -> Iterator[Workers]:
    """Yield a process for each version."""
    with ExitStack() as stack:
        yield {
            key: stack.enter_context(Worker(version))
            for key, version in ((OLD, versions.old), (NEW, versions.new))
        }


def measure(job: Job, among: Workers, rounds: int) -> Iterator[Result]:
    """Yield what the versions take for one job: the least of several sittings.

    The same code may be slower by half for as long as it stays where it is in memory. So each
    sitting has new arrays and, unless that takes long, compiles anew.
    """
    blank = Result(job.mechanism.name, job.mechanism.kind, job.subject.label, COMPILED)
    least: Least = {}
    asked = {
        COMPILED: job.compiled,
        ONE: job.one_state,
        **dict.fromkeys(map(batch_of, job.batches), True),
    }
    failed = ""
    faults: Mapping[str, str] = {}
    try:
        for sitting in range(SITTINGS if job.one_state or job.batches else 1):
            if not sitting or max(least[COMPILED].values()) < QUICKLY:
                size = _prepare(job, among, least, anew=sitting > 0)
            for what, states in _calls(job, size):
                failed = what
                _call(among, what, states, math.ceil(rounds / SITTINGS), least)
    except _FailedError as failure:
        faults = failure.faults
    for what in (what for what, wanted in asked.items() if wanted):
        if faults and (what not in least or what == failed):
            yield _failure(replace(blank, what=what), faults)
        elif what in least:
            yield replace(blank, what=what, old=least[what][OLD], new=least[what][NEW])


class _FailedError(Exception):
    """A request that failed: what it says, by worker."""

    def __init__(self, faults: Mapping[str, str]) -> None:
        super().__init__()
        self.faults = faults


def _prepare(job: Job, among: Workers, least: Least, *, anew: bool) -> int:
    """Compile in every process. Return the number of entries of the result."""
    answers = _ask(
        among,
        "prepare",
        mechanism=job.mechanism.description,
        function=job.subject.function,
        options=job.subject.options,
        anew=anew,
    )
    for key, answer in answers.items():
        _keep(least, COMPILED, key, answer["seconds"])
    size: int = answers[NEW]["size"]
    return size


def _calls(job: Job, size: int) -> Iterator[tuple[str, int]]:
    """Yield what is called, and with how many states, 0 for one; as many as the results allow."""
    if job.one_state:
        yield ONE, 0
    few = 0
    for states in job.batches:
        count = min(states, LARGEST_RESULT // (8 * size))
        if count > few:  # else it is the batch before
            yield batch_of(states), count
        few = count


def _call(among: Workers, what: str, states: int, rounds: int, least: Least) -> None:
    """Time one call in both processes in turn, there and back again."""
    answers = _ask(among, "call", states=states)
    if not _agree(answers[OLD]["digest"], answers[NEW]["digest"]):
        raise _FailedError({NEW: "its results differ"})
    one, number = {}, {}
    for key, worker in among.items():
        one[key] = min(worker.ask("sample", number=1)["nanoseconds"] for _ in range(3))
        number[key] = max(1, round(SAMPLE / one[key]))
    one_round = 2.0 * sum(number[key] * one[key] for key in among)
    order = [*among, *reversed([*among])]
    for _ in range(min(rounds, math.ceil(LONGEST / one_round))):
        for key in order:
            taken = among[key].ask("sample", number=number[key])["nanoseconds"]
            _keep(least, what, key, 1e-9 * taken / max(1, states))


def _ask(among: Workers, do: str, **values: Any) -> dict[str, dict[str, Any]]:
    """Return the answers of all. Raises _FailedError if a request failed."""
    answers, faults = {}, {}
    for key, worker in among.items():
        try:
            answers[key] = worker.ask(do, **values)
        except CaseError as error:
            faults[key] = str(error)
    if faults:
        raise _FailedError(faults)
    return answers


def _keep(least: Least, what: str, key: str, seconds: float) -> None:
    known = least.setdefault(what, {})
    known[key] = min(seconds, known.get(key, math.inf))


def _failure(blank: Result, faults: Mapping[str, str]) -> Result:
    """Return a result without times; it is a fault only if the other version can do it."""
    if set(faults) == {NEW}:
        return replace(blank, fault=f"now: {faults[NEW]}")
    reasons = "; ".join(f"{key}: {text}" for key, text in faults.items())
    return replace(blank, left_out=reasons)


def _agree(a: Sequence[float], b: Sequence[float]) -> bool:
    if len(a) != len(b):
        return False
    largest = max(map(abs, (*a, *b)), default=0.0)
    return all(
        abs(x - y) <= AGREEMENT * largest or (math.isnan(x) and math.isnan(y))
        for x, y in zip(a, b, strict=True)
    )
