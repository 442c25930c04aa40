# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The reader of URDF files against ``urdf_parser_py``, which ROS has: the same in every file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lxml import etree
from robots import NAMELESS, all_files
from urdf_parser_py import urdf

from mbs_dynamics.model.urdf_elements import read

pytestmark = pytest.mark.backend_independent

KEPT = {
    "link": ("inertial",),
    "joint": ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic"),
}
"""Elements that both read. ``urdf_parser_py`` rejects textures and transmissions of some robots."""

OWN = Path(__file__).parents[2] / "urdf"
FILES = {name: path for name, path in all_files().items() if name not in NAMELESS}
FILES |= {path.name: path for path in OWN.glob("*.urdf")}


def by_the_other(path: Any) -> Any:
    document = etree.parse(str(path)).getroot()
    copy = etree.Element("robot", name=document.get("name"))
    for element in document.iterchildren("link", "joint"):
        whole = etree.SubElement(copy, element.tag, dict(element.attrib))
        whole.extend(element.iterchildren(*KEPT[element.tag]))
    return urdf.Robot.from_xml_string(etree.tostring(copy))


def origin_of(element: Any) -> Any:
    origin = element.origin
    if origin is None:
        return (0.0,) * 3, (0.0,) * 3
    return tuple(origin.xyz or (0.0,) * 3), tuple(origin.rpy or (0.0,) * 3)


def inertial_of(link: Any) -> Any:
    inertial = link.inertial
    if inertial is None:
        return None
    tensor = inertial.inertia
    entries = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    stated = tensor and [getattr(tensor, entry) for entry in entries]
    return origin_of(inertial), inertial.mass, stated


def joint_of(joint: Any) -> Any:
    limit, dynamics, mimic = joint.limit, joint.dynamics, joint.mimic
    names = ("lower", "upper", "velocity", "effort")
    return (
        *(joint.name, joint.type, joint.parent, joint.child, origin_of(joint)),
        joint.axis and tuple(joint.axis) if joint.type not in ("fixed", "floating") else None,
        limit and [getattr(limit, name) or 0.0 for name in names],
        dynamics and (dynamics.damping or 0.0, dynamics.friction or 0.0),
        mimic
        and (
            mimic.joint,
            1.0 if mimic.multiplier is None else mimic.multiplier,
            mimic.offset or 0.0,
        ),
    )


@pytest.mark.parametrize("name", FILES)
def test_robots_are_read_as_by_urdf_parser_py(name):
    other, (_, robot) = by_the_other(FILES[name]), read(FILES[name])
    assert robot.name == other.name
    assert [x.name for x in robot.links] == [x.name for x in other.links]
    assert [inertial_of(x) for x in robot.links] == [inertial_of(x) for x in other.links]
    assert [joint_of(x) for x in robot.joints] == [joint_of(x) for x in other.joints]
