# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The mutation tests themselves: what they change, what they leave alone, and how tests find it."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import TIMEOUT

TOOLS = Path(__file__).resolve().parents[1] / "tools"
sys.path.append(str(TOOLS))
mutants = importlib.import_module("mutant_sites").mutants
known_survivors = importlib.import_module("mutants").known_survivors
pytestmark = pytest.mark.backend_independent

SOURCE = '''
"""A text with 1 + 1."""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import numpy
__all__ = ["f"]
LIMIT: int = 3

class Colour(Enum):
    RED = 1

class A:
    @decorated(4)
    def f(self, x: "list[1]", y=2.5):
        """Return 2 + 2."""
        if x < LIMIT and not y:
            raise ValueError(f"{x + 1} is below {LIMIT - 1}", 7)
        self.total -= -x
        for k in x[:6]:
            self.call(k)
            break
        return x @ y if x is None else min(x, y)

    def __repr__(self):
        return "A" * 5
'''


def changes(source: str) -> list[str]:
    return [mutant.change for mutant in mutants(source, "a.py")[1]]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a + b", ["x = a {+ => -} b"]),
        ("x = a * b", ["x = a {* => /} b"]),
        ("x = A @ B", ["x = {A @ B => -(A @ B)}"]),
        ("x = -a", ["x = {- => }a"]),
        ("x = not a", ["x = {not  => }a"]),
        ("x = a < b", ["x = a {< => <=} b", "x = a {< => >=} b"]),
        ("x = a == b", ["x = a {== => !=} b"]),
        ("x = a is b", ["x = a is { => not }b"]),
        ("x = a and b", ["x = a {and => or} b"]),
        ("x = 2", ["x = {2 => 3}"]),
        ("x = 0.0", ["x = {0.0 => 1.0}"]),
        ("x = 0.3", ["x = {0.3 => 0.6}"]),
        ("x = True", ["x = {True => False}"]),
        ("x = min(a, b)", ["x = {min => max}(a, b)"]),
        ("x = np.any(a)", ["x = {np.any => np.all}(a)"]),
        ("x += a", ["x {+= => -=} a", "x {+= => =} a"]),
        ("if a:\n    pass", ["if {a => True}:", "if {a => False}:"]),
        ("while a:\n    pass", ["while {a => False}:"]),
        ("f(x)", ["{f(x) => pass}"]),
        ("x[k] = a", ["{x[k] = a => pass}"]),
    ],
)
def test_change_of_a_statement(source: str, expected: list[str]) -> None:
    found = changes(source)
    assert found == expected


def test_every_mutant_is_another_program_and_leaves_the_tree_as_it_was() -> None:
    tree, found = mutants(SOURCE, "a.py")
    original = ast.unparse(tree)
    programs = set()
    for mutant in found:
        mutant.put(True)
        programs.add(ast.unparse(tree))
        compile(ast.fix_missing_locations(tree), "a.py", "exec")
        mutant.put(False)
        assert ast.unparse(tree) == original
    assert original not in programs
    assert len(programs) > 0.9 * len(found)  # `if a` forced and `a` forced may agree


TRIAL = """
import sys
from pathlib import Path
sys.path[:0] = [{tests!r}, {place!r}]
import mutant_runs
from mutant_sites import mutants
mutant_runs.STORE = mutant_runs.ROOT = place = Path({place!r})
tree, found = mutants((place / "toy.py").read_text(), "toy.py")
mutant = next(m for m in found if m.change == {change!r})
mutant.put(True)
tests = [(1.0, ["test_toy.py::test_double"])]
sys.exit(mutant_runs.try_mutant(compile(tree, "toy.py", "exec"), "toy", tests, place / "verdict"))
"""


@pytest.mark.parametrize(
    ("change", "status"), [("return 2.0 {* => /} x", 1), ("return {1 => 2}", 0)]
)
def test_test_that_fails_kills_a_mutant(tmp_path: Path, change: str, status: int) -> None:
    (tmp_path / "toy.py").write_text(
        "def double(x):\n    return 2.0 * x\n\ndef other():\n    return 1\n"
    )
    (tmp_path / "test_toy.py").write_text(
        "import toy\n\ndef test_double():\n    assert toy.double(3.0) == 6.0\n"
    )
    trial = TRIAL.format(tests=str(TOOLS), place=str(tmp_path), change=change)
    run = [sys.executable, "-c", trial]
    assert (
        subprocess.run(run, cwd=tmp_path, capture_output=True, timeout=TIMEOUT).returncode == status
    )


def test_every_known_survivor_is_a_change_of_the_package_as_it_is() -> None:
    known = known_survivors((TOOLS / "mutants.md").read_text(encoding="utf-8"))
    package = TOOLS.parent / "mbs_dynamics"
    changes = set()
    for file in {file for file, _, _ in known}:
        _, found = mutants((package / file).read_text(encoding="utf-8"), file)
        changes |= {one.key for one in found}
    assert known
    assert not known - changes, "rename or remove these lines of tools/mutants.md"
