# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Loops over generic bodies give what straight code gives: random trees and functions.

Bodies whose constants are zeros and ones take other ways through the tracer than generic ones, and
so there are many of these. MBS_FUZZ_LOOPS says how many cases there are.
"""

from __future__ import annotations

import functools
import inspect
import os
from typing import Any

import numpy as np
import pytest
from interpreted import interpreted
from mechanisms import random_mechanism, with_mimics
from reference import assert_close

import mbs_dynamics as mbs
from mbs_dynamics.algorithms import algorithm_of
from mbs_dynamics.model.compiled import compiled

CASES = int(os.environ.get("MBS_FUZZ_LOOPS", "40"))
SEED = 57 if CASES == 40 else int(np.random.default_rng().integers(1 << 32))

FUNCTIONS = [function for function in mbs.ALGORITHMS if algorithm_of(function).generic]


def tree(rng: np.random.Generator) -> mbs.Model:
    """Return a random tree, often with zeros and ones in it, some with payloads or mimic joints."""
    n = int(rng.integers(1, 10))
    along = 1.0 if rng.random() < 0.25 else 0.6  # a chain, or a tree
    parents = [i - 1 if rng.random() < along else int(rng.integers(-1, i)) for i in range(n)]
    kinds = [("revolute",), ("prismatic",), ("revolute", "prismatic", "screw")]
    options = {"aligned": rng.random() < 0.7, "kinds": kinds[int(rng.integers(3))]}
    mechanism = random_mechanism(int(rng.integers(1 << 30)), parents, **options)
    if rng.random() < 0.1:
        _, shared = np.unique(rng.integers(0, rng.integers(1, n + 1), n), return_inverse=True)
        ratio = rng.choice([1.0, -1.0, 0.5, 1.7], n) if rng.random() < 0.7 else np.ones(n)
        offset = rng.uniform(-1.0, 1.0, n) * (rng.random(n) < 0.5)
        mechanism = with_mimics(
            mechanism, [int(k) for k in rng.permutation(shared.max() + 1)[shared]], ratio, offset
        )
    model = mechanism.model
    for i in np.flatnonzero(rng.random(n) < 0.2):
        model = model.with_payload(model.body_names[i], 1.5, rng.uniform(-0.1, 0.1, 3))
    return model


def options_of(function: Any, model: mbs.Model, rng: np.random.Generator) -> dict[str, Any]:
    given = {
        "body": lambda: str(rng.choice(model.body_names)),
        "order": lambda: int(rng.integers(1, 4)),
        "representation": lambda: str(rng.choice(list(mbs.REPRESENTATIONS))),
    }
    parameters = inspect.signature(function).parameters
    return {name: make() for name, make in given.items() if name in parameters}


@pytest.mark.filterwarnings("ignore::mbs_dynamics.ModelWarning")
def test_loops_give_what_straight_code_gives(loops):
    looped = 0
    for case in range(CASES):
        rng = np.random.default_rng((SEED, case))
        function, model = FUNCTIONS[case % len(FUNCTIONS)], tree(rng)
        options = options_of(function, model, rng)
        kernels = []
        for on in (False, True):
            loops(on)
            compiled(model).kernels.clear()
            backend = None if on else "python"
            kernels.append(mbs.compile(function, model, backend=backend, **options))
        straight, kernel = kernels
        looped += kernel.program.in_loops
        ports = straight.inputs[: straight.required]
        rows = [rng.uniform(-2.0, 2.0, (9, *port.shape)) for port in ports]
        first = [x[0] for x in rows]
        slow = functools.partial(interpreted, kernel)
        for arrays, evaluate in ((first, kernel), (rows, kernel), (first, slow)):
            expected, found = straight(*arrays), evaluate(*arrays)
            every = [x if isinstance(x, tuple) else (x,) for x in (found, expected)]
            for a, b in zip(*every, strict=True):
                close = 1e-10 * max(1.0, np.abs(b).max(initial=0.0))
                assert_close(a, b, close, f"seed {SEED}, case {case}: {function} {options}")
    assert looped > 0.6 * CASES
