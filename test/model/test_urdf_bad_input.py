# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Invalid URDFs raise errors that name the source and the element."""

from __future__ import annotations

import contextlib
import copy
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from mbs_dynamics.errors import MbsError, ModelWarning, UrdfError
from mbs_dynamics.model.model import Model

pytestmark = pytest.mark.backend_independent

ARM7 = (Path(__file__).parents[2] / "urdf" / "arm7.urdf").read_bytes()

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


def moving(name, parent, child, content="", kind="revolute"):
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}">{ends}{content}</joint>'


def mimicking(of, name="m"):
    return f'<link name="{name}_link"/>' + moving(
        name, "a", f"{name}_link", f'<mimic joint="{of}"/>'
    )


JOINT_J = GOOD[GOOD.index('<joint name="j"') : GOOD.index('<joint name="k"')]
INERTIA = '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'

BAD_DOCUMENTS = {
    "truncated": (GOOD[:200], "is not well-formed XML: "),
    "two documents": (GOOD + GOOD, "is not well-formed XML: "),
    "only a bracket": ("<", "is not well-formed XML: "),
    "undefined entity": (
        instead('name="a"', 'name="&x;"'),
        "is not well-formed XML: undefined entity",
    ),
    "not a robot": ("<sdf version='1.6'/>", "the root element must be <robot>; got <sdf>"),
    "no robot name": (without(' name="r"'), "the robot has no name; valid is <robot name='...'>"),
    "empty robot name": (instead('"r"', '""'), "the robot has no name"),
    "xacro": (
        more('<xacro:include xmlns:xacro="http://ros.org/wiki/xacro" filename="x"/>'),
        "it contains <xacro:include> in line 23; expand it with xacro first",
    ),
    "xacro in a link": (
        instead('<link name="a"/>', '<link name="a"><x:insert xmlns:x="http://w/xacro"/></link>'),
        "it contains <xacro:insert>",
    ),
    "xacro without a namespace": (more("<xacro:if/>"), "it contains <xacro:if> in line 23; expand"),
    "macros alone": (
        '<robot xmlns:xacro="http://ros.org/wiki/xacro"><xacro:macro name="ur_robot"/></robot>',
        "it only defines xacro macros, ur_robot, and describes no robot; take the file that",
    ),
    "xacro in a number": (
        instead('<mass value="1"/>', '<mass value="${m / 2}"/>'),
        "link 'b': <mass value='${m / 2}'>: expand it with xacro first",
    ),
    "xacro in a name": (
        instead('<child link="c"/>', '<child link="$(arg prefix)c"/>'),
        "<child link='$(arg prefix)c'>: expand it with xacro first",
    ),
    "an encoding that does not exist": (
        ('<?xml version="1.0" encoding="utf-99"?>' + GOOD).encode(),
        "unknown encoding: utf-99",
    ),
    "an encoding of names of hosts": (
        ('<?xml version="1.0" encoding="punycode"?>' + GOOD).encode(),
        "unknown encoding: punycode",
    ),
    "half a character": (
        ('<?xml version="1.0" encoding="gb2312"?>' + GOOD).encode() + b"\xb5",
        "it is not in its encoding gb2312",
    ),
    "too deep": (more("<a>" * 1000 + "</a>" * 1000), "at most 200000 in all, and 200 within"),
    "too many elements": (more("<a/>" * 200_000), "at most 200000 in all, and 200 within"),
    "too large": (more(" " * 32_000_000), "it has more than 32 MB"),
}

BAD_TREES = {
    "no links": ('<robot name="r"/>', "robot 'r' has no links"),
    "two roots": (
        more('<link name="other"/>'),
        "robot 'r' has 2 root links, a, other; valid is one",
    ),
    "cycle": (
        more('<link name="x"/><link name="y"/>' + moving("m", "x", "y") + moving("n", "y", "x")),
        "links and joints form a cycle: x -> y -> x",
    ),
    "cycle and no root": (more(moving("m", "c", "a")), "form a cycle: a -> b -> c -> a"),
    "tail of a cycle": (
        more(
            "".join(f'<link name="{name}"/>' for name in "txy")
            + moving("l", "x", "t")
            + moving("m", "x", "y")
            + moving("n", "y", "x")
        ),
        "form a cycle: x -> y -> x",
    ),
    "own parent": (
        more('<link name="x"/>' + moving("m", "x", "x")),
        "form a cycle: x -> x",
    ),
    "unknown parent": (
        instead('<parent link="a"/>', '<parent link="aa"/>'),
        "the parent link 'aa' of joint 'j' does not exist; the links are: a, b, c",
    ),
    "unknown child": (
        instead('<child link="c"/>', '<child link="cc"/>'),
        "the child link 'cc' of joint 'k' does not exist; the links are: a, b, c",
    ),
    "child of two joints": (
        more(moving("m", "a", "c")),
        "link 'c' is the child of two joints, 'k' and 'm'",
    ),
    "duplicate link": (more('<link name="b"/>'), "two links have the name 'b'"),
    "duplicate joint": (
        more('<link name="d"/>' + moving("j", "a", "d")),
        "two joints have the name 'j'",
    ),
}

BAD_JOINTS = {
    "unknown type": (
        instead('"revolute"', '"screw"'),
        "joint 'j' has the unknown type 'screw'; valid are revolute, continuous, prismatic, fixed",
    ),
    "no type": (without(' type="revolute"'), "joint 'j': <joint> has no attribute 'type'"),
    "no parent": (without('<parent link="a"/>'), "joint 'j': it has no <parent link='...'>"),
    "no child": (without('<child link="b"/>'), "joint 'j': it has no <child link='...'>"),
    "parent without link": (
        instead('<parent link="a"/>', "<parent/>"),
        "joint 'j': <parent> has no attribute 'link'",
    ),
    "two parents": (
        instead('<parent link="a"/>', '<parent link="a"/><parent link="b"/>'),
        "joint 'j': it has 2 elements <parent>; valid is one",
    ),
    "zero axis": (
        instead('0 0 1"/>\n    <limit', '0 0 0"/>\n    <limit'),
        "the axis of joint 'j' is zero",
    ),
    "axis without xyz": (
        instead('<axis xyz="0 0 1"/>', "<axis/>"),
        "joint 'j': <axis> has no attribute 'xyz'",
    ),
    "quaternion": (
        instead('<origin xyz="1 2 3" rpy="0 0 0"/>', '<origin quat_xyzw="0 0 0 1"/>'),
        "joint 'j': <origin quat_xyzw='...'> is not supported; valid is rpy='...'",
    ),
    "mimic of nobody": (
        more(mimicking("jj")),
        "joint 'm' mimics a joint that does not exist: no joint 'jj' (did you mean 'j'?)",
    ),
    "mimic without joint": (
        more('<link name="x"/>' + moving("m", "a", "x", "<mimic/>")),
        "joint 'm': <mimic> has no attribute 'joint'",
    ),
    "mimic of a fixed joint": (
        more(mimicking("k")),
        "joint 'm' cannot mimic joint 'k': 'k' is fixed",
    ),
    "mimic of a floating joint": (
        more(mimicking("k")).replace('"fixed"', '"floating"'),
        "joint 'm' cannot mimic joint 'k': 'k' is floating",
    ),
    "mimic of a fixed joint alone": (
        more(mimicking("k")).replace(JOINT_J, JOINT_J.replace("revolute", "fixed")),
        "joint 'm' cannot mimic joint 'k': 'k' is fixed",
    ),
    "planar mimic": (
        more(mimicking("j")).replace('"m" type="revolute"', '"m" type="planar"'),
        "joint 'm' cannot mimic joint 'j': 'm' is planar",
    ),
    "mimics in a circle": (
        more(mimicking("n", "m") + mimicking("m", "n")),
        "joints mimic one another: m -> n -> m",
    ),
    "mimic of itself": (more(mimicking("m")), "joints mimic one another: m -> m"),
    "mimic of one of two without prefix": (
        more(mimicking("q", "l_r_p") + mimicking("j", "l_q") + mimicking("j", "l_r_q")),
        "joint 'l_r_p' mimics a joint that does not exist: no joint 'q'",
    ),
}

BAD_LINKS = {
    "negative mass": (
        instead('<mass value="1"/>', '<mass value="-1"/>'),
        "link 'b' has the negative mass -1 kg",
    ),
    "mass without value": (
        instead('<mass value="1"/>', "<mass/>"),
        "link 'b': <mass> has no attribute 'value'",
    ),
    "five moments": (without(' iyz="0"'), "link 'b': <inertia> has no attribute 'iyz'"),
    "two inertials": (
        instead("</inertial>", "</inertial><inertial/>"),
        "link 'b': it has 2 elements <inertial>; valid is one",
    ),
    "link without name": (
        instead('<link name="c"/>', "<link/>"),
        "the <link> in line 10 has no name",
    ),
    "joint without name": (
        instead('<joint name="k"', "<joint"),
        "the <joint> in line 19 has no name",
    ),
}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(*case, id=name)
        for table in (BAD_DOCUMENTS, BAD_TREES, BAD_JOINTS, BAD_LINKS)
        for name, case in table.items()
    ],
)
def test_bad_urdf(text, message, tmp_path):
    """As text, and as a file whose path is in the message."""
    with pytest.raises(UrdfError, match=r"^URDF text: .*" + re.escape(message)):
        Model.from_urdf(text)
    path = tmp_path / "robot.urdf"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UrdfError, match=f"^URDF {re.escape(str(path))}: .*{re.escape(message)}"):
        Model.from_urdf(path)


def test_the_text_they_are_made_from_is_good():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Model.from_urdf(GOOD).body_names == ("b",)


NO_NUMBERS = (
    "nan",
    "NaN",
    "inf",
    "-Infinity",
    "1e999",
    "",
    " ",
    "one",
    "1,5",
    "1_0",
    "0x10",
    "\u0661",
    "1 2",
)
NUMBERS = [  # element, attribute, how many, in which link or joint
    ("mass", "value", 1, "link 'b'"),
    *(("inertia", entry, 1, "link 'b'") for entry in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")),
    ("inertial/origin", "xyz", 3, "link 'b'"),
    ("inertial/origin", "rpy", 3, "link 'b'"),
    ("joint/origin", "xyz", 3, "joint 'j'"),
    ("joint/origin", "rpy", 3, "joint 'j'"),
    ("axis", "xyz", 3, "joint 'j'"),
    *(("limit", which, 1, "joint 'j'") for which in ("lower", "upper", "velocity", "effort")),
    *(("dynamics", which, 1, "joint 'j'") for which in ("damping", "friction")),
    *(("mimic", which, 1, "joint 'm'") for which in ("multiplier", "offset")),
]


@pytest.mark.parametrize(
    ("element", "attribute", "count", "owner", "wrong"),
    [
        (*number, wrong)
        for number in NUMBERS
        for wrong in NO_NUMBERS
        if number[0] != "limit" or wrong not in ("inf", "-Infinity", "1e999")
    ],
)
def test_what_is_no_number(element, attribute, count, owner, wrong):
    document = etree.fromstring(more(mimicking("j")))
    found = document.find(f".//{element}")
    text = " ".join(["0", wrong, "1"]) if count == 3 else wrong
    found.set(attribute, text)
    tag = element.split("/")[-1]
    valid = "3 finite numbers" if count == 3 else "one finite number"
    message = f"URDF text: {owner}: <{tag} {attribute}={text!r}>: valid is {valid}, at most "
    with pytest.raises(UrdfError, match=f"^{re.escape(message)}1"):
        Model.from_urdf(etree.tostring(document))


def test_a_limit_may_be_the_largest_float_and_a_length_not():
    largest = "1.7976931348623157e308"
    joint = Model.from_urdf(instead('effort="3"', f'effort="{largest}"')).joint("j")
    assert joint.limits.effort == float(largest)
    with pytest.raises(UrdfError, match=r"xyz='1e51 2 3'.*1e\+50"):
        Model.from_urdf(instead("1 2 3", "1e51 2 3"))


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


def test_what_is_quoted_is_short():
    """However long the names and numbers of a description are."""
    long = "x" * 100_000
    for text in (
        instead('<child link="c"/>', f'<child link="{long}"/>'),
        instead('<mass value="1"/>', f'<mass value="{"1" * 20_000}x"/>'),
        more("".join(f'<link name="l{k}"/>' for k in range(9000))),
        instead('<robot name="r">', f"<{long}>").replace("</robot>", f"</{long}>"),
    ):
        with pytest.raises(UrdfError) as error:
            Model.from_urdf(text)
        assert len(str(error.value)) < 2100


@pytest.mark.parametrize("word", ["1" * 999_999, "1" * 999_999 + "x", "1." + "0" * 999_999])
def test_numbers_of_a_million_digits_are_refused_at_once(word):
    with pytest.raises(UrdfError):
        Model.from_urdf(instead('<mass value="1"/>', f'<mass value="{word}"/>'))


TAGS = ("link", "joint", "inertial", "mimic", "origin", "unknown")
VALUES = (
    *("", "0", "0 0 0", "-1", "1e50", "-1e50 1e50 1", "1e-300 0 0", "nan", "ü", "/", "{}", "%s"),
    *("link3", "joint2", "fixed", "floating", "planar", "continuous"),
)


def damage(elements, draw):
    element, other = draw(st.sampled_from(elements)), draw(st.sampled_from(elements))
    match draw(st.sampled_from(["remove", "double", "move", "rename", "alter", "strip"])):
        case "remove":
            element.getparent().remove(element)
        case "double":
            element.addnext(copy.deepcopy(element))
        case "move" if element is not other and element not in other.iterancestors():
            other.append(element)
        case "rename":
            element.tag = draw(st.sampled_from(TAGS))
        case "alter" if element.attrib:
            element.set(draw(st.sampled_from(element.keys())), draw(st.sampled_from(VALUES)))
        case "strip" if element.attrib:
            del element.attrib[draw(st.sampled_from(element.keys()))]


@given(st.data())
def test_a_damaged_file_loads_or_is_refused(data):
    """Elements of the arm are removed, doubled, moved and altered; no other exception gets out."""
    document = etree.fromstring(ARM7)
    for _ in range(data.draw(st.integers(1, 4))):
        if elements := [element for element in document.iter("*")][1:]:
            damage(elements, data.draw)
    with warnings.catch_warnings(), contextlib.suppress(MbsError):
        warnings.simplefilter("ignore", ModelWarning)
        assert Model.from_urdf(etree.tostring(document)).n >= 1
