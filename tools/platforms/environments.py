# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Virtual environments with the package in them, for Pythons that are at hand or unpacked."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import debian
from debian import NotAvailableError

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / ".venv" / "platforms"
SOURCES = (
    "LICENSE",
    "README.md",
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
"""Sources of the wheel."""

BINARY = "numpy,llvmlite"
"""Packages never built from source; an old version that must be built is of no use either."""
ARM_WHEELS = [f"manylinux_2_{k}_aarch64" for k in (17, 26, 27, 28)] + ["manylinux2014_aarch64"]


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
        """Features that the smoke test must find here."""
        return ["native"] * ("fast" in self.extras) + ["ros"] * bool(self.ros)


UNREACHABLE = re.compile("NewConnectionError|NameResolutionError|ConnectTimeout|connection broken")


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
        if UNREACHABLE.search(done.stdout):
            told.append("pip reaches no package index")
        raise NotAvailableError(f"{what}: {told[-1].removeprefix('ERROR: ')}")
    return done.stdout


FOREIGN = ("AMENT_", "LD_LIBRARY_PATH", "MBS_", "PYTHON", "RMW_", "ROS_", "VIRTUAL_ENV", "_ROS_")
"""How variables begin that belong to the Python, the ROS 2 or the settings of who runs this."""


def environment() -> dict[str, str]:
    """Return the variables of a process that must not see what is sourced or set here."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {**kept, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}


# -- interpreters ----------------------------------------------------------------------------------


def works(python: Path | str, version: str) -> bool:
    """Whether this is an ordinary CPython of that version that can make virtual environments."""
    code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2], sys.abiflags)"
    try:
        called = call([python, "-c", code], "", 60.0, env=environment())
    except NotAvailableError:
        return False
    return called.split() == [version]


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
    total = hashlib.sha256()
    for path in paths:
        total.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return total.hexdigest()[:12]


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


def virtual_environment(folder: Path, python: Path, *options: str) -> Path:
    """Return the Python of a virtual environment, made unless it is there and works."""
    own = folder / "bin" / "python"
    if not (own.exists() and (folder / ".made").exists()):
        shutil.rmtree(folder, ignore_errors=True)
        call(
            [python, "-m", "venv", *options, folder],
            f"{python} cannot make a venv",
            env=environment(),
        )
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


def install(row: Row, package: Path, python: Path, emulated: bool = False) -> Path:
    """Return the Python of the row's environment, with the package and what it needs in it.

    With ``emulated`` a pip that runs on this processor fetches the wheels for the other one.
    """
    folder = PLACE / row.name
    wanted = [*requirements(package, row), *(["pytest", "hypothesis"] if emulated else [])]
    stamp, done = "\n".join([str(python), *wanted]), folder / ".installed"
    if not done.exists() or done.read_text() != stamp:
        shutil.rmtree(folder, ignore_errors=True)
    own = virtual_environment(folder, python, *(["--without-pip"] if emulated else []))
    pip = [own, "-m", "pip", "install", "--quiet", f"--only-binary={BINARY}"]
    if emulated:
        builder = virtual_environment(PLACE / "builder", Path(sys.executable))
        target = folder / "lib" / f"python{row.version}" / "site-packages"
        pip = [builder, "-m", "pip", "install", "--quiet", "--upgrade", "--target", target]
        pip += ["--python-version", row.version, *(f"--platform={tag}" for tag in ARM_WHEELS)]
        pip.append("--only-binary=:all:")
    if not done.exists():
        if emulated:  # an old pip asks for what runs on its own Python
            renew = [builder, "-m", "pip", "install", "--quiet", "--upgrade", "pip"]
            call(renew, "pip cannot be renewed", env=environment())
        what = f"what the package needs cannot be installed for Python {row.version}"
        call([*pip, *wanted], what, env=environment())
        done.write_text(stamp)
    command = [*pip, "--no-deps", "--force-reinstall", package]
    call(command, "the package cannot be installed", env=environment())
    return own
