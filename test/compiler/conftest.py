# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests that reach into thresholds of the compiler."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Callable, Iterator

import pytest


@pytest.fixture(autouse=True)
def _verified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verify every program after each pass."""
    monkeypatch.setenv("MBS_VERIFY_IR", "1")


@pytest.fixture
def young() -> Iterator[None]:
    """Collections look at what the test itself has made, not at all that tests before it keep."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def loops(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Return a switch: whether loops over bodies stay loops, whatever the model."""
    from mbs_dynamics.algorithms import partials
    from mbs_dynamics.compiler.passes import strategy
    from mbs_dynamics.representation import at_frame, pairs

    names = ("forward_dynamics", "inverse_mass_matrix")  # of functions as well
    forward_dynamics, inverse_mass_matrix = (
        importlib.import_module(f"mbs_dynamics.algorithms.{name}") for name in names
    )
    deep = strategy.DEEP
    formulas = {  # of shallow trees, in which something is handed on from body to body
        (where, name): getattr(where, name)
        for where, name in (
            (pairs, "DEEP"),
            (at_frame, "LONG"),
            (partials, "LONGEST"),
            (inverse_mass_matrix, "DEEP"),
            (forward_dynamics, "SHORT"),
        )
    }

    def switch(on: bool) -> None:
        monkeypatch.setattr(strategy, "MANY", 1 if on else sys.maxsize)
        monkeypatch.setattr(strategy, "DEEP", deep if on else float("inf"))
        for name in ("LONG", "SCATTERED"):
            monkeypatch.setattr(strategy, name, -1 if on else sys.maxsize)
        for (where, name), usual in formulas.items():
            monkeypatch.setattr(where, name, 0 if on else usual)

    return switch
