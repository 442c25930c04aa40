# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Where the text of a URDF comes from, and what a text may not do."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from lxml import etree
from urdf_reference import joint, link, load, notes, tree, urdf

from mbs_dynamics.errors import ArgumentError, UrdfError
from mbs_dynamics.model.model import Model

pytestmark = pytest.mark.backend_independent


def test_path_text_and_bytes_are_the_same(tmp_path):
    text = tree()
    path = tmp_path / "r.urdf"
    path.write_text(text)
    expected = load(path)
    for source in (
        str(path),
        text,
        "\n  " + text,
        "\ufeff" + text,
        text.encode(),
        path.read_bytes(),
    ):
        model = load(source)
        assert model.body_names == expected.body_names
        np.testing.assert_array_equal(model.screws().M_body, expected.screws().M_body)
        np.testing.assert_array_equal(model.screws().homes, expected.screws().homes)


ENCODED = [
    *((name, "Schürze") for name in ("utf-8", "iso-8859-1", "utf-16", "utf-32")),
    *((name, "底座") for name in ("utf-8-sig", "gb2312", "gbk", "gb18030", "big5")),
    *((name, "アーム") for name in ("shift_jis", "euc-jp", "iso-2022-jp", "cp932")),
    *(("euc-kr", "로봇팔"), ("koi8-r", "рука"), ("windows-1252", "brasé€")),
]


@pytest.mark.parametrize("blank", ["", "\n \t"])
@pytest.mark.parametrize(("encoding", "name"), ENCODED)
def test_the_encoding_is_the_one_declared(encoding, name, blank, tmp_path):
    """And blanks before the declaration are passed over."""
    text = f'{blank}<?xml version="1.0" encoding="{encoding}"?>' + tree().replace(
        '"b"', f'"{name}"'
    )
    path = tmp_path / "r.urdf"
    path.write_bytes(text.encode(encoding))
    for source in (text, path, text.encode(encoding)):
        assert load(source).body_names[0] == name


@pytest.mark.parametrize("declared", ["", '<?xml version="1.0" encoding="utf-8"?>'])
def test_comments_that_are_not_utf_8_are_passed_over(declared):
    text = f"{declared}<!-- 底座 ü -->{tree()}".encode("gb18030")
    assert load(text).body_names == load(tree()).body_names


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


def test_ten_thousand_links_in_a_row():
    n = 10_000
    links = [f'<link name="l{k}"/>' for k in range(n + 1)]
    joints = [joint(f"j{k}", f"l{k}", f"l{k + 1}", "fixed") for k in range(n)]
    last = [link("end"), joint("end", f"l{n}", "end")]
    assert load(urdf(*links, *joints, *last)).body_names == ("end",)


LAUGHS = "".join(f'<!ENTITY l{k} "{f"&l{k - 1};" * 10}">' for k in range(1, 12))
BOMB = f'<!DOCTYPE robot [<!ENTITY l0 "ha">{LAUGHS}]>'


@pytest.mark.parametrize(
    "text",
    [
        BOMB + tree(),
        BOMB + urdf("&l11;"),
        BOMB + urdf('<link name="&l11;"/>'),
        '<!DOCTYPE robot [<!ENTITY x SYSTEM "file:///etc/hostname">]>' + urdf("&x;"),
        '<!DOCTYPE robot [<!ENTITY % x SYSTEM "file:///etc/hostname"> %x;]>' + tree(),
        '<!DOCTYPE robot SYSTEM "http://localhost/urdf.dtd">' + tree(),
    ],
    ids=["unused", "in text", "in a name", "file", "parameter", "external"],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_are_refused(text, encoding):
    """Quickly: written out, the bomb is 200 GB."""
    declared = f'<?xml version="1.0" encoding="{encoding}"?>' + text
    with pytest.raises(UrdfError, match="DOCTYPE"):
        Model.from_urdf(declared.encode(encoding))


def test_prefixes_need_no_namespace():
    """Gazebo's old elements, of which nothing is read, may contain them."""
    extra = '<gazebo reference="b"><sensor:camera name="c"><body:origin/></sensor:camera></gazebo>'
    assert (
        load(tree().replace("</robot>", extra + "</robot>")).body_names == load(tree()).body_names
    )


@pytest.mark.parametrize("axis", ['<axis xzy="0 0 1"/>', '<axis xyz="0 0 0"/>', "<axis/><axis/>"])
@pytest.mark.parametrize("kind", ["fixed", "floating"])
def test_axes_of_joints_that_have_none_are_passed_over(kind, axis):
    ends = '<parent link="e"/><child link="f"/>'
    extra = f'<link name="f"/><joint name="x" type="{kind}">{axis}{ends}</joint>'
    text = urdf(link("a"), link("e"), joint("j", "a", "e")).replace("</robot>", extra + "</robot>")
    assert "e" in load(text).body_names


def test_a_document_type_without_entities_is_read():
    assert load("<!DOCTYPE robot [<!ELEMENT robot ANY>]>" + tree()).nb == load(tree()).nb


@pytest.mark.parametrize("source", ["no such file.urdf", "a\nb", "x\0y", "robot.urdf" * 1000])
@pytest.mark.parametrize("kind", [str, Path])
def test_a_path_that_does_not_exist(source, kind):
    with pytest.raises(UrdfError) as info:
        Model.from_urdf(kind(source))
    assert len(str(info.value)) < 500


def test_the_reason_is_given():
    with pytest.raises(UrdfError, match=r"'nowhere\.urdf'"):
        Model.from_urdf("nowhere.urdf")


def test_a_folder(tmp_path):
    with pytest.raises(UrdfError, match="directory"):
        Model.from_urdf(tmp_path)


@pytest.mark.parametrize("source", ["", " \n", b"", b"\x7fELF\x00\x01", "<r name='\udc80'/>"])
def test_no_text(source):
    with pytest.raises(UrdfError):
        Model.from_urdf(source)


@pytest.mark.parametrize("source", [None, 7, ["<robot/>"], etree.fromstring("<robot/>")])
def test_neither_path_nor_text(source):
    with pytest.raises(ArgumentError, match="source"):
        Model.from_urdf(source)


def test_gravity_is_checked():
    with pytest.raises(ArgumentError, match="gravity"):
        Model.from_urdf(tree(), gravity=[9.81])
