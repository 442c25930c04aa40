# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Results that kernels use again: only those that nobody else has any more."""

from __future__ import annotations

import ctypes
import gc
import random
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from native_bench import in_threads

from mbs_dynamics.compiler import Kernel, positive, trace
from mbs_dynamics.compiler.passes import strategy
from mbs_dynamics.compiler.runtime.native import layout
from mbs_dynamics.errors import SingularError

pytest.importorskip("llvmlite")
pytestmark = [
    pytest.mark.backend_independent,  # the back end is llvm
    pytest.mark.skipif(not layout.supported(), reason="calls go through ctypes here"),
]


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


def test_results_held_at_random_stay_as_they_are():
    kernel, choose = kernel_of(), random.Random(7)
    held: dict[int, Any] = {}
    for k in range(5_000):
        held[k] = kernel(x_of(k))
        while len(held) > choose.choice((0, 1, 2, 3, 8)):
            del held[choose.choice(list(held))]
        for when, found in held.items():
            assert np.array_equal(found, 2.0 * x_of(when))


def test_a_result_may_be_the_next_argument():
    kernel, x = kernel_of(), x_of(1)
    for _ in range(5):
        assert np.array_equal(kernel(kernel(kernel(x))), 8.0 * x)
    y = x
    for _ in range(9):
        y = kernel(y)
    assert np.array_equal(y, 512.0 * x)


HOLDERS: dict[str, Callable[[Any], Any]] = {
    "a view": lambda x: x[1:],
    "a view of another shape": lambda x: x.reshape(3, 1),
    "a transposed view": lambda x: x.T,
    "a view of another type": lambda x: x.view(np.int64),
    "a memory view": memoryview,
    "a buffer": lambda x: np.frombuffer(x, dtype=float),
    "the array interface": lambda x: np.asarray(_Interface(x)),
    "a ctypes pointer": lambda x: x.ctypes.data_as(ctypes.POINTER(ctypes.c_double)),
    "an iterator": lambda x: x.flat,
    "DLPack": np.from_dlpack,
    "a list": lambda x: [x],
    "a default": lambda x: lambda y=x: y,
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


def assigned_among_arguments(kernel: Kernel) -> list[Any]:
    found = kernel(x_of(0))
    return as_list(found, (found := kernel(x_of(1))), (found := kernel(x_of(2))))


def overwritten_among_arguments(kernel: Kernel) -> list[Any]:
    found = kernel(x_of(0))
    return as_list(found, overwrite(), kernel(x_of(1)), kernel(x_of(2)))[::2]


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


def in_an_iteration(kernel: Kernel) -> list[Any]:
    entries = [(entry, kernel(x_of(5)), kernel(x_of(6)))[0] for entry in kernel(x_of(0))]
    return [np.array(entries)]


def in_an_expression(kernel: Kernel) -> list[Any]:
    one, two = x_of(1), x_of(2)
    return [kernel(x_of(0)) + (kernel(one) - (kernel(two) - (kernel(two) - kernel(one))))]


def in_an_exception(kernel: Kernel) -> list[Any]:
    def fail() -> None:
        found = kernel(x_of(0))
        raise ValueError(len(found))

    with pytest.raises(ValueError, match="3") as raised:
        fail()
    for k in range(5):
        kernel(x_of(k))
    return [raised.traceback[-1].locals["found"]]


def as_list(*found: Any) -> list[Any]:
    return list(found)


def overwrite() -> None:
    """Take a result from the variable of the caller, which CPython can do since 3.13."""
    sys._getframe(1).f_locals["found"] = None


@pytest.mark.parametrize(
    "calls",
    [
        in_a_variable,
        among_arguments,
        assigned_among_arguments,
        overwritten_among_arguments,
        in_a_generator,
        in_an_iteration,
        in_an_expression,
        in_an_exception,
    ],
)
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


def changed_shape(x: Any) -> None:
    x.shape = (3, 1)


def changed_type(x: Any) -> None:
    x.dtype = np.int64


def frozen(x: Any) -> None:
    x.flags.writeable = False


def resized(x: Any) -> None:
    x.resize((400,), refcheck=False)


@pytest.mark.parametrize("change", [changed_shape, changed_type, frozen, resized])
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


def test_the_results_of_one_call_are_apart():
    program = trace(lambda x: {"a": x, "b": 2.0 * x, "c": x[0]}, {"x": (3,)}, name="three")
    kernel = Kernel(program, backend="llvm")
    for k in range(10):
        a, b, c = kernel(x_of(k))
        assert len({x.ctypes.data for x in (a, b, c)}) == 3
        assert np.array_equal(a, x_of(k))
        assert np.array_equal(b, 2.0 * x_of(k))
        assert c == float(k)
        assert c.shape == ()


def test_a_call_that_fails_changes_no_result_that_is_held():
    program = trace(lambda x: positive(x[()], "not positive") * 2.0, {"x": ()}, name="guarded")
    kernel = Kernel(program, backend="llvm")
    held = [kernel(np.array(1.0)), kernel(np.array(2.0))]
    for _ in range(4):
        with pytest.raises(SingularError):
            kernel(np.array(-1.0))
    assert [float(x) for x in held] == [2.0, 4.0]
    assert float(kernel(np.array(3.0))) == 6.0


def test_large_results_are_not_kept(monkeypatch):
    monkeypatch.setattr(strategy, "LARGEST_RECYCLED", 8 * 4)
    kept, not_kept = kernel_of(4), kernel_of(5)
    first, second = kept(x_of(0, 4)), not_kept(x_of(0, 5))
    assert sys.getrefcount(first) == sys.getrefcount(second) + 1


def test_what_a_kernel_keeps_goes_with_it():
    kernel = kernel_of()
    found = kernel(x_of(0))
    before = sys.getrefcount(found)
    del kernel
    gc.collect()
    assert sys.getrefcount(found) == before - 1
    assert np.array_equal(found, 2.0 * x_of(0))
