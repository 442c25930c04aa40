# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels called through machine code with any arguments at all: nothing crashes or differs."""

from typing import Any

import numpy as np
import pytest
from native_bench import ORDINARY, SHAPES, Pretender, Subclass, new_kernel, outcome, same
from numpy.lib.stride_tricks import as_strided

from mbs_dynamics.compiler import Kernel

pytest.importorskip("llvmlite")


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


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_no_arguments_crash_or_give_anything_else_than_the_slow_path():
    kernel, rng = new_kernel(), np.random.default_rng(28)
    kinds: dict[str, int] = {}
    for k in range(3_000):
        arguments = strange_arguments(rng)
        before = kernel.slow_calls
        found = outcome(kernel, arguments)
        fast = kernel.slow_calls == before
        wanted = outcome(Kernel.__call__, [kernel, *arguments])
        assert same(found, wanted), (k, arguments, found, wanted)
        kind = type(found).__name__ if isinstance(found, Exception) else "fast" * fast or "slow"
        kinds[kind] = kinds.get(kind, 0) + 1
    assert min(kinds[x] for x in ("slow", "ArgumentError")) > 100
    assert kinds["SingularError"] > 5
    assert not ORDINARY or kinds["fast"] > 100
