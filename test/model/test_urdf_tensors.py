# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Likely slips in tensors of inertia are named with the values that are likely meant."""

from __future__ import annotations

import pytest
from urdf_reference import load, notes

from mbs_dynamics.model.urdf_tensors import mirrored

pytestmark = pytest.mark.backend_independent

NAMES = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
TENSOR = (0.02, 0.001, 0.002, 0.03, 0.003, 0.04)


def link(name, tensor, mass=2.0):
    entries = " ".join(f'{x}="{value!r}"' for x, value in zip(NAMES, tensor, strict=True))
    return (
        f'<link name="{name}"><inertial><mass value="{mass}"/><inertia {entries}/></inertial>'
        f'</link><joint name="{name}_joint" type="continuous"><parent link="base"/>'
        f'<child link="{name}"/></joint>'
    )


def about(name, *links):
    """Return the warnings about a link."""
    model = load(f'<robot name="r"><link name="base"/>{"".join(links)}</robot>')
    return [each for each in notes(model, "warning") if each.startswith(f"link '{name}'")]


def test_a_possible_tensor_is_not_warned_of():
    assert about("a", link("a", TENSOR)) == []


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ((0.02, 0.001, 0.002, 0.001, 0.03, 0.003), ["row by row", "iyy=0.03", "iyz=0.003"]),
        ((0.02, 0.0, 0.0, 0.0, 0.03, 0.0), ["row by row", "iyy=0.03", "izz is unknown"]),
        ((0.02, 0.03, 0.04, 0.001, 0.002, 0.003), ["MuJoCo", "iyy=0.03", "izz=0.04", "ixz=0.002"]),
        ((0.02, 0.001, 0.03, 0.002, 0.003, 0.04), ["lower triangle", "iyy=0.03", "ixz=0.002"]),
        ((0.02, 0.0, 0.0, 0.3, 0.0, 0.04), ["lost", "iyy=0.03"]),
        ((0.02, 0.0, 0.0, 0.03, 0.0, 0.4), ["lost", "izz=0.04"]),
        ((0.002, 0.0, 0.0, 0.03, 0.0, 0.04), ["lost", "ixx=0.02"]),
    ],
)
def test_slips_in_an_impossible_tensor_are_named(written, words):
    (message,) = about("a", link("a", written))
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("left_hip", "right_hip"),
        ("LeftHand", "RightHand"),
        ("HIP_LEFT", "HIP_RIGHT"),
        ("l_hip_1", "r_hip_1"),
        ("LShoulderYawLink", "RShoulderYawLink"),
        ("FL_calf", "FR_calf"),
        ("LF_HIP", "RF_HIP"),
        ("arm_l", "arm_r"),
    ],
)
def test_mirrored_links_are_found_by_their_names(name, other):
    links = dict.fromkeys([name, other, "base", "hip"])
    assert next(mirrored(name, links)) == other
    assert next(mirrored(other, links)) == name
    assert list(mirrored("base", links)) == []


@pytest.mark.parametrize("tensor", [1e-18, 0.0, 1e-9, 1e-5])
def test_a_tiny_tensor_is_named_with_that_of_the_mirrored_link(tensor):
    tiny, right = (tensor, 0, 0, tensor, 0, tensor), (0.01, 0, 0, 0.01, 0, 0.01)
    links = link("left_leg", tiny), link("right_leg", right)
    (message,) = about("left_leg", *links)
    assert "'right_leg'" in message
    assert message.partition("likely")[2].count("=0.01") == 3
    assert about("right_leg", *links) == []


@pytest.mark.parametrize(("at", "factor"), [(0, 0.1), (3, 10.0), (5, 0.01), (1, 1000.0)])
def test_a_lost_decimal_point_is_named_with_the_entry_of_the_mirrored_link(at, factor):
    wrong = list(TENSOR)
    wrong[at] *= factor
    mirror = [x if k not in (1, 4) else -x for k, x in enumerate(TENSOR)]
    links = link("l_arm", wrong), link("r_arm", mirror)
    said = about("l_arm", *links)
    assert any("'r_arm'" in x and f"likely lost: {NAMES[at]}={TENSOR[at]:g}" in x for x in said)
    assert about("r_arm", *links) == []


def test_a_whole_tensor_ten_times_too_small_or_large_is_named():
    for factor in (0.1, 10.0, 1000.0):
        tensor = tuple(x * factor for x in TENSOR)
        said = about("left_arm", link("left_arm", tensor), link("right_arm", TENSOR))
        assert any("'right_arm'" in x and "izz=0.04" in x for x in said), said


def test_a_mass_that_lacks_a_zero_is_named():
    links = link("left_arm", TENSOR, mass=0.02), link("right_arm", TENSOR, mass=2.0)
    assert any("likely 2 kg" in x for x in about("left_arm", *links))
    assert about("right_arm", *links) == []


def test_mirrored_links_that_differ_a_little_are_not_warned_of():
    other = (0.025, -0.002, 0.001, 0.032, 0.0, 0.04)
    assert about("l_arm", link("l_arm", TENSOR), link("r_arm", other, mass=2.2)) == []
