# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Models from Denavit-Hartenberg parameters, against point masses on the links of the paper."""

from math import cos, pi, sin

import numpy as np
import pytest
from interpreted import evaluated

import mbs_dynamics as mbs
from examples.puma_study import PUMA
from examples.puma_study import puma as puma_of_the_study
from mbs_dynamics.errors import ModelError
from mbs_dynamics.model.dh import DHRow, DHTable, link_inertia
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.model import Model

SEEDS = range(5)
GAUSS = list(zip(*np.polynomial.legendre.leggauss(4), strict=True))
"""Exact for polynomials up to degree 7; the integrands of eq. (17a) are of degree 2."""


def Rz(t):
    return np.array([[cos(t), -sin(t), 0, 0], [sin(t), cos(t), 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])


def Rx(t):
    return np.array([[1, 0, 0, 0], [0, cos(t), -sin(t), 0], [0, sin(t), cos(t), 0], [0, 0, 0, 1.0]])


def T(x, y, z):
    return np.array([[1, 0, 0, x], [0, 1, 0, y], [0, 0, 1, z], [0, 0, 0, 1.0]])


def random_row(rng, kind=None):
    return DHRow(
        a=rng.choice([0.0, 1.0]) * rng.uniform(-0.2, 0.6),
        d=rng.uniform(-0.5, 0.5),
        alpha=rng.uniform(-pi, pi),
        theta=rng.uniform(-pi, pi),
        mass=rng.uniform(0.5, 5.0),
        kind=kind or str(rng.choice(["revolute", "prismatic"])),
    )


def random_table(seed):
    rng = np.random.default_rng(seed)
    return DHTable(tuple(random_row(rng) for _ in range(int(rng.integers(1, 7)))))


def on_rod(length):
    """Points from 0 to a signed length, with weights that add up to its absolute value."""
    return [(length * (x + 1) / 2, abs(length) * w / 2) for x, w in GAUSS]


def elements(row):
    """Mass and position of the elements of eq. (9), from O_i, in axes X_{i+1}, ., Z_i."""
    rho = row.mass / (abs(row.a) + abs(row.d))
    yield from ((rho * w, np.array([0.0, 0.0, s])) for s, w in on_rod(row.d))
    yield from ((rho * w, np.array([s, 0.0, row.d])) for s, w in on_rod(row.a))


def kinetic_energy(table, q, qd, h=1e-5):
    """T of eq. (10), from the elements' positions at q +- h qd and the frames of the paper."""

    def state(q):
        frame, points = np.eye(4), []
        for row, q_i in zip(table.rows, q, strict=True):
            slide, turn = (0.0, q_i) if row.kind == "revolute" else (q_i, 0.0)
            link = frame @ Rz(row.theta + turn) @ T(0, 0, slide)
            points += [(m, (link @ [*r, 1.0])[:3]) for m, r in elements(row)]
            frame = frame @ Rz(row.theta + turn) @ T(0, 0, row.d + slide)
            frame = frame @ T(row.a, 0, 0) @ Rx(row.alpha)
        return points

    energy = 0.0
    for (m, r), (_, r_before) in zip(state(q + h * qd), state(q - h * qd), strict=True):
        v = (r - r_before) / (2 * h)
        energy += 0.5 * m * v @ v
    return energy


@pytest.mark.parametrize("seed", SEEDS)
def test_frames_are_the_product_of_the_elementary_transformations(seed):
    table = random_table(seed)
    model = Model.from_dh(table)
    q = np.random.default_rng(seed + 100).uniform(-2.0, 2.0, model.n)
    frame = np.eye(4)
    for row, q_i, C in zip(table.rows, q, evaluated(mbs.forward_kinematics, model, q), strict=True):
        theta, b = (row.theta + q_i, row.d) if row.kind == "revolute" else (row.theta, row.d + q_i)
        np.testing.assert_allclose(C[:3, 2], frame[:3, 2], atol=1e-13)  # on the axis Z_i,
        along_Z = frame[:3, 3] + (q_i if row.kind == "prismatic" else 0.0) * frame[:3, 2]
        np.testing.assert_allclose(C[:3, 3], along_Z, atol=1e-13)  # at O_i
        frame = frame @ Rz(theta) @ T(0, 0, b) @ T(row.a, 0, 0) @ Rx(row.alpha)
        np.testing.assert_allclose(C[:3, 0], frame[:3, 0], atol=1e-13)  # and along X_{i+1}
    tool = model.frames["tool"]
    assert tool.body == model.nb - 1
    np.testing.assert_allclose(C @ tool.placement, frame, atol=1e-13)
    assert [joint.kind for joint in model.joints] == [row.kind for row in table.rows]
    assert model.parents == tuple(range(-1, model.nb - 1))


@pytest.mark.parametrize("seed", SEEDS)
def test_inertia_of_a_link_is_that_of_its_elements(seed):
    row = random_row(np.random.default_rng(seed))
    inertia = link_inertia(row)
    masses, points = zip(*elements(row), strict=True)
    tensor = sum(
        m * (r @ r * np.eye(3) - np.outer(r, r)) for m, r in zip(masses, points, strict=True)
    )
    assert inertia.mass == pytest.approx(row.mass, rel=1e-14)
    np.testing.assert_allclose(inertia.moment, np.array(masses) @ np.array(points), atol=1e-14)
    np.testing.assert_allclose(inertia.tensor, tensor, atol=1e-14)
    eigenvalues = np.linalg.eigvalsh(inertia.matrix())
    assert eigenvalues[0] > -1e-15 * eigenvalues[-1]
    Inertia.from_matrix(inertia.matrix())  # raises if this is not the inertia of a body


def paper_matrix(row, C_5):
    """M_i of section 4.1 in the frame of body i (theta_i = 0), blocks turned to (omega, v)."""
    a, b = row.a, row.d
    rho = row.mass / (a + b)
    C_1, C_2 = -rho * b * (b / 2 + a), -rho * a**2 / 2
    C_3, C_4 = rho * b**2 * (b / 3 + a), rho * a**3 / 3
    z_cross = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 0]])
    x_cross = np.array([[0.0, 0, 0], [0, 0, -1], [0, 1, 0]])
    M_vw = C_1 * z_cross + C_2 * x_cross
    M_ww = np.array([[C_3, 0, -C_5], [0, C_3 + C_4, 0], [-C_5, 0, C_4]])
    return np.block([[M_ww, M_vw.T], [M_vw, rho * (a + b) * np.eye(3)]])


def test_constants_of_the_paper_with_the_corrected_C_5():
    for row in PUMA.rows[:3]:
        rho = row.mass / (row.a + row.d)
        expected = paper_matrix(row, rho * row.a**2 * row.d / 2)
        np.testing.assert_allclose(link_inertia(row).matrix(), expected, atol=1e-15)


def test_the_printed_C_5_makes_link_2_of_the_puma_indefinite():
    row = PUMA.rows[1]
    printed = paper_matrix(row, row.mass / (row.a + row.d) * row.a**2 * row.d)
    assert np.linalg.eigvalsh(printed)[0] == pytest.approx(-0.278, abs=5e-4)
    with pytest.raises(ModelError, match="semidefinite"):
        Inertia.from_matrix(printed)
    assert np.linalg.eigvalsh(link_inertia(row).matrix())[0] > -1e-15


@pytest.mark.parametrize("seed", SEEDS)
def test_kinetic_energy_is_that_of_the_elements(seed):
    table = random_table(seed)
    model = Model.from_dh(table)
    rng = np.random.default_rng(seed + 200)
    q, qd = rng.uniform(-2.0, 2.0, (2, model.n))
    got = 0.5 * qd @ evaluated(mbs.mass_matrix, model, q) @ qd
    assert got == pytest.approx(kinetic_energy(table, q, qd), rel=1e-7)


MOTORS = [
    {"motor_inertia": 2e-4, "gear_ratio": -62.6, "damping": 5.8, "friction": 24.0},
    {"position_limits": (-1.9, 2.5), "velocity_limit": 3.0, "effort_limit": 97.0},
    {"motor_inertia": 3e-5, "gear_ratio": 1.0, "damping": 0.5},
]


@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
@pytest.mark.parametrize("convention", ["classical", "modified"])
def test_motors_and_limits_are_those_of_joints(kind, convention):
    row = dict(a=0.3, alpha=0.7, mass=2.0, kind=kind, com=(0.1, 0.0, 0.2))
    bare = DHRow(**row, d=0.2, inertia_at_com=0.1 * np.eye(3))
    rows = [bare._replace(**more) for more in MOTORS]
    rows[1] = rows[1]._asdict()
    model = Model.from_dh(DHTable(tuple(rows), convention=convention))
    np.testing.assert_allclose(model.armature, [2e-4 * 62.6**2, 0.0, 3e-5])
    np.testing.assert_array_equal([model.damping, model.friction], [[5.8, 0, 0.5], [24, 0, 0]])
    assert model.joints[1].limits[:4] == (-1.9, 2.5, 3.0, 97.0)
    np.testing.assert_array_equal(model.upper, [np.inf, 2.5, np.inf])


@pytest.fixture(scope="module")
def puma():
    return puma_of_the_study()


def test_puma_of_table_2(puma):
    assert (puma.n, puma.nb, puma.name) == (6, 6, "puma")
    assert {joint.kind for joint in puma.joints} == {"revolute"}
    np.testing.assert_array_equal(puma.gravity, (0.0, 0.0, -9.81))
    M = puma.screws().M_body
    np.testing.assert_allclose(M[:, 3, 3], [10.521, 15.7612, 8.767, 0, 0, 0], rtol=1e-15)
    assert M[0, 2, 2] == 0.0  # a rod has no inertia about its own axis
    assert M[2, 2, 2] == pytest.approx(8.767 * 0.02**2 / 3, rel=1e-14)
    assert M[2, 2, 2] == pytest.approx(1.17e-3, abs=5e-6)
    for i, I_zz in ((3, 0.181), (4, 0.0735), (5, 0.0141)):
        expected = np.zeros((6, 6))
        expected[2, 2] = I_zz
        np.testing.assert_allclose(M[i], expected, atol=1e-16)
    shoulder = 15.7612 / (0.432 + 0.149)
    com = np.array([0.432**2 / 2, 0.0, 0.149**2 / 2 + 0.432 * 0.149]) * shoulder / 15.7612
    np.testing.assert_allclose(puma.bodies[1].inertia.com, com, atol=1e-15)


@pytest.mark.parametrize("seed", SEEDS)
def test_frames_of_the_modified_convention(seed):
    """Craig, Introduction to Robotics, eq. (3.6): Rx(alpha) Tx(a) Rz(theta) Tz(d)."""
    rng = np.random.default_rng(seed)
    rows = tuple(random_row(rng)._replace(mass=0.0) for _ in range(4))
    model = Model.from_dh(DHTable(rows, convention="modified"))
    q = rng.uniform(-3.0, 3.0, 4)
    expected, C = [], np.eye(4)
    for row, q_i in zip(rows, q, strict=True):
        theta = row.theta + (q_i if row.kind == "revolute" else 0.0)
        b = row.d + (q_i if row.kind == "prismatic" else 0.0)
        C = C @ Rx(row.alpha) @ T(row.a, 0, 0) @ Rz(theta) @ T(0, 0, b)
        expected.append(C)
    np.testing.assert_allclose(mbs.forward_kinematics(model, q), expected, atol=1e-14)
    tool = mbs.forward_kinematics(model, q, bodies=["tool"])[0]
    np.testing.assert_allclose(tool, expected[-1], atol=1e-14)
