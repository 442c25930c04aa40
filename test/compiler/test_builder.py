# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The builder of LLVM IR: what its statements and expressions do once they are compiled."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mbs_dynamics.compiler.codegen.builder import (
    DOUBLE,
    I1,
    I32,
    I64,
    NULL,
    PTR,
    VOID,
    Function,
    Inline,
    Pointer,
    Prototype,
    Struct,
    module,
    vector,
)
from mbs_dynamics.compiler.jit.machine_code import MachineCode

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.backend_independent  # no kernel is evaluated


@pytest.fixture(params=[True, False], ids=["optimized", "as it is"])
def compiled(request) -> Callable[..., Callable[..., int]]:
    """A function that compiles functions and returns the last one, which takes and returns i64."""
    codes = []

    def compiled(*functions: Function) -> Callable[..., int]:
        codes.append(MachineCode(module(functions), optimized=request.param))
        arguments = [ctypes.c_int64] * len(functions[-1].parameters)
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, *arguments)
        return kind(codes[-1].address(functions[-1].prototype.name))

    return compiled


def exported(*parameters: Any) -> Function:
    return Function(Prototype("mbs.tested", I64, *parameters), exported=True)


def test_loops_count_as_range_does(compiled):
    f = exported(I64, I64)
    first, last = f.parameters
    total = f.variable(I64, 0)
    with f.loop(first, last, 3) as k:
        total.value = total.value * 10 + k
    f.ret(total.value)
    call = compiled(f)
    for a, b in ((0, 8), (0, 9), (0, 10), (2, 2), (3, 1), (-2, 5)):
        expected = 0
        for k in range(a, b, 3):
            expected = expected * 10 + k
        assert call(a, b) == expected


def test_loops_run_backwards(compiled):
    f = exported(I64, I64)
    first, last = f.parameters
    total = f.variable(I64, 0)
    with f.loop(first, last, backwards=True) as k:
        total.value = total.value * 10 + k
    f.ret(total.value)
    call = compiled(f)
    assert [call(a, b) for a, b in ((0, 4), (1, 2), (2, 2), (3, 1))] == [3210, 1, 0, 0]


def test_lanes_of_vectors_that_a_mask_selects(compiled):
    """Of eight numbers the first ones are moved, side by side or every other one."""
    eight = vector(8, DOUBLE)
    f = exported(I64, Pointer(DOUBLE), Pointer(DOUBLE))
    count, source, target = f.parameters
    mask = f.numbers(8) < f.splat(count, 8)
    every_other = f.numbers(8, 2)
    twice, fourth = (
        f.new(vector(8, PTR), f"getelementptr {DOUBLE}, {at}, {every_other}")
        for at in (source, target.at(8))
    )
    target.store(source.load(eight, mask) + 1.0, mask)
    fourth.store(twice.load(eight, mask), mask)
    lanes = f.numbers(8).shuffled(f.splat(count, 8), [7, 8, *range(6)])
    f.ret(lanes.lane(0) * 100 + lanes.lane(1) * 10 + lanes.with_lane(2, count).lane(2))
    call = compiled(f)
    for count in (0, 3, 8):
        given, found = np.arange(16.0), np.full(24, -1.0)
        assert call(count, given.ctypes.data, found.ctypes.data) == 700 + 11 * count
        expected = np.full(24, -1.0)
        expected[:count] = given[:count] + 1.0
        expected[8 : 8 + 2 * count : 2] = given[: 2 * count : 2]
        assert found.tolist() == expected.tolist()


def test_a_loop_is_left_and_gone_on_with(compiled):
    """The sum of the odd numbers below n, up to the first one above 20."""
    f = exported(I64)
    (n,) = f.parameters
    total = f.variable(I64, 0)
    with f.block() as outer, f.loop(n) as k, f.block() as inner:
        outer.leave_if(k > 20)
        inner.leave_if((k & 1) == 0)
        total.value = total.value + k
    f.ret(total.value)
    call = compiled(f)
    for n in (0, 1, 5, 21, 22, 40):
        assert call(n) == sum(range(1, min(n, 21), 2))


def test_branches_and_what_follows_a_return(compiled):
    f = exported(I64)
    (x,) = f.parameters
    with f.if_(x < 0):
        with f.if_(x < -10):
            f.ret(1)
            f.ret(2)  # never reached
        f.ret(3)
    with f.if_(x >= 0):
        with f.block() as block:
            block.leave_unless(x == 7)
            f.ret(4)
        with f.forever() as again:
            again.leave()
    f.ret(f.select(x > 8, 5, 6))
    call = compiled(f)
    assert [call(x) for x in (-11, -10, -1, 0, 7, 8, 9)] == [1, 3, 3, 6, 4, 6, 5]


def test_integers_are_signed_and_pointers_are_not(compiled):
    f = exported(I64, I64)
    a, b = f.parameters
    bits = [a < b, a <= b, a > b, a >= b, a == b, a != b]
    place = f.array(I1, len(bits))
    for k, bit in enumerate(bits):
        place[k] = bit
    total = f.variable(I64, 0)
    for k in range(len(bits)):
        with f.if_(place[k]):
            total.value = total.value | (1 << k)
    low, high = f.array(PTR, 1), f.array(PTR, 1)
    for at, x in ((low, a), (high, b)):
        at.store(x)
    with f.if_(low[0] < high[0]):
        total.value = total.value | 64
    f.ret(total.value)
    call = compiled(f)
    for a, b in ((1, 2), (2, 1), (3, 3), (-1, 1), (1, -1)):
        expected = [a < b, a <= b, a > b, a >= b, a == b, a != b, a % 2**64 < b % 2**64]
        assert call(a, b) == sum(bit << k for k, bit in enumerate(expected))


def test_fields_and_elements_of_structures_in_memory(compiled):
    point = Struct.of_words(x=I64, y=Pointer(DOUBLE), next=PTR)
    head = Struct(count=(8, I32), limit=(16, I64), points=(24, Inline(point)))
    f = exported(Pointer(head))
    (it,) = f.parameters
    count = it.count.to(I64)
    total = f.variable(I64, 0)
    with f.loop(count) as k:
        total.value = total.value + it.points[k].x
        it.points[k].next = NULL
        it.points[k].y[1] = it.points[k].y[0]
    it.limit = total.value
    it.count = it.limit.to(I32)
    f.ret(total.value)
    values = np.array([[1.5, 0.0], [2.5, 0.0]])
    words = [0, 2, 0]
    for x, row in zip((40, 2), values, strict=True):
        words += point.words(x=x, y=row.ctypes.data, next=99)
    memory = np.array(words, dtype=np.int64)
    assert compiled(f)(memory.ctypes.data) == 42
    assert memory[[1, 2, 5, 8]].tolist() == [42, 42, 0, 0]
    assert values.tolist() == [[1.5, 1.5], [2.5, 2.5]]


def test_calls_of_functions_by_name_and_address(compiled):
    prototype = Prototype("mbs.add", VOID, Pointer(I64), I64)
    add = Function(prototype, attributes="alwaysinline")
    at, x = add.parameters
    at[0] = at[0] + x
    add.ret()
    f = exported(I64, Prototype("", I64, I64))
    x, labs = f.parameters
    place = f.array(I64, x.code.operand(3, I64))  # of a size that is known when it runs
    place[2] = f.call(labs, x)
    f.call(prototype, place.at(2), 1)
    f.ret(f.call(Prototype("labs", I64, I64), place[2] * -1))
    address = ctypes.cast(ctypes.CDLL(None).labs, ctypes.c_void_p).value
    assert compiled(add, f)(-41, address) == 42


def test_mistakes_are_found_when_code_is_built():
    f = exported(I64, Pointer(Struct.of_words(x=I64)))
    number, pointer = f.parameters
    with pytest.raises(TypeError):
        bool(number == 1)
    with pytest.raises(AttributeError, match="y"):
        _ = pointer.y
    with pytest.raises(AttributeError, match="x"):
        _ = number.x
