# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The pictures of docs/how_to/view.md are drawn by their program."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("viser")
pytest.importorskip("playwright")

import imageio.v3
import numpy as np

from docs import view_pictures
from docs.browser import NAMES

ROOT = Path(__file__).parents[2]


@pytest.mark.browser
def test_a_picture_shows_the_page(tmp_path, monkeypatch):
    if not any(map(shutil.which, NAMES)):
        pytest.skip("no browser is installed")
    monkeypatch.setattr(view_pictures, "DRAWN_MS", 1000)
    with ThreadPoolExecutor(1) as thread:  # other tests may have a browser open in this one
        thread.submit(
            view_pictures.robot,
            lambda page, name: page.screenshot(path=tmp_path / f"{name}.png"),
            False,
        ).result()
    picture = imageio.v3.imread(tmp_path / "view_robot.png")[..., :3]
    committed = imageio.v3.imread(ROOT / "docs" / "figures" / "view_robot.png")[..., :3]
    assert picture.shape == committed.shape
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 100
