# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Links are shown as meshes where these are found, else as capsules."""

import numpy as np
import pytest

pytest.importorskip("trimesh")

import trimesh
from robots import robot

import mbs_dynamics as mbs
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.resources import robot_path
from mbs_dynamics.view.meshes import THICKNESS, appearance, find_mesh
from mbs_dynamics.view.urdf_visuals import visuals_of

URDF = """
<robot name="r">
  <link name="base"/>
  <joint name="j1" type="revolute"><parent link="base"/><child link="l1"/>
    <origin xyz="0 0 0.5"/><axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/>
  </joint>
  <link name="l1">
    <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><geometry><mesh filename="{mesh}" scale="2 2 2"/></geometry>
      <material name=""><color rgba="1 0 0 1"/></material></visual>
  </link>
  <joint name="j2" type="fixed"><parent link="l1"/><child link="tool"/>
    <origin xyz="0.3 0 0"/></joint>
  <link name="tool"><visual><origin xyz="0 0 0.1"/>
    <geometry><box size="0.1 0.1 0.2"/></geometry></visual></link>
</robot>
"""


def looks(text, source=None, packages=()):
    shapes = visuals_of(text)
    parts, missing = appearance(mbs.Model.from_urdf(text), shapes.visuals, 1.0, source, packages)
    return parts, [*shapes.problems, *missing]


@pytest.fixture
def cube(tmp_path):
    package = tmp_path / "share" / "pack"
    (package / "meshes").mkdir(parents=True)
    (package / "urdf").mkdir()
    trimesh.creation.box(extents=(1.0, 1.0, 1.0)).export(package / "meshes" / "cube.stl")
    return package


def test_a_mesh_is_scaled_and_stands_in_the_frame_of_its_body(cube):
    text = URDF.format(mesh="package://pack/meshes/cube.stl")
    parts, problems = looks(text, packages=[cube])
    assert not problems
    mesh, box, base = parts
    assert (mesh.body, box.body, base.body) == (0, 0, GROUND)
    np.testing.assert_allclose(mesh.mesh.extents, [2, 2, 2])
    np.testing.assert_allclose(box.mesh.bounds.mean(axis=0), [0.3, 0.0, 0.1], atol=1e-9)
    assert base.name == "ground/l1/capsule"


def test_shapes_of_links_outside_the_chosen_chain_are_omitted():
    path = robot_path("arm7")
    model = mbs.Model.from_urdf(path, root="link2", tip="link5")
    shapes = visuals_of(path).visuals
    parts, problems = appearance(model, shapes, 1.0, path)
    assert not problems
    inside = {visual.link for visual in shapes if visual.link in model.frames}
    shown = {part.name.split("/")[0] for part in parts if "capsule" not in part.name}
    assert shown == inside < {visual.link for visual in shapes}


def test_a_mesh_is_found_in_packages_beside_the_urdf_and_in_workspaces(cube, monkeypatch):
    name, file = "package://pack/meshes/cube.stl", cube / "meshes" / "cube.stl"
    source = cube / "urdf" / "r.urdf"
    assert find_mesh(name, None, [cube]) == file
    assert find_mesh(name, None, [cube.parent]) == file
    assert find_mesh(name, source, ()).resolve() == file.resolve()
    assert find_mesh("../meshes/cube.stl", source, ()).resolve() == file.resolve()
    assert find_mesh(f"file://{file}", None, ()) == file
    assert find_mesh(str(file), source, ()) == file
    with pytest.raises(FileNotFoundError, match="--package-path FOLDER"):
        find_mesh(name, None, ())
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"/nowhere:{cube.parents[1]}")
    assert find_mesh(name, None, ()) == file


def test_a_link_in_a_package_may_lead_out_of_it(cube, tmp_path):
    """As after colcon build --symlink-install."""
    (tmp_path / "installed").mkdir()
    (tmp_path / "installed" / "pack").symlink_to(cube)
    through = tmp_path / "installed" / "pack" / "meshes" / "cube.stl"
    assert find_mesh("package://pack/meshes/cube.stl", None, [tmp_path / "installed"]) == through
    source = tmp_path / "installed" / "pack" / "urdf" / "r.urdf"
    assert find_mesh("../meshes/cube.stl", source, ()) == through


def test_nothing_is_fetched_from_a_network():
    with pytest.raises(FileNotFoundError, match="downloaded"):
        find_mesh("https://example.com/a.stl", None, ())


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ("<box size='1e308 1e308 1'/>", "<box size='1e308 1e308 1'>"),
        ("<sphere radius='0'/>", "no extent"),
    ],
)
def test_shapes_that_cannot_be_drawn_are_capsules(shape, said):
    text = URDF.format(mesh="").replace('<box size="0.1 0.1 0.2"/>', shape)
    parts, problems = looks(text)
    assert "link 'tool': " in problems[1]
    assert said in problems[1]
    assert all(np.abs(part.mesh.bounds).max() < 1.0 for part in parts)


def test_a_missing_mesh_is_named_and_shown_as_a_capsule(tmp_path):
    text = URDF.format(mesh="package://nowhere/a.stl").replace('<link name="tool"><visual>', "<X>")
    text = text[: text.index("<X>")] + '<link name="tool"/></robot>'
    parts, problems = looks(text)
    assert len(problems) == 1
    assert "link 'l1': no mesh 'package://nowhere/a.stl'" in problems[0]
    assert problems[0].endswith("shown as a capsule")
    capsules = {part.body: part.mesh for part in parts if "capsule" in part.name}
    assert set(capsules) == {GROUND, 0}
    low, high = capsules[0].bounds  # from the joint to the tool
    np.testing.assert_allclose([low[0], high[0]], [-THICKNESS, 0.3 + THICKNESS], atol=1e-6)
    low, high = capsules[GROUND].bounds
    np.testing.assert_allclose([low[2], high[2]], [-THICKNESS, 0.5 + THICKNESS], atol=1e-6)


@pytest.mark.parametrize(
    ("name", "contents", "said"),
    [
        ("a.stl", b"", ""),
        ("a.stl", b"\x00" * 80 + b"\xff" * 4, ""),
        ("a.ply", b"ply\nformat ascii 1.0\nelement vertex 0\nend_header\n", ""),
        ("a.dae", b"<COLLADA/>", ""),
        ("a.zae", b"", ""),
    ],
)
def test_a_broken_mesh_is_named_too(tmp_path, name, contents, said):
    (tmp_path / name).write_bytes(contents)
    parts, problems = looks(URDF.format(mesh=name), tmp_path / "r.urdf")
    assert len(problems) == 1
    assert "link 'l1'" in problems[0]
    assert said in problems[0]
    assert [part.body for part in parts].count(0) == 1  # the box of the tool


@pytest.mark.long
def test_real_robots_have_all_their_meshes():
    path = robot("panda.urdf")
    model = mbs.Model.from_urdf(path)
    parts, problems = appearance(model, visuals_of(path).visuals, 1.0, path)
    assert not problems
    for part in parts:
        assert len(part.mesh.faces) > 0
        assert np.abs(part.mesh.bounds).max() < 2.0


def test_every_body_with_a_length_or_a_mass_is_seen_without_visuals():
    model = mbs.Model.from_urdf(robot("g1_29dof_rev_1_0.urdf"))
    parts, _ = appearance(model, (), 1.0)
    assert {part.body for part in parts} >= set(range(model.nb))
