# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The examples that compare integrators: their orders are those of theory, and they draw."""

import math
import sys

import pytest

pytest.importorskip("matplotlib")

from examples import falling_chain, heavy_top, spinning_body


def order(found):
    return math.log2(found[-2] / found[-1])


@pytest.mark.long
def test_orders_of_the_spinning_body():
    for name, found in spinning_body.errors([128, 256]).items():
        assert abs(order(found) - spinning_body.SCHEMES[name]) < 0.1, name


def test_orders_of_the_falling_chain():
    for name, found in falling_chain.errors(falling_chain.chain(), [200, 400]).items():
        assert abs(order(found) - falling_chain.METHODS[name]) < 0.1, name


def test_the_entries_of_a_matrix_leave_the_group():
    R, _ = spinning_body.on_entries(5.0, 0.02)
    assert spinning_body.orthogonality(R).max() > 1e-8
    R = spinning_body.rotations(spinning_body.spun(5.0, 0.02))
    assert spinning_body.orthogonality(R).max() < 1e-14


def test_drifts_of_the_heavy_top():
    """The midpoint rule keeps the vertical momentum, although the others change."""
    for name, found in heavy_top.drifts([0.004, 0.002]).items():
        assert order([energy for energy, _ in found]) > heavy_top.SCHEMES[name] - 0.2, name
        momentum = max(each for _, each in found)
        assert momentum < 1e-11 if name == "implicit_midpoint" else momentum > 1e-9, name


@pytest.mark.long
def test_a_figure(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["heavy_top.py", str(tmp_path / "top.png")])
    heavy_top.main()
    assert (tmp_path / "top.png").read_bytes().startswith(b"\x89PNG")
