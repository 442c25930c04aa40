# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Models from URDF texts written here: joints, mimics, parts of a file, and diagnostics."""

import numpy as np
import pytest
from urdf_reference import (
    ORIGIN,
    STATED,
    assert_same_poses,
    chain,
    joint,
    link,
    link_poses,
    load,
    mimic,
    notes,
    pin_positions,
    reference_of,
    tree,
    urdf,
)

import mbs_dynamics as mbs
from mbs_dynamics.errors import ArgumentError, ModelWarning
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.joint import Limits
from mbs_dynamics.model.model import Model
from mbs_dynamics.representation.tree import Tree


@pytest.mark.parametrize("kind", ["revolute", "continuous", "prismatic"])
def test_axis_need_not_be_of_unit_length(kind):
    more = ORIGIN + '<axis xyz="0.3 -4 1.2"/><limit lower="-2" upper="2" effort="1" velocity="1"/>'
    text = chain(("j", kind, more))
    model = load(text)
    q = np.array([0.83])
    e = np.array([0.3, -4, 1.2]) / np.linalg.norm([0.3, -4, 1.2])
    half = slice(3, 6) if kind == "prismatic" else slice(0, 3)
    np.testing.assert_allclose(model.bodies[0].joint.screw[half], e, rtol=1e-15)
    assert_same_poses(model, reference_of(text), q, pin_positions(reference_of(text), {"j": q[0]}))


def test_limits_are_none_where_nothing_is_stated():
    state = '<limit lower="-1.5" upper="2" velocity="3" effort="4"/>'
    model = load(
        chain(
            ("none", "revolute", ""),
            ("some", "prismatic", '<limit upper="2"/><dynamics friction="0.5"/>'),
            ("all", "revolute", state + '<dynamics damping="0.1" friction="0.2"/>'),
            ("endless", "continuous", state),
        )
    )
    none, some, all_, endless = model.joints
    assert none.limits == Limits()
    assert some.limits == Limits(lower=0.0, upper=2.0)  # as URDF 1.0 says
    assert (some.damping, some.friction) == (0.0, 0.5)
    assert all_.limits == Limits(-1.5, 2.0, 3.0, 4.0)
    assert (all_.damping, all_.friction) == (0.1, 0.2)
    assert endless.limits == Limits(None, None, 3.0, 4.0)


def test_planar_about_z_is_pinocchios():
    text = chain(
        ("p", "planar", ORIGIN + '<axis xyz="0 0 2"/>'), ("j", "revolute", ORIGIN + STATED)
    )
    model, reference = load(text), reference_of(text)
    assert (model.joint_names, model.body_names) == (("p", "j"), ("b", "c"))
    x, y, angle, q = 0.4, -0.7, 2.1, 0.3
    theirs = np.array([x, y, np.cos(angle), np.sin(angle), q])
    assert_same_poses(model, reference, np.array([x, y, angle, q]), theirs)


def test_floating_is_pinocchios_free_flyer():
    text = chain(("f", "floating", ORIGIN), ("j", "revolute", ORIGIN + STATED))
    model, reference = load(text), reference_of(text)
    assert (model.joint_names, model.body_names) == (("f", "j"), ("b", "c"))
    assert (model.nq, model.n, model.parents) == (8, 7, (GROUND, 0))
    q = model.random_state().q
    assert_same_poses(model, reference, q, q)


def test_a_floating_base_moves_the_root_link():
    text = chain(("j", "revolute", ORIGIN + STATED), ("k", "fixed", ORIGIN))
    model = Model.from_urdf(text, floating_base=True)
    assert model.joint_names == ("floating_base", "j")
    assert model.body_names == ("a", "b")
    assert model.total_mass == pytest.approx(Model.from_urdf(text).total_mass + 2.0)
    alone = Model.from_urdf(f'<robot name="r">{link("a")}</robot>', floating_base=True)
    assert (alone.nq, alone.nb) == (7, 1)
    taken = chain(("floating_base", "revolute", ORIGIN + STATED))
    names = Model.from_urdf(taken, floating_base=True).joint_names
    assert names == ("floating_base_", "floating_base")
    floating = chain(("j", "fixed", ORIGIN), ("f", "floating", ORIGIN))
    with pytest.raises(ArgumentError, match=r"floating_base.*'f'"):
        Model.from_urdf(floating, floating_base=True)


def test_a_mimic_follows_the_end_of_the_chain():
    text = chain(
        ("third", "prismatic", mimic("second", -2, 0.25)),
        ("second", "revolute", mimic("first", 3, 0.5)),
        ("first", "revolute", '<axis xyz="0 0 1"/>'),
        ("plain", "revolute", mimic("first")),
    )
    model = load(text)
    assert model.joint_names == ("first",)
    assert [body.joint.mimics for body in model.bodies] == ["first", "first", None, "first"]
    q = 0.7
    second = 3 * q + 0.5
    assert np.concatenate(Tree(model).joint_positions(np.array([q]))) == pytest.approx(
        [-2 * second + 0.25, second, q, q]
    )


def test_root_becomes_the_ground_and_the_rest_is_noted():
    model = load(tree(), root="c")
    assert model.body_names == ("e", "f")
    assert model.parents == (GROUND, GROUND)
    assert set(model.frames) == set("cdefgh")
    for name in "cdh":
        assert model.frames[name].body == GROUND
    assert "link 'c': 2 kg fixed to the ground" in notes(model)
    whole, q = load(tree()), np.array([0.3, 0.5, 0.7, -0.4])
    before, after = link_poses(whole, q), link_poses(model, q[2:])
    for name in "cdefgh":
        relative = np.linalg.inv(before["c"]) @ before[name]
        np.testing.assert_allclose(after[name], relative, atol=1e-14)


@pytest.mark.parametrize("rpy", [(0, 0, 0), (-np.pi / 2, 0, 0), (0.3, -0.5, 1.2)])
@pytest.mark.parametrize("gravity", [(0, 0, -9.81), (1.0, 2.0, -3.0)])
def test_gravity_is_turned_along_to_a_root_below_fixed_joints(gravity, rpy):
    """As for the whole robot; the links above remain, with their frames."""
    turned = f'<origin xyz="0.1 0.2 0.3" rpy="{rpy[0]} {rpy[1]} {rpy[2]}"/>'
    parts = [*map(link, ("world", "column", "base", "arm")), joint("j", "base", "arm", more=STATED)]
    parts += [joint("lift", "world", "column", "fixed", turned)]
    parts += [joint("mount", "column", "base", "fixed", '<origin rpy="0 0.4 0"/>')]
    whole, below = (load(urdf(*parts), root=r, gravity=gravity) for r in (None, "base"))
    q = np.array([0.7])
    torques = [mbs.gravity_torques(x, q) for x in (whole, below)]
    np.testing.assert_allclose(*torques, rtol=0, atol=1e-12)
    names = ["world", "base", "arm"]
    poses = [mbs.forward_kinematics(x, q, bodies=names) for x in (whole, below)]
    relative = [np.linalg.inv(C[0]) @ C[1:] for C in poses]
    np.testing.assert_allclose(*relative, rtol=0, atol=1e-12)
    assert any("is turned against 'world': gravity is (" in note for note in notes(below))


def test_tip_keeps_the_bodies_on_the_way_whole():
    with pytest.warns(ModelWarning, match=r"'f'.*beside the path to the tip: 4 kg"):
        model = Model.from_urdf(tree(), tip="e")
    whole = load(tree())
    assert model.body_names == ("b", "c", "e")
    assert set(model.frames) == set("abcdeh")
    for name in model.body_names:
        ours = model.bodies[model.frames[name].body].inertia
        theirs = whole.bodies[whole.frames[name].body].inertia
        np.testing.assert_array_equal(ours.matrix(), theirs.matrix())


def test_partial_inertials_are_reported():
    mass = '<inertial><mass value="3"/></inertial>'
    tensor = '<inertial><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    text = urdf(link("a", ""), link("b", mass), link("c", tensor), joint("j", "a", "b"))
    model = load(text.replace("</robot>", joint("k", "b", "c") + "</robot>"))
    said = " ".join(notes(model, "warning"))
    assert all(part in said for part in ("'b': has a mass of 3 kg", "'c'", "without a mass"))
    assert (model.bodies[0].inertia.mass, model.bodies[1].inertia.mass) == (3.0, 0.0)
    np.testing.assert_array_equal(model.bodies[1].inertia.tensor, np.eye(3))
