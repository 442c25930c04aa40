# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Forces in joints: what a description states, joints that follow others, stops, and standstill."""

import numpy as np
import pytest
from reference import assert_close
from urdf_reference import chain, load

import mbs_dynamics as mbs
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.integrate import JointForces, Stepper
from mbs_dynamics.integrate.forces import passive_torques
from mbs_dynamics.model.coordinates import middle

JOINTS = {  # type, coordinate, ratio, damping, friction
    "lead": ("revolute", 0, 1.0, 0.3, 0.5),
    "back": ("revolute", 0, -2.0, 0.2, 0.7),
    "slide": ("prismatic", 0, 0.5, 4.0, 3.0),
    "free": ("revolute", 1, 1.0, 0.1, 0.0),
}
_, *COLUMNS = zip(*JOINTS.values(), strict=True)
COORDINATES, RATIOS, DAMPINGS, FRICTIONS = map(np.array, COLUMNS)


def dissipated(qd: np.ndarray) -> np.ndarray:
    """Return the power that each joint turns into heat, at rates at which friction is full."""
    speeds = np.abs(RATIOS * qd[COORDINATES])
    return DAMPINGS * speeds**2 + FRICTIONS * speeds


def geared_robot() -> mbs.Model:
    """Return a chain of four joints, two of which follow the first, backwards and slower."""
    joints = []
    for name, (kind, _, ratio, damping, friction) in JOINTS.items():
        more = (
            '<axis xyz="1 0 0"/><origin xyz="0 0.2 0.3"/>'
            '<limit lower="-1" upper="2" effort="100" velocity="100"/>'
            f'<dynamics damping="{damping}" friction="{friction}"/>'
        )
        if ratio != 1.0:
            more += f'<mimic joint="lead" multiplier="{ratio}" offset="0.1"/>'
        joints.append((name, kind, more))
    return load(chain(*joints))


@pytest.mark.parametrize("rates", [(3.0, 1.0), (-3.0, 1.0), (0.5, -2.0)])
def test_power_of_friction_is_the_sum_over_all_joints(rates):
    """Each joint moves at its ratio times the rate of its coordinate, and dissipates there."""
    robot = geared_robot()
    qd = np.array(rates)
    assert [joint.name for joint in robot.joints] == ["lead", "free"]
    expected = np.bincount(COORDINATES, dissipated(qd))
    assert_close(-JointForces.of(robot).resistance(qd) * qd, expected, 1e-12)


def test_energy_that_geared_joints_lose_is_what_they_dissipate():
    """By a simulation without gravity, at rates that change little and keep their sign."""
    robot = geared_robot().with_gravity((0.0, 0.0, 0.0))
    stepper = Stepper(robot, forces=JointForces.of(robot))
    h, steps = 1e-5, 200
    states = stepper.run([[0.3, 0.2], [2.0, 1.0]], np.zeros(2), h, steps)
    energy = mbs.kinetic_energy(robot, states[[0, -1], 0], states[[0, -1], 1])
    power = [dissipated(qd).sum() for _, qd in states]
    lost = h * (sum(power) - 0.5 * (power[0] + power[-1]))
    assert_close((energy[0] - energy[1]) / lost, 1.0, 1e-3)


def test_resistance_is_smooth_within_a_hundredth_of_a_radian_per_second():
    """Friction has risen to tanh(1) of its size at that speed."""
    forces = JointForces.of(geared_robot(), damping=0.0, friction=2.0)
    assert_close(forces.resistance(np.array([0.01, -0.02])), -2.0 * np.tanh([1.0, -2.0]), 1e-12)


def test_middle_of_a_range():
    """In the middle where both limits are stated, else as near zero as the stated one allows."""
    infinite = np.inf
    lower = np.array([-1.0, 0.5, -infinite, 3.0, -infinite, -2.0])
    upper = np.array([2.0, 1.5, -4.0, infinite, infinite, infinite])
    assert_close(middle(lower, upper), [0.5, 1.0, -4.0, 3.0, 0.0, 0.0])


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_stop_pushes_back_and_damps_only_what_moves_further_in(side):
    """-k (q - bound) - c qd beyond the bound; c is zero on the way out."""
    robot = geared_robot()
    forces = JointForces.of(robot, damping=0.0, friction=0.0, stops=True)
    assert forces.features == (False, False, True)
    assert_close(forces.stop_damping**2, 4.0 * forces.stiffness * (forces.stiffness * 0.01**2))
    bound = (forces.lower if side < 0.0 else forces.upper)[1]
    q = np.array([0.0, bound + side * 0.01])
    for qd, damping in ((side * 0.3, forces.stop_damping[1]), (-side * 0.3, 0.0)):
        tau = passive_torques(forces.table, forces.features, q, np.array([0.0, qd]))
        expected = -forces.stiffness[1] * side * 0.01 - damping * qd
        assert_close(np.array(tau, dtype=float), [0.0, expected], 1e-12)


@pytest.mark.parametrize("name", ["damping", "friction"])
def test_numbers_of_another_count_of_joints_are_refused(name):
    model = geared_robot()
    with pytest.raises(ArgumentError, match=rf"{name}.*\(3,\).*\(2,\)"):
        JointForces.of(model, **{name: [0.1, 0.2, 0.3]})
    np.testing.assert_array_equal(getattr(JointForces.of(model, **{name: 0.3}), name), [0.3, 0.3])
