# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Public algorithms are wherever algorithms are listed; what is public is listed once."""

from __future__ import annotations

import importlib
import inspect
import pickle
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_pinned_counts import PINNED, counts_of

import mbs_dynamics as mbs
from benchmarks.comparison import worker
from mbs_dynamics import algorithms
from mbs_dynamics.algorithms._algorithm import NAMED, Algorithm
from mbs_dynamics.algorithms.arguments import MEANINGS
from mbs_dynamics.operation_counts import algorithm_counts
from mbs_dynamics.resources import robot_path

pytestmark = pytest.mark.backend_independent

ROOT = Path(__file__).parents[2]
API = ROOT / "docs" / "reference" / "api"
SMOKE = (ROOT / "test" / "smoke" / "kernels.py").read_text("utf-8")
SOURCES = "".join(path.read_text("utf-8") for path in ROOT.glob("mbs_dynamics/**/*.py"))


def modules():
    """Import all files of algorithms, also those that the package does not import."""
    found = pkgutil.walk_packages(algorithms.__path__, "mbs_dynamics.algorithms.")
    return [importlib.import_module(name) for _, name, _ in found]


def places_without(found, model, pages, index):
    """Yield the places that lack an algorithm."""
    name, module = found.name, found.__module__
    needed = [k for k, default in found.options.items() if default is inspect.Parameter.empty]
    if name not in NAMED:
        if len(re.findall(rf"\b{name}\(", SOURCES)) == 1:  # else other algorithms call it
            yield f"__all__ of {module}"
        return
    if found not in mbs.ALGORITHMS:
        yield f"mbs_dynamics/algorithms/__init__.py: from {module} import *"
    if f".. autofunction:: {name}\n\n   >>> " not in pages:
        yield "docs/reference/api: a page with .. autofunction:: and an example"
    if f"   {name}\n" not in index:
        yield "docs/reference/api/index.md: autosummary"
    if name not in PINNED:
        yield f"test/algorithms/test_pinned_counts.py: PINNED, {counts_of([found])}"
    yield from (f"MEANINGS of {x} in arguments.py" for x in found.arrays if x not in MEANINGS)
    for option in needed:
        if f'"{option}":' not in SMOKE:
            yield f"test/smoke/kernels.py: OPTIONS with {option!r}"
        if option not in worker._options(name, model):
            yield f"benchmarks/comparison/worker.py: _options with {option!r}"
    try:
        algorithm_counts(model, [found])
    except mbs.ArgumentError as error:
        yield f"mbs_dynamics/operation_counts.py: algorithm_counts ({error})"


def test_every_algorithm_is_in_every_place():
    model = mbs.Model.from_urdf(robot_path("arm7"))
    pages = "".join(page.read_text("utf-8") for page in API.glob("*.md"))
    index = (API / "index.md").read_text("utf-8")
    every = {x.name: x for m in modules() for x in vars(m).values() if isinstance(x, Algorithm)}
    lacking = [
        f"{found.name} is missing in: {place}"
        for found in every.values()
        for place in places_without(found, model, pages, index)
    ]
    assert not lacking, "\n" + "\n".join(lacking)
    gone = {*PINNED} - {f.__name__ for f in mbs.ALGORITHMS}
    assert not gone, f"no algorithms any more: {sorted(gone)}"


def test_public_names_have_no_second_list():
    """Each module lists its own; the packages above have them all, by pickle too."""
    public = {x for m in modules() for x in getattr(m, "__all__", ())}
    assert public == {*algorithms.__all__} - {"ALGORITHMS"}
    unlisted = {"Algorithm", "algorithm", "algorithm_of", "compile"}
    assert public - unlisted == {*mbs.__all__} & public
    for name in public:
        assert getattr(mbs, name) is getattr(algorithms, name)
    for function in mbs.ALGORITHMS:
        assert pickle.loads(pickle.dumps(function)) is function is NAMED[function.__name__]


TYPED = """
import mbs_dynamics as mbs
from mbs_dynamics import ArgumentError, Kernel, Model, export_c, gravity_torques

reveal_type(mbs.jacobian)
reveal_type(mbs.mass_matrix)
reveal_type(mbs.InverseKinematics)
reveal_type(mbs.dh)
mbs.inverse_dynamics(3)
mbs.jacobean
"""


@pytest.mark.slow
def test_type_checkers_find_signatures_and_typing_errors(tmp_path):
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text(TYPED)
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", program, "--cache-dir", tmp_path / "cache"],
        env={"MYPYPATH": str(ROOT), "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    said = [line for line in ran.stdout.splitlines() if line.startswith("program.py")]
    assert "q: " in said[0]
    assert "body: str, *, representation: str" in said[0]
    assert "representation: str" in said[1]
    assert "success" in said[2]
    assert "Module" in said[3]
    assert [line.split("[")[-1] for line in said[4:]] == ["call-arg]", "arg-type]", "attr-defined]"]
