# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Machine code and plain Python agree on the large robots, in every representation.

test_pinocchio.py holds plain Python against Pinocchio for every robot in every representation, and
machine code for all of that up to 20 bodies; here is machine code for the larger ones.
"""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from backends import LLVM
from cases import mostly_slow
from reference import assert_close
from robots import robot_files

import mbs_dynamics as mbs
from mbs_dynamics.algorithms import algorithm_of
from mbs_dynamics.compiler import Kernel
from mbs_dynamics.model.orders import leaves

pytestmark = [pytest.mark.backend_independent, *LLVM.marks]

MOVING = re.compile(r"""<joint[^>]*type\s*=\s*["'](?:revolute|continuous|prismatic)["']""")
REPRESENTATIVE = ("talos_data/robots/talos_full_v2.urdf",)
LARGE = [name for name, path in robot_files().items() if len(MOVING.findall(path.read_text())) > 20]

FUNCTIONS = {
    mbs.inverse_dynamics: ("q", "qd", "qdd", "wrenches"),
    mbs.gravity_torques: ("q",),
    mbs.bias_torques: ("q", "qd"),
    mbs.coriolis_torques: ("q", "qd"),
    mbs.generalized_momentum: ("q", "qd"),
    mbs.twists: ("q", "qd"),
    mbs.jacobian: ("q",),
}


@pytest.mark.parametrize("name", mostly_slow(LARGE, REPRESENTATIVE))
def test_machine_code_is_what_plain_python_is(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbs.ModelWarning)
        model = mbs.Model.from_urdf(robot_files()[name])
    values = dict(zip(("q", "qd", "qdd"), model.random_state(2), strict=True))
    values["wrenches"] = np.random.default_rng(1).normal(size=(model.nb, 6))
    defaults = {"gravity": model.gravity}
    for function, arrays in FUNCTIONS.items():
        algorithm = algorithm_of(function)
        options = {"body": leaves(model)[-1]} if function is mbs.jacobian else {}
        for representation in mbs.REPRESENTATIONS:
            chosen = {**algorithm.options, **options, "representation": representation}
            program = algorithm.program(model, arrays, chosen)
            given = [values[array] for array in arrays]
            plain = Kernel(program, backend="python", defaults=defaults)(*given)
            found = Kernel(program, backend="llvm", defaults=defaults)(*given)
            assert_close(found, plain, 1e-13, what=(algorithm.name, representation))
