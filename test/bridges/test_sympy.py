# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Equations of motion in SymPy: those of the textbook, and the numbers of the kernels."""

import numpy as np
import pytest
import sympy
from gradients import model
from sympy import cos, sin

import mbs_dynamics as mbs
from mbs_dynamics.bridges.sympy import to_sympy
from mbs_dynamics.model.joints import Connection, joint


def planar_arm(joints: int, gravity: tuple[float, ...] = (0.0, -9.81, 0.0)) -> mbs.Model:
    """Return an arm of revolute joints about z, with links along x and a tip at its end."""
    home, screws = [np.eye(4) for _ in range(joints)], [(0, 0, 1, 0, 0, 0)] * joints
    for k, C in enumerate(home[1:], 1):
        C[0, 3] = 0.3 + 0.1 * k
    M = [mbs.spatial_inertia(3 - k, (0.2, 0, 0), np.diag([0, 0.1, 0.1])) for k in range(joints)]
    arm = mbs.Model.from_screws(
        list(range(-1, joints - 1)), home, screws, M, frame="body_fixed", gravity=gravity
    )
    return arm.with_frame("tip", arm.body_names[-1], np.eye(4) + np.eye(4, k=3) * 0.3)


def numbers(found, **arguments):
    """Return results with numbers for all symbols."""
    at = {s: x for name, x in arguments.items() for s, x in zip(found.inputs[name], x, strict=True)}
    return np.array(found.result.subs(found.values).subs(at).tolist(), dtype=float)


@pytest.mark.long
def test_equations_of_two_links_are_those_of_the_textbook():
    found = to_sympy(mbs.inverse_dynamics, planar_arm(2))
    q1, q2, qd1, qd2, a1, a2 = sympy.symbols("q1 q2 qd1 qd2 qdd1 qdd2")
    m1, m2, c1, c2, I1, I2, l, g = sympy.symbols("m1 m2 c1x c2x I1zz I2zz r2x g")
    h = m2 * l * c2 * sin(q2)
    M22 = I2 + m2 * c2**2
    M12 = M22 + m2 * l * c2 * cos(q2)
    M11 = I1 + m1 * c1**2 + m2 * l**2 + 2 * M12 - M22
    G2 = m2 * g * c2 * cos(q1 + q2)
    G1 = (m1 * c1 + m2 * l) * g * cos(q1) + G2
    expected = sympy.Matrix(
        [
            M11 * a1 + M12 * a2 - 2 * h * qd1 * qd2 - h * qd2**2 + G1,
            M12 * a1 + M22 * a2 + h * qd1**2 + G2,
        ]
    )
    assert sympy.simplify(found.result - expected) == sympy.zeros(2, 1)
    assert found.values[g] == 9.81
    assert {m1, m2, c1, c2, I1, I2, l, g} <= set(found.values)


@pytest.mark.long
@pytest.mark.parametrize("gravity", [(1.0, -9.0, 3.0), (0.0, 0.0, 0.0)])
def test_expressions_have_the_values_of_the_kernels(gravity):
    arm = planar_arm(2, gravity).with_payload("tip", mass=0.5).with_armature({"joint1": 0.1})
    q, qd, qdd = arm.random_state(seed=0)
    for function, state, options in (
        (mbs.inverse_dynamics, {"q": q, "qd": qd, "qdd": qdd}, {}),
        (mbs.forward_dynamics, {"q": q, "qd": qd, "tau": qdd}, {}),
        (mbs.mass_matrix, {"q": q}, {}),
        (mbs.forward_kinematics, {"q": q}, {"bodies": ["tip"]}),
    ):
        expected = function(arm, **state, **options)
        found = numbers(to_sympy(function, arm, **options), **state)
        np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-11, atol=1e-13)


def test_a_free_body_turns_by_eulers_equations():
    M = mbs.spatial_inertia(1, (0, 0, 0), np.diag([1, 2, 3]))
    body = Connection(name="pivot", joint=joint("spherical"), body="b", M_body=M)
    found = to_sympy(mbs.inverse_dynamics, mbs.Model.from_joints([body]))
    I = sympy.diag(*sympy.symbols("I1xx I1yy I1zz"))
    w = found.inputs["qd"]
    assert sympy.simplify(found.result - I * found.inputs["qdd"] - w.cross(I * w)) == sympy.zeros(
        3, 1
    )


def test_a_large_robot_is_refused():
    with pytest.raises(mbs.ArgumentError, match=r"model.*\d operations.*2000"):
        to_sympy(mbs.inverse_dynamics, model("chain"))
