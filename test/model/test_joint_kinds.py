# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Joints of many degrees of freedom: their motions, and models made with them."""

import pickle

import numpy as np
import pytest
from mechanisms import pose, rotation
from reference import assert_close, exponential, hat

import mbs_dynamics as mbs
from mbs_dynamics.lie import se3
from mbs_dynamics.model.coordinates import velocity_names
from mbs_dynamics.model.joints import KINDS, Connection, joint

PITCH = 0.15
DOF = {
    **dict.fromkeys(("revolute", "prismatic", "screw"), 1),
    **dict.fromkeys(("planar_translation", "cylindrical"), 2),
    **dict.fromkeys(("translation", "spherical", "planar", "planar_screw"), 3),
    "schoenflies": 4,
    "free": 6,
}
AXIAL = ("revolute", "prismatic", "screw", "cylindrical", "planar", "planar_screw", "schoenflies")
AXES = {"planar_translation": 2, "translation": 3}

every_kind = pytest.mark.parametrize("kind", KINDS)


def made(kind, seed=0, **given):
    """A joint of a kind, about random axes if a seed is given."""
    rng = np.random.default_rng(seed)
    if kind in AXIAL and seed:
        given["axis"] = rotation(rng)[:, 0]
    if kind in AXES and seed:
        skew = rotation(rng) + 0.3 * rng.normal(size=(3, 3))  # independent, not orthogonal
        given["axes"] = (skew / np.linalg.norm(skew, axis=1)[:, None])[: AXES[kind]]
    if kind in ("screw", "planar_screw"):
        given["pitch"] = PITCH
    return joint(kind, **given)


def displacement(joint, v):
    """exp(S v) by power series."""
    return exponential(hat(joint.screws @ v))


@every_kind
def test_numbers_of_positions_and_velocities(kind):
    joint = made(kind)
    assert joint.kind == kind
    assert (joint.nv, joint.nq) == (DOF[kind], DOF[kind] + (kind in ("spherical", "free")))
    assert joint.neutral().shape == (joint.nq,)
    assert_close(joint.motion(joint.neutral(), "j"), np.eye(4), 1e-15)
    assert not joint.screws.flags.writeable


def test_screws_by_default_have_the_axes_of_the_joint_frame():
    x, y, z, rx, ry, rz = np.eye(6)[[3, 4, 5, 0, 1, 2]].tolist()
    for kind, expected in {
        "revolute": [rz],
        "prismatic": [z],
        "screw": [[0, 0, 1, 0, 0, PITCH]],
        "planar_translation": [x, y],
        "cylindrical": [z, rz],
        "translation": [x, y, z],
        "spherical": [rx, ry, rz],
        "planar": [rz, x, y],
        "planar_screw": [[0, 0, 1, 0, 0, PITCH], x, y],
        "schoenflies": [rz, x, y, z],
        "free": [rx, ry, rz, x, y, z],
    }.items():
        assert made(kind).screws.T.tolist() == expected, kind


@pytest.mark.parametrize("seed", range(1, 3))
@pytest.mark.parametrize("kind", ["planar", "planar_screw", "schoenflies"])
def test_directions_in_the_plane_are_right_handed_with_the_axis(kind, seed):
    joint = made(kind, seed)
    axis = rotation(np.random.default_rng(seed))[:, 0]
    z, x, y = joint.screws[:3, 0], joint.screws[3:, 1], joint.screws[3:, 2]
    assert_close(z, axis, 1e-15)
    assert_close(np.cross(x, y), z, 1e-15)
    nearest = np.argmax(np.abs(axis))
    following = np.eye(3)[(nearest + 1) % 3]
    assert_close(np.cross(axis, np.cross(following, axis)) / (following @ x), x, 1e-14)


x, y, z, xy = (("prismatic", {"axis": e}) for e in [*np.eye(3), [0.6, 0.8, 0.0]])


@pytest.mark.parametrize(
    ("kind", "series"),
    [
        ("planar_translation", [x, xy]),
        ("planar_translation", [x, y, xy]),  # as printed for translation: not parallel either
        ("translation", [x, xy, z]),
        ("planar_screw", [x, xy, ("screw", {})]),
        ("schoenflies", [("planar", {}), ("screw", {})]),  # printed for planar_screw
        ("schoenflies", [("planar", {}), z]),
    ],
)
def test_joints_in_series_that_make_the_joints_of_table_2(kind, series):
    """The screws of the joint and of the joints in series span the same."""
    screws = made(kind).screws
    together = np.hstack([made(name, **given).screws for name, given in series])
    ranks = [np.linalg.matrix_rank(S) for S in (screws, together, np.hstack([screws, together]))]
    assert ranks == [DOF[kind]] * 3


@pytest.mark.parametrize("seed", range(1, 3))
@every_kind
def test_motions_are_those_of_table_1(kind, seed):
    """Displacements are exp(S v), and stay in the subgroup; the joint frame is that of the body."""
    joint, rng = made(kind, seed), np.random.default_rng(seed + 100)
    q = joint.neutral()
    for v in rng.uniform(-1.5, 1.5, (4, joint.nv)):
        C, moved = joint.motion(q, "j"), joint.displaced(q, v, "j")
        D = joint.motion(moved, "j")
        assert_close(D, C @ displacement(joint, v), 1e-13)
        back = joint.difference(q, moved, "j").astype(float)
        assert_close(C @ displacement(joint, back), D, 1e-12)
        q = moved
    turned = joint.seen_from(C := pose(rng))
    assert_close(turned.motion(q, "j"), np.linalg.inv(C) @ joint.motion(q, "j") @ C, 1e-13)
    assert_close(turned.screws, se3.Ad(np.linalg.inv(C)) @ joint.screws, 1e-14)


@pytest.mark.parametrize("turns", [0.0, 1e-9, 1.0, np.pi - 1e-9, 3.0])
@pytest.mark.parametrize("kind", ["spherical", "free", "planar"])
def test_displacements_are_exact_at_every_angle(kind, turns):
    joint, rng = made(kind, 2), np.random.default_rng(1)
    v = rng.normal(size=joint.nv)
    omega = np.linalg.norm(joint.screws[:3] @ v)
    v[: 3 if kind != "planar" else 1] *= turns / omega
    q = joint.displaced(joint.neutral(), rng.normal(size=joint.nv), "j")
    found = joint.difference(q, joint.displaced(q, v, "j"), "j").astype(float)
    assert_close(found, v, 1e-7 if turns > 3.1 else 1e-12)


def test_names_and_order_of_bodies_and_joints():
    M = mbs.spatial_inertia(1.0, (0, 0, 0.1), 0.01 * np.eye(3))
    model = mbs.Model.from_joints(
        [
            Connection(name="hip", joint=made("spherical"), body="thigh", M_body=M),
            Connection(name="knee", joint=made("revolute"), body="shank", M_body=M, parent="thigh"),
            Connection(name="rail", joint=made("cylindrical"), body="cart", M_body=M),
            Connection(name="aid", joint=made("prismatic"), body="load", M_body=M, parent="cart"),
        ]
    )
    assert model.joint_names == ("hip", "knee", "rail", "aid")
    assert velocity_names(model.joints)[:4] == ("hip[0]", "hip[1]", "hip[2]", "knee")
    assert (model.nq, model.n, model.parents) == (8, 7, (-1, 0, -1, 2))
    assert (model.positions("rail"), model.joint("rail").velocities) == (slice(5, 7), range(4, 6))
    assert model.neutral().tolist() == [0, 0, 0, 1, 0, 0, 0, 0]
    v = model.vector({"hip": [1, 2, 3], "aid": 4.0})
    assert v.tolist() == [1, 2, 3, 0, 0, 0, 4]
    assert pickle.loads(pickle.dumps(model)) == model
    with pytest.raises(mbs.ModelError, match="'hip'"):
        model.screws()
