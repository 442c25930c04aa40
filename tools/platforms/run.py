# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The platforms: a virtual environment for each, the package installed into it, the smoke test.

    make platforms                        every row
    make platforms ROWS="3.14 kilted"     rows by name, or by how the name starts
    make arm                              64-bit ARM, in emulation

or ``python3 tools/platforms/run.py``, which needs nothing but Python. A row whose Python or wheels
cannot be had is not available; that is said with the reason, and is no failure. Everything is kept
in .venv/platforms; ``make clean`` deletes it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import debian
from debian import NotAvailableError
from environments import PLACE, ROOT, Row, environment, install, interpreter, wheel

SMOKE = ROOT / "test" / "smoke"
VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14", "3.15")
WITH_ROS = VERSIONS[:5]
"""Those that wheels of ROS 2 exist for."""
ROS = ("jazzy", "kilted")
SECONDS_OF_SMOKE = 600.0
SECONDS_IN_EMULATION = 3600.0

ARM_SUITE, ARM_VERSION = "trixie", "3.13"
ARM_TESTS = (
    "test_kernel",
    "test_kernel_batch",
    "test_kernel_iterate",
    "test_native_batches",
    "test_native_call",
    "test_native_results",
    "test_dispatch",
)
"""Files of tests that run in emulation after the smoke test: batches, and calls of all kinds."""


ROWS = (
    *(Row(version, version, quick=version >= "3.13") for version in VERSIONS),
    Row("lowest", VERSIONS[0], lowest=True, quick=True),
    Row("without-llvmlite", "3.12", extras=()),
    *(
        Row(f"{ros}-{version}", version, ros=ros, quick=(ros, version) == ("kilted", "3.12"))
        for ros in ROS
        for version in WITH_ROS
    ),
)


@dataclass
class Result:
    """Outcome of a row."""

    row: Row
    state: str = "passed"
    reason: str = ""
    found: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0


def smoke(command: Sequence[Any], result: Result, seconds: float, **given: Any) -> None:
    """Run the smoke test and note what it finds."""
    PLACE.mkdir(parents=True, exist_ok=True)
    written, log = (PLACE / f"{result.row.name}.{kind}" for kind in ("json", "log"))
    written.unlink(missing_ok=True)
    expected = [word for name in result.row.expected for word in ("--expect", name)]
    with log.open("w") as output, tempfile.TemporaryDirectory() as elsewhere:
        try:
            done = subprocess.run(
                [*map(str, command), str(SMOKE), *expected, "--json", str(written)],
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=elsewhere,
                timeout=seconds,
                **given,
            )
            ended = f"it ended with {done.returncode}"
        except subprocess.TimeoutExpired:
            ended = f"it did not end in {seconds:.0f} s"
    if not written.exists():
        result.state, result.reason = "FAILED", f"{ended}: see {log.relative_to(ROOT)}"
        return
    result.found = json.loads(written.read_text())
    failed = result.found["failed"]
    if failed:
        result.state = "FAILED"
        first = next(iter(failed))
        result.reason = f"{first}: {failed[first].splitlines()[0]}"


def run(row: Row, package: Path, download: bool) -> Result:
    """Make an environment and run the smoke test in it."""
    result, start = Result(row), time.monotonic()
    try:
        python = install(row, package, interpreter(row.version, download))
    except NotAvailableError as error:
        result.state, result.reason = "not available", str(error)
    else:
        smoke([python], result, SECONDS_OF_SMOKE, env=environment())
    result.seconds = time.monotonic() - start
    told = f": {result.reason}" if result.reason else ""
    print(f"platforms: {row.name} {result.state}, {result.seconds:.0f} s{told}", flush=True)
    return result


def run_emulated(package: Path) -> Result:
    """Run the smoke test and some tests on 64-bit ARM, in emulation."""
    row = Row("arm64", ARM_VERSION)
    result, start = Result(row), time.monotonic()
    root = PLACE / f"debian-arm64-{ARM_VERSION}"
    tests = [path for name in ARM_TESTS for path in (ROOT / "test").rglob(f"{name}.py")]
    try:
        if debian.own_architecture() == "arm64":
            raise NotAvailableError("this processor is 64-bit ARM itself: make test")
        print(f"arm: Python {ARM_VERSION} of Debian {ARM_SUITE} for arm64, in qemu", flush=True)
        python = debian.interpreter(ARM_VERSION, root, ARM_SUITE, "arm64")
        own = install(row, package, python, emulated=True)
    except NotAvailableError as error:
        result.state, result.reason = "not available", str(error)
        return result
    # What a C compiler of this machine makes does not run in the emulation: none is to be found.
    given = {"env": {**environment(), "PATH": str(own.parent)}}
    print("arm: the smoke test, some minutes", flush=True)
    smoke([own], result, SECONDS_IN_EMULATION, **given)
    print((PLACE / "arm64.log").read_text(), flush=True)
    print(f"arm: {', '.join(path.name for path in tests)}", flush=True)
    command = [own, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    code = subprocess.run([str(word) for word in command], cwd=ROOT, **given).returncode
    if len(tests) < len(ARM_TESTS) or code:
        result.state = "FAILED"
        result.reason = result.reason or "tests fail or are missing, see above"
    result.seconds = time.monotonic() - start
    return result


def table(results: Sequence[Result]) -> str:
    """Return the results as text in columns."""
    head = ("platform", "Python", "NumPy", "llvmlite", "called by", "call", "took", "result")
    lines = [head]
    for result in results:
        versions = result.found.get("versions", {})
        remark = result.found.get("remarks", {}).get("call", "")
        called = "machine code" if "native" in remark else "Python" if remark else "-"
        time_of_call = result.found.get("microseconds")
        lines.append(
            (
                result.row.name,
                versions.get("Python", result.row.version),
                versions.get("NumPy", "-"),
                versions.get("llvmlite", "-"),
                called,
                f"{time_of_call:.2f} us" if time_of_call else "-",
                f"{result.seconds:.0f} s",
                result.state,
            )
        )
    widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
    text = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
    text += [f"{r.row.name}: {r.reason}" for r in results if r.reason]
    return "\n".join(text)


def chosen(words: Sequence[str]) -> list[Row]:
    """Return the rows that words name, each by its name or by the start of it."""
    unknown = [word for word in words if not any(named(row, word) for row in ROWS)]
    if unknown:
        sys.exit(
            f"platforms: there is no {', '.join(unknown)}; there are "
            f"{', '.join(row.name for row in ROWS)}, or the start of such a name"
        )
    return [row for row in ROWS if not words or any(named(row, word) for word in words)]


def named(row: Row, word: str) -> bool:
    """Whether a word names a row."""
    return row.name == word or row.name.startswith(f"{word}-")


def main() -> int:
    """Run the rows and print the table; return 1 if a row failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("rows", nargs="*", help="names of rows, or starts of names")
    parser.add_argument(
        "--at-hand",
        action="store_true",
        help="a few rows, of Pythons that are installed; none is downloaded",
    )
    parser.add_argument("--arm", action="store_true", help="64-bit ARM in emulation, and no row")
    parser.add_argument("--wheel", type=Path, help="the wheel to install; by default one is built")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    given = parser.parse_args()
    rows = chosen(given.rows)
    if given.at_hand and not given.rows:
        rows = [row for row in rows if row.quick]
    try:
        package = given.wheel or wheel()
    except NotAvailableError as error:
        sys.exit(f"platforms: {error}\nplatforms: no platform can be tested without the package")
    if given.arm:
        results = [run_emulated(package)]
    else:
        with ThreadPoolExecutor(given.jobs) as pool:
            results = list(pool.map(lambda row: run(row, package, not given.at_hand), rows))
    print(table(results))
    return int(any(result.state == "FAILED" for result in results))


if __name__ == "__main__":
    sys.exit(main())
