# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The tables of equations in the documentation name what exists, and each number once."""

import importlib
import inspect
import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Row(NamedTuple):
    paper: str
    equation: str
    functions: str
    tests: str
    remark: str


def rows():
    """Return the rows of the equation tables, each with the paper that its page is about."""
    found = []
    for page in (ROOT / "docs" / "evidence" / "equations").glob("*.md"):
        title, *lines = page.read_text("utf-8").splitlines()
        for line in lines if page.stem != "index" else ():
            if line.startswith("| ") and not line.startswith("| eq. |"):
                equation, _, *rest = (cell.strip() for cell in line[1:-1].split("|"))
                found.append(Row(title.removeprefix("# "), equation, *rest))
    return found


ROWS = rows()


def named(cells):
    """Return all that stands in backticks in the cells, each once."""
    return sorted({name for cell in cells for name in re.findall(r"`([^`]+)`", cell)})


def expanded(equation):
    """Return the numbers of a row, such as 12, 2.1 or A 4, with a range written out."""
    if not (given := re.findall(r"\((A |\d\.|)(\d+)\)", equation)):
        return []
    (prefix, first), (last_prefix, last) = given[0], given[-1]
    assert prefix == last_prefix
    ends = [f"({prefix}{first})", f"({prefix}{last})"]
    assert equation == (ends[0] if first == last else "-".join(ends))
    return [f"{prefix}{k}" for k in range(int(first), int(last) + 1)]


def numbers_of(paper):
    return [number for row in ROWS if row.paper == paper for number in expanded(row.equation)]


def up_to(last, prefix=""):
    return [f"{prefix}{k}" for k in range(1, last + 1)]


NUMBERS = {
    "Kinematics": up_to(82),
    "Dynamics": up_to(120),
    "General coordinates": [*up_to(2, "1."), *up_to(13, "2."), *up_to(5, "3."), *up_to(5, "A ")],
    "Forward dynamics": up_to(38),
}


def test_no_equation_is_missing_or_double():
    assert {row.paper for row in ROWS} == NUMBERS.keys()
    for paper, numbers in NUMBERS.items():
        assert sorted(numbers_of(paper)) == sorted(numbers), paper
    labels = [(row.paper, row.equation) for row in ROWS]
    assert len(labels) == len(set(labels))


def found(name):
    """Return what a name of the table stands for, as it is defined."""
    parts = name.split(".")
    if not (ROOT / "test" / f"{parts[0]}.py").is_file():  # of equations beside the tests
        parts = ["mbs_dynamics", *parts]
    for k in range(len(parts), 0, -1):
        try:
            named = importlib.import_module(".".join(parts[:k]))
        except ModuleNotFoundError:
            continue
        for part in parts[k:]:
            named = inspect.getattr_static(named, part)
        return named
    raise LookupError(f"no module {name}")


def test_every_function_exists():
    for name in named(row.functions + row.remark for row in ROWS):
        assert not inspect.ismodule(found(name)), name


def test_every_test_exists():
    folder = ROOT / "test"
    files = {str(x.relative_to(folder)): x.read_text("utf-8") for x in folder.rglob("test_*.py")}
    for name in named(row.tests for row in ROWS):
        file, _, test = name.rpartition("::")
        texts = [files[file]] if file else files.values()
        assert any(f"def {test.split('[')[0]}(" in text for text in texts), name
