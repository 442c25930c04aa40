# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The panel of numbers: its tables against the library."""

import re
from html import unescape

import numpy as np
import pytest

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path
from mbs_dynamics.view.numbers import as_html
from mbs_dynamics.view.scene import DrawnModel, Scene

MODEL = mbs.Model.from_urdf(robot_path("arm7"))
Q = np.array([0.3, -0.5, 0.7, -1.1, 0.2, 0.9, -0.4])
QD = np.array([0.5, -0.2, 0.8, -1.0, 1.5, -0.7, 0.3])


def scenes():
    loaded = MODEL.with_gravity((1.0, 2.0, -9.0)).with_payload("tool", 2.5)
    wrench = np.array([1.0, -2.0, 0.5, 10.0, 5.0, -20.0])
    return {
        "loaded": Scene(DrawnModel.of(loaded), Q, QD, "tool", "hybrid", wrench),
        "without rates": Scene(DrawnModel.of(MODEL), Q, None, "link5", "spatial"),
    }


def table(html, name):
    """Return the cells of a table, row by row."""
    (found,) = re.findall(rf'<table class="mbs-{name}".*?</table>', html)
    return [
        [unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)]
        for row in re.findall(r"<tr>(.*?)</tr>", found)
    ]


def test_tables_say_what_the_library_computes():
    scene = scenes()["loaded"]
    html, model = as_html(scene), scene.model
    head, *rows = table(html, "joints")
    assert head[0] == "joint"
    assert tuple(row[0] for row in rows) == model.joint_names
    for k, row in enumerate(rows):
        shown = [float(cell.removesuffix(" %")) for cell in row[1:]]
        share = 100.0 * abs(scene.torques[k]) / model.effort_limits[k]
        np.testing.assert_allclose(shown[:3], [Q[k], QD[k], scene.torques[k]], atol=6e-4)
        assert shown[3] == pytest.approx(share, abs=0.5)
    head, *rows = table(html, "twist")
    assert head == ["twist of tool", *mbs.REPRESENTATIONS]
    for column, name in enumerate(mbs.REPRESENTATIONS, 1):
        V = mbs.twists(model, Q, QD, bodies=["tool"], representation=name)[0]
        np.testing.assert_allclose([float(row[column]) for row in rows], V, atol=6e-5)
    _, *rows = table(html, "pose")
    pose = [[float(cell) for cell in row[1:]] for row in rows]
    np.testing.assert_allclose(pose, scene.pose[:3], atol=6e-5)
    said = dict(table(html, "whole")[1:])
    assert float(said["mass, kg"]) == pytest.approx(MODEL.total_mass + 2.5)
    assert float(said["kinetic energy, J"]) == pytest.approx(
        mbs.kinetic_energy(model, Q, QD), abs=6e-5
    )


def test_without_rates_there_is_neither_twist_nor_kinetic_energy():
    html = as_html(scenes()["without rates"])
    assert "mbs-twist" not in html
    assert "kinetic" not in html
