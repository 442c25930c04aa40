# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Mutation testing: how many small changes of the package does the quick suite find?

    python tools/mutants.py                     a sample of all rooms
    python tools/mutants.py --only lie          all mutants of a folder or file, up to the count
    python tools/mutants.py --mutant lie/so3.py:55:12    one mutant, with its tests' output

A run has two parts. First, unless that is known from a run before, each test file runs in a process
of its own under coverage, which records how long each test takes and which lines it executes. Then
each mutant of the sample runs against the tests that execute its statement, the cheapest first, and
then against others of the same files. A mutant survives if all of them pass, or if ``BUDGET``
seconds of tests have passed.

Each mutant runs in a fork of a process that has imported what is slow to import, but nothing of the
package. The fork imports the changed module through a hook, so that no file is written. Kernels are
looked up in one cache on disk by the text of their code, hence a mutant that changes no kernel
compiles none. Processes that tests start do not see the mutant; tests in which only those execute a
line do not count for it.

Some forks change nothing. They must survive, else tests fail by themselves.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mutant_runs import (
    BUDGET,
    PACKAGE,
    ROOMS,
    STORE,
    TESTS,
    TestFile,
    batches,
    in_forks,
    log_of,
    module_of,
    prepare,
    record,
    try_mutant,
)
from mutant_sites import Mutant, mutants

KNOWN = TESTS / "mutants.md"
KILLERS = STORE / "killers.json"
COUNT, LEAST_PER_ROOM, CONTROLS = 600, 30, 12
SEED = 20261123
REQUIRED = 0.95
WORDS = {0: "survived", 1: "killed", 98: "error", 99: "error", -signal.SIGALRM: "timeout"}
"""Meaning of the status of a fork; any other is that of a crash."""


def room_of(file: str) -> str:
    """Return the folder that a file is counted for."""
    return next(room for room in ROOMS if file.startswith(room + "/"))


def sample(every: list[Mutant], count: int, seed: int) -> list[Mutant]:
    """Return mutants at random, from each room in proportion, but not too few.

    By a checksum of each: most of the sample stays when the package changes.
    """

    def draw(mutant: Mutant) -> str:
        return hashlib.sha256(f"{seed} {mutant.key}".encode()).hexdigest()

    rooms = [[m for m in every if room_of(m.file) == room] for room in ROOMS]
    rooms = [sorted(own, key=draw) for own in rooms if own]
    least = min(LEAST_PER_ROOM, count // max(1, len(rooms)))
    shares = [max(least, round(count * len(own) / len(every))) for own in rooms]
    chosen = [m for own, share in zip(rooms, shares, strict=True) for m in own[:share]]
    return sorted(chosen, key=draw)


def known_survivors(text: str) -> set[tuple[str, str, str]]:
    """Return file, function and change of the survivors that a list gives a reason for."""
    return set(re.findall(r"^- `([^`]+)` `([^`]*)`: `([^`]+)`", text, re.MULTILINE))


class Trials:
    """Mutants of the package, and the tests to try them on."""

    def __init__(self, budget: float) -> None:
        self.budget = budget
        self.trees: dict[str, ast.Module] = {}
        self.mutants: list[Mutant] = []
        for path in sorted(path for room in ROOMS for path in (PACKAGE / room).rglob("*.py")):
            file = str(path.relative_to(PACKAGE))
            self.trees[file], made = mutants(path.read_text(), file)
            self.mutants += made
        self.record = record()
        self.killers: dict[str, str] = json.loads(KILLERS.read_text()) if KILLERS.exists() else {}

    def run(self, chosen: list[Mutant], changed: bool = True) -> list[tuple[Mutant, str]]:
        """Return what became of mutants, or of as many copies without a change."""
        outcomes = []
        for (mutant, verdict, began), status in in_forks(self._task(m, changed) for m in chosen):
            word = WORDS.get(status, "crashed")
            by = "" if word == "survived" else f" by {verdict.read_text()}"
            where = f"{mutant.id} {mutant.function}: {mutant.change}" if changed else mutant.id
            took = time.monotonic() - began
            print(f"{'' if changed else 'unchanged '}{word} {where}{by} [{took:.1f} s]", flush=True)
            outcomes.append((mutant, word))
            if changed and word == "killed":
                self.killers[str(mutant.key)] = verdict.read_text()
                KILLERS.write_text(json.dumps(self.killers))
        return outcomes

    def _task(self, mutant: Mutant, changed: bool) -> tuple[Any, Callable[[], int], Path]:
        tree = self.trees[mutant.file]
        tests = batches(mutant, tree, self.record, self.budget)
        killer = self.killers.get(str(mutant.key), "")
        if killer in self.record.get(killer.split("::")[0], TestFile()).durations:
            tests.insert(0, (0.0, [killer]))  # found it the last time
        mutant.put(changed)
        code = compile(ast.fix_missing_locations(tree), str(PACKAGE / mutant.file), "exec")
        mutant.put(False)
        log = log_of(mutant.id if changed else f"unchanged {mutant.id}")
        verdict = log.with_suffix(".verdict")
        verdict.write_text("no test")
        module = module_of(mutant.file)
        work = lambda: try_mutant(code, module, tests, verdict)  # noqa: E731
        return (mutant, verdict, time.monotonic()), work, log


def report(outcomes: list[tuple[Mutant, str]]) -> float:
    """Print what became of the mutants of each room, and who survived; return the share killed."""
    print(f"\n{'room':18}  killed timeout crashed survived   error percent")
    rooms = [
        (room, [(m, word) for m, word in outcomes if room_of(m.file) == room]) for room in ROOMS
    ]
    share = 0.0
    for room, own in [*rooms, ("all", outcomes)]:
        counts = Counter(word for _, word in own)
        share = (counts["killed"] + counts["timeout"] + counts["crashed"]) / max(1, len(own))
        columns = [counts[w] for w in ("killed", "timeout", "crashed", "survived", "error")]
        if own:
            print(f"{room:18}", *(f"{n:7}" for n in columns), f"{100 * share:7.1f}")
    for mutant, word in sorted(outcomes, key=lambda pair: (pair[0].file, pair[0].line)):
        if word in ("survived", "error"):
            print(f"- `{mutant.file}` `{mutant.function}`: `{mutant.change}` ({mutant.id})")
    return share


def main() -> int:
    parser = argparse.ArgumentParser(description="Mutation testing of the quick suite.")
    parser.add_argument("--count", type=int, default=COUNT, help="about as many mutants")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", default="", help="folder or file in mbs_dynamics")
    parser.add_argument("--mutant", nargs="+", help="by their ids; prints the tests' output")
    parser.add_argument("--budget", type=float, default=BUDGET, help="seconds to survive")
    arguments = parser.parse_args()
    start = time.monotonic()
    prepare()
    trials = Trials(arguments.budget)
    if arguments.mutant:
        outcomes = trials.run([m for m in trials.mutants if m.id in arguments.mutant])
        print(*(log_of(mutant.id).read_text() for mutant, _ in outcomes))
        return int(any(word == "survived" for _, word in outcomes))
    of_these = [m for m in trials.mutants if m.file.startswith(arguments.only)]
    chosen = sample(of_these, arguments.count, arguments.seed)
    listed = known_survivors(KNOWN.read_text()) if KNOWN.exists() else set()
    tried = [mutant for mutant in chosen if mutant.key not in listed]
    print(
        f"{len(chosen)} of {len(of_these)} mutants, chosen with seed {arguments.seed}; "
        f"{len(chosen) - len(tried)} of them are listed in {KNOWN.name} and left out",
        flush=True,
    )
    unfit = [m for m, word in trials.run(tried[:CONTROLS], changed=False) if word != "survived"]
    share = report(trials.run(tried))
    print(f"seed {arguments.seed}, {time.monotonic() - start:.0f} s; {REQUIRED:.0%} are required")
    print(f"{len(unfit)} of {len(tried[:CONTROLS])} unchanged copies failed; none may")
    return int(share < REQUIRED or bool(unfit))


if __name__ == "__main__":
    sys.exit(main())
