# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Where the text of a URDF comes from, and what a text may not do."""

import warnings

import numpy as np
import pytest
from urdf_reference import load, notes, tree, urdf

from mbs_dynamics.errors import UrdfError
from mbs_dynamics.model.model import Model


def test_path_text_and_bytes_are_the_same(tmp_path):
    text = tree()
    path = tmp_path / "r.urdf"
    path.write_text(text)
    expected = load(path)
    for source in (str(path), text, "\n  " + text, "\ufeff" + text, text.encode()):
        model = load(source)
        assert model.body_names == expected.body_names
        np.testing.assert_array_equal(model.screws().M_body, expected.screws().M_body)
        np.testing.assert_array_equal(model.screws().homes, expected.screws().homes)


ENCODED = [
    *((name, "Schürze") for name in ("utf-8-sig", "iso-8859-1", "utf-16")),
    ("gb2312", "底座"),
]


@pytest.mark.parametrize(("encoding", "name"), ENCODED)
def test_the_encoding_is_the_one_declared(encoding, name, tmp_path):
    """And blanks before the declaration are passed over."""
    head = f'\n \t<?xml version="1.0" encoding="{encoding}"?>'
    text = head + tree().replace('"b"', f'"{name}"')
    path = tmp_path / "r.urdf"
    path.write_bytes(text.encode(encoding))
    for source in (text, path, text.encode(encoding)):
        assert load(source).body_names[0] == name


def test_what_dynamics_does_not_need_is_passed_over(capfd):
    """Comments, instructions, textures, transmissions, tags and attributes nobody knows."""
    text = """<?xml version="1.0"?><!DOCTYPE robot><!-- <link/> -->
    <robot name="r" version="1.0" xmlns:xacro="http://ros.org/wiki/xacro" xmlns="http://drake.mit.edu">
      <?target something?>
      <material name="m"><texture/></material> <gazebo/> <transmission name="t"/> <ros2_control/>
      <link name="a" type="?"><origin xyz="1 2 3"/><visual/><visual/>
        <collision><geometry/></collision><inertial><!-- c --><mass value=" 1.5e0 "/>
          <inertia ixx="+1" ixy="0" ixz="0" iyy=".9" iyz="-0" izz="1."/></inertial></link>
      <link name="b"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0"
          izz="1"/></inertial></link>
      <joint name="j" type="revolute"><!-- c --><parent link="a"/><child link="b"/>
        <safety_controller/><calibration nothing="1"/><hardwareInterface>x</hardwareInterface>
        <limit effort="1" velocity="1" lower="-1" upper="1" current="a lot"/></joint>
    </robot>"""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = Model.from_urdf(text)
    assert model.body_names == ("b",)
    assert "link 'a': 1.5 kg fixed to the ground" in notes(model)
    assert capfd.readouterr() == ("", "")


LAUGHS = "".join(f'<!ENTITY l{k} "{f"&l{k - 1};" * 10}">' for k in range(1, 12))
BOMB = f'<!DOCTYPE robot [<!ENTITY l0 "ha">{LAUGHS}]>'


@pytest.mark.parametrize(
    "text",
    [
        BOMB + tree(),
        BOMB + urdf('<link name="&l11;"/>'),
        '<!DOCTYPE robot [<!ENTITY x SYSTEM "file:///etc/hostname">]>' + urdf("&x;"),
        '<!DOCTYPE robot [<!ENTITY % x SYSTEM "file:///etc/hostname"> %x;]>' + tree(),
        '<!DOCTYPE robot SYSTEM "http://localhost/urdf.dtd">' + tree(),
    ],
    ids=["unused", "in a name", "file", "parameter", "external"],
)
def test_entities_are_refused(text):
    """Quickly: written out, the bomb is 200 GB."""
    for encoding in ("utf-8", "utf-16"):
        declared = f'<?xml version="1.0" encoding="{encoding}"?>' + text
        with pytest.raises(UrdfError, match="DOCTYPE"):
            Model.from_urdf(declared.encode(encoding))
