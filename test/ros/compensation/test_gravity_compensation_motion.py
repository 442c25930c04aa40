# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What an arm in MuJoCo does under the node over DDS: stops in motion, handover, unsupported start.

Bounds are physical. They are compared with the true motion of the arm, recorded in its process, and
a trial that a pause of the machine spoils is repeated. Both processes use the middleware's default
transport, whatever the other tests use. `python -m benchmarks.gravity_motion` has more of it.
"""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("mujoco")
pytest.importorskip("pinocchio")
pytest.importorskip("rclpy")

from robots import all_files

from benchmarks import gravity_motion as scenes
from benchmarks.mujoco_arm import POSTURES, bare
from benchmarks.mujoco_over_dds import PERIOD, Rig
from mbs_dynamics.resources import robot_path

pytestmark = [
    pytest.mark.backend_independent,
    pytest.mark.serial,
    pytest.mark.skipif(not all_files(), reason="the package example-robot-data is not installed"),
]

INERTIA = 0.77
"""Of the guided joint, kg m^2."""

SLOWING = INERTIA / scenes.DAMPING
"""Seconds in which the damping takes the speed to a third: 0.04."""


@pytest.fixture(scope="module")
def guided_rig():
    with scenes.guided_rig() as rig:
        yield rig


# SIGTERM comes last: the node is started anew after it
@pytest.mark.parametrize("event", ["joint_states stop", "NaN", "~/enable false", "SIGTERM"])
def test_joint_about_a_vertical_axis_never_turns_back(guided_rig, event):
    """Gravity does not act on joint 1, the others are locked, and damping only slows it.

    So neither may its velocity change its sign nor its kinetic energy grow, but for the damping of
    a joint state that is answered one period late.
    """
    record = scenes.guided(guided_rig, scenes.EVENTS[event]).record
    assert record.kinetic_before == pytest.approx(0.5 * INERTIA * scenes.SPEED**2, rel=0.01)
    # the torque that one joint state is answered with acts until the next answer
    streaming = event in ("~/enable false", "SIGTERM")
    wait = max(PERIOD, record.longest_wait(3.0 * SLOWING) if streaming else 0.0)
    assert record.turned_back(0) <= scenes.SPEED * wait / SLOWING
    assert record.kinetic_peak <= record.kinetic_before * (1.0 + 1e-6)
    damping = [scenes.DAMPING, *[0.0] * 6]
    rounding = 1e-4 * record.kinetic_before
    assert record.put_in <= record.may_put_in(damping, streaming=streaming) + rounding
    assert record.zero_after is not None
    if streaming:
        # damping until the end leaves exp(-damping time / inertia) of the speed, and damping that
        # fades out with the ramp leaves the root of that; this lies between the two
        last = np.flatnonzero(record.tau[:, 0])[-1]
        time = record.simulated[last]
        left = np.exp(-0.75 * scenes.DAMPING * time / INERTIA)
        assert record.at_the_end <= left * scenes.SPEED


def test_arm_under_a_position_loop_stays_when_the_loop_is_switched_off():
    with Rig(bare(robot_path("arm7"))) as rig:
        motion = scenes.handover(rig, POSTURES["arm7"], seconds=1.0)
    assert motion.outcome == "continues"
    assert motion.record.moved < 0.02


def test_unsupported_arm_floats_after_it_is_enabled_with_default_parameters():
    with Rig(bare(robot_path("arm7"))) as rig:
        motion = scenes.unsupported(rig, POSTURES["arm7"], seconds=3.0)
        gravity = rig.model.statics.gravity(motion.record.q[-1])
    assert "stopped by a fault" not in motion.said
    assert motion.record.moved <= 0.1
    assert motion.record.at_the_end <= 0.1
    assert np.allclose(motion.record.tau[-1], gravity, rtol=0.02, atol=0.2)


def test_fault_in_random_motion_gives_no_energy_beyond_that_of_gravity_compensation():
    """Torques that are no share of g(q) give the arm no more than one period's work.

    And without valid states they are gone before stale_timeout has passed.
    """
    rng = np.random.default_rng(16)
    case = scenes.random_case(rng)._replace(damping=scenes.strongest("Panda"))
    assert case.name == "Panda"
    with case.rig() as rig:
        for what in ("NaN position", "silence", "deactivate"):
            calls = scenes.faults(rng, len(case.damping))[what]
            record = scenes.random_trial(rig, case, calls, rng).record
            streaming = what in scenes.STREAMING
            may = record.may_put_in(case.damping, case.compensated, streaming=streaming)
            assert record.put_in <= may, what
            assert streaming or record.excess_until < rig.stale_timeout, what
