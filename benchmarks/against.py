# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Compare the working tree with another revision, and judge the bounds of speed and of compilation.

Each version runs in a separate process, on the same Python and NumPy, and they are timed in turn.
Results that break a bound are measured again, with more rounds and in new processes. The exit code
is 1 if a bound is broken, 2 if the comparison could not be made.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.comparison import cases, measure, tables
from benchmarks.comparison.bounds import BROKEN, Result, merged, suspects, verdicts
from benchmarks.comparison.processes import ComparisonError, Versions, installed
from benchmarks.report import conditions

ROUNDS, QUICK_ROUNDS = 15, 5
"""Each round takes two samples of each version."""

REPETITIONS = 5
"""How often what breaks a bound is measured again, each time in new processes.

Where a process places code and data makes kernels of 50 ns up to 1.15 times as slow in one as in
another of the same version; the least of several is taken.
"""

MORE = 3
"""Times as many rounds when it is."""


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the arguments of the command line, checked."""
    parser = argparse.ArgumentParser("python -m benchmarks.against", description=__doc__)
    parser.add_argument("revision", help="a commit, such as aebfed4 or HEAD~3")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="the functions that are used most, few rounds, no batches of 10,000: three minutes",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="NAME",
        help="parts (compile, one-state, batches), mechanisms and functions; all by default",
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="keep the result as a page")
    parsed = parser.parse_args(given)
    unknown = [name for name in parsed.only if name not in cases.choices()]
    if unknown:
        parser.error(f"--only: no {unknown[0]!r}; there are: {', '.join(cases.choices())}")
    if parsed.write and not parsed.write.parent.is_dir():
        parser.error(f"--write: there is no folder {parsed.write.parent}")
    return parsed


def main(given: Sequence[str] | None = None) -> int:
    """Compare, print, and return the exit code."""
    asked = arguments(given)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # tidies up
    try:
        with installed(asked.revision) as versions:
            selection = cases.Selection(asked.quick, asked.only)
            mechanisms = cases.mechanisms(versions.new.folder, quick=asked.quick)
            jobs = list(selection.jobs(mechanisms))
            if not jobs:
                raise ComparisonError("--only names nothing but what --quick leaves out")
            heading = (
                f"# {versions.new.name} against {versions.old.name}\n\n"
                f"`python -m benchmarks.against {' '.join(given or sys.argv[1:])}`: ratios are the "
                f"time of the working tree divided by that of {versions.old.name}; times are the "
                f"least of all samples.\n\n{conditions()}\n"
            )
            print(heading, flush=True)
            results = _measured(versions, jobs, QUICK_ROUNDS if asked.quick else ROUNDS)
    except ComparisonError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    judged = verdicts(results)
    report = tables.report(results, judged)
    print(report)
    if asked.write:
        asked.write.write_text(f"{heading}\n{report}", encoding="utf-8")
    return int(any(verdict.state == BROKEN for verdict in judged))


def _measured(versions: Versions, jobs: Sequence[cases.Job], rounds: int) -> list[Result]:
    """Return the results of all jobs, with what breaks a bound measured again."""
    results: dict[tuple[str, str, str], Result] = {}
    with measure.workers(versions) as among:
        last = ""
        for job in jobs:
            if job.mechanism.name != last:
                last = job.mechanism.name
                _say(last)
            results |= {x.key: x for x in measure.measure(job, among, rounds)}
    for repetition in range(REPETITIONS):
        again = {(x.mechanism, x.subject) for x in suspects([*results.values()])}
        doubtful = [job for job in jobs if (job.mechanism.name, job.subject.label) in again]
        if not doubtful:
            break
        _say(f"what breaks a bound, once more ({repetition + 1}): {len(doubtful)}")
        with measure.workers(versions) as among:
            for job in doubtful:
                for result in measure.measure(job, among, MORE * rounds):
                    results[result.key] = merged(results[result.key], result)
    return [*results.values()]


def _say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
