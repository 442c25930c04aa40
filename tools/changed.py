# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Print the tests of the core and of what changed, for `make check`.

What changed is what is not committed; where all is committed, the last commit. A change in a room
of the package stands for the tests of that room, in `ros` for those that import the file, a change
of a test or of a helper for the tests that it is part of. A change in `ros`, `config` or `docs`
stands for the tests of declarations, parameter files and tables, and a page for its examples and
links. A change elsewhere stands for the core alone.
Tests of ROS that start processes are left out, unless they change themselves.
"""

from __future__ import annotations

import re
import subprocess
from functools import lru_cache
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
    "cli": ("test_cli.py", "test_simulate_cli.py"),
}
"""Tests of parts of the package that bear another name than the part."""
TABLES = (
    "test/ros/test_interface.py",
    "test/test_documentation.py::test_tables_of_the_pages_are_those_of_the_code",
)
"""Tests of what nodes declare: parameter files and pages follow from it."""
OF_PAGES = (
    "test/test_documentation.py::test_examples_of_a_page_print_what_it_says",
    "test/test_documentation.py::test_links_of_a_page_lead_to_files",
    "test/test_documented_commands.py::test_files_and_benchmarks_that_a_page_names_exist",
)
"""Tests that take a page as their parameter."""
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


IMPORT = re.compile(r"^\s*(?:from ([\w.]+) )?import ([^(\n]+|\([^)]*\))", re.MULTILINE)


@lru_cache
def imports(file: Path) -> frozenset[str]:
    """Return the parts of all names that a file imports, itself or by helpers of tests."""
    found = {*re.findall(r"\w+", " ".join(map(" ".join, IMPORT.findall(file.read_text()))))}
    others = (path for path in TEST.rglob("*.py") if "smoke" not in path.parts and path != file)
    helpers = [path for path in others if path.stem in found]
    return frozenset(found.union(*map(imports, helpers)))


def starts_processes(file: Path) -> bool:
    """Whether a file of tests of ROS starts processes, itself or by helpers."""
    return "ros" in file.relative_to(TEST).parts and "subprocess" in imports(file)


def tests_of(path: Path) -> set[Path]:
    """Return the files of tests for a changed file."""
    files = {file for file in TEST.rglob("test_*.py") if file.name not in LONG}
    match path.parts:
        case ("test", *_, name) if name.startswith("test_"):
            return {ROOT / path} & {*TEST.rglob(name)}
        case ("test", *_):
            found = {file for file in files if path.stem in imports(file)}
        case ("mbs_dynamics", room, *_):
            rooms = [TEST / name for name in ROOMS.get(room, (room,))]
            found = {file for file in files if {file, *file.parents} & {*rooms}}
            if room == "ros":  # whose tests take long
                found = {file for file in found if path.stem in imports(file)}
        case _:
            found = set()
    return {file for file in found if not starts_processes(file)}


def tests_of_declarations(paths: list[Path]) -> list[str]:
    """Return the tests of declarations, tables and pages that these changes need."""
    told = [path for path in paths if {"config", "docs"} & {*path.parts[:1]}]
    told += [path for path in paths if path.parts[:2] == ("mbs_dynamics", "ros")]
    pages = [path for path in paths if path.suffix == ".md" and (ROOT / path).exists()]
    pages = [path for path in pages if path.parts[0] == "docs" or len(path.parts) == 1]
    return [*(TABLES if told else ()), *(f"{test}[{path}]" for path in pages for test in OF_PAGES)]


def main() -> None:
    core = [TEST / name for name in CORE]
    files = {file for one in core for file in ([one] if one.is_file() else one.rglob("test_*.py"))}
    paths = changed()
    files = files.union(*map(tests_of, paths))
    names = {str(file.relative_to(ROOT)) for file in files}
    print(*sorted(names.union(tests_of_declarations(paths))), sep="\n")


if __name__ == "__main__":
    main()
