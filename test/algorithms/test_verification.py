# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels are compared with their equations before they move an arm."""

from dataclasses import replace

import numpy as np
import pytest
from mechanisms import MECHANISMS, every_mechanism

import mbs_dynamics as mbs
from mbs_dynamics.algorithms.verification import verify
from mbs_dynamics.compiler import Kernel, trace
from mbs_dynamics.errors import BackendError
from mbs_dynamics.model.inertia import Inertia


@every_mechanism
def test_kernels_agree_with_their_equations(name):
    model = MECHANISMS[name].model
    loaded = model.with_payload(model.body_names[-1], 0.5, np.full(3, 0.1))
    for representation in ("body_fixed", "mixed"):
        for function, each in ((mbs.gravity_torques, loaded), (mbs.mass_matrix, model)):
            kernel = mbs.compile(function, each, representation=representation)
            verify(kernel, function, each)


def test_code_for_a_slightly_heavier_arm_is_refused():
    model = MECHANISMS["revolute chain"].model
    *others, last = model.bodies
    heavy = Inertia.from_parameters(last.inertia.parameters * (1.0 + 1e-6))
    heavier = replace(model, bodies=(*others, replace(last, inertia=heavy)))
    kernel = mbs.compile(mbs.mass_matrix, heavier)
    with pytest.raises(BackendError, match=r"mass_matrix.*\d"):
        verify(kernel, mbs.mass_matrix, model)


def test_a_result_that_is_not_finite_is_refused():
    model = MECHANISMS["revolute chain"].model

    broken = trace(lambda q: np.full(model.n, np.nan), {"q": (model.n,)}, name="gravity_torques")
    with pytest.raises(BackendError, match="nan"):
        verify(Kernel(broken), mbs.gravity_torques, model)
