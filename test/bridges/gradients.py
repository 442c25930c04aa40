# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Models of all kinds of joints, and derivatives of their algorithms by complex steps."""

from functools import cache
from typing import Any

import numpy as np
from mechanisms import ARM_URDF
from robots import robot

import mbs_dynamics as mbs
from mbs_dynamics.bridges._programs import kernel_for
from mbs_dynamics.compiler.ir import operations as ops
from mbs_dynamics.compiler.ir.interpreter import evaluate_on
from mbs_dynamics.resources import robot_path

ON_COMPLEX = {
    ops.ADD: np.add,
    ops.SUB: np.subtract,
    ops.MUL: np.multiply,
    ops.DIV: np.divide,
    ops.NEG: np.negative,
    ops.SIN: np.sin,
    ops.COS: np.cos,
    ops.SQRT: np.sqrt,
    ops.ATAN2: lambda y, x: (
        np.arctan2(y.real, x.real)
        + 1j * (x.real * y.imag - y.real * x.imag) / (x.real**2 + y.real**2)
    ),
    ops.LESS: lambda a, b: np.real(a) < np.real(b),
    ops.LESS_EQUAL: lambda a, b: np.real(a) <= np.real(b),
    ops.SELECT: lambda condition, x, y: x if condition else y,
}
STEP = 1e-30

CASES: list[tuple[str, Any, dict[str, Any], tuple[str, ...]]] = [
    ("panda", mbs.inverse_dynamics, {}, ("q", "qd", "qdd", "gravity")),
    ("panda", mbs.inverse_dynamics, {"wrenches": True}, ("q", "wrenches")),
    ("panda", mbs.inverse_dynamics, {"inertial_parameters": True}, ("inertial_parameters",)),
    ("panda", mbs.kinetic_energy, {}, ("q", "qd")),
    ("loaded", mbs.forward_dynamics, {}, ("q", "qd", "tau", "payload", "armature")),
    ("loaded", mbs.inverse_dynamics, {"inertial_parameters": True}, ("inertial_parameters",)),
    ("loaded", mbs.forward_kinematics, {"bodies": ("tool",)}, ("q",)),
    ("loaded", mbs.jacobian, {"body": "tool", "representation": "hybrid"}, ("q",)),
    ("floating", mbs.forward_dynamics, {}, ("q", "qd", "tau")),
    ("floating", mbs.mass_matrix, {}, ("q",)),
    ("floating", mbs.center_of_mass, {}, ("q",)),
    ("floating", mbs.displaced, {}, ("q", "v")),
    ("floating", mbs.difference, {}, ("q", "q2")),
    ("chain", mbs.mass_matrix, {}, ("q",)),
]
"""Models, algorithms, options, and inputs to differentiate by."""


def case_name(case: Any) -> str:
    name, function, options, _ = case
    return "-".join([name, function.__name__, *options])


@cache
def model(name: str) -> mbs.Model:
    """Return an arm with a mimic joint, one with a load and armature, a floating base, a chain."""
    if name == "panda":
        return mbs.Model.from_urdf(robot("panda_description/urdf/panda.urdf"))
    if name == "loaded":
        arm = mbs.Model.from_urdf(robot_path("arm7")).with_payload("tool", 2.0, (0, 0.1, 0))
        return arm.with_armature({joint: 0.1 for joint in arm.joint_names[:3]})
    if name == "floating":
        return mbs.Model.from_urdf(ARM_URDF, floating_base=True)
    n, home, M = 20, np.eye(4), mbs.spatial_inertia(1, (0.1, 0, 0), np.eye(3))
    home[:3] = [[0, 0, 1, 0.1], [1, 0, 0, 0], [0, 1, 0, 0.2]]
    parents, screws = list(range(-1, n - 1)), [(0, 0, 1, 0, 0, 0)] * n
    return mbs.Model.from_screws(parents, [home] * n, screws, [M] * n, frame="body_fixed")


def prepared(case: Any) -> tuple[mbs.Model, mbs.Kernel, dict[str, Any]]:
    """Return model, kernel and arguments of a case, quaternions of unit length among them."""
    name, function, options, _ = case
    of = model(name)
    kernel = kernel_for(function, of, options)
    rng, (q, *_) = np.random.default_rng(1), of.random_state(seed=1)
    given = {port.name: rng.normal(size=port.shape) for port in kernel.inputs}
    given |= {
        "q": q,
        "q2": mbs.displaced(of, q, rng.normal(size=of.n)),
        **kernel.signature.optional,
    }
    return of, kernel, {port.name: given[port.name] for port in kernel.inputs}


def derivatives(kernel: mbs.Kernel, values: dict[str, Any], wrt: str) -> Any:
    """Return the derivatives (size of the result, size of the argument) of the first result."""
    columns = []
    for k in range(values[wrt].size):
        flat = {name: x.astype(complex).ravel() for name, x in values.items()}
        flat[wrt][k] += STEP * 1j
        result = evaluate_on(kernel.program.module, flat, ON_COMPLEX)[kernel.outputs[0].name]
        columns.append(np.imag(result) / STEP)
    return np.array(columns).T


def close(found: Any, expected: Any) -> bool:
    """Whether derivatives agree to 1e-10, relative to the largest."""
    return bool(np.abs(found - expected).max() <= 1e-10 * max(1.0, np.abs(expected).max()))
