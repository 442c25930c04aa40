# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Print the tests of the core and of what changed, for `make check`.

What changed is what is not committed; where all is committed, the last commit. A change in a room
of the package stands for the tests of that room, a change elsewhere for the core alone. Tests over
DDS are left out.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

TEST = Path(__file__).resolve().parents[1] / "test"
ROOT = TEST.parent
CORE = (
    "lie",
    "model/test_model.py",
    "representation",
    "algorithms/test_algorithms.py",
    "compiler/test_graph.py",
    "compiler/test_kernel.py",
    "compiler/test_trace.py",
    "test_checks.py",
)
ROOMS = {
    "checks.py": ("test_bad_arguments.py",),
    "c_export.py": ("compiler/test_c_export.py",),
    "operation_counts.py": ("algorithms/test_operation_counts.py",),
    "cli": ("test_cli.py", "test_explain_cli.py", "test_simulate_cli.py"),
}
"""Tests of parts of the package that bear another name than the part."""
LONG = (
    "test_back_ends.py",
    "test_joints.py",
    "test_moving_base.py",
    "test_operation_counts.py",
    "test_pinned_counts.py",
)
"""Files that `make check` leaves to `make test`, unless they change themselves."""


def changed() -> list[Path]:
    """Return the files that changed, relative to the root of the repository."""
    git = ["git", "-C", str(ROOT)]
    status = [*git, "status", "--porcelain", "--no-renames", "--untracked-files=all"]
    lines = subprocess.run(status, check=True, capture_output=True, text=True).stdout.splitlines()
    names = [line[3:].strip('"') for line in lines]
    if not names:
        last = [*git, "diff", "--name-only", "HEAD~1", "HEAD"]
        names = subprocess.run(last, check=True, capture_output=True, text=True).stdout.split()
    return [Path(name) for name in names]


def tests_of(path: Path) -> list[Path]:
    """Return the files of tests for a changed file."""
    match path.parts:
        case ("test", *_, name) if name.startswith("test_"):
            return [] if over_dds(ROOT / path) else [ROOT / path]
        case ("mbs_dynamics", room, *_):
            chosen = [TEST / name for name in ROOMS.get(room, (room,))]
        case _:
            chosen = []
    files = [file for one in chosen for file in ([one] if one.is_file() else one.rglob("test_*"))]
    files = [file for file in files if file.suffix == ".py" and file.name not in LONG]
    return [file for file in files if not over_dds(file)]


def over_dds(file: Path) -> bool:
    """Whether a file of tests starts nodes, by what it imports."""
    text = file.read_text() if file.exists() else ""
    return "ros" in file.relative_to(TEST).parts and "rclpy" in text


def main() -> None:
    core = [TEST / name for name in CORE]
    files = {file for one in core for file in ([one] if one.is_file() else one.rglob("test_*.py"))}
    files |= {file for path in changed() for file in tests_of(path)}
    print(*(str(file.relative_to(ROOT)) for file in sorted(files) if file.exists()), sep="\n")


if __name__ == "__main__":
    main()
