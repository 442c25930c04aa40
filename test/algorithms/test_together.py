# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Several algorithms in one kernel: the same results, shared operations, errors at the edge."""

import numpy as np
import pytest
from backends import BACKENDS
from mechanisms import MECHANISMS

import mbs_dynamics as mbs

EVERYTHING = {
    "g": mbs.gravity_torques,
    "h": (mbs.bias_torques, {}),
    "M": (mbs.mass_matrix, {"representation": "spatial"}),
    "V": (mbs.twists, {"representation": "hybrid"}),
    "tau": (mbs.inverse_dynamics, {"wrenches": True}),
    "d": mbs.inverse_dynamics_derivatives,
    "T": mbs.kinetic_energy,
}


def separately(functions, model, arrays):
    """Return what each algorithm gives by itself, by the names of the outputs."""
    found = {}
    for name, entry in functions.items():
        function, options = entry if isinstance(entry, tuple) else (entry, {})
        kernel = mbs.compile(function, model, backend="python", **options)
        inputs = {p.name: arrays[p.name] for p in kernel.inputs if p.name in arrays}
        result = kernel(**inputs)
        several = isinstance(result, tuple)
        for port, value in zip(kernel.outputs, result if several else (result,), strict=True):
            found[f"{name}_{port.name}" if several else name] = value
    return found


@pytest.mark.long
@pytest.mark.parametrize("backend", BACKENDS)
def test_together_they_give_what_they_give_alone(backend):
    model = MECHANISMS["mimics"].model
    together = mbs.compile_together(EVERYTHING, model, backend=backend)
    assert [port.name for port in together.inputs] == ["q", "qd", "qdd", "wrenches", "gravity"]
    rng = np.random.default_rng(1)
    shapes = {port.name: port.shape for port in together.inputs if port.name != "gravity"}
    arrays = {key: rng.normal(size=(3, *shape)) for key, shape in shapes.items()}
    results = together(*arrays.values())
    expected = separately(EVERYTHING, model, arrays)
    assert [port.name for port in together.outputs] == list(expected)
    for found, (key, value) in zip(results, expected.items(), strict=True):
        scale = max(1.0, np.abs(value).max())
        np.testing.assert_allclose(found, value, rtol=1e-12, atol=1e-12 * scale, err_msg=key)
