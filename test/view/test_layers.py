# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Layers against kinematics and statics: what is drawn is where and as large as it says."""

from dataclasses import replace

import numpy as np
import pytest
from cases import mostly_slow
from robots import robot
from urdf_reference import load

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path
from mbs_dynamics.view import layers
from mbs_dynamics.view.drawings import AXES, THIN, Arrows, Label, Solid
from mbs_dynamics.view.layers import LAYERS
from mbs_dynamics.view.scene import DrawnModel, Scene

MODEL = mbs.Model.from_urdf(robot_path("arm7"))
DRAWN = DrawnModel.of(MODEL)
Q = np.array([0.3, -0.5, 0.7, -1.1, 0.2, 0.9, -0.4])
QD = np.array([0.5, -0.2, 0.8, -1.0, 1.5, -0.7, 0.3])
FORCE = np.array([1.0, -2.0, 0.5, 10.0, 5.0, -20.0])
SCENE = Scene(DRAWN, Q, QD, "tool", wrench=FORCE)
POSES = mbs.forward_kinematics(MODEL, Q)
TOOL = mbs.forward_kinematics(MODEL, Q, bodies=["tool"])[0]


def of(kind, drawings):
    """Return the drawings of a kind."""
    return [each for each in drawings if isinstance(each, kind)]


def test_frames_and_axes_are_those_of_the_joints():
    for k, arrows in enumerate(layers.body_frames(SCENE)):
        assert arrows.body == k
        np.testing.assert_allclose(arrows.points[:, 0], 0.0)
        np.testing.assert_allclose(arrows.points[:, 1], 0.08 * DRAWN.size * np.eye(3))
        np.testing.assert_array_equal(arrows.colours, AXES)
    for k, arrows in enumerate(layers.joint_axes(SCENE)):
        assert arrows.body == k
        ((begin, end),) = arrows.points
        np.testing.assert_allclose(begin + end, 0.0, atol=1e-12)
        axis = MODEL.bodies[k].joint.screw[:3]
        np.testing.assert_allclose((end - begin) / np.linalg.norm(end - begin), axis, atol=1e-12)


def test_balls_have_volumes_that_go_with_the_masses():
    *bodies, whole = layers.centres_of_mass(SCENE)
    np.testing.assert_allclose(whole.centre, mbs.center_of_mass(MODEL, Q))
    mass = np.array([body.inertia.mass for body in MODEL.bodies])
    volume = np.array([ball.scales[0] for ball in bodies]) ** 3
    np.testing.assert_allclose(volume / volume.sum(), mass / mass.sum())
    places = [(POSES[ball.body], ball.centre) for ball in bodies]
    centres = np.array([pose[:3, :3] @ centre + pose[:3, 3] for pose, centre in places])
    moments = (mass[:, None] * centres).sum(axis=0)
    np.testing.assert_allclose(moments / mass.sum(), mbs.center_of_mass(MODEL, Q))


def test_torques_hold_gravity_and_the_wrench():
    np.testing.assert_allclose(
        replace(SCENE, wrench=np.zeros(6)).torques, mbs.gravity_torques(MODEL, Q), atol=1e-9
    )
    J = mbs.jacobian(MODEL, Q, "tool", representation="hybrid")
    expected = mbs.gravity_torques(MODEL, Q) - J.T @ FORCE
    np.testing.assert_allclose(SCENE.torques, expected, atol=1e-9)


def texts_of(drawings):
    """Return the texts of fixed labels, by their bodies."""
    return {each.body: each.text for each in of(Label, drawings)}


def test_discs_and_labels_say_the_share_of_the_limit():
    share = np.abs(SCENE.torques) / MODEL.effort_limits
    least, largest = layers.SMALLEST_DISC, layers.LARGEST_DISC * min(DRAWN.size, 1.0)
    for k, disc in enumerate(layers.torque_discs(SCENE)):
        assert disc.body == k
        np.testing.assert_allclose(disc.scales[:2], largest * (least + (1.0 - least) * share[k]))
    labels = layers.torque_labels(SCENE)
    assert texts_of(labels) == {
        k: f"{SCENE.torques[k]:.2f} N m ({100 * share[k]:.0f} %)"
        for k in range(7)
        if share[k] >= layers.LEAST_OF_LARGEST * share.max()
    }
    still = Scene(DrawnModel.of(MODEL.with_gravity((0.0, 0.0, 0.0))), Q)
    assert layers.torque_labels(still) == []


@pytest.mark.parametrize("representation", mbs.REPRESENTATIONS)
def test_the_parts_of_a_twist_begin_where_the_representation_measures_them(representation):
    drawn = layers.twist(replace(SCENE, representation=representation))
    axis, parts, axes = of(Arrows, drawn)
    spatial = representation == "spatial"
    origin = np.zeros(3) if spatial else TOOL[:3, 3]
    V = mbs.twists(
        MODEL, Q, QD, bodies=["tool"], representation="spatial" if spatial else "hybrid"
    )[0]
    np.testing.assert_allclose(parts.points[:, 0], [origin, origin], atol=1e-12)
    lengths = parts.points[:, 1] - parts.points[:, 0]
    np.testing.assert_allclose(lengths, 0.3 * DRAWN.size * V.reshape(2, 3), atol=1e-12)
    assert axes.thickness == THIN
    np.testing.assert_allclose(axes.points[:, 0], [origin] * 3, atol=1e-12)
    turned = TOOL[:3, :3] if representation == "body_fixed" else np.eye(3)
    directions = axes.points[:, 1] - axes.points[:, 0]
    np.testing.assert_allclose(directions, 0.15 * DRAWN.size * turned.T, atol=1e-12)
    # whatever the representation, the screw axis is the same line
    np.testing.assert_allclose(axis.points, layers.twist(SCENE)[0].points, atol=1e-12)


def test_points_on_the_screw_axis_of_a_twist_move_along_it():
    axis, *_, label = layers.twist(SCENE)
    V = mbs.twists(MODEL, Q, QD, bodies=["tool"], representation="spatial")[0]
    ((begin, end),) = axis.points
    direction = (end - begin) / np.linalg.norm(end - begin)
    for point in (begin, end):
        along = V[3:] + np.cross(V[:3], point)
        np.testing.assert_allclose(np.cross(along, direction), 0.0, atol=1e-9)
    rate, speed = np.linalg.norm(V[:3]), along @ direction
    assert label.text == f"{rate:.3g} rad/s, {speed:.3g} m/s along the axis"


def test_a_body_at_rest_has_no_twist_to_draw():
    assert layers.twist(replace(SCENE, qd=None)) == []
    assert layers.twist(replace(SCENE, qd=np.zeros(7))) == []


def test_a_wrench_ends_at_the_body():
    (arrows,) = layers.wrench(SCENE)
    np.testing.assert_allclose(arrows.points[:, 1], [TOOL[:3, 3]] * 2, atol=1e-12)
    force, moment = arrows.points[:, 1] - arrows.points[:, 0]
    np.testing.assert_allclose(force, layers.PER_NEWTON * FORCE[3:])
    np.testing.assert_allclose(moment, layers.PER_NEWTON_METRE * FORCE[:3])
    assert layers.wrench(replace(SCENE, wrench=np.zeros(6))) == []


@pytest.mark.long
@pytest.mark.parametrize("name", mostly_slow(["panda.urdf", "tiago.urdf"], ["panda.urdf"]))
def test_every_layer_draws_real_robots(name):
    model = load(robot(name))
    state = model.random_state(3)
    scene = Scene(DrawnModel.of(model), state.q, state.qd, wrench=np.ones(6))
    for layer in LAYERS:
        for drawing in layer.draw(scene):
            for values in drawing:
                if isinstance(values, np.ndarray):
                    assert np.isfinite(values).all(), layer.name
            if isinstance(drawing, Solid):
                assert (drawing.scales > 0.0).all()
                np.testing.assert_allclose(np.linalg.det(drawing.axes), 1.0, atol=1e-9)
