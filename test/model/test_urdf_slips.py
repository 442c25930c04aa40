# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Slips in the inertias of a URDF are named, with the values that were meant."""

import warnings

import numpy as np
import pytest

import mbs_dynamics as mbs
from mbs_dynamics.model.urdf_elements import Tensor
from mbs_dynamics.model.urdf_slips import tensor_slip


def bodies(count, seed=0):
    """Return tensors (6 numbers each) of boxes in any orientation."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        x, y, z = rng.uniform(0.05, 0.4, 3) ** 2 / 12.0
        R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        T = R @ np.diag([y + z, x + z, x + y]) @ R.T
        yield Tensor(*(float(f"{v:.6g}") for v in T[np.triu_indices(3)]))


SLIPS = {
    "row by row": (lambda T: Tensor(T.ixx, T.ixy, T.ixz, T.ixy, T.iyy, T.iyz), "iyy"),
    "MJCF": (lambda T: Tensor(T.ixx, T.iyy, T.izz, T.ixy, T.ixz, T.iyz), "ixy"),
    "lower triangle": (lambda T: Tensor(T.ixx, T.ixy, T.iyy, T.ixz, T.iyz, T.izz), "iyy"),
    "sign": (lambda T: T._replace(izz=-T.izz), "izz"),
    "ixx is likely shifted": (lambda T: T._replace(ixx=T.ixx * 10.0), "ixx"),
}


@pytest.mark.parametrize("kind", SLIPS)
def test_a_slip_in_a_tensor_is_named_with_the_value_that_was_meant(kind):
    slip, name = SLIPS[kind]
    named = [(T, tensor_slip(slip(T))) for T in bodies(100)]
    right = [f"{name} {'is then ' if kind == 'row by row' else ''}{getattr(T, name):g}" in said
             and kind in said for T, said in named]  # fmt: skip
    assert np.mean(right) > 0.9


def test_tensors_that_several_slips_would_explain_get_no_advice():
    assert tensor_slip(Tensor(1.0, 5.0, 5.0, 1.0, 5.0, 1.0)) == ""


def legs(**stated):
    """Return diagnostics of two legs that are equal, except for what is stated on the left."""
    text = '<robot name="legs"><link name="base"/>'
    for side in ("left", "right"):
        values = {"mass": 2.0, "ixx": 0.012, "iyy": 0.01, "izz": 0.004}
        values |= stated if side == "left" else {}
        tensor = " ".join(f'{x}="{values.get(x, 0.0)}"' for x in Tensor._fields)
        text += (
            f'<link name="{side}_thigh"><inertial><origin xyz="0 0 -0.1"/><mass value='
            f'"{values["mass"]}"/><inertia {tensor}/></inertial></link><joint name="{side}" '
            f'type="continuous"><parent link="base"/><child link="{side}_thigh"/>'
            '<axis xyz="0 1 0"/></joint>'
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbs.ModelWarning)
        model = mbs.Model.from_urdf(text + "</robot>")
    return [x for x in model.diagnostics if "thigh" in x.subject and x.message.count("twin")]


@pytest.mark.parametrize(
    ("stated", "severity", "said"),
    [
        ({"ixx": 0.0, "iyy": 0.0, "izz": 0.0}, "warning", "ixx 0.012"),
        ({"ixx": 1e-18, "iyy": 1e-18, "izz": 1e-18}, "warning", "ixx 0.012"),
        ({"mass": 0.2}, "warning", "the factor is 10"),
        ({"mass": 0.0}, "warning", "has 2 kg"),
        ({"mass": 2.6}, "note", "2.6 kg"),
        ({"ixx": 0.0024, "iyy": 0.002, "izz": 0.0008}, "note", "sum is 0.0052"),
    ],
)
def test_links_that_are_not_like_their_twins_are_named(stated, severity, said):
    (found,) = legs(**stated)
    assert found.severity == severity
    assert said in found.message


def test_twins_that_are_alike_get_no_message():
    assert legs() == []
    assert legs(mass=2.04) == []
