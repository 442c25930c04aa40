# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""The platforms: a virtual environment for each, the package installed into it, the smoke test.

    make platforms                        every row
    make platforms ROWS="3.14 kilted"     rows by name, or by how the name starts
    make arm                              64-bit ARM, in emulation

or ``python3 test/platforms/run.py``, which needs nothing but Python. A row whose Python or wheels
cannot be had is not available; that is said with the reason, and is no failure. Everything is kept
in .venv/platforms; ``make clean`` deletes it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import debian
from debian import NotAvailableError

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / ".venv" / "platforms"
SMOKE = ROOT / "test" / "smoke"
SOURCES = (
    "LICENSE",
    "config",
    "launch",
    "mbs_dynamics",
    "package.xml",
    "pyproject.toml",
    "resource",
    "setup.cfg",
    "setup.py",
    "urdf",
)
"""What the wheel is made from."""

VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14", "3.15")
WITH_ROS = VERSIONS[:5]
"""Those that wheels of ROS 2 exist for."""
ROS = ("jazzy", "kilted")
BINARY = "numpy,llvmlite,lxml"
"""What takes long to build, or more tools than there are: an old version is no use then either."""
SECONDS_OF_SMOKE = 600.0
SECONDS_IN_EMULATION = 3600.0

ARM = "arm64"
ARM_SUITE, ARM_VERSION = "trixie", "3.13"
ARM_TAGS = ("manylinux_2_28_aarch64", "manylinux_2_27_aarch64", "manylinux2014_aarch64")
ARM_TESTS = ("test_kernel", "test_kernel_batch", "test_native_call", "test_native_batches")
"""Test files that run in emulation beside the smoke test."""


@dataclass(frozen=True)
class Row:
    """A platform: a Python, what is installed beside the package, and what is expected of it."""

    name: str
    version: str
    extras: tuple[str, ...] = ("fast",)
    lowest: bool = False
    ros: str = ""
    quick: bool = False
    """Whether it is among those at hand that ``make test`` runs."""

    @property
    def expected(self) -> list[str]:
        """What the smoke test must find here."""
        return ["native"] * ("fast" in self.extras) + ["ros"] * bool(self.ros)


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
    """What became of a row."""

    row: Row
    state: str = "passed"
    reason: str = ""
    found: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0


def call(command: Sequence[Any], what: str, seconds: float | None = None, **given: Any) -> str:
    """Run a command and return its output; raise NotAvailableError with the end of it."""
    try:
        done = subprocess.run(
            [str(word) for word in command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds,
            **given,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotAvailableError(f"{what}: {error}") from None
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        told = [line for line in lines if line.startswith("ERROR")] or lines or ["it said nothing"]
        raise NotAvailableError(f"{what}: {told[-1].removeprefix('ERROR: ')}")
    return done.stdout


def environment() -> dict[str, str]:
    """Return the variables of a process that must not see what is sourced or set here."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "MBS_", "VIRTUAL"))}
    return {**kept, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}


# -- interpreters ----------------------------------------------------------------------------------


def works(python: Path | str, version: str) -> bool:
    """Whether this is an ordinary CPython of that version that can make virtual environments."""
    code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2], sys.abiflags)"
    try:
        found = call([python, "-c", code], "", 60.0, env=environment())
    except NotAvailableError:
        return False
    return found.split() == [version]


def at_hand(version: str) -> Path | None:
    """Return a Python of this version that is installed, if there is one."""
    named = shutil.which(f"python{version}")
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    installed = sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"))
    unpacked = PLACE / f"debian-{version}" / "bin" / f"python{version}"
    for python in (sys.executable, named, *reversed(installed), unpacked):
        if python and works(python, version):
            return Path(python)
    return None


unpacking = threading.Lock()


def interpreter(version: str, download: bool) -> Path:
    """Return a Python of this version: one that is installed, else Debian's, unpacked."""
    with unpacking:
        python = at_hand(version)
        if python is None and download:
            print(f"platforms: unpacking Python {version} from Debian", flush=True)
            python = debian.interpreter(version, PLACE / f"debian-{version}")
    if python is None:
        raise NotAvailableError(f"there is no python{version} on PATH or in pyenv, or without venv")
    return python


# -- what is installed -----------------------------------------------------------------------------


def digest(paths: Sequence[Path]) -> str:
    """Return a short name for the contents of files."""
    found = hashlib.sha256()
    for path in paths:
        found.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return found.hexdigest()[:12]


def wheel() -> Path:
    """Return a wheel of the package as it is in the checkout; built if it is not that of before."""
    files = [
        path
        for name in SOURCES
        for path in sorted((ROOT / name).rglob("*") if (ROOT / name).is_dir() else [ROOT / name])
        if path.is_file() and "__pycache__" not in path.parts
    ]
    folder = PLACE / "wheels" / digest(files)
    if not list(folder.glob("*.whl")):
        shutil.rmtree(folder.parent, ignore_errors=True)
        with tempfile.TemporaryDirectory() as copy:
            for path in files:
                target = Path(copy) / path.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target)
            builder = virtual_environment(PLACE / "builder", Path(sys.executable))
            call(
                [builder, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", folder, copy],
                "the package cannot be built",
                env=environment(),
            )
    return next(folder.glob("*.whl"))


def virtual_environment(folder: Path, python: Path) -> Path:
    """Return the Python of a virtual environment, made unless it is there and works."""
    own = folder / "bin" / "python"
    if not (own.exists() and (folder / ".made").exists()):
        shutil.rmtree(folder, ignore_errors=True)
        call([python, "-m", "venv", folder], f"{python} cannot make a venv", env=environment())
        (folder / ".made").touch()
    return own


def requirements(package: Path, row: Row) -> list[str]:
    """Return what is installed beside the package; of the lowest versions if the row says so."""
    with zipfile.ZipFile(package) as files:
        name = next(name for name in files.namelist() if name.endswith("/METADATA"))
        metadata = files.read(name).decode()
    wanted = []
    for line in re.findall(r"^Requires-Dist: (.*)$", metadata, re.MULTILINE):
        requirement, _, marker = (part.strip() for part in line.partition(";"))
        extra = re.search(r"extra == ['\"](\w+)['\"]", marker)
        if extra is None or extra[1] in row.extras:
            wanted.append(requirement.replace(">=", "==") if row.lowest else requirement)
        elif extra[1] == "ros" and row.ros:
            wanted.append(requirement.replace("-jazzy-", f"-{row.ros}-"))
    return wanted


def install(row: Row, package: Path, python: Path) -> Path:
    """Return the Python of the row's environment, with the package and what it needs in it."""
    folder = PLACE / row.name
    wanted = requirements(package, row)
    done = folder / ".installed"
    if not done.exists() or done.read_text() != "\n".join([str(python), *wanted]):
        shutil.rmtree(folder, ignore_errors=True)
    own = virtual_environment(folder, python)
    pip = [own, "-m", "pip", "install", "--quiet"]
    if not done.exists():
        what = f"{', '.join(wanted)} for Python {row.version}"
        call([*pip, f"--only-binary={BINARY}", *wanted], what, env=environment())
        done.write_text("\n".join([str(python), *wanted]))
    command = [*pip, "--no-deps", "--force-reinstall", package]
    call(command, "the package cannot be installed", env=environment())
    return own


# -- the rows --------------------------------------------------------------------------------------


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
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    given = parser.parse_args()
    rows = chosen(given.rows)
    if given.at_hand and not given.rows:
        rows = [row for row in rows if row.quick]
    try:
        package = wheel()
    except NotAvailableError as error:
        print(f"platforms: {error}\nplatforms: without it no platform can be tested")
        return 1
    with ThreadPoolExecutor(given.jobs) as pool:
        results = list(pool.map(lambda row: run(row, package, not given.at_hand), rows))
    print(table(results))
    return int(any(result.state == "FAILED" for result in results))


if __name__ == "__main__":
    sys.exit(main())
