# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""How many operations each algorithm takes on two arms, so that none takes more unnoticed.

The robots are those of the package example-robot-data; the bases are fixed. Counts are those of the
cheapest representation, for the options of :func:`mbs_dynamics.operation_counts.algorithm_counts`.
"""

from __future__ import annotations

import warnings

import pytest
from mechanisms import MECHANISMS
from robots import robot, robot_files

import mbs_dynamics as mbs
from mbs_dynamics.algorithms import algorithm_of
from mbs_dynamics.operation_counts import algorithm_counts

pytestmark = [
    pytest.mark.backend_independent,
    pytest.mark.skipif(not robot_files(), reason="example-robot-data is not installed"),
]

ARMS = ("panda.urdf", "ur5_robot.urdf")

PINNED = {
    "displaced": (8, 6),
    "difference": (8, 6),
    "position_rates": (0, 0),
    "forward_kinematics": (176, 120),
    "pose": (170, 120),
    "twists": (135, 94),
    "jacobian": (178, 115),
    "accelerations": (314, 234),
    "jerks": (653, 495),
    "twist_derivatives": (1049, 800),
    "jacobian_rate": (485, 290),
    "jacobian_second_rate": (966, 581),
    "relative_twist": (113, 98),
    "relative_jacobian": (188, 126),
    "frame_twist": (135, 106),
    "frame_jacobian": (188, 126),
    "point_velocity": (185, 144),
    "point_acceleration": (509, 391),
    "point_jacobian": (262, 191),
    "pose_sensitivity": (81, 56),
    "jacobian_sensitivity": (333, 210),
    "jacobian_derivative": (237, 134),
    "kinematic_hessian": (563, 185),
    "inverse_dynamics": (744, 331),
    "gravity_torques": (206, 54),
    "bias_torques": (707, 299),
    "coriolis_torques": (664, 276),
    "mass_matrix": (373, 142),
    "inverse_mass_matrix": (723, 320),
    "coriolis_matrix": (1786, 575),
    "christoffel_symbols": (1669, 352),
    "forward_dynamics": (1313, 558),
    "joint_wrenches": (970, 424),
    "joint_reactions": (954, 417),
    "inverse_dynamics_regressor": (2996, 1608),
    "inverse_dynamics_derivatives": (3773, 1352),
    "forward_dynamics_derivatives": (7235, 2440),
    "inverse_dynamics_rates": (3225, 1575),
    "linearize": (7235, 2440),
    "torque_sensitivity": (1515, 735),
    "kinetic_energy": (416, 192),
    "potential_energy": (79, 38),
    "center_of_mass": (77, 36),
    "momenta": (377, 137),
    "generalized_momentum": (656, 221),
    "centroidal_momentum": (466, 233),
    "centroidal_momentum_matrix": (697, 311),
    "centroidal_momentum_matrix_rate": (1405, 667),
    "centroidal_momentum_bias": (1223, 595),
    "center_of_mass_jacobian": (231, 86),
    "center_of_mass_jacobian_rate": (395, 149),
    "operational_space_inertia": (1549, 742),
    "dynamically_consistent_inverse": (2392, 1294),
    "null_space_projector": (2928, 1522),
    "operational_space_bias": (2682, 1453),
}
"""Operations of all kinds on the Panda and on the UR5."""

FLOATING = {
    "inverse_dynamics": 1255,
    "gravity_torques": 254,
    "forward_dynamics": 3003,
    "mass_matrix": 557,
    "inverse_mass_matrix": 3419,
    "coriolis_matrix": 2728,
    "inverse_dynamics_derivatives": 5471,
    "forward_dynamics_derivatives": 16157,
}
"""The same on Solo, a quadruped of 12 joints, with a floating base."""

OF_JOINTS = [
    f for f in mbs.ALGORITHMS if algorithm_of(f).joint_space_only and algorithm_of(f).invariant
]

MANY = (
    "a1.urdf",
    "allegro_left_hand.urdf",
    "double_pendulum.urdf",
    "kinova.urdf",
    "panda.urdf",
    "solo12.urdf",
    "tiago_no_hand.urdf",
    "ur5_gripper.urdf",
    "xarm7.urdf",
    "z1.urdf",
)
"""Robots with trees of all sorts, for which auto has to be the cheapest representation."""


def model_of(name):
    if name in MECHANISMS:
        return MECHANISMS[name].model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbs.ModelWarning)
        return mbs.Model.from_urdf(robot(name))


def counts_of(algorithms):
    """Return the operations of some algorithms by name, one number for each arm."""
    counts = {function.__name__: () for function in algorithms}
    for name in ARMS:
        for row in algorithm_counts(model_of(name), algorithms):
            counts[row.title.split()[0]] += (min(c.total for c in row.operations.values()),)
    return counts


@pytest.fixture(scope="module")
def counted():
    """Operations by algorithm: one number for each arm."""
    return counts_of(mbs.ALGORITHMS)


@pytest.mark.parametrize("name", PINNED)
def test_no_algorithm_takes_more_operations(name, counted):
    for arm, now, most in zip(ARMS, counted[name], PINNED[name], strict=True):
        assert now <= most, f"{name} takes {now} operations on {arm}; at most {most} are allowed"


def test_no_algorithm_takes_more_operations_on_a_floating_base():
    solo = mbs.Model.from_urdf(robot("solo12.urdf"), floating_base=True)
    counts = {name: algorithm_of(name).operations(solo, {}).total for name in FLOATING}
    assert all(counts[name] <= most for name, most in FLOATING.items()), counts


@pytest.mark.parametrize("name", [*MANY, "tree", "forest", "revolute chain"])
def test_auto_is_the_cheapest_representation(name):
    """Body-fixed is, for all that follows from tau; so that only that one has to be traced."""
    model = model_of(name)
    for function in OF_JOINTS:
        algorithm = algorithm_of(function)
        if "representation" not in algorithm.options or function is mbs.inverse_dynamics_rates:
            continue  # the rates are the inverse dynamics in other numbers, and take long to trace
        auto = algorithm.operations(model, {}).total
        for representation in ("spatial", "hybrid", "mixed"):
            other = algorithm.operations(model, {"representation": representation}).total
            assert auto <= other, f"{function.__name__}: {auto}, {representation} {other}"


@pytest.mark.parametrize("name", [*MANY, "tree", "forest", "revolute chain"])
def test_auto_is_nearly_the_cheapest_method_of_forward_dynamics(name):
    model, algorithm = model_of(name), algorithm_of(mbs.forward_dynamics)
    auto = algorithm.operations(model, {}).total
    for method in ("articulated_body", "udut", "mass_matrix"):
        assert auto <= 1.05 * algorithm.operations(model, {"method": method}).total
