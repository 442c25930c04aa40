# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The model: what it says of a mechanism, what it refuses, and its diagnostics."""

from dataclasses import replace

import numpy as np
import pytest
from mechanisms import ARM_URDF, TREE, random_mechanism
from reference import assert_close
from robots import robot
from urdf_reference import load

from mbs_dynamics.errors import ModelError
from mbs_dynamics.model import GROUND, Body, Frame, Inertia, Joint, Model
from mbs_dynamics.model.diagnostics import diagnose
from mbs_dynamics.model.joint import one_screw
from mbs_dynamics.model.orders import leaves, path, tools
from mbs_dynamics.representation.tree import Tree

MECHANISM = random_mechanism(21, TREE)
CUBE = np.diag([0.02, 0.02, 0.02])


def body(name, parent=GROUND, coordinate=0, *, joint_name=None, **given):
    """A ball off its joint, which turns about z and may have further properties."""
    about_z = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    moved_by = Joint(joint_name or f"to_{name}", one_screw("z", about_z), coordinate, **given)
    return Body(name, parent, np.eye(4), moved_by, Inertia.from_com(1.0, np.ones(3), CUBE))


def test_numbers_and_names():
    model = MECHANISM.model
    assert (model.n, model.nb) == (7, 7)
    assert model.parents == TREE
    assert model.body_names == tuple(f"body{k}" for k in range(1, 8))
    assert model.joint_names == tuple(f"joint{k}" for k in range(1, 8))
    assert leaves(model) == ("body5", "body6", "body7")
    assert [path(model, i) for i in (0, 3, 5, 6)] == [[0], [0, 2, 3], [0, 1, 5], [0, 2, 3, 6]]
    assert path(model, GROUND) == []
    tree = Tree(model)
    assert list(tree.outward()) == list(enumerate(TREE))
    assert list(tree.inward()) == list(enumerate(TREE))[::-1]
    np.testing.assert_allclose(model.screws().homes, MECHANISM.homes, rtol=0, atol=1e-14)
    np.testing.assert_allclose(model.screws().screws, MECHANISM.screws, rtol=0, atol=1e-14)
    np.testing.assert_allclose(model.screws().M_body, MECHANISM.inertias, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(model.gravity, MECHANISM.gravity)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("panda.urdf", ["panda_hand_tcp"]),  # two fingers
        ("ur5_robot.urdf", ["tool0"]),
        ("z1.urdf", ["gripperStator"]),  # one finger
        ("kinova.urdf", ["j2s6s200_end_effector"]),  # five links fixed to one body
        ("tiago.urdf", ["arm_tool_link", "head_2_link", "wheel_right_link", "wheel_left_link"]),
        ("alex_sake_hands.urdf", ["LeftSakePalmLink", "RightSakePalmLink", "Head"]),
    ],
)
def test_tools_are_hands_and_not_fingers(name, expected):
    assert list(tools(load(robot(name)))) == expected


def test_mimics_share_coordinates():
    """The owner need not come first, and coordinates need not have the order of the bodies."""
    bodies = (
        body("a", coordinate=1, mimics="to_c", ratio=-2.0, offset=0.5),
        body("b", coordinate=0),
        body("c", coordinate=1),
    )
    model = Model("m", bodies)
    assert (model.n, model.nb) == (2, 3)
    assert model.joint_names == ("to_b", "to_c")
    assert model.joint("to_a").mimics == "to_c"
    tree = Tree(model)
    assert np.concatenate(tree.joint_positions([10.0, 3.0])).tolist() == [-5.5, 10.0, 3.0]
    assert np.concatenate(tree.joint_rates([10.0, 3.0])).tolist() == [-6.0, 10.0, 3.0]
    assert tree.to_coordinates([np.array([x]) for x in (1.0, 20.0, 300.0)]).tolist() == [
        20.0,
        298.0,
    ]
    M = tree.to_coordinates(np.arange(1.0, 10.0).reshape(3, 3), 2)
    T = np.array([[0.0, -2.0], [1.0, 0.0], [0.0, 1.0]])
    np.testing.assert_array_equal(M, T.T @ np.arange(1.0, 10.0).reshape(3, 3) @ T)


@pytest.mark.parametrize(
    ("bodies", "said"),
    [
        ([body("a"), body("a", joint_name="other", coordinate=1)], r"body names.*\['a'\]"),
        ([body("a"), body("b", joint_name="to_a", coordinate=1)], r"joint names.*\['to_a'\]"),
        ([body("a", 0)], r"body 'a'.*0.*0"),
        ([body("a", 1), body("b", coordinate=1)], "index 0 and the parent 1"),
        ([body("a", -2)], r"body 'a'.*0.*-2"),
    ],
)
def test_contradictory_trees_are_refused(bodies, said):
    with pytest.raises(ModelError, match=said):
        Model("m", tuple(bodies))


def test_models_do_not_change():
    model = Model.from_urdf(ARM_URDF)
    loaded, one = model.with_payload("tool", 1.0), model.bodies[0]
    with pytest.raises(AttributeError):
        model.gravity = None
    with pytest.raises(TypeError):
        model.frames["new"] = Frame("new", 0, np.eye(4))
    arrays = {
        "gravity": model.gravity,
        "home_rel": one.home_rel,
        "screw": one.joint.screw,
        "moment": one.inertia.moment,
        "tensor": one.inertia.tensor,
        "placement of a body": model.frames["upper"].placement,
        "placement of a link": model.frames["tool"].placement,
        "payload": loaded.payloads[0].parameters,
    }
    assert [name for name, array in arrays.items() if array.flags.writeable] == []


def said_of(*bodies, severity="warning"):
    return [str(each) for each in diagnose(bodies) if each.severity == severity]


def test_diagnostics_of_inertias():
    bodies = [
        replace(body("a"), inertia=Inertia.from_com(1.0, np.zeros(3), np.diag(moments)))
        for moments in ([1.0, 1.0, -1.0], [1.0, 1.0, 3.0], [1.0, 1.0, 2.0])
    ]
    assert "link 'a': inertia is not positive semidefinite" in said_of(bodies[0])[0]
    assert "link 'a': inertia breaks the triangle inequality" in said_of(bodies[1])[0]
    assert said_of(bodies[2]) == []


def test_diagnostics_of_singular_mass_matrices():
    nothing = Inertia.from_com(0.0, np.zeros(3), np.zeros((3, 3)))
    on_axis = Inertia.from_com(2.0, (0, 0, 0.3), np.diag([1.0, 1.0, 0.0]))
    empty = replace(body("a"), inertia=nothing)
    rod = replace(body("a"), inertia=on_axis)
    follower = body("b", 0, coordinate=1)
    singular = "the mass matrix is singular"
    assert singular in said_of(empty)[0]
    assert singular in said_of(rod)[0]
    assert said_of(empty, follower) == []
    assert said_of(empty, follower, severity="note")[0] == (
        "link 'a': moves but has no mass of its own"
    )
    assert said_of(rod, follower) == []


def test_screw_of_a_joint_is_of_unit_length_and_has_exact_zeros():
    axis = np.array([0.6, 1e-15, 0.8]) * (1.0 + 5e-7)
    given = np.concatenate([axis, np.cross((0.1, 0.2, 0.3), axis)])
    joint = Joint("turn", one_screw("joint 'turn'", given), 0)
    assert abs(np.linalg.norm(joint.screw[:3]) - 1.0) < 1e-15
    assert joint.screw[1] == 0.0
    assert_close(joint.screw, given / (1.0 + 5e-7), 1e-15)
    with pytest.raises(ValueError, match="read-only"):
        joint.screw[0] = 1.0
    slide = Joint("slide", one_screw("joint 'slide'", [0, 0, 0, 0, 0, 1.0 - 5e-7]), 0)
    assert slide.screw.tolist() == [0, 0, 0, 0, 0, 1]
