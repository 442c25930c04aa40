# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Invalid URDFs raise errors that name the source and the element."""

import re
import warnings

import numpy as np
import pytest
from lxml import etree
from urdf_reference import joint, mimic

from mbs_dynamics.errors import ModelWarning, UrdfError
from mbs_dynamics.model.model import Model

GOOD = """<robot name="r">
  <link name="a"/>
  <link name="b">
    <inertial>
      <origin xyz="0 0 1" rpy="0 0 0"/>
      <mass value="1"/>
      <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>
    </inertial>
  </link>
  <link name="c"/>
  <joint name="j" type="revolute">
    <origin xyz="1 2 3" rpy="0 0 0"/>
    <parent link="a"/>
    <child link="b"/>
    <axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" velocity="2" effort="3"/>
    <dynamics damping="0.1" friction="0.2"/>
  </joint>
  <joint name="k" type="fixed">
    <parent link="b"/>
    <child link="c"/>
  </joint>
</robot>"""


def without(what, text=GOOD):
    return instead(what, "", text)


def instead(old, new, text=GOOD):
    assert text.count(old) == 1, old
    return text.replace(old, new)


def more(elements, text=GOOD):
    return text.replace("</robot>", elements + "</robot>")


def mimicking(of, name="m"):
    return f'<link name="{name}_link"/>' + joint(name, "a", f"{name}_link", more=mimic(of))


ENCODED = '<?xml version="1.0" encoding="{}"?>' + GOOD
INCLUDE = '<xacro:include xmlns:xacro="http://ros.org/wiki/xacro" filename="x"/>'
LINKS = '<link name="x"/><link name="y"/><link name="t"/>'
LOOP = joint("m", "x", "y") + joint("n", "y", "x")
PREFIXED = mimicking("q", "l_r_p") + mimicking("j", "l_q") + mimicking("j", "l_r_q")

BAD = [
    # documents
    (GOOD[:200], "well-formed"),
    ("<sdf version='1.6'/>", "<sdf>"),
    ("<mujoco/>", "from_mjcf"),
    (without(' name="r"'), "no name"),
    (more(INCLUDE), "<xacro:include> in line 23"),
    (instead('<mass value="1"/>', '<mass value="${m / 2}"/>'), "<mass value='${m / 2}'>"),
    (instead('<child link="c"/>', '<child link="$(arg x)c"/>'), "'$(arg x)c' of joint"),
    (ENCODED.format("utf-99").encode(), "utf-99"),
    (more(" " * 32_000_000), "32 MB"),
    # trees
    ('<robot name="r"/>', "no links"),
    (more('<link name="other"/>'), "a, other"),
    (more(LINKS + joint("l", "a", "t") + LOOP), "x -> y -> x"),
    (more(joint("m", "c", "a")), "a -> b -> c -> a"),
    (instead('<parent link="a"/>', '<parent link="aa"/>'), "'aa' of joint 'j'"),
    (more(joint("m", "a", "c")), "'k' and 'm'"),
    (more('<link name="b"/>'), "'b'"),
    (more('<link name="d"/>' + joint("j", "a", "d")), "'j'"),
    # joints
    (instead('"revolute"', '"screw"'), "'screw'"),
    (without(' type="revolute"'), "joint 'j': <joint> has no attribute 'type'"),
    (without('<parent link="a"/>'), "joint 'j': it has no <parent"),
    (instead('<parent link="a"/>', "<parent/>"), "joint 'j': <parent> has no attribute 'link'"),
    (instead('<parent link="a"/>', '<parent link="a"/><parent link="b"/>'), "2 elements <parent>"),
    (instead('0 0 1"/>\n    <limit', '0 0 0"/>\n    <limit'), "joint 'j'"),
    (instead('<axis xyz="0 0 1"/>', "<axis/>"), "joint 'j': <axis> has no attribute 'xyz'"),
    (more(mimicking("jj")), "'jj' (did you mean 'j'?)"),
    (more('<link name="x"/>' + joint("m", "a", "x", more="<mimic/>")), "<mimic> has no attribute"),
    (more(mimicking("k")), "'m' cannot mimic joint 'k': 'k' is fixed"),
    (more(mimicking("k")).replace('"fixed"', '"floating"'), "'k' is floating"),
    (more(mimicking("j")).replace('"m" type="revolute"', '"m" type="planar"'), "'m' is planar"),
    (more(mimicking("n", "m") + mimicking("m", "n")), "m -> n -> m"),
    (more(PREFIXED), "'q'"),
    # links
    (instead('<mass value="1"/>', '<mass value="-1"/>'), "'b' has the negative mass -1"),
    (instead('<mass value="1"/>', "<mass/>"), "'b': <mass> has no attribute 'value'"),
    (without(' iyz="0"'), "'b': <inertia> has no attribute 'iyz'"),
    (instead("</inertial>", "</inertial><inertial/>"), "'b': it has 2 elements <inertial>"),
    (instead('<link name="c"/>', "<link/>"), "<link> in line 10"),
    (instead('<joint name="k"', "<joint"), "<joint> in line 19"),
]


@pytest.mark.parametrize(("text", "said"), BAD, ids=range(len(BAD)))
def test_bad_urdf(text, said, tmp_path):
    """As text, and as a file whose path is in the message."""
    with pytest.raises(UrdfError, match=r"URDF text.*" + re.escape(said)):
        Model.from_urdf(text)
    path = tmp_path / "robot.urdf"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UrdfError, match=f"{re.escape(str(path))}.*{re.escape(said)}"):
        Model.from_urdf(path)


def test_the_text_they_are_made_from_is_good():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Model.from_urdf(GOOD).body_names == ("b",)


NO_NUMBERS = ["nan", "inf", "", "1,5", "1 2"]
NUMBERS = [  # element, attribute, in which link or joint
    ("mass", "value", "link 'b'"),
    ("inertia", "iyz", "link 'b'"),
    ("inertial/origin", "xyz", "link 'b'"),
    ("joint/origin", "rpy", "joint 'j'"),
    ("axis", "xyz", "joint 'j'"),
    ("dynamics", "damping", "joint 'j'"),
    ("mimic", "offset", "joint 'm'"),
]


@pytest.mark.parametrize(("element", "attribute", "owner"), NUMBERS)
def test_what_is_no_number(element, attribute, owner):
    for wrong in NO_NUMBERS:
        document = etree.fromstring(more(mimicking("j")))
        text = f"0 {wrong} 1" if attribute in ("xyz", "rpy") else wrong
        document.find(f".//{element}").set(attribute, text)
        tag = element.split("/")[-1]
        with pytest.raises(UrdfError, match=re.escape(f"{owner}: <{tag} {attribute}={text!r}>")):
            Model.from_urdf(etree.tostring(document))


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        ("-inf", "INFINITY", (-np.inf, np.inf)),
        ("-1e999", "2", (-np.inf, 2.0)),
        ("1", "+inf", (1.0, np.inf)),
    ],
)
def test_limits_may_be_infinite(lower, upper, expected):
    model = Model.from_urdf(instead('lower="-1" upper="1"', f'lower="{lower}" upper="{upper}"'))
    assert (model.lower[0], model.upper[0]) == expected
    assert not any(each.severity == "warning" for each in model.diagnostics)


def test_a_lower_limit_above_the_upper_one_is_none():
    with pytest.warns(ModelWarning, match=r"'j'.*1.5.*1"):
        model = Model.from_urdf(instead('lower="-1"', 'lower="1.5"'))
    assert (model.lower[0], model.upper[0]) == (-np.inf, np.inf)
