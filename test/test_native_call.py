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
"""Kernels as builtins of CPython: the fast path is taken, and nothing crashes or differs."""

from __future__ import annotations

import ctypes
import gc
import sys
import sysconfig
import types
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.tracing import Kernel, native, positive, sin, trace

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.backend_independent  # the back end is llvm

ORDINARY = (
    sys.implementation.name == "cpython"
    and not sysconfig.get_config_var("Py_GIL_DISABLED")
    and not sysconfig.get_config_var("Py_DEBUG")
    and ctypes.sizeof(ctypes.c_void_p) == 8
)
ordinary = pytest.mark.skipif(not ORDINARY, reason="only ordinary builds of CPython have builtins")


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
def test_builtins_are_supported_and_used(kernel):
    assert native.supported()
    assert type(kernel.call) is types.BuiltinFunctionType
    assert kernel.call.__name__ == "f"


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


def test_the_builtin_takes_no_names(kernel):
    x, A, s, _ = neat()
    with pytest.raises(TypeError):
        kernel.call(x, A, s=s)
    assert len(kernel(x, A, s=s)) == 3  # the kernel itself does


def test_without_builtins_kernels_work_as_well(monkeypatch, kernel):
    monkeypatch.setattr(native, "supported", lambda: False)
    plain = new_kernel()
    assert not isinstance(plain.call, types.BuiltinFunctionType)
    for seed in range(5):
        arguments = neat(seed)
        assert same(plain(*arguments), kernel(*arguments))
    with pytest.raises(ArgumentError, match=r"f: missing \['A', 's'\]"):
        plain(arguments[0])


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


@pytest.mark.filterwarnings("ignore")
def test_no_arguments_crash_or_give_anything_else_than_the_slow_path(kernel):
    rng = np.random.default_rng(28)
    kinds: dict[str, int] = {}
    for k in range(20_000):
        arguments = strange_arguments(rng)
        before = kernel.slow_calls
        found = outcome(kernel.call, arguments)
        fast = kernel.slow_calls == before
        wanted = outcome(super(Watched, kernel)._slow, arguments)
        assert same(found, wanted), (k, arguments, found, wanted)
        kind = type(found).__name__ if isinstance(found, Exception) else "fast" * fast or "slow"
        kinds[kind] = kinds.get(kind, 0) + 1
    if ORDINARY:
        assert kinds["fast"] > 200
    assert kinds["slow"] > 200
    assert kinds["ArgumentError"] > 200
    assert kinds["SingularError"] > 20


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
