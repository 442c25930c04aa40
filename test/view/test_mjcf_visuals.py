# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Shapes of an MJCF: each geom where MuJoCo has it, as large as MuJoCo has it."""

import numpy as np
import pytest

pytest.importorskip("mujoco")
pytest.importorskip("trimesh")

from mbs_dynamics.view.mjcf_visuals import shapes_of
from mbs_dynamics.view.urdf_visuals import Box, Capsule, Cylinder, Sphere, Triangles

TEXT = """
<mujoco model="shapes">
<compiler meshdir="."/>
<asset><material name="paint" rgba="0.1 0.2 0.3 1"/><mesh name="wedge" file="wedge.obj"/>
<hfield name="hills" nrow="2" ncol="2" size="1 1 1 1"/></asset>
<worldbody>
  <geom type="plane" size="1 1 1"/>
  <geom type="hfield" hfield="hills"/>
  <body name="part" pos="0 0 1"><joint type="hinge" axis="0 1 0"/>
    <geom type="box" size="0.1 0.2 0.3" pos="0.5 0 0" quat="0 1 0 0" material="paint"/>
    <geom type="sphere" size="0.4" rgba="1 0 0 0.5"/>
    <geom type="capsule" size="0.05 0.2"/>
    <geom type="cylinder" size="0.06 0.3"/>
    <geom type="ellipsoid" size="0.1 0.2 0.3"/>
    <geom type="mesh" mesh="wedge" pos="0.1 0.2 0.3"/>
    <geom type="box" size="1 1 1" group="3"/>
    <body name="seen"><geom type="sphere" size="0.1" contype="0" conaffinity="0"/></body>
  </body>
</worldbody></mujoco>
"""
WEDGE = "v 0 0 0\nv 0.3 0 0\nv 0 0.2 0\nv 0 0 0.1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n"


@pytest.fixture
def path(tmp_path):
    (tmp_path / "wedge.obj").write_text(WEDGE)
    file = tmp_path / "shapes.xml"
    file.write_text(TEXT)
    return file


def test_shapes_have_the_sizes_of_their_geoms(path):
    shapes, problems = shapes_of(path)
    assert [type(each.shape) for each in shapes[:-1]] == [
        Box, Sphere, Capsule, Cylinder, Triangles, Triangles,
    ]  # fmt: skip
    assert {each.link for each in shapes[:-1]} == {"part"}
    assert shapes[-1].link == "seen"
    box, sphere, capsule, cylinder, ellipsoid, wedge, _ = shapes
    np.testing.assert_allclose(box.shape.size, [0.2, 0.4, 0.6])
    np.testing.assert_allclose(box.placement[:3], [[1, 0, 0, 0.5], [0, -1, 0, 0], [0, 0, -1, 0]])
    assert box.colour == pytest.approx((0.1, 0.2, 0.3, 1.0))
    assert sphere.shape.radius == 0.4
    assert sphere.colour == (1.0, 0.0, 0.0, 0.5)
    assert capsule.shape == (0.05, 0.4)
    assert cylinder.shape == (0.06, 0.6)
    scaled = ellipsoid.shape.vertices / [0.1, 0.2, 0.3]
    np.testing.assert_allclose(np.linalg.norm(scaled, axis=1), 1.0)
    R, p = wedge.placement[:3, :3], wedge.placement[:3, 3]
    corners = wedge.shape.vertices @ R.T + p - [0.1, 0.2, 0.3]
    expected = [[0, 0, 0], [0.3, 0, 0], [0, 0.2, 0], [0, 0, 0.1]]
    found = corners[np.lexsort(corners.T.round(6))]
    np.testing.assert_allclose(
        found, np.array(expected)[np.lexsort(np.transpose(expected))], atol=1e-6
    )
    assert ["hfield" in problem for problem in problems] == [True]


def test_triangles_face_outwards(path):
    trimesh = pytest.importorskip("trimesh")
    for each in shapes_of(path).visuals:
        if isinstance(each.shape, Triangles):
            mesh = trimesh.Trimesh(each.shape.vertices, each.shape.faces)
            assert mesh.volume > 0.0
