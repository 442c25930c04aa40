# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels that say which path they took, for the tests of calls through machine code."""

import ctypes
import sys
import sysconfig
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mbs_dynamics.compiler import Kernel, positive, sin, trace

ORDINARY = (
    sys.implementation.name == "cpython"
    and not sysconfig.get_config_var("Py_GIL_DISABLED")
    and not sysconfig.get_config_var("Py_DEBUG")
    and ctypes.sizeof(ctypes.c_void_p) == 8
)
ordinary = pytest.mark.skipif(not ORDINARY, reason="only ordinary builds of CPython have the call")


class Watched(Kernel):
    """A kernel that counts how often the slow path is taken."""

    slow_calls = 0

    def _slow(self, *args: Any, **named: Any) -> Any:
        self.slow_calls += 1
        return super()._slow(*args, **named)


def several(x: Any, A: Any, s: Any, g: Any) -> Any:
    return {"y": A @ sin(x) * s + g[0], "s": s * s, "B": A + positive(x[0] + 9.0, "x too small")}


SHAPES = {"x": (3,), "A": (2, 3), "s": (), "g": (2,)}
PROGRAM = trace(several, SHAPES, name="f")
DEFAULT = {"g": np.array([0.5, 0.0])}


def new_kernel() -> Watched:
    return Watched(PROGRAM, backend="llvm", defaults=DEFAULT)


def one_state(seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.normal(size=shape)) for shape in SHAPES.values()]


def states(rows: int, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(rows, *shape)) for shape in SHAPES.values()]


def one_by_one(kernel: Any, arguments: Any, rows: int) -> list[Any]:
    """Each state by a call of its own."""
    given = [
        np.broadcast_to(x, (rows, *shape)) if x.ndim == len(shape) else x
        for x, shape in zip(arguments, SHAPES.values(), strict=False)
    ]
    found = [kernel(*[np.array(x[k]) for x in given]) for k in range(rows)]
    return [np.array(column) for column in zip(*found, strict=True)]


def expected(x: Any, A: Any, s: Any, g: Any = DEFAULT["g"]) -> Any:
    return A @ np.sin(x) * s + g[0], s * s, A + x[0] + 9.0


def same(found: Any, wanted: Any) -> bool:
    """Whether two results or two exceptions are the same, to the bit."""
    if isinstance(found, Exception) or isinstance(wanted, Exception):
        return type(found) is type(wanted) and str(found) == str(wanted)
    return len(found) == len(wanted) and all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        for a, b in zip(found, wanted, strict=True)
    )


def outcome(function: Any, arguments: Any) -> Any:
    try:
        return function(*arguments)
    except Exception as error:
        return error


class Subclass(np.ndarray):
    pass


class Pretender:
    """Says that it is an array, and is none."""

    __class__ = np.ndarray  # type: ignore[assignment]

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.zeros(3)


def in_threads(work: Callable[[int], None], count: int) -> None:
    """Call a function of a seed in several threads, between which Python switches all the time."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
