# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Planes that links touch: forces at rest, energy, and what cannot be simulated."""

import re

import numpy as np
import pytest

import mbs_dynamics as mbs
from mbs_dynamics.errors import ArgumentError, MbsError, UnknownBodyError
from mbs_dynamics.integrate import ContactPlanes, Plane, simulate
from mbs_dynamics.model.model import body_wrenches
from mbs_dynamics.resources import robot_path

ARM = mbs.Model.from_urdf(robot_path("arm7"))
Q = np.array([0.3, 0.5, -0.2, 1.1, 0.1, 0.7, 0.1])
HEIGHT = float(mbs.forward_kinematics(ARM, Q, bodies=["tool"])[0, 2, 3]) - 0.02
MASS = mbs.Model.from_screws(
    [-1], np.eye(4)[None], [[0, 0, 0, 0, 0, 1]],
    mbs.spatial_inertia(2.0, (0, 0, 0), np.eye(3))[None], frame="body_fixed",
)  # fmt: skip
STEP = 1e-3
HELD = {"semi_implicit_euler": STEP, "rk4": STEP}
K = 2e4


def test_a_mass_comes_to_rest_at_the_depth_of_its_weight():
    table = ContactPlanes(MASS, [Plane((0, 0, 2.0), 0.0, K, 200.0)], step=STEP)
    motion = simulate(MASS, [0.1], duration=3.0, step=STEP, wrenches=table)
    weight = 2.0 * 9.81
    assert motion.q[-1, 0] == pytest.approx(-weight / K, rel=1e-6)
    W = table.by_link(motion.q[-1], motion.qd[-1])[MASS.body_names[0]]
    np.testing.assert_allclose(W, [0, 0, 0, 0, 0, weight], rtol=1e-6, atol=1e-9)


@pytest.mark.long
@pytest.mark.parametrize(
    ("method", "damping"), [("rk4", 100.0), ("semi_implicit_euler", 0.0), ("dormand_prince", 0.0)]
)
def test_an_arm_that_falls_on_a_table_gains_no_energy_and_is_not_pulled(method, damping):
    table = ContactPlanes(
        ARM, [Plane((0, 0, 1), HEIGHT, K, damping)], ["tool"], step=HELD.get(method, 0.0)
    )
    motion = simulate(ARM, Q, duration=1.0, step=STEP, wrenches=table, method=method)
    depth = HEIGHT - mbs.forward_kinematics(ARM, motion.q, bodies=["tool"])[:, 0, 2, 3]
    assert (np.diff((depth > 0.0).astype(int)) == 1).sum() > 3
    energy = motion.energy + 0.5 * K * np.maximum(depth, 0.0) ** 2
    moved = motion.kinetic.max()
    assert energy.max() - energy[0] < (0.02 if damping == 0.0 else 1e-9) * moved
    if method == "dormand_prince" and damping == 0.0:
        assert energy[0] - energy.min() < 2e-3 * moved
    R = mbs.forward_kinematics(ARM, motion.q, bodies=["tool"])[:, 0, :3, :3]
    W = table.by_link(motion.q, motion.qd)["tool"]
    forces = np.einsum("tij,tj->ti", R, W[:, 3:])
    assert forces[:, 2].min() == 0.0
    np.testing.assert_allclose(forces[:, :2], 0.0, atol=1e-9)


def test_a_corner_of_two_planes_pushes_along_both_normals():
    C = mbs.forward_kinematics(ARM, Q, bodies=["tool"])[0]
    x, _, z = C[:3, 3]
    planes = [Plane((0, 0, 1), z + 0.01, K), Plane((-1, 0, 0), 0.02 - x, K)]
    corner = ContactPlanes(ARM, planes, ["tool"])
    W = corner.by_link(Q, np.zeros(7))["tool"]
    np.testing.assert_allclose(C[:3, :3] @ W[3:], [-0.02 * K, 0, 0.01 * K], atol=1e-6)
    np.testing.assert_allclose(corner(0.0, Q, np.zeros(7)), body_wrenches(ARM, {"tool": W}))


def test_a_stiffness_that_a_step_cannot_bear_is_refused_with_the_largest():
    """With the largest, a mass bounces lower and lower."""

    def table(k):
        return ContactPlanes(MASS, [Plane((0, 0, 1), 0.0, k, 0.0)], step=STEP)

    most = 0.5 * 4.0 * 2.0 / (3.0 * STEP**2)
    table(0.999 * most).check_step(np.zeros(1))
    with pytest.raises(ArgumentError, match=re.escape(f"{most:.3g}")):
        table(1.001 * most).check_step(np.zeros(1))
    stiff = table(0.999 * most)
    dropped = {"duration": 1.0, "step": STEP, "method": "semi_implicit_euler"}
    motion = simulate(MASS, [0.01], wrenches=stiff, **dropped)
    assert motion.q[1:].max() < 0.01
    assert motion.q.min() > -0.002


def test_wrong_planes_and_links_are_refused():
    for name, wrong in (
        ("normal", (0, 0, 0)), ("stiffness", 0.0), ("damping", -1.0), ("offset", np.nan)
    ):  # fmt: skip
        with pytest.raises(MbsError, match=name):
            Plane(**{"normal": (0, 0, 1), "offset": 0.0, name: wrong})
    with pytest.raises(UnknownBodyError, match="nail"):
        ContactPlanes(ARM, [], ["nail"])
