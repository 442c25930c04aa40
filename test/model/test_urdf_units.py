# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Warnings about numbers of a URDF that are in other units."""

from __future__ import annotations

import pytest
from robots import robot_files
from urdf_reference import load, notes

from mbs_dynamics.resources import robot_path

pytestmark = pytest.mark.backend_independent

PLAIN = {"mass": "1.2", "inertia": "0.002", "com": "0 0 0.1", "limits": "-2 2", "rpy": "0 0 0"}


def warned(**given):
    """The warnings about an arm of four links, of which the second is stated in some units."""
    return notes(load(arm(**given)), "warning")


def arm(xyz="0 0 0.3", inertial_rpy="0 0 0", **given):
    """The description of such an arm."""
    text = '<robot name="r"><link name="l0"/>'
    for k in range(1, 5):
        x = {**PLAIN, **given} if k == 2 else PLAIN
        lower, upper = x["limits"].split()
        where = xyz if k == 2 else "0 0 0.3"
        turned = inertial_rpy if k == 2 else "0 0 0"
        moments = "".join(f' {name}="{x["inertia"]}"' for name in ("ixx", "iyy", "izz"))
        text += (
            f'<link name="l{k}"><inertial><origin xyz="{x["com"]}" rpy="{turned}"/>'
            f'<mass value="{x["mass"]}"/><inertia{moments} ixy="0" ixz="0" iyz="0"/></inertial>'
            f'</link><joint name="j{k}" type="revolute"><parent link="l{k - 1}"/>'
            f'<child link="l{k}"/><origin xyz="{where}" rpy="{x["rpy"]}"/><axis xyz="0 1 0"/>'
            f'<limit lower="{lower}" upper="{upper}" effort="9" velocity="1"/></joint>'
        )
    return text + "</robot>"


@pytest.mark.parametrize(
    ("given", "subject", "parts"),
    [
        ({"inertia": "2e6"}, "link 'l2'", ("1.29e+03 m", "another unit than kg m^2")),
        ({"inertia": "2e3"}, "link 'l2'", ("40.8 m", "another unit than kg m^2")),
        ({"inertia": "2"}, "link 'l2'", ("1.29 m", "another unit than kg m^2")),
        ({"mass": "1200"}, "link 'l2'", ("1200 kg", "likely in g")),
        ({"inertia": "0"}, "link 'l2'", ("1.2 kg without inertia", "likely forgotten")),
        ({"mass": "0"}, "link 'l2'", ("an inertia but no mass",)),
        ({"com": "3 4 100"}, "link 'l2'", ("100.1 m", "likely in mm")),
        ({"com": "3 4 5"}, "link 'l2'", ("7.071 m", "likely in mm")),
        ({"xyz": "0 0 300"}, "joint 'j2'", ("300 m", "likely in mm")),
        ({"limits": "-170 170"}, "joint 'j2'", ("-170 and 170 rad", "likely in degrees")),
        ({"limits": "0 117.5"}, "joint 'j2'", ("0 and 117.5 rad", "likely in degrees")),
        ({"rpy": "90 0 0"}, "joint 'j2'", ("'90 0 0'", "likely in degrees")),
        ({"inertial_rpy": "0 -45 0"}, "link 'l2'", ("'0 -45 0'", "likely in degrees")),
    ],
)
def test_likely_units_are_named_with_link_and_value(given, subject, parts):
    given = dict(given)
    if given.get("mass") == "1200":
        given["inertia"] = "0.0002"
    said = [x for x in warned(**given) if x.startswith(subject)]
    assert len(said) == 1
    assert all(part in said[0] for part in parts)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"limits": "-6.283 6.283"},
        {"limits": "-62.83 62.83"},
        {"limits": "-100 100"},
        {"limits": "-1e16 1e16"},
        {"limits": "-10 10"},
        {"rpy": "7.85398 -6.28319 3.14"},
        {"mass": "1e-6", "inertia": "1e-6"},
        {"mass": "30", "inertia": "1e-6"},
        {"mass": "0", "inertia": "0"},
    ],
)
def test_plausible_numbers_are_not_warned_of(given):
    assert not any("likely" in each for each in warned(**given))


IMPLAUSIBLE = {
    "anymal.urdf": 4,  # cameras whose tensor no body has
    "baxter.urdf": 8,  # fingers of 2 and 3 m
    "bolt.urdf": 2,  # feet without mass
    "icub.urdf": 14,  # tensors of the head and right leg are zero, those of the left one are not
    "icub_reduced.urdf": 14,
    "iris.urdf": 4,
    "pr2.urdf": 4,
    "romeo_laas_small.urdf": 1,  # tensors that no body has
    "romeo_small.urdf": 2,
    "simple_humanoid.urdf": 27,
    "simple_humanoid_classical.urdf": 27,
    "ur5_gripper.urdf": 3,  # wrists of 1.3 m
    "ur5_joint_limited_robot.urdf": 3,
    "ur5_robot.urdf": 3,
}
"""Public descriptions, and how many warnings about their links are right."""


@pytest.mark.long
def test_robots_are_warned_of_only_where_a_link_is_implausible():
    found = {}
    for path in (*robot_files().values(), robot_path("arm7")):
        said = notes(load(path), "warning")
        count = sum("likely" in each or "no mass, as no body" in each for each in said)
        if count:
            found[path.name] = count
    assert found == IMPLAUSIBLE
