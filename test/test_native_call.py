# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Kernels called through machine code: the fast path is taken, and nothing crashes or differs."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import sysconfig
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from mbs_dynamics.errors import ArgumentError, SingularError
from mbs_dynamics.tracing import Kernel, native, positive, sin, trace

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.backend_independent  # the back end is llvm

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


@pytest.fixture(scope="module")
def kernel():
    return new_kernel()


def neat(seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.normal(size=shape)) for shape in SHAPES.values()]


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


# -- the fast path ---------------------------------------------------------------------------------


@ordinary
def test_native_calls_are_supported_and_used(kernel):
    assert native.supported()
    assert native.is_callable_type(type(kernel))
    assert isinstance(kernel, Watched)
    assert type(kernel).__name__ == "Watched"
    assert type(kernel).__module__ == Watched.__module__
    assert kernel.call is kernel
    assert type(type(kernel)(PROGRAM, backend="llvm", defaults=DEFAULT)) is type(kernel)
    assert type(Kernel(PROGRAM, backend="python", defaults=DEFAULT)) is Kernel


@ordinary
def test_neat_arrays_take_the_fast_path(kernel):
    x, A, s, g = neat()
    frozen = x.copy()
    frozen.flags.writeable = False
    part = np.arange(12.0).reshape(4, 3)[2]
    turned = as_strided(x, (3,), (8,))
    odd = as_strided(A, (2, 3), (24, 8))
    shared = np.frombuffer(x.tobytes(), dtype=float)
    before = kernel.slow_calls
    for arguments in (
        (x, A, s, g),
        (x, A, s),
        (frozen, A, s, g),
        (part, A, s, g),
        (turned, odd, s),
        (shared, A, s, g),
        (x, A, np.array(2.0), g),
        (x, x.reshape(1, 3).repeat(2, 0), s),
    ):
        for found, wanted in zip(kernel.call(*arguments), expected(*arguments), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-14, atol=1e-14)
        kernel(*arguments)
    assert kernel.slow_calls == before


class Subclass(np.ndarray):
    pass


class Pretender:
    """Says that it is an array, and is none."""

    __class__ = np.ndarray  # type: ignore[assignment]

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.zeros(3)


@ordinary
def test_anything_else_takes_the_slow_path(kernel):
    x, A, s, g = neat()
    for arguments in (
        (x.tolist(), A, s, g),
        (x.astype(np.float32), A, s, g),
        (x.astype(">f8"), A, s, g),
        (x.astype(np.dtype("f8", metadata={"unit": "rad"})), A, s, g),
        (x.view(Subclass), A, s, g),
        (np.ma.masked_array(x), A, s, g),
        (np.zeros(6)[::2], A, s, g),
        (x[::-1], A, s, g),
        (x[None], A, s, g),
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
    x, A, s, g = neat()
    for named in ({"s": s}, {"s": s, "g": g}, {"s": s, "out": None}):
        before = kernel.slow_calls
        assert same(kernel(x, A, **named), kernel(x, A, s, named.get("g", DEFAULT["g"])))
        assert kernel.slow_calls == before + 1


def simple(x: Any, y: Any) -> Any:
    return np.outer(x, x) * y[()] + 0.0 * positive(x[0] + 9.0, "x too small")


@pytest.fixture(scope="module")
def filling():
    return Watched(trace(simple, {"x": (3,), "y": ()}, name="f"), backend="llvm")


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
def test_out_that_is_not_neat_takes_the_slow_path(filling):
    x, y = np.array([1.0, 2.0, 3.0]), np.array(2.0)
    wanted = filling(x, y)
    both = np.ones(12)
    frozen = np.zeros((3, 3))
    frozen.flags.writeable = False
    for out, first, error in (
        (None, x, None),
        (both[:9].reshape(3, 3), both[6:9], None),
        (both[2:11].reshape(3, 3), both[:3], None),
        (both[3:].reshape(3, 3), both[:3], False),  # side by side is neat
        (np.zeros((3, 3)).view(Subclass), x, None),
        (np.asfortranarray(np.zeros((3, 3))), x, ArgumentError),
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
    with pytest.raises(ArgumentError, match=r"f has 3 outputs: out is not possible"):
        new_kernel()(*neat(), out=np.zeros(2))
    with pytest.raises(SingularError, match="x too small"):
        filling(x - 11.0, y, out=np.zeros((3, 3)))


@pytest.fixture
def plain(monkeypatch):
    """A function that makes kernels as interpreters do that have no native call."""
    monkeypatch.setattr(native, "supported", lambda: False)
    return lambda program, **options: Watched(program, backend="llvm", **options)


def test_without_native_calls_kernels_work_as_well(plain, kernel, filling):
    other = plain(PROGRAM, defaults=DEFAULT)
    assert type(other) is Watched
    for seed in range(5):
        arguments = neat(seed)
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


@ordinary
def test_kernels_with_very_many_inputs_are_called_plainly():
    program = trace(lambda **x: sum(x.values()), {f"x{k}": () for k in range(40)}, name="f")
    kernel = Kernel(program, backend="llvm")
    assert type(kernel) is Kernel
    assert kernel(*range(40)) == 780.0


def test_defaults_cannot_be_written(kernel):
    with pytest.raises(ValueError, match="read-only"):
        kernel.defaults[0][:] = 1.0


# -- any arguments at all --------------------------------------------------------------------------


def strange_arrays(rng: Any, shape: tuple[int, ...]) -> Any:
    """One array argument: often right, else wrong in a way of its own."""
    x = np.asarray(rng.normal(size=shape))
    last = x.shape[-1] if x.ndim else 1
    choice = rng.integers(34)
    if choice < 10:
        return x
    made = [
        lambda: x.astype(rng.choice(["f4", ">f8", ">f4", "f2", "i8", ">i2", "u1", "g"])),
        lambda: x.astype(rng.choice(["c16", "?", "O", "U8", "S4", "m8[s]", "M8[s]"])),
        lambda: x.view(Subclass),
        lambda: np.ma.masked_array(x),
        lambda: np.asfortranarray(x),
        lambda: x.T,
        lambda: np.repeat(x, 2, axis=-1)[..., ::2] if x.ndim else x,
        lambda: x[..., ::-1] if x.ndim else x[()],
        lambda: np.zeros((*shape, 1)),
        lambda: np.zeros((1, *shape)),
        lambda: rng.normal(size=(int(rng.integers(4)), *shape)),
        lambda: rng.normal(size=(2, 1, *shape)),
        lambda: np.zeros((*shape[:-1], last + int(rng.integers(-1, 2)))),
        lambda: np.zeros((*shape[:-1], 0)),
        lambda: as_strided(x, (0, *shape), (2**62, *x.strides)),
        lambda: as_strided(x, (1, *shape), (-(2**40), *x.strides)),
        lambda: as_strided(x, (2, *shape), (0, *x.strides)),
        lambda: np.zeros(x.nbytes + 3, dtype="u1")[3:].view("f8").reshape(shape),
        lambda: np.broadcast_to(1.5, shape),
        lambda: np.frombuffer(x.tobytes()).reshape(shape),
        lambda: x.astype(np.dtype("f8", metadata={"a": 1})),
        lambda: np.full(shape, rng.choice([np.nan, np.inf, -np.inf, 0.0, -20.0, 1e300])),
        lambda: np.zeros(shape, dtype=[("a", "f8"), ("b", "i4")])["a"],
        lambda: x.tolist(),
    ]
    return made[choice - 10]()


STRANGE = (
    None, 3, -1, 0.5, 2**70, True, 1j, "x", b"x", (), [], {}, [[]], [None], object(), object, int,
    np.ndarray, np.float64, np.float64(2.0), np.bool_(True), np, len, lambda: 3, slice(None),
    Ellipsis, NotImplemented, range(3), {1.0, 2.0}, memoryview(b"12345678" * 3), bytearray(24),
    Pretender(), Exception("x"), np.dtype("f8"), np.zeros, iter([1.0, 2.0, 3.0]),
)  # fmt: skip


def strange_arguments(rng: Any) -> list[Any]:
    given = [strange_arrays(rng, shape) for shape in SHAPES.values()]
    if rng.random() < 0.15:
        given[rng.integers(len(given))] = STRANGE[rng.integers(len(STRANGE))]
    if rng.random() < 0.1:
        i, j = rng.integers(len(given), size=2)
        given[i], given[j] = given[j], given[i]
    count = rng.choice([4, 3, 2, 1, 0, 5], p=[0.6, 0.3, 0.03, 0.03, 0.02, 0.02])
    return [*given, *given][:count]


CALLS = int(os.environ.get("MBS_FUZZ_CALLS", "20000"))
"""How many calls with random arguments are made."""


@pytest.mark.filterwarnings("ignore")
def test_no_arguments_crash_or_give_anything_else_than_the_slow_path(kernel):
    rng = np.random.default_rng(28 if CALLS == 20_000 else None)
    kinds: dict[str, int] = {}
    for k in range(CALLS):
        arguments = strange_arguments(rng)
        before = kernel.slow_calls
        found = outcome(kernel.call, arguments)
        fast = kernel.slow_calls == before
        wanted = outcome(Kernel.__call__, [kernel, *arguments])
        assert same(found, wanted), (k, arguments, found, wanted)
        kind = type(found).__name__ if isinstance(found, Exception) else "fast" * fast or "slow"
        kinds[kind] = kinds.get(kind, 0) + 1
    if ORDINARY:
        assert kinds["fast"] > 200
    assert kinds["slow"] > 200
    assert kinds["ArgumentError"] > 200
    assert kinds["SingularError"] > 20


def strange_out(rng: Any, given: Any) -> tuple[Any, Any]:
    """An input and something to write into: right, a part of the same memory, or quite wrong."""
    choice = rng.integers(8)
    if choice < 3:
        return given, np.zeros((3, 3))
    if choice == 3:
        return given, STRANGE[rng.integers(len(STRANGE))]
    if choice == 4:
        return given, given
    if choice == 5:
        whole = np.ones(15)
        first, start = rng.integers(13), rng.integers(7)
        return whole[first : first + 3], whole[start : start + 9].reshape(3, 3)
    return given, strange_arrays(rng, (3, 3))


@pytest.mark.filterwarnings("ignore")
def test_no_names_and_no_out_crash_or_give_anything_else_than_the_slow_path(filling):
    rng = np.random.default_rng(29 if CALLS == 20_000 else None)
    kinds: dict[str, int] = {}
    for k in range(CALLS // 4):
        x, y = strange_arrays(rng, (3,)), strange_arrays(rng, ())
        named = {}
        if rng.random() < 0.8:
            x, named["out"] = strange_out(rng, x)
        args = [x, y][: rng.choice([2, 1, 0, 2], p=[0.8, 0.1, 0.05, 0.05])]
        if rng.random() < 0.3:
            named[str(rng.choice(["x", "y", "z", "out", ""]))] = y
        kept = [np.array(v, copy=True) if isinstance(v, np.ndarray) else v for v in args]
        before = filling.slow_calls
        found = outcome(lambda *a, n=named: filling(*a, **n), args)
        fast = filling.slow_calls == before
        again = {"out": None, **named} if isinstance(found, Exception) else {**named, "out": None}
        wanted = outcome(lambda *a, n=again: Kernel.__call__(filling, *a, **n), kept)
        if isinstance(found, Exception) or isinstance(wanted, Exception):
            assert same(found, wanted), (k, args, named, found, wanted)
        else:
            assert np.asarray(found).tobytes() == np.asarray(wanted).tobytes(), (k, args, named)
            assert named.get("out") is None or found is named["out"]
        kind = type(found).__name__ if isinstance(found, Exception) else "fast" * fast or "slow"
        kinds[kind] = kinds.get(kind, 0) + 1
    assert min(kinds[kind] for kind in ("slow", "ArgumentError", "SingularError")) > 5
    assert not ORDINARY or kinds["fast"] > 200


class Explosive:
    """Converts to an array in bad ways."""

    def __init__(self, action: Any) -> None:
        self.action = action

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.action()


def test_arguments_that_run_python_while_they_are_converted(kernel):
    _, A, s, _ = neat()
    x = np.ones(3)

    def fail() -> Any:
        raise ZeroDivisionError("in __array__")

    with pytest.raises(ZeroDivisionError, match="in __array__"):
        kernel.call(Explosive(fail), A, s)
    recursive = Explosive(lambda: kernel.call(x, A, s)[2][0])
    wanted = kernel.call(kernel.call(x, A, s)[2][0], A, s)
    assert same(kernel.call(recursive, A, s), wanted)

    def collect() -> Any:
        gc.collect()
        return x.copy()

    assert same(kernel.call(Explosive(collect), A, s), kernel.call(x, A, s))
