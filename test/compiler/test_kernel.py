# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels as callables on arrays: types, batches, outputs of all sorts, guards, and bad calls."""

import re
from typing import Any

import numpy as np
import pytest
from backends import BACKENDS
from native_bench import Subclass

from mbs_dynamics.compiler import Kernel, positive, sin, sqrt, trace
from mbs_dynamics.compiler.runtime.machine import LEAST_STATES
from mbs_dynamics.errors import ArgumentError, SingularError

SHAPES = {"q": (3,), "A": (2, 3), "s": ()}
Q, A, S = np.array([0.3, -1.0, 2.0]), np.arange(6.0).reshape(2, 3) - 2.0, np.array(1.5)


def equations(q: Any, A: Any, s: Any) -> Any:
    return A @ sin(q) * s + q[0]


def expected(q: Any, A: Any, s: Any) -> Any:
    """The same in NumPy, with leading batch axes."""
    q, A, s = (np.asarray(x, dtype=float) for x in (q, A, s))
    return (A @ np.sin(q)[..., None])[..., 0] * s[..., None] + q[..., :1]


def close(found: Any, wanted: Any) -> None:
    assert type(found) is np.ndarray
    assert found.dtype == np.float64
    assert found.dtype.isnative
    assert found.flags.c_contiguous
    wanted = np.asarray(wanted)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-14, atol=1e-14)


PROGRAM = trace(equations, SHAPES, name="f")


@pytest.fixture(params=BACKENDS, scope="module")
def backend(request):
    return request.param


@pytest.fixture(scope="module")
def kernel(backend):
    return Kernel(PROGRAM, backend=backend)


def test_calls_by_position_and_by_name(kernel):
    wanted = expected(Q, A, S)
    for found in (
        kernel(Q, A, S),
        kernel(Q, s=S, A=A),
        kernel(s=S, A=A, q=Q),
        kernel(*[x.copy() for x in (Q, A, S)]),
    ):
        close(found, wanted)


def variants(x: np.ndarray[Any, Any]) -> dict[str, Any]:
    """The same numbers in every clothing that NumPy knows."""
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1])) if x.ndim else np.zeros(())
    strided = wide[..., ::2] if x.ndim else wide
    strided[...] = x
    reversed_ = np.ascontiguousarray(x[..., ::-1])[..., ::-1] if x.ndim else x
    unaligned = np.zeros(x.nbytes + 1, dtype=np.uint8)[1:].view(np.float64).reshape(x.shape)
    unaligned[...] = x
    last = np.ascontiguousarray(np.moveaxis(x, 0, -1)) if x.ndim else x
    readonly = x.copy()
    readonly.flags.writeable = False
    return {
        "list": x.tolist(),
        "tuple": tuple(x.tolist()) if x.ndim else x.item(),
        "list of arrays": list(x) if x.ndim else x[()],
        "strided": strided,
        "reversed": reversed_,
        "Fortran": x.copy(order="F"),
        "byte-swapped": x.astype(x.dtype.newbyteorder()),
        "unaligned": unaligned,
        "read-only": readonly,
        "subclass": x.view(Subclass),
        "long double": x.astype(np.longdouble),
        "broadcast": np.broadcast_to(x[None], (1, *x.shape))[0],
        "batch last": np.moveaxis(last, -1, 0) if x.ndim else x,
    }


@pytest.mark.parametrize("batch", [(), (LEAST_STATES + 3,)], ids=["one state", "vectors"])
@pytest.mark.parametrize("kind", list(variants(Q)))
def test_any_kind_of_array(kernel, kind, batch):
    rng = np.random.default_rng(23)
    q, A, s = arrays = [rng.normal(size=(*batch, *shape)) for shape in SHAPES.values()]
    other_q, other_A, other_s = others = [variants(x)[kind] for x in arrays]
    for given in ((other_q, A, s), (q, other_A, s), (q, A, other_s), others):
        close(kernel(*given), expected(*arrays))


BATCHES = [
    ((5,), (5,), (5,)),
    ((5,), (), ()),
    ((), (5,), ()),
    ((), (), (5,)),  # an input without axes, and one state for all
    ((5,), (1,), ()),
    ((4, 1), (5,), (4, 5)),
    ((2, 1, 3), (4, 1), ()),
    ((), (), (0,)),
    ((0,), (0,), (0,)),
    ((0, 3), (), (3,)),
]


@pytest.mark.parametrize("axes", BATCHES)
def test_batch_axes_broadcast(kernel, axes):
    rng = np.random.default_rng(24)
    arrays = [
        rng.normal(size=(*batch, *shape))
        for batch, shape in zip(axes, SHAPES.values(), strict=True)
    ]
    close(kernel(*arrays), expected(*arrays))
    close(kernel(*[x.astype(">f8") for x in arrays]), expected(*arrays))


WRONG_CALLS = [
    ((), {}, "'q'"),
    ((), {"q": Q, "s": S}, "'A'"),
    ((Q, A, S, S), {}, r"q \(3,\), A \(2, 3\), s \(\)"),
    ((Q, A, S), {"qq": Q}, "'qq'"),
    ((Q, A), {"q": Q}, "'q'"),
    ((Q, A.T, S), {}, r"A.*\(3, 2\).*\(2, 3\)"),
    ((1.0, A, S), {}, r"q.*\(\).*\(3,\)"),
    ((Q, [[1.0], [2.0, 3.0]], S), {}, "A"),
    ((np.zeros((4, 3)), np.zeros((5, 2, 3)), S), {}, r"q \(4, 3\), A \(5, 2, 3\), s \(\)"),
    ((Q > 0, A, S), {}, "q.*bool"),  # which NumPy would convert
    ((Q.astype("m8[s]"), A, S), {}, "q.*timedelta64"),
]
"""Other types and shapes: test_bad_arguments.py."""


@pytest.mark.parametrize(("given", "named", "message"), WRONG_CALLS)
def test_wrong_calls(kernel, given, named, message):
    with pytest.raises(ArgumentError, match=message):
        kernel(*given, **named)


def several(x: Any) -> Any:
    return {"a": sin(x), "b": np.outer(x, x), "c": 4.0, "d": x[0], "e": np.zeros((0, 2))}


def test_several_outputs(backend):
    kernel = Kernel(trace(several, {"x": (3,)}, name="f"), backend=backend)
    for x in (Q, Q.tolist()):
        a, b, c, d, e = kernel(x)
        close(a, np.sin(Q))
        close(b, np.outer(Q, Q))
        close(c, np.array(4.0))
        close(d, np.array(Q[0]))
        assert e.shape == (0, 2)
    for batch in ((5,), (2, 3), (0,)):
        x = np.random.default_rng(27).normal(size=(*batch, 3))
        a, b, c, d, e = kernel(x)
        close(a, np.sin(x))
        close(b, x[..., None] * x[..., None, :])
        close(c, np.full(batch, 4.0))
        close(d, x[..., 0])
        assert e.shape == (*batch, 0, 2)


def guarded(x: Any) -> Any:
    first = positive(x[0], "the first is not positive")
    return [sqrt(first), positive(first - x[1], "the difference is not positive"), x[1]]


def test_guards_raise_where_they_are_not_positive(backend):
    kernel = Kernel(trace(guarded, {"x": (2,)}, name="f"), backend=backend)
    close(kernel(np.array([4.0, 1.0])), np.array([2.0, 3.0, 1.0]))
    wrong = [
        ([0.0, -1.0], "f: the first is not positive"),
        ([-1.0, 5.0], "f: the first is not positive"),
        ([np.nan, 0.0], "f: the first is not positive; an input is not finite"),
        ([2.0, 2.0], "f: the difference is not positive"),
        ([2.0, np.nan], "f: the difference is not positive; an input is not finite"),
    ]
    for x, message in wrong:
        for given in (np.array(x), x, np.array([x[0], 7.0, x[1]])[::2]):
            with pytest.raises(SingularError, match=f"^{message}$"):
                kernel(given)
        for shape, index in (((6,), (3,)), ((2, 3), (1, 2)), ((1, 1), (0, 0)), ((31, 10), (23, 4))):
            batch = np.full((*shape, 2), [4.0, 1.0])
            close(kernel(batch), np.full((*shape, 3), [2.0, 3.0, 1.0]))
            batch[index] = x
            guard, *why = message.split("; ")
            in_batch = "; ".join([f"{guard} at state {[*index]} of the batch", *why])
            with pytest.raises(SingularError, match=f"^{re.escape(in_batch)}$"):
                kernel(batch)
        close(kernel(np.array([4.0, 1.0])), np.array([2.0, 3.0, 1.0]))
