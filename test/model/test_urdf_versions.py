# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Quaternions and limits of URDF 1.1 and 1.2, and files of other formats."""

import numpy as np
import pytest
from urdf_reference import load, notes

from mbs_dynamics.errors import UrdfError
from mbs_dynamics.view.urdf_visuals import Capsule, visuals_of

HALF = 0.5**0.5
TURN = f'quat_xyzw="0 {HALF!r} 0 {HALF!r}"'
"""A quarter turn about y."""


def robot(origin="", limit='<limit lower="-1" upper="1"/>', kind="revolute"):
    """Return a URDF of one joint; an inertial frame is turned as the joint is."""
    return f"""<robot name="r" version="1.1"><link name="a"/>
    <link name="b"><inertial><origin xyz="1 2 3" {origin}/><mass value="2"/>
      <inertia ixx="1" ixy="0.1" ixz="0.2" iyy="1.2" iyz="0.3" izz="1.3"/></inertial>
      <visual><origin {origin}/><geometry><capsule radius="0.1" length="0.4"/></geometry></visual>
    </link>
    <joint name="j" type="{kind}"><parent link="a"/><child link="b"/>
      <origin xyz="0 0 1" {origin}/><axis xyz="1 0 0"/>{limit}</joint></robot>"""


@pytest.mark.parametrize("scale", [1.0, -2.5])
def test_quaternions_turn_joints_inertias_and_visuals(scale):
    given = np.array([0.0, HALF, 0.0, HALF]) * scale
    turned = robot(f'quat_xyzw="{" ".join(map(repr, given.tolist()))}"')
    same = robot(f'rpy="0 {np.pi / 2!r} 0"')
    ours, theirs = load(turned).bodies[0], load(same).bodies[0]
    np.testing.assert_allclose(ours.home_rel, theirs.home_rel, atol=1e-15)
    np.testing.assert_allclose(ours.inertia.matrix(), theirs.inertia.matrix(), atol=1e-14)
    shape, reference = visuals_of(turned).visuals[0], visuals_of(same).visuals[0]
    np.testing.assert_allclose(shape.placement, reference.placement, atol=1e-15)
    assert shape.shape == Capsule(0.1, 0.4)


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        (TURN + ' rpy="0 0 0"', "both rpy and quat_xyzw"),
        ('quat_xyzw="0 0 0 0"', "must not be zero"),
        ('quat_xyzw="0 0 1"', "4 finite numbers"),
    ],
)
def test_rejects_quaternions_that_are_no_orientation(origin, words):
    with pytest.raises(UrdfError, match=words):
        load(robot(origin))


@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_a_limit_that_is_not_stated_is_zero(kind):
    one = load(robot(limit='<limit upper="0.7"/>', kind=kind))
    assert (one.lower[0], one.upper[0]) == (0.0, 0.7)
    assert any("no lower limit" in note for note in notes(one))
    other = load(robot(limit='<limit lower="-0.7"/>', kind=kind))
    assert (other.lower[0], other.upper[0]) == (-0.7, 0.0)
    neither = load(robot(limit='<limit effort="1" velocity="1"/>', kind=kind))
    assert (neither.lower[0], neither.upper[0]) == (-np.inf, np.inf)
    assert any("neither a lower nor an upper limit" in note for note in notes(neither))


@pytest.mark.parametrize("version", ["2.0", "1.3", "1.10", "one"])
def test_a_version_that_does_not_exist_is_refused(version):
    said = f"version of a URDF must be 1.0 to 1.2; got '{version}'"
    with pytest.raises(UrdfError, match=said):
        load(robot().replace('version="1.1"', f'version="{version}"'))


@pytest.mark.parametrize("limit", ['<limit upper="1"/>', '<limit lower="-1"/>', ""])
def test_version_1_2_needs_both_ends_of_a_range(limit):
    text = robot(limit=limit)
    load(text)
    newer = text.replace('version="1.1"', 'version="1.2"')
    with pytest.raises(UrdfError, match=r"joint 'j': <limit> must state '(lower|upper)'"):
        load(newer)
    load(newer.replace("revolute", "continuous"))
