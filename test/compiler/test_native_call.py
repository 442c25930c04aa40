# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels called through machine code: the fast path is taken, and the slow one for the rest."""

from __future__ import annotations

import numpy as np
import pytest
from native_bench import (
    expected,
    new_kernel,
    one_state,
    ordinary,
)
from numpy.lib.stride_tricks import as_strided

from mbs_dynamics.compiler.runtime.native import layout
from mbs_dynamics.errors import log_once

pytest.importorskip("llvmlite")


@pytest.fixture(scope="module")
def kernel():
    return new_kernel()


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
        for found, wanted in zip(kernel(*arguments), expected(*arguments), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-14, atol=1e-14)
        kernel(*arguments)
    assert kernel.slow_calls == before


@pytest.fixture
def forgetful(monkeypatch):
    """Let the interpreter be probed again, and let the report come again, as in a new process."""
    probes = layout.unsupported_reason, log_once
    for probe in probes:
        probe.cache_clear()
    yield monkeypatch
    monkeypatch.undo()
    for probe in probes:
        probe.cache_clear()


@ordinary
@pytest.mark.parametrize(
    ("struct", "field"),
    [
        *(("ARRAY", field) for field in layout.ARRAY.fields),
        *(("TUPLE", field) for field in layout.TUPLE.fields),
    ],
)
def test_a_layout_with_other_offsets_is_not_followed(forgetful, struct, field):
    fields = getattr(layout, struct).fields
    offset, kind = fields[field]
    forgetful.setitem(fields, field, (offset + 8, kind))
    assert "layout of objects" in layout.unsupported_reason()
