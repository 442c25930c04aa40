# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels called through machine code: the fast path is taken, and the slow one for the rest."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
import pytest
from native_bench import (
    DEFAULT,
    PROGRAM,
    SHAPES,
    Pretender,
    Subclass,
    Watched,
    expected,
    in_threads,
    new_filling,
    new_kernel,
    one_state,
    ordinary,
    outcome,
    room,
    same,
)
from numpy.lib.stride_tricks import as_strided

from mbs_dynamics.compiler import Kernel, trace
from mbs_dynamics.compiler.codegen.builder import PTR
from mbs_dynamics.compiler.runtime.native import layout, table, vectorcall
from mbs_dynamics.errors import ArgumentError, SingularError

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.backend_independent  # the back end is llvm


@pytest.fixture(scope="module")
def kernel():
    return new_kernel()


@pytest.fixture(scope="module")
def filling():
    return new_filling()


# -- the fast path ---------------------------------------------------------------------------------


@ordinary
def test_native_calls_are_supported_and_used(kernel):
    assert layout.supported()
    assert vectorcall.is_callable_type(type(kernel))
    assert isinstance(kernel, Watched)
    assert type(kernel).__name__ == "Watched"
    assert type(kernel).__module__ == Watched.__module__
    assert kernel.call is kernel
    assert type(type(kernel)(PROGRAM, backend="llvm", defaults=DEFAULT)) is type(kernel)
    assert type(Kernel(PROGRAM, backend="python", defaults=DEFAULT)) is Kernel


@ordinary
def test_arrays_of_one_state_take_the_fast_path(kernel):
    x, A, s, g = one_state()
    frozen = x.copy()
    frozen.flags.writeable = False
    part = np.arange(12.0).reshape(4, 3)[2]
    transposed = as_strided(x, (3,), (8,))
    odd = as_strided(A, (2, 3), (24, 8))
    shared = np.frombuffer(x.tobytes(), dtype=float)
    before = kernel.slow_calls
    for arguments in (
        (x, A, s, g),
        (x, A, s),
        (frozen, A, s, g),
        (part, A, s, g),
        (transposed, odd, s),
        (shared, A, s, g),
        (x, A, np.array(2.0), g),
        (x, x.reshape(1, 3).repeat(2, 0), s),
    ):
        for found, wanted in zip(kernel.call(*arguments), expected(*arguments), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-14, atol=1e-14)
        kernel(*arguments)
    assert kernel.slow_calls == before


@ordinary
@pytest.mark.parametrize("rows", [1, 2, 7, 63])
def test_small_batches_take_the_fast_path(kernel, rows):
    rng = np.random.default_rng(rows)
    batched = [rng.normal(size=(rows, *shape)) for shape in SHAPES.values()]
    x, A, s, g = one_state()
    before = kernel.slow_calls
    for arguments in (
        tuple(batched),
        tuple(batched[:3]),
        (batched[0], A, s),
        (x, batched[1], s, g),
        (x, A, batched[2], g),
        (x, A, s, batched[3]),
    ):
        found = kernel.call(*arguments)
        for k in range(rows):
            shapes = list(SHAPES.values())[: len(arguments)]
            one = [
                np.asarray(a[k] if a.ndim > len(shape) else a)
                for a, shape in zip(arguments, shapes, strict=True)
            ]
            assert same([x[k] for x in found], kernel.call(*one))
    assert kernel.slow_calls == before


@ordinary
def test_a_small_batch_names_the_state_where_a_guard_fails(kernel):
    x, A, s, g = one_state()
    several = np.repeat(x[None], 9, 0)
    several[6] = -9.5
    for _ in range(3):
        with pytest.raises(SingularError, match=r"state \[6\]"):
            kernel.call(several, A, s, g)


@ordinary
def test_anything_else_takes_the_slow_path(kernel):
    x, A, s, g = one_state()
    for arguments in (
        (x.tolist(), A, s, g),
        (x.astype(np.float32), A, s, g),
        (x.astype(">f8"), A, s, g),
        (x.astype(np.dtype("f8", metadata={"unit": "rad"})), A, s, g),
        (x.view(Subclass), A, s, g),
        (np.ma.masked_array(x), A, s, g),
        (np.zeros(6)[::2], A, s, g),
        (x[::-1], A, s, g),
        (x[None, None], A, s, g),
        (np.zeros((0, 3)), A, s, g),
        (np.repeat(x[None], 2, 0), np.repeat(A[None], 2, 0)[::-1], s, g),
        (np.repeat(x[None], 2, 0), A[None], s, g),
        (np.repeat(x[None], 64, 0), A, s, g),
        (Pretender(), A, s, g),
        (x, np.asfortranarray(A), s, g),
        (x, A, 2.0, g),
        (x, A, np.float64(2.0), g),
        (x, A, s, g.tolist()),
        (np.zeros(25, dtype=np.uint8)[1:].view(np.float64), A, s, g),
    ):
        before = kernel.slow_calls
        kernel.call(*arguments)
        assert kernel.slow_calls == before + 1


@ordinary
def test_names_take_the_slow_path_but_for_out(kernel):
    x, A, s, g = one_state()
    for named in ({"s": s}, {"s": s, "g": g}, {"s": s, "out": None}):
        before = kernel.slow_calls
        assert same(kernel(x, A, **named), kernel(x, A, s, named.get("g", DEFAULT["g"])))
        assert kernel.slow_calls == before + 1


@ordinary
def test_out_takes_the_fast_path(filling):
    x, y = np.array([1.0, 2.0, 3.0]), np.array(2.0)
    out, name = np.full((5, 3, 3), np.nan), "".join(["o", "ut"])
    before = filling.slow_calls
    for k, given in enumerate(({"out": out[0]}, {"out": out[1:2].reshape(3, 3)})):
        assert filling(x, y, **given) is given["out"]
        np.testing.assert_array_equal(out[k], np.outer(x, x) * 2.0)
    assert filling.slow_calls == before
    filling(x, y, **{name: out[2]})  # a text that is equal but another object
    np.testing.assert_array_equal(out[2], out[0])
    assert np.isnan(out[3:]).all()


@ordinary
def test_out_of_another_kind_takes_the_slow_path(filling):
    x, y = np.array([1.0, 2.0, 3.0]), np.array(2.0)
    wanted = filling(x, y)
    both = np.ones(12)
    frozen = np.zeros((3, 3))
    frozen.flags.writeable = False
    for out, first, error in (
        (None, x, None),
        (both[:9].reshape(3, 3), both[6:9], None),
        (both[2:11].reshape(3, 3), both[:3], None),
        (both[3:].reshape(3, 3), both[:3], False),  # side by side
        (np.zeros((3, 3)).view(Subclass), x, None),
        (np.asfortranarray(np.zeros((3, 3))), x, None),
        (frozen, x, ArgumentError),
        (np.zeros((3, 3), dtype=">f8"), x, ArgumentError),
        (np.zeros((3, 4)), x, ArgumentError),
        (np.zeros(9), x, ArgumentError),
        ([], x, ArgumentError),
        (x, x, ArgumentError),
    ):
        first[:] = x
        before = filling.slow_calls
        found = outcome(lambda a, o=out: filling(a, y, out=o), [first])
        assert filling.slow_calls == before + (error is not False)
        if error:
            assert isinstance(found, error)
        else:
            np.testing.assert_array_equal(found, wanted)
    with pytest.raises(SingularError, match="x too small"):
        filling(x - 11.0, y, out=np.zeros((3, 3)))


class Named(NamedTuple):
    y: Any
    s: Any
    B: Any


@ordinary
def test_several_outputs_are_written_into_a_tuple(kernel):
    for arguments in (one_state(), one_state()[:3]):
        out, before = room(kernel), kernel.slow_calls
        references = [sys.getrefcount(x) for x in (out, *out)]
        for _ in range(10):
            assert kernel(*arguments, out=out) is out
        assert kernel.slow_calls == before
        assert [sys.getrefcount(x) for x in (out, *out)] == references
        assert same(out, kernel(*arguments))


@ordinary
def test_tuples_of_other_kinds_take_the_slow_path(kernel):
    arguments = one_state()
    wanted = kernel(*arguments)
    y, s, B = room(kernel)
    frozen = y.copy()
    frozen.flags.writeable = False
    whole = np.full(8, np.nan)
    good = [(y, s, whole[1:7].reshape(2, 3)), (y.view(Subclass), s, B), Named(y, s, B)]
    wrong = [(), (y, s), (y, s, B, B), [y, s, B], y, (y, B, s), (frozen, s, B), (None, s, B), None]
    for k, out in enumerate([*good, *wrong]):
        before = kernel.slow_calls
        found = outcome(lambda *x, o=out: kernel(*x, out=o), arguments)
        assert kernel.slow_calls == before + (k > 0)
        if k < len(good) or out is None:
            assert same(found, wanted)
            assert out is None or found is out
        else:
            assert isinstance(found, ArgumentError)


@ordinary
def test_several_outputs_may_overlap_the_inputs(kernel):
    x, A, s, g = one_state()
    wanted = kernel(x, A, s, g)
    before = kernel.slow_calls
    y, square, B = kernel(x, A, s, g, out=(g, s, A))
    assert kernel.slow_calls == before + 1
    assert same((y, square, B), wanted)
    assert (y is g, square is s, B is A) == (True, True, True)
    shared = np.zeros(7)
    x, A, s, g = one_state()
    kernel(x, A, s, g, out=(shared[:2], np.zeros(()), shared[1:].reshape(2, 3)))  # each other
    assert kernel.slow_calls == before + 2
    np.testing.assert_array_equal(shared[1:].reshape(2, 3), wanted[2])


@pytest.fixture
def forgetful(monkeypatch):
    """Let the interpreter be probed again, and let the report come again, as in a new process."""
    probes = layout.unsupported_reason, table._report_once
    for probe in probes:
        probe.cache_clear()
    yield monkeypatch
    monkeypatch.undo()
    for probe in probes:
        probe.cache_clear()


UNSUPPORTED = {
    "the interpreter is pypy": lambda patch: patch.setattr(sys.implementation, "name", "pypy"),
    "is older than": lambda patch: patch.setattr(layout, "OLDEST", (9, 9)),
    "is a debug build": lambda patch: patch.setattr(sys, "gettotalrefcount", int, raising=False),
    "makes arrays": lambda patch: patch.setattr(layout, "array_new", lambda: [].index(0)),
    "layout of objects": lambda patch: patch.setitem(layout.TUPLE.fields, "items", (16, PTR)),
}


@ordinary
@pytest.mark.parametrize("reason", UNSUPPORTED)
def test_an_interpreter_without_native_calls_is_reported_once(forgetful, caplog, reason):
    assert layout.unsupported_reason() is None
    layout.unsupported_reason.cache_clear()
    UNSUPPORTED[reason](forgetful)
    kernels = [Kernel(PROGRAM, backend="llvm", defaults=DEFAULT) for _ in range(3)]
    assert {type(kernel) for kernel in kernels} == {Kernel}
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("mbs_dynamics", "WARNING")
    assert reason in record.message
    assert reason in layout.unsupported_reason()
    for found, wanted in zip(kernels[0](*one_state()), expected(*one_state()), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-14)


@ordinary
@pytest.mark.parametrize(
    ("struct", "field"),
    [
        *(("ARRAY", field) for field in layout.ARRAY.fields),
        *(("TUPLE", field) for field in layout.TUPLE.fields),
        ("LIST", "items"),
    ],
)
def test_a_layout_with_other_offsets_is_not_followed(forgetful, struct, field):
    fields = getattr(layout, struct).fields
    offset, kind = fields[field]
    forgetful.setitem(fields, field, (offset + 8, kind))
    assert "layout of objects" in layout.unsupported_reason()


@pytest.fixture
def plain(monkeypatch):
    """A function that makes kernels as interpreters do that have no native call."""
    monkeypatch.setattr(layout, "supported", lambda: False)
    return lambda program, **options: Watched(program, backend="llvm", **options)


def test_without_native_calls_kernels_work_as_well(plain, kernel, filling):
    other = plain(PROGRAM, defaults=DEFAULT)
    assert type(other) is Watched
    for seed in range(5):
        arguments = one_state(seed)
        assert same(other(*arguments), kernel(*arguments))
        assert same(other(*arguments[:3]), kernel(*arguments[:3]))
    assert other.slow_calls == 0
    assert same(other(*[x.tolist() for x in arguments]), kernel(*arguments))
    assert other.slow_calls == 1
    with pytest.raises(ArgumentError, match=r"f: missing \['A', 's'\]"):
        other(arguments[0])
    with pytest.raises(SingularError, match=r"x too small"):
        other(arguments[0] - 20.0, *arguments[1:])
    x, y, out = np.ones(3), np.array(2.0), np.zeros((3, 3))
    fill = plain(filling.program)
    assert fill(x, y, out=out) is out
    assert fill(x, y).tobytes() == out.tobytes() == filling(x, y).tobytes()


def test_without_native_calls_defaults_hold_after_a_call_with_other_values(plain):
    kernel = plain(PROGRAM, defaults=DEFAULT)
    x, A, s, g = one_state()
    first = kernel(x, A, s)
    assert not np.array_equal(kernel(x, A, s, g)[0], first[0])
    assert same(kernel(x, A, s), first)
    assert same(kernel(x, A, s, g), kernel(*(np.array(a) for a in (x, A, s, g))))
    assert kernel.slow_calls == 0


def test_without_native_calls_arrays_of_any_layout_are_taken(plain):
    kernel = plain(PROGRAM, defaults=DEFAULT)
    x, A, s, g = one_state()
    wanted = kernel(x, A, s, g)
    wide = np.repeat(x, 2)[::2]
    odd = np.zeros(25, dtype=np.uint8)[1:].view(np.float64)
    odd[:] = x
    assert same(kernel(wide, np.asfortranarray(A), s, g), wanted)
    assert same(kernel(odd, A, s, g), wanted)
    assert kernel.slow_calls == 0
    assert same(kernel(x.astype(">f8"), A, s, g.astype(np.longdouble).astype(float)), wanted)
    assert kernel.slow_calls == 1


def test_without_native_calls_threads_have_buffers_of_their_own(plain):
    kernel, wrong = plain(PROGRAM, defaults=DEFAULT), []

    def work(seed: int) -> None:
        arguments = one_state(seed)
        wanted = kernel(*arguments)
        wrong.extend(k for k in range(3000) if not same(kernel(*arguments), wanted))

    in_threads(work, 3)
    assert not wrong


@ordinary
def test_kernels_with_very_many_inputs_are_called_plainly():
    program = trace(lambda **x: sum(x.values()), {f"x{k}": () for k in range(40)}, name="f")
    kernel = Kernel(program, backend="llvm")
    assert type(kernel) is Kernel
    assert kernel(*range(40)) == 780.0


def test_defaults_cannot_be_written(kernel):
    with pytest.raises(ValueError, match="read-only"):
        kernel.defaults[0][:] = 1.0
