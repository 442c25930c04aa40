# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Joints of many degrees of freedom: their motions, and models made with them."""

from __future__ import annotations

from math import pi

import numpy as np
import pytest
from mechanisms import pose, random_mechanism, rotation
from reference import assert_close, exponential, hat

import mbs_dynamics as mbs
from mbs_dynamics.lie import se3
from mbs_dynamics.model.macro_joints import (
    KINDS,
    Connection,
    MacroJoint,
    from_joints,
    joint_pose,
    macro_joint,
)

PITCH = 0.15
DOF = {
    **dict.fromkeys(("revolute", "prismatic", "screw"), 1),
    **dict.fromkeys(("planar_translation", "cylindrical", "universal"), 2),
    **dict.fromkeys(("translation", "spherical", "planar", "planar_screw"), 3),
    "schoenflies": 4,
    "free": 6,
}
AXIAL = ("revolute", "prismatic", "screw", "cylindrical", "planar", "planar_screw", "schoenflies")
AXES = {"planar_translation": 2, "translation": 3, "universal": 2}
SUBGROUPS = [kind for kind in KINDS if kind != "universal"]

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
    return macro_joint(kind, **given)


def product(joint, q):
    """exp(Z_1 q_1) ... exp(Z_nu q_nu) by power series."""
    C = np.eye(4)
    for Z, x in zip(joint.screws, q, strict=True):
        C = C @ exponential(hat(Z * x))
    return C


# -- the kinds -----------------------------------------------------------------------------------


def test_all_joints_of_the_tables_are_there():
    assert set(KINDS) == set(DOF)


@every_kind
def test_number_and_names_of_factors(kind):
    joint = made(kind)
    assert joint.kind == kind
    assert joint.screws.shape == (DOF[kind], 6)
    assert len(set(joint.factors)) == DOF[kind]
    if DOF[kind] == 1:
        assert joint.factors == ("",)
    for factor, Z in zip(joint.factors, joint.screws, strict=True):
        assert factor == "" or factor.startswith("/r") == Z[:3].any()
    assert not joint.screws.flags.writeable


def test_factors_by_default_have_the_axes_of_the_joint_frame():
    x, y, z, rx, ry, rz = np.eye(6)[[3, 4, 5, 0, 1, 2]].tolist()
    for kind, expected in {
        "revolute": [rz],
        "prismatic": [z],
        "screw": [[0, 0, 1, 0, 0, PITCH]],
        "planar_translation": [x, y],
        "cylindrical": [z, rz],
        "universal": [rx, ry],
        "translation": [x, y, z],
        "spherical": [rx, ry, rz],
        "planar": [x, y, rz],
        "planar_screw": [x, y, [0, 0, 1, 0, 0, PITCH]],
        "schoenflies": [x, y, z, rz],
        "free": [x, y, z, rx, ry, rz],
    }.items():
        assert made(kind).screws.tolist() == expected, kind


@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("kind", ["planar", "planar_screw", "schoenflies"])
def test_directions_in_the_plane_are_right_handed_with_the_axis(kind, seed):
    joint = made(kind, seed)
    axis = rotation(np.random.default_rng(seed))[:, 0]
    x, y, z = joint.screws[0, 3:], joint.screws[1, 3:], joint.screws[-1, :3]
    assert_close(z, axis, 1e-15)
    assert_close(np.cross(x, y), z, 1e-15)
    nearest = np.argmax(np.abs(axis))
    following = np.eye(3)[(nearest + 1) % 3]
    assert_close(np.cross(axis, np.cross(following, axis)) / (following @ x), x, 1e-14)


def motions(kind, seed):
    """The joint, and what it reaches with random coordinates of either kind."""
    joint, rng = made(kind, seed), np.random.default_rng(seed + 100)
    positions = rng.uniform(-3.0, 3.0, (10, DOF[kind]))
    reached = [product(joint, q) for q in positions]
    if kind in SUBGROUPS:
        reached += list(joint_pose(joint, positions))
    return joint, reached


@pytest.mark.parametrize("seed", range(1, 4))
@every_kind
def test_motions_are_those_of_table_1(kind, seed):
    """The subgroups in words, tested on rotation and translation."""
    joint, reached = motions(kind, seed)
    axis = joint.screws[-1, :3] if joint.screws[-1, :3].any() else joint.screws[-1, 3:]
    reached += [C @ D for C in reached[:4] for D in reached[4:8] if kind != "universal"]
    for C in reached:
        R, r = C[:3, :3], C[:3, 3]
        if kind in ("prismatic", "planar_translation", "translation"):
            assert_close(R, np.eye(3), 1e-14)
        if kind in ("revolute", "spherical", "universal"):
            assert_close(r, np.zeros(3), 1e-13)
        if kind in AXIAL:
            assert_close(R @ axis, axis, 1e-13)
        if kind in ("prismatic", "screw", "cylindrical"):
            assert_close(np.cross(axis, r), np.zeros(3), 1e-13)
        if kind == "planar":
            assert axis @ r == pytest.approx(0.0, abs=1e-13)
        if kind in ("screw", "planar_screw"):  # the advance follows from the angle, up to turns
            turns = (axis @ r / PITCH - se3.log(C)[:3] @ axis) / (2 * pi)
            assert turns == pytest.approx(round(turns), abs=1e-11)
        if kind == "planar_translation":
            assert np.cross(*joint.screws[:, 3:]) @ r == pytest.approx(0.0, abs=1e-13)


@every_kind
def test_motions_have_as_many_degrees_of_freedom_as_coordinates(kind):
    joint = made(kind, 5)
    q = np.random.default_rng(6).uniform(-1.0, 1.0, DOF[kind])
    inverse = np.linalg.inv(product(joint, q))
    columns = []
    for step in 1e-5 * np.eye(DOF[kind]):
        A = inverse @ (product(joint, q + step) - product(joint, q - step)) / 2e-5
        columns.append(se3.vee(A))
    assert np.linalg.matrix_rank(columns, tol=0.05) == DOF[kind]


# -- models --------------------------------------------------------------------------------------


def connections(seed):
    """A tree of two roots with joints of all kinds, as connections."""
    mechanism = random_mechanism(seed, range(len(KINDS)))
    rng = np.random.default_rng(seed)
    order = list(rng.permutation(KINDS))
    parents = [None, None, *(f"body {order[rng.integers(k)]}" for k in range(2, len(order)))]
    return [
        Connection(
            name=f"joint {kind}",
            joint=made(kind, seed),
            body=f"body {kind}",
            M_body=M,
            parent=parent,
            S_parent=pose(rng),
            S_body=pose(rng),
        )
        for kind, parent, M in zip(order, parents, mechanism.inertias, strict=True)
    ]


@pytest.mark.parametrize("seed", [1, 2])
def test_poses_are_products_of_exponentials(seed):
    given = connections(seed)
    model = from_joints(given)
    assert model.n == model.nb == sum(DOF.values())
    q = np.random.default_rng(seed).uniform(-3.0, 3.0, model.n)
    C = {None: np.eye(4)}
    first = 0
    for connection in given:
        last = first + len(connection.joint.screws)
        moved = product(connection.joint, q[first:last])
        S_inverse = np.linalg.inv(connection.S_body)
        C[connection.body] = C[connection.parent] @ connection.S_parent @ moved @ S_inverse
        first = last
    found = mbs.forward_kinematics(model, q, bodies=[one.body for one in given])
    assert_close(found, [C[one.body] for one in given], 1e-12)


@pytest.mark.parametrize("seed", [1, 2])
def test_dynamics_are_pinocchios(seed):
    """All kinds, each as a composite joint of Pinocchio or as one of its own."""
    pin = pytest.importorskip("pinocchio")
    given = connections(seed)
    model = from_joints(given, gravity=(1.0, -2.0, 9.0))
    theirs = pin.Model()
    theirs.gravity.linear = np.array([1.0, -2.0, 9.0])
    on = {None: (0, np.eye(4))}  # joint, and pose of the body in its frame
    for one in given:
        factors = [
            pin.JointModelPrismaticUnaligned(Z[3:])
            if not Z[:3].any()
            else pin.JointModelHelicalUnaligned(Z[:3], Z[:3] @ Z[3:])
            if one.joint.kind in ("screw", "planar_screw")
            else pin.JointModelRevoluteUnaligned(Z[:3])
            for Z in one.joint.screws
        ]
        joint = factors[0]
        if len(factors) > 1:
            joint = pin.JointModelComposite()
            for factor in factors:
                joint.addJoint(factor)
        parent, from_joint = on[one.parent]
        i = theirs.addJoint(parent, joint, pin.SE3(from_joint @ one.S_parent), one.name)
        M = one.M_body
        com = np.array([M[2, 4], M[0, 5], M[1, 3]]) / M[3, 3]  # of m d~
        c = np.cross(np.eye(3), com)
        tensor = M[:3, :3] - M[3, 3] * c @ c.T
        at = np.linalg.inv(one.S_body)
        theirs.appendBodyToJoint(i, pin.Inertia(M[3, 3], com, tensor), pin.SE3(at))
        on[one.body] = i, at
    data = theirs.createData()
    rng = np.random.default_rng(seed)
    q, qd, qdd = rng.uniform(-2.0, 2.0, (3, model.n))
    tau = pin.rnea(theirs, data, q, qd, qdd)
    assert_close(mbs.inverse_dynamics(model, q, qd, qdd), tau, 1e-11)


def test_names_and_order_of_bodies_and_joints():
    M = mbs.spatial_inertia(1.0, (0, 0, 0.1), 0.01 * np.eye(3))
    model = from_joints(
        [
            Connection(name="hip", joint=made("universal"), body="thigh", M_body=M),
            Connection(name="knee", joint=made("revolute"), body="shank", M_body=M, parent="thigh"),
            Connection(name="rail", joint=made("cylindrical"), body="cart", M_body=M),
            Connection(name="aid", joint=made("prismatic"), body="load", M_body=M, parent="rail/z"),
        ],
        gravity=(0, 0, -1.62),
        name="walker",
    )
    assert model.name == "walker"
    assert model.gravity.tolist() == [0, 0, -1.62]
    assert model.joint_names == ("hip/rx", "hip/ry", "knee", "rail/z", "rail/rz", "aid")
    assert model.body_names == ("hip/rx", "thigh", "shank", "rail/z", "cart", "load")
    assert model.parents == (-1, 0, 1, -1, 3, 3)
    assert [body.inertia.mass for body in model.bodies] == [0, 1, 1, 0, 1, 1]
    assert np.linalg.matrix_rank(model.screws().M_body[1]) == 6


@pytest.mark.parametrize(("tag", "kind"), [("floating", "free"), ("planar", "planar")])
def test_urdf_makes_the_same_model(tag, kind):
    text = f"""
    <robot name="r"><link name="a"/><link name="b"><inertial><mass value="2"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <joint name="j" type="{tag}"><origin xyz="1 2 3" rpy="0.1 0.2 0.3"/>
    <parent link="a"/><child link="b"/><axis xyz="1 -2 2"/></joint></robot>"""
    theirs = mbs.Model.from_urdf(text)
    axis = {} if kind == "free" else {"axis": np.array([1, -2, 2]) / 3}
    connection = Connection(
        name="j",
        joint=macro_joint(kind, **axis),
        body="b",
        M_body=mbs.spatial_inertia(2.0, np.zeros(3), np.eye(3)),
        S_parent=theirs.bodies[0].home_rel,
    )
    ours = from_joints([connection], name="r")
    assert ours.joint_names == theirs.joint_names
    assert ours.body_names == theirs.body_names
    assert ours.parents == theirs.parents
    for mine, given in zip(ours.screws(), theirs.screws(), strict=True):
        assert_close(mine, given, 1e-15)


def test_connections_without_inertia_are_for_kinematics(recwarn):
    model = from_joints([Connection(name="s", joint=macro_joint("spherical"), body="b")])
    assert not recwarn.list
    assert model.total_mass == 0.0
    assert mbs.jacobian(model, [0.1, 0.2, 0.3], "b").shape == (6, 3)


def test_a_macro_joint_of_ones_own():
    """A gimbal of the angles z, x, z, at an offset, is any sequence of screws."""
    e = np.eye(6)
    shifted = e[0] + 0.3 * e[5]
    joint = MacroJoint("gimbal", ("/spin", "/nod", "/roll"), np.array([e[2], shifted, e[2]]))
    model = from_joints([Connection(name="g", joint=joint, body="b", M_body=np.eye(6))])
    q = np.array([0.3, -0.8, 2.0])
    assert_close(mbs.forward_kinematics(model, q)[-1], product(joint, q), 1e-14)


# -- bad input -----------------------------------------------------------------------------------

x, y, z = np.eye(3)
NEARLY = [1.0, 1e-8, 0.0]


@pytest.mark.parametrize(
    ("kind", "given", "error", "said"),
    [
        ("ball", {}, mbs.ArgumentError, "kind must be one of revolute.*; got 'ball'"),
        (3, {}, mbs.ArgumentError, "kind must be one of"),
        (["free"], {}, mbs.ArgumentError, "kind must be one of"),
        ("spherical", {"axis": z}, mbs.ArgumentError, "has no axis; it takes: nothing"),
        ("revolute", {"pitch": 0.1}, mbs.ArgumentError, "has no pitch; it takes: axis"),
        ("universal", {"axis": z}, mbs.ArgumentError, "has no axis; it takes: axes"),
        ("screw", {}, mbs.ArgumentError, "a screw joint needs a pitch"),
        ("screw", {"pitch": np.inf}, mbs.ArgumentError, "pitch must be finite"),
        ("screw", {"pitch": "fine"}, mbs.ArgumentError, "pitch must be a real number"),
        ("planar", {"axis": [0, 0, 2]}, mbs.ModelError, "axis must have unit length.*length 2"),
        ("planar", {"axis": [0, 0, 0]}, mbs.ModelError, "axis must have unit length.*length 0"),
        ("planar", {"axis": [0, 1]}, mbs.ArgumentError, r"axis has shape \(2,\); valid is \(3,"),
        ("planar", {"axis": [0, 0, np.nan]}, mbs.ArgumentError, "axis must be finite"),
        ("universal", {"axes": [x, 2 * y]}, mbs.ModelError, r"axes\[1\] must have unit length"),
        ("universal", {"axes": [x, -x]}, mbs.ModelError, "axes must be independent"),
        ("universal", {"axes": [x, NEARLY]}, mbs.ModelError, "axes must be independent"),
        ("universal", {"axes": [x, y, z]}, mbs.ArgumentError, r"axes has shape \(3, 3\)"),
        ("translation", {"axes": [x, y, (x + y) / 2**0.5]}, mbs.ModelError, "independent"),
    ],
)
def test_bad_joints_are_refused(kind, given, error, said):
    with pytest.raises(error, match=said):
        macro_joint(kind, **given)


def connection(**given):
    return Connection(
        **{"name": "j", "joint": made("revolute"), "body": "b", "M_body": np.eye(6), **given}
    )


TWISTED = np.eye(4) + np.eye(4, k=1)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        (None, mbs.ArgumentError, "connections must be a sequence of Connection; got None"),
        ([], mbs.ModelError, "needs a body that moves"),
        ([{"name": "j"}], mbs.ArgumentError, r"connections\[0\] must be a Connection"),
        (
            [connection(joint="free")],
            mbs.ArgumentError,
            r"of connections\[0\] must be a MacroJoint",
        ),
        ([connection(name="")], mbs.ArgumentError, r"the name of connections\[0\] must be a name"),
        ([connection(body=3)], mbs.ArgumentError, r"the body of connections\[0\] must be a name"),
        ([connection(parent=-1)], mbs.ArgumentError, r"the parent of connections\[0\] .*; got -1"),
        ([connection(parent="b")], mbs.UnknownBodyError, "no body 'b'; the bodies are: none"),
        (
            [connection(), connection(name="k", body="c", parent="bb")],
            mbs.UnknownBodyError,
            "no body 'bb'.*the bodies are: b",
        ),
        ([connection(), connection(name="k")], mbs.ModelError, r"body names must be unique.*\['b'"),
        ([connection(), connection(body="c")], mbs.ModelError, r"joint names must be unique"),
        ([connection(M_body=np.eye(3))], mbs.ArgumentError, r"body 'b': M_body has shape \(3, 3\)"),
        ([connection(M_body=-np.eye(6))], mbs.ModelError, "body 'b': M_body"),
        (
            [connection(S_parent=TWISTED)],
            mbs.ArgumentError,
            "S_parent of joint 'j' has no rotation",
        ),
        (
            [connection(S_body=np.eye(3))],
            mbs.ArgumentError,
            r"S_body of joint 'j' has shape \(3, 3",
        ),
        (
            [connection(joint=MacroJoint("own", ("",), np.array([[0, 0, 2.0, 0, 0, 0]])))],
            mbs.ModelError,
            "axis of joint 'j' must have unit length",
        ),
    ],
)
def test_bad_connections_are_refused(given, error, said):
    with pytest.raises(error, match=said):
        from_joints(given)


def test_gravity_is_checked():
    with pytest.raises(mbs.ArgumentError, match=r"gravity has shape \(2,\)"):
        from_joints([connection()], gravity=(0, 1))
