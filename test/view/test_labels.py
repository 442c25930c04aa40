# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Placement of labels: none covers another, and each stays near its place."""

import numpy as np

from mbs_dynamics.view.drawings import Label
from mbs_dynamics.view.labels import CHARACTER, ROW, ROWS, Camera, LabelLayout

CAMERA = Camera(np.array([2.0, -1.0, 0.8]), np.array([0.0, 0.0, 0.5]), np.radians(75.0), 800.0)


def pixels(camera, places):
    """Return the pixels (k, 2) right of and above the middle of a picture, by a pinhole camera."""
    forward = (camera.look_at - camera.position) / np.linalg.norm(camera.look_at - camera.position)
    right = np.array([forward[1], -forward[0], 0.0]) / np.hypot(*forward[:2])
    seen = places - camera.position
    sides = np.stack([seen @ right, seen @ np.cross(right, forward)], axis=1)
    return 400.0 / np.tan(0.5 * camera.fov) * sides / (seen @ forward)[:, None]


def test_no_label_covers_another():
    rng = np.random.default_rng(3)
    for count in (2, 8, 40):
        places = rng.normal((0.0, 0.0, 0.5), 0.15, (count, 3))
        texts = tuple("x" * k for k in rng.integers(5, 20, count))
        layout = LabelLayout(CAMERA)
        placed = [layout.place(Label(*each)) for each in zip(places, texts, strict=True)]
        shown = [each for each in placed if each.text]
        at = pixels(CAMERA, np.array([each.place for each in shown]))
        width = [CHARACTER * len(each.text) for each in shown]
        for i in range(len(at)):
            for k in range(i):
                beside = at[i, 0] >= at[k, 0] + width[k] or at[k, 0] >= at[i, 0] + width[i]
                assert beside or abs(at[i, 1] - at[k, 1]) >= ROW - 1e-6


def test_labels_that_are_alone_stay_and_those_without_room_are_omitted():
    layout = LabelLayout(CAMERA)
    for height in (0.0, 1.0):
        far = Label(np.array([0.0, 0.0, height]), "a")
        np.testing.assert_array_equal(layout.place(far).place, far.place)
    layout = LabelLayout(CAMERA)
    many = [layout.place(Label(np.zeros(3), "torque")) for _ in range(100)]
    assert sum(bool(each.text) for each in many) == 2 * ROWS + 1
    behind = Label(2.0 * CAMERA.position, "behind")
    assert LabelLayout(CAMERA).place(behind).text == ""
