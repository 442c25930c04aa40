# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels: defaults, outputs of all sorts, guards, and what a kernel says about itself."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from backends import BACKENDS
from test_kernel import Q, close

from mbs_dynamics.compiler import Kernel, positive, sin, sqrt, trace
from mbs_dynamics.errors import SingularError


@pytest.fixture(params=BACKENDS, scope="module")
def backend(request):
    return request.param


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
        for shape, index in (((6,), (3,)), ((2, 3), (1, 2)), ((1, 1), (0, 0))):
            batch = np.full((*shape, 2), [4.0, 1.0])
            close(kernel(batch), np.full((*shape, 3), [2.0, 3.0, 1.0]))
            batch[index] = x
            guard, *why = message.split("; ")
            in_batch = "; ".join([f"{guard} at state {[*index]} of the batch", *why])
            with pytest.raises(SingularError, match=f"^{re.escape(in_batch)}$"):
                kernel(batch)
        close(kernel(np.array([4.0, 1.0])), np.array([2.0, 3.0, 1.0]))
