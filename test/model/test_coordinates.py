# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Limits, damping and friction of coordinates, from all joints that they drive."""

import numpy as np
import pytest
from urdf_reference import joint as link_joint
from urdf_reference import link, mimic, urdf

import mbs_dynamics as mbs
from mbs_dynamics.errors import ModelError
from mbs_dynamics.integrate import JointForces, simulate, stop_events
from mbs_dynamics.model.coordinates import properties_of
from mbs_dynamics.model.joint import Joint, one_screw

ABOUT_Z = one_screw("z", [0.0, 0.0, 1.0, 0.0, 0.0, 0.0])

DRIVER = '<axis xyz="0 1 0"/><limit lower="-2" upper="2" velocity="3" effort="5"/>'
FOLLOWER = mimic("driver", 2, 0.1) + '<limit lower="-1" upper="1" velocity="4" effort="1"/>'
GRIPPER = urdf(
    link("palm", ""), link("left"), link("right"),
    link_joint("driver", "palm", "left", more=DRIVER),
    link_joint("follower", "palm", "right", more=FOLLOWER),
)  # fmt: skip
"""A driver with bounds of +-2, whose follower allows it -0.55 to 0.45."""


def joint(name, coordinate=0, **given):
    return Joint(name, ABOUT_Z, coordinate, **given)


def test_the_limits_of_a_follower_bound_its_driver():
    model = mbs.Model.from_urdf(GRIPPER)
    np.testing.assert_allclose(model.lower, [-0.55], rtol=1e-15)
    np.testing.assert_allclose(model.upper, [0.45], rtol=1e-15)
    assert model.velocity_limits.tolist() == [2.0]  # the follower turns twice as fast
    assert model.effort_limits.tolist() == [5.0]  # it has no motor
    q = np.array([model.random_state(seed).q for seed in range(50)])
    assert (q >= -0.55).all()
    assert (q <= 0.45).all()


def test_all_that_takes_limits_honours_those_of_followers():
    model = mbs.Model.from_urdf(GRIPPER)
    forces = JointForces.of(model, stops=True)
    np.testing.assert_allclose([forces.lower[0], forces.upper[0]], [-0.55, 0.45])
    events = stop_events(model)
    assert events["driver at its lower limit"](0.0, np.array([-0.55]), np.zeros(1)) == 0.0
    pressed = simulate(model, [0.3], duration=1.0, control=[20.0], forces=forces)
    assert pressed.q.max() < 0.6
    found = mbs.inverse_kinematics(model, mbs.forward_kinematics(model, [1.2])[0], "left")
    assert not found.success
    np.testing.assert_allclose(found.q, [0.45])


def test_resistance_takes_the_power_of_all_joints():
    joints = [
        joint("a", damping=2.0, friction=3.0),
        joint("b", mimics="a", ratio=-0.5, damping=4.0, friction=6.0),
        joint("c", 1, damping=1.0),
    ]
    damping, friction = (properties_of(joints, 2)[x] for x in ("damping", "friction"))
    rate = 0.7
    assert damping[0] * rate**2 == pytest.approx(2.0 * rate**2 + 4.0 * (0.5 * rate) ** 2)
    assert friction[0] * rate == pytest.approx(3.0 * rate + 6.0 * 0.5 * rate)
    assert [*damping[1:], *friction[1:]] == [1.0, 0.0]


def test_limits_without_a_common_position_are_refused_where_they_matter():
    text = GRIPPER.replace('lower="-1" upper="1"', 'lower="6" upper="7"')
    with pytest.warns(mbs.ModelWarning, match=r"'driver'.*limits"):
        model = mbs.Model.from_urdf(text)
    assert model.lower[0] > model.upper[0]
    assert np.abs(model.random_state(1).q).max() <= np.pi
    with pytest.raises(ModelError):
        mbs.inverse_kinematics(model, np.eye(4), "left")
    with pytest.raises(ValueError, match="lower"):
        JointForces.of(model, stops=True)
