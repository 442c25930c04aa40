# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The back end c: what it compiles, keeps and says; what it computes is tested with the others."""

from __future__ import annotations

import gc
import math
import os
import re
import stat
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from backends import needs_compiler
from mechanisms import random_mechanism

import mbs_dynamics as mbs
from mbs_dynamics.compiler import Kernel, positive, sin, trace
from mbs_dynamics.compiler.codegen import c
from mbs_dynamics.compiler.jit import cache
from mbs_dynamics.compiler.passes import pipeline
from mbs_dynamics.compiler.runtime import batches, compiled_c
from mbs_dynamics.compiler.runtime.compiled_c import emit_library
from mbs_dynamics.errors import ArgumentError, BackendError, SingularError

pytestmark = pytest.mark.backend_independent  # the back end is c

X = np.array([0.1, 0.2, -0.3])


def program(seed: float = 1.0) -> Any:
    return trace(lambda x: sin(x) * (1.0 + seed), {"x": (3,)}, name="f")


def guarded(x: Any) -> Any:
    return x / positive(x[0], "x is not positive")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The folder of a cache of its own."""
    folder = tmp_path / "kept"
    monkeypatch.setenv("MBS_CACHE_DIR", str(folder))
    monkeypatch.delenv("MBS_CACHE", raising=False)
    return folder


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    """Return a function that puts a program in place of the compiler, or None, which is nothing."""

    def replace(script: str | None) -> None:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        if script is not None:
            there = folder / "cc"
            there.write_text(f"#!/bin/sh\n{script}\n")
            there.chmod(there.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(folder))
        compiled_c._compiler.cache_clear()

    yield replace
    compiled_c._compiler.cache_clear()


# -- the compiler ----------------------------------------------------------------------------------


def test_a_missing_compiler_is_said(compiler):
    compiler(None)
    said = r"needs a C compiler named cc, .* gcc libc6-dev\), or use another .* MBS_BACKEND=python"
    with pytest.raises(BackendError, match=said):
        Kernel(program(), backend="c")


def test_a_compiler_that_fails_is_said(compiler, place):
    compiler('[ "$1" = --version ] || { echo "math.h: No such file" >&2; exit 3; }')
    with pytest.raises(BackendError, match=r"(?s)cc failed \(3\).*math\.h: No such file"):
        Kernel(program(), backend="c")
    assert not place.exists()


def test_an_object_that_cannot_be_loaded_is_said(compiler, place):
    compiler('while [ "$1" != -o ]; do [ "$1" = --version ] && exit; shift; done; echo no >"$2"')
    with pytest.raises(BackendError, match="what cc compiled cannot be loaded"):
        Kernel(program(), backend="c")
    assert not place.exists()


def test_a_temporary_folder_without_execution_is_named(compiler, place, monkeypatch, tmp_path):
    def refuse(path: str) -> None:
        raise OSError(f"{path}: failed to map segment from shared object")

    compiler('while [ "$1" != -o ]; do [ "$1" = --version ] && exit; shift; done; echo no >"$2"')
    monkeypatch.setattr(compiled_c.ctypes, "CDLL", refuse)
    monkeypatch.setattr(compiled_c.tempfile, "tempdir", str(tmp_path))
    mounted = os.statvfs_result((0,) * 8 + (os.ST_NOEXEC, 255))
    monkeypatch.setattr(compiled_c.os, "statvfs", lambda folder: mounted)
    said = f"failed to map segment.*; {re.escape(str(tmp_path))} does not permit execution.* TMPDIR"
    with pytest.raises(BackendError, match=said):
        Kernel(program(), backend="c")
    assert not place.exists()


# -- the cache -------------------------------------------------------------------------------------


@needs_compiler
def test_a_program_is_compiled_once(place, monkeypatch):
    first = Kernel(program(2.0), backend="c")(X)
    (file,) = place.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    asked: list[Any] = []
    compile_it = compiled_c._compiled
    monkeypatch.setattr(
        compiled_c, "_compiled", lambda *given: (asked.append(1), compile_it(*given))[1]
    )
    np.testing.assert_array_equal(Kernel(program(2.0), backend="c")(X), first)
    assert not asked
    np.testing.assert_allclose(Kernel(program(3.0), backend="c")(X), 4.0 * np.sin(X), rtol=1e-15)
    assert len(asked) == 1
    monkeypatch.setattr(compiled_c, "_compiler", lambda: ("another version", ""))
    Kernel(program(2.0), backend="c")
    assert len(asked) == 2


@needs_compiler
def test_damaged_objects_are_compiled_again(place):
    wanted = Kernel(program(5.0), backend="c")(X)
    (file,) = place.iterdir()
    for contents in (file.read_bytes()[:-100], b"", b"nonsense" * 1000):
        file.write_bytes(contents)
        np.testing.assert_array_equal(Kernel(program(5.0), backend="c")(X), wanted)
    name = file.stem
    cache.store(name, b"no shared object, with a good checksum")
    np.testing.assert_array_equal(Kernel(program(5.0), backend="c")(X), wanted)
    file.chmod(0o666)
    assert cache.load(name) is None


@needs_compiler
def test_an_object_is_unloaded_with_its_kernel():
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("this system does not list what is loaded")
    kernel = Kernel(program(6.0), backend="c")
    loaded = maps.read_text().count("mbs_dynamics-")
    assert loaded
    gone = weakref.ref(kernel)
    del kernel
    gc.collect()
    assert gone() is None
    assert maps.read_text().count("mbs_dynamics-") < loaded


# -- what is evaluated -----------------------------------------------------------------------------


@needs_compiler
def test_names_that_mean_something_in_c():
    inputs = ("double", "sin", "t1", "out_y", "workspace", "memory", "now", "ö", "x_", "run")
    shapes = {name: () for name in inputs}

    def everything(**named: Any) -> Any:
        total = sum(sin(x[()]) * k for k, x in enumerate(named.values(), 1))
        return {"y": total, "int": -total, "twist(tool)": total + 1.0, "twist tool ": total - 1.0}

    kernel = Kernel(trace(everything, shapes, name="f"), backend="c")
    given = dict(zip(inputs, np.linspace(0.1, 1.0, len(inputs)), strict=True))
    total = sum(math.sin(x) * k for k, x in enumerate(given.values(), 1))
    np.testing.assert_allclose(kernel(**given), [total, -total, total + 1.0, total - 1.0])


@needs_compiler
def test_threads_share_the_states(monkeypatch):
    monkeypatch.setattr(batches, "STATES_PER_THREAD", 100)
    monkeypatch.setenv("MBS_THREADS", "3")
    states = np.random.default_rng(0).uniform(0.5, 1.0, (1000, 3))
    kernel = Kernel(trace(guarded, {"x": (3,)}, name="f"), backend="c")
    expected = states / states[:, :1]
    np.testing.assert_allclose(kernel(states), expected, rtol=1e-15)
    last = np.empty((3, 1000)).T
    assert kernel(np.asfortranarray(states), out=last) is last
    np.testing.assert_allclose(last, expected, rtol=1e-15)
    states[[700, 900], 0] = -1.0
    with pytest.raises(
        SingularError, match=r"^f: x is not positive at state \[700\] of the batch$"
    ):
        kernel(states)
    monkeypatch.setenv("MBS_THREADS", "many")
    with pytest.raises(ArgumentError, match="MBS_THREADS must be a positive integer; got 'many'"):
        kernel(states)


@needs_compiler
def test_a_large_memory_is_that_of_the_loop(monkeypatch):
    monkeypatch.setitem(pipeline.LARGEST_BLOCK, "c", 0)
    monkeypatch.setattr(pipeline, "CHUNK", 100)
    monkeypatch.setattr(c, "C_STACK", 0)

    def chain(x: Any) -> Any:
        values = [positive(x[0], "x is not positive")]
        for k in range(300):
            values.append(sin(values[-1] * x[k % 3]) + values[k // 2])
        return values[-1]

    traced = trace(chain, {"x": (3,)}, name="f")
    assert "malloc" in emit_library(traced)
    states = np.random.default_rng(0).uniform(0.1, 1.0, (50, 3))
    expected = Kernel(traced, backend="python")(states)
    kernel = Kernel(traced, backend="c")
    np.testing.assert_allclose(kernel(states), expected, rtol=1e-12)
    np.testing.assert_allclose(kernel(states[0]), expected[0], rtol=1e-12)
    states[7, 0] = 0.0
    with pytest.raises(SingularError, match=r"state \[7\]"):
        kernel(states)
    greedy = compiled_c.LIBRARY.replace("{workspace};", f"malloc({sys.maxsize} / 2);")
    monkeypatch.setattr(compiled_c, "LIBRARY", greedy)
    for given in (states[0], states):
        with pytest.raises(MemoryError, match="f: no memory"):
            Kernel(traced, backend="c")(given)


@needs_compiler
def test_results_do_not_depend_on_fused_operations():
    """x * x - (rounded x * x) is zero unless a compiler fuses it."""
    traced = trace(lambda x, y: x * x - y, {"x": (5,), "y": (5,)}, name="f")
    x = np.random.default_rng(1).normal(size=5)
    np.testing.assert_array_equal(Kernel(traced, backend="c")(x, x * x), 0.0)


@needs_compiler
def test_programs_with_loops():
    model = random_mechanism(5, range(-1, 25)).model
    compiled = mbs.compile(mbs.inverse_mass_matrix, model, backend="python")
    assert compiled.program.in_loops
    kernel = Kernel(compiled.program, backend="c", defaults=compiled.defaults)
    assert kernel.guards == compiled.program.guards
    q = np.random.default_rng(2).uniform(-1.0, 1.0, (3, model.n))
    expected = compiled(q)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(kernel(q), expected, rtol=1e-9, atol=1e-12 * scale)
