# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Visual elements of a URDF."""

import numpy as np
import pytest

from mbs_dynamics.view.urdf_visuals import Box, Cylinder, Mesh, Sphere, visuals_of

URDF = """
<robot name="r">
  <material name="paint"><color rgba="0.1 0.2 0.3 1"/></material>
  <link name="a">
    <visual>
      <origin xyz="1 2 3" rpy="0 0 1.5707963267948966"/>
      <geometry><box size="1 2 3"/></geometry>
      <material name="paint"/>
    </visual>
    <visual><geometry><cylinder radius="0.1" length="0.5"/></geometry></visual>
    <visual>
      <geometry><sphere radius="0.2"/></geometry>
      <material name=""><color rgba="2 0 0 0.5"/></material>
    </visual>
    <visual><geometry><mesh filename="package://p/a.stl" scale="1 1 0.001"/></geometry></visual>
    <visual><geometry><mesh filename="b.dae"/></geometry></visual>
  </link>
</robot>
"""


def test_all_shapes_with_their_places_and_colours():
    found, problems = visuals_of(URDF)
    assert not problems
    box, cylinder, sphere, scaled, mesh = found
    assert {each.link for each in found} == {"a"}
    assert isinstance(box.shape, Box)
    np.testing.assert_array_equal(box.shape.size, [1, 2, 3])
    assert box.colour == (0.1, 0.2, 0.3, 1.0)
    np.testing.assert_allclose(box.placement[:3, 0], [0, 1, 0], atol=1e-12)
    np.testing.assert_array_equal(box.placement[:3, 3], [1, 2, 3])
    assert cylinder.shape == Cylinder(0.1, 0.5)
    assert cylinder.colour is None
    np.testing.assert_array_equal(cylinder.placement, np.eye(4))
    assert sphere.shape == Sphere(0.2)
    assert sphere.colour == (1.0, 0.0, 0.0, 0.5)
    assert isinstance(scaled.shape, Mesh)
    assert scaled.shape.filename == "package://p/a.stl"
    np.testing.assert_array_equal(scaled.shape.scale, [1, 1, 0.001])
    assert isinstance(mesh.shape, Mesh)
    np.testing.assert_array_equal(mesh.shape.scale, [1, 1, 1])


@pytest.mark.parametrize(
    ("visual", "words"),
    [
        ("<geometry/>", "none of <box>"),
        ("", "none of <box>"),
        ('<geometry><box size="1 2"/></geometry>', "<box size='1 2'>"),
        ("<geometry><mesh/></geometry>", "'filename'"),
        ('<origin xyz="a b c"/><geometry><sphere radius="1"/></geometry>', "<origin xyz='a b c'>"),
    ],
)
def test_what_cannot_be_understood_is_named_and_left_out(visual, words):
    good = '<visual><geometry><sphere radius="1"/></geometry></visual>'
    text = f'<robot name="r"><link name="a"><visual>{visual}</visual>{good}</link></robot>'
    found, problems = visuals_of(text)
    assert len(found) == 1
    (problem,) = problems
    assert "link 'a'" in problem
    assert words in problem
