# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Several results are a named tuple, by every back end and way of calling."""

import gc
from typing import Any, NamedTuple

import numpy as np
import pytest
from mechanisms import ARM_URDF

import mbs_dynamics as mbs
from mbs_dynamics.compiler import BACKENDS, Kernel, trace

ARM = mbs.Model.from_urdf(ARM_URDF)
STATE = ARM.random_state(4)
DERIVATIVES = ("dtau_dq", "dtau_dqd", "dtau_dqdd")


@pytest.mark.parametrize("backend", BACKENDS)
def test_results_have_names(backend):
    kernel = mbs.compile(mbs.inverse_dynamics_derivatives, ARM, backend=backend)
    batch = tuple(np.stack([x, x]) for x in STATE)
    for found, shape in ((kernel(*STATE), ()), (kernel(*batch), (2,))):
        assert isinstance(found, mbs.InverseDynamicsDerivatives)
        assert found._fields == DERIVATIVES == tuple(port.name for port in kernel.outputs)
        np.testing.assert_allclose(
            found.dtau_dqdd, np.broadcast_to(mbs.mass_matrix(ARM, STATE.q), (*shape, ARM.n, ARM.n))
        )
        assert found[1] is found.dtau_dqd


class Pair(NamedTuple):
    first: Any
    second: Any


class Extended(Pair):
    """Has a __dict__, so that its objects are larger than tuples."""


class Slotted(Pair):
    __slots__ = ()


@pytest.mark.long
@pytest.mark.parametrize("kind", [Pair, Extended, Slotted])
@pytest.mark.parametrize("backend", BACKENDS)
def test_only_named_tuples_that_are_no_more_than_tuples_are_filled(kind, backend):
    program = trace(lambda x: kind(2.0 * x, x + 1.0), {"x": (3,)}, name="pair")
    kernel = Kernel(program, backend=backend)
    found = [kernel(np.arange(3.0)) for _ in range(3)]
    assert type(found[0]).__name__ == ("Pair" if kind is Extended else kind.__name__)
    assert isinstance(found[0], kind) == (kind is not Extended)
    np.testing.assert_array_equal(found[1].first, [0.0, 2.0, 4.0])
    np.testing.assert_array_equal(found[1].second, [1.0, 2.0, 3.0])
    del found
    gc.collect()
