# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Run the tests that may depend on load, many times beside busy loops, for `make flakes`.

These are the tests of nodes, and those of files in which clocks, signals or threads take part, or
processes that have to end in time. Those that need a quiet machine (`serial`) are left out. All
others compute the same whatever the load; no example of hypothesis has a deadline.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

TEST = Path(__file__).resolve().parents[1] / "test"
MODULES = "concurrent|multiprocessing|rclpy|signal|socket|threading|time|waiting"
TIMED = re.compile(rf"^\s*(import|from) ({MODULES})\b|\btimeout=", re.MULTILINE)
REPORT = re.compile(r"^=+ (ERRORS|FAILURES) =+$", re.MULTILINE)
BUSY = [sys.executable, "-c", "while True: pass"]


def main() -> int:
    """Run the rounds, print a line for each, and return 1 if a test failed in any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--busy", type=int, default=2, help="busy loops beside the tests")
    parser.add_argument("--workers", type=int, default=3 * (os.cpu_count() or 1), help="of pytest")
    parser.add_argument("--list", action="store_true", help="only print the files")
    options = parser.parse_args()
    files = [str(path.relative_to(TEST.parent)) for path in timed()]
    if options.list:
        print("\n".join(files))
        return 0
    failed: collections.Counter[str] = collections.Counter()
    with busy(options.busy):
        for k in range(options.rounds):
            last, names, why = one_round(files, options.workers)
            failed.update(names)
            print(f"{why}round {k + 1}: {last}", flush=True)
    for name, times in failed.most_common():
        print(f"failed {times} of {options.rounds} times: {name}")
    return 1 if failed else 0


def timed() -> list[Path]:
    """Return the files of tests that may depend on load."""
    files = []
    for path in sorted(TEST.rglob("test_*.py")):
        if "ros" in path.parts or TIMED.search(path.read_text(encoding="utf-8")):
            files.append(path)
    return files


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """Keep so many processors busy meanwhile."""
    loops = [subprocess.Popen(BUSY) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()


def one_round(files: list[str], workers: int) -> tuple[str, list[str], str]:
    """Return pytest's last line, the tests that failed, and what it says of them."""
    several = [f"--numprocesses={workers}", "--dist=worksteal"]
    quick = ["-m", "not slow and not serial"]
    command = [sys.executable, "-m", "pytest", "-q", *several, *quick, *files]
    done = subprocess.run(command, cwd=TEST.parent, capture_output=True, text=True)
    lines = done.stdout.strip().splitlines() or [done.stderr.strip()[-500:]]
    failed = [x.split(" - ")[0] for x in lines if x.startswith(("FAILED ", "ERROR "))]
    if done.returncode not in (0, 1, 5) and not failed:
        failed = [f"pytest ended with {done.returncode}: {lines[-1]}"]
    summary = REPORT.search(done.stdout)
    why = done.stdout[summary.start() :] + "\n" if failed and summary else ""
    return lines[-1].strip("= "), failed, why


if __name__ == "__main__":
    sys.exit(main())
