# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Results that kernels use again: only those that nobody else has any more."""

import ctypes
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from native_bench import in_threads

from mbs_dynamics.compiler import Kernel, trace
from mbs_dynamics.compiler.runtime.native import layout

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.skipif(
    layout.unsupported_reason() is not None, reason="calls go through ctypes here"
)


def kernel_of(size: int = 3) -> Kernel:
    return Kernel(trace(lambda x: x * 2.0, {"x": (size,)}, name="twice"), backend="llvm")


def x_of(k: float, size: int = 3) -> Any:
    return np.arange(size) + float(k)


def test_a_result_that_nobody_has_comes_again():
    kernel = kernel_of()
    addresses = set()
    for k in range(20):
        found = kernel(x_of(k))
        addresses.add(found.ctypes.data)
        assert np.array_equal(found, 2.0 * x_of(k))
    assert len(addresses) == 2  # one is still in found while the next is made


HOLDERS: dict[str, Callable[[Any], Any]] = {
    "a view": lambda x: x[1:],
    "a memory view": memoryview,
    "a buffer": lambda x: np.frombuffer(x, dtype=float),
    "the array interface": lambda x: np.asarray(_Interface(x)),
    "a ctypes pointer": lambda x: x.ctypes.data_as(ctypes.POINTER(ctypes.c_double)),
    "a list": lambda x: [x],
}


class _Interface:
    def __init__(self, array: Any) -> None:
        self.kept, self.__array_interface__ = array, array.__array_interface__


@pytest.mark.parametrize("holder", HOLDERS.values(), ids=HOLDERS.keys())
def test_whoever_sees_the_entries_holds_the_result(holder):
    kernel = kernel_of()
    first = kernel(x_of(0))
    address = first.ctypes.data
    seen = holder(first)
    del first
    later = [kernel(x_of(k)) for k in range(1, 6)]
    assert address not in {x.ctypes.data for x in later}
    for k, found in enumerate(later, 1):
        assert np.array_equal(found, 2.0 * x_of(k))
    del seen


def in_a_variable(kernel: Kernel) -> list[Any]:
    first = kernel(x_of(0))
    kernel(x_of(1))
    kernel(x_of(2))
    return [first]


def among_arguments(kernel: Kernel) -> list[Any]:
    first = kernel(x_of(0))
    return as_list(first, kernel(x_of(1)), kernel(x_of(2)), kernel(first / 2.0), first)[:3]


def in_a_generator(kernel: Kernel) -> list[Any]:
    def values() -> Any:
        found = kernel(x_of(0))
        yield as_list(found, (yield), kernel(x_of(1)), (found := None))[0]

    generator = values()
    next(generator)
    kernel(x_of(3))
    found = generator.send(None)
    generator.close()
    return [found, kernel(x_of(1))]


def as_list(*found: Any) -> list[Any]:
    return list(found)


@pytest.mark.parametrize("calls", [in_a_variable, among_arguments, in_a_generator])
def test_results_that_a_frame_holds_stay_as_they_are(calls):
    """CPython counts no reference for some values on the stack of a frame (since 3.14)."""
    kernel = kernel_of()
    kept: list[list[Any]] = []
    for _ in range(300):  # enough for calls to be specialized, and compiled by a JIT
        kept = [*kept[-3:], calls(kernel)]
        for found in kept:
            for when, x in enumerate(found):
                assert np.array_equal(x, 2.0 * x_of(when)), when


def test_results_of_several_threads_stay_as_they_are():
    kernel, wrong = kernel_of(), []

    def work(seed: int) -> None:
        held: list[tuple[int, Any]] = []
        for k in range(seed, seed + 20_000, 10):
            held = [*held[-(k % 4) :], (k, kernel(x_of(k)))]
            wrong.extend(when for when, x in held if not np.array_equal(x, 2.0 * x_of(when)))

    in_threads(work, 4)
    assert not wrong


CHANGES: dict[str, Callable[[Any], Any]] = {
    "shape": lambda x: setattr(x, "shape", (3, 1)),
    "type": lambda x: setattr(x, "dtype", np.int64),
    "frozen": lambda x: x.setflags(write=False),
    "resized": lambda x: x.resize((400,), refcheck=False),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_result_that_was_changed_does_not_come_again(change):
    kernel = kernel_of()
    for k in range(10):
        found = kernel(x_of(k))
        assert (found.shape, found.dtype, found.flags.writeable) == ((3,), np.float64, True)
        assert np.array_equal(found, 2.0 * x_of(k))
        change(found)


def test_a_result_that_is_watched_does_not_come_again():
    kernel = kernel_of()
    watched = weakref.ref(kernel(x_of(0)))
    later = [kernel(x_of(k)) for k in range(1, 4)]
    assert all(watched() is not found for found in later)


def test_entries_that_were_changed_are_all_computed_anew():
    program = trace(lambda x: np.array([x[0], 0.0, 1.0]), {"x": (1,)}, name="constants")
    kernel = Kernel(program, backend="llvm")
    for k in range(5):
        found = kernel(np.array([float(k)]))
        assert found.tolist() == [k, 0.0, 1.0]
        found[:] = np.nan
