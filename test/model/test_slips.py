# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Slips in the inertias of a URDF are named, with the values that were meant."""

import re

import numpy as np
import pytest
from urdf_reference import joint, link, load, urdf

from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.slips import ENTRIES, UPPER, tensor_slip, twin_slips


def bodies(count, seed=0):
    """Yield the six numbers of tensors of boxes in any orientation."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        x, y, z = rng.uniform(0.05, 0.4, 3) ** 2 / 12.0
        R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        T = R @ np.diag([y + z, x + z, x + y]) @ R.T
        yield np.array([float(f"{v:.6g}") for v in T[UPPER]])


def matrix(six):
    T = np.zeros((3, 3))
    T[UPPER] = six
    return T + T.T - np.diag(T.diagonal())


SLIPS = {
    "row by row": (lambda a, b, c, d, e, f: (a, b, c, b, d, e), "iyy is then {3:g}, iyz {4:g}"),
    "MJCF": (lambda a, b, c, d, e, f: (a, d, f, b, c, e), "ixy {1:g}"),
    "lower triangle": (lambda a, b, c, d, e, f: (a, b, d, c, e, f), "iyy {3:g}"),
    "sign": (lambda a, b, c, d, e, f: (a, b, c, d, e, -f), "izz {5:g}"),
    "decimal point of ixx": (lambda a, b, c, d, e, f: (10.0 * a, b, c, d, e, f), "ixx {0:g}"),
}


@pytest.mark.parametrize("kind", SLIPS)
def test_a_slip_in_a_tensor_is_named_with_the_value_that_was_meant(kind):
    slip, meant = SLIPS[kind]
    said = [(six, tensor_slip(matrix(slip(*six)))) for six in bodies(100)]
    assert np.mean([kind in text and meant.format(*six) in text for six, text in said]) > 0.9


def legs(**stated):
    """Return messages about twins of two legs, alike except for what is stated on the left."""
    parts = [link("base", "")]
    for side in ("left", "right"):
        values = {"mass": 2.0, "ixx": 0.012, "iyy": 0.01, "izz": 0.004}
        values |= stated if side == "left" else {}
        tensor = " ".join(f'{x}="{values.get(x, 0.0)}"' for x in ENTRIES)
        inertial = f'<mass value="{values["mass"]}"/><inertia {tensor}/><origin xyz="0 0 -0.1"/>'
        parts.append(link(f"{side}_thigh", f"<inertial>{inertial}</inertial>"))
        parts.append(joint(side, "base", f"{side}_thigh", "continuous", '<axis xyz="0 1 0"/>'))
    return [str(x) for x in load(urdf(*parts)).diagnostics if "twin" in x.message]


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"ixx": 0.0, "iyy": 0.0, "izz": 0.0}, "'left_thigh'.*likely ixx 0.012.*mirrored"),
        ({"ixx": 1e-18, "iyy": 1e-18, "izz": 1e-18}, "'left_thigh'.*likely ixx 0.012"),
        ({"mass": 0.2}, "'left_thigh'.*the factor is 10"),
        ({"mass": 0.0}, "'left_thigh'.*0 kg, its twin 'right_thigh' 2"),
        ({"mass": 2.6}, "'right_thigh'.*2 kg, its twin 'left_thigh' 2.6"),
        ({"ixx": 0.0024, "iyy": 0.002, "izz": 0.0008}, "sum of 0.0052 kg m.2"),
    ],
)
def test_links_that_are_not_like_their_twins_are_named(stated, said):
    (found,) = legs(**stated)
    assert re.search(said, found)


def test_twins_that_are_alike_get_no_message():
    assert legs() == []
    assert legs(mass=2.04) == []


@pytest.mark.parametrize(
    ("left", "right", "are_twins"),
    [
        ("left_arm", "right_arm", True),
        ("LeftArm", "RightArm", True),
        ("l_wrist", "r_wrist", True),
        ("arm_l", "arm_r", True),
        ("FL_hip", "FR_hip", True),
        ("bl_wheel", "br_wheel", True),
        ("LH_thigh", "RH_thigh", True),
        ("lr_calf", "rr_calf", True),
        ("tool", "toor", False),
        ("link_1", "rink_1", False),
    ],
)
def test_twins_differ_by_the_word_for_the_side(left, right, are_twins):
    light, heavy = (Inertia.from_com(m, np.zeros(3), np.zeros((3, 3))) for m in (1.0, 2.0))
    found = list(twin_slips({left: light, right: heavy}))
    assert [name for name, _ in found] == ([left] if are_twins else [])
