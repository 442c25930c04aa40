# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests that reach into thresholds of the compiler."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator

import pytest


@pytest.fixture(autouse=True)
def _verified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verify every program after each pass."""
    from verifier import last_verified

    from mbs_dynamics.compiler.passes import pipeline

    monkeypatch.setattr(pipeline, "last_of", last_verified)


@pytest.fixture
def young() -> Iterator[None]:
    """Collections look at what the test itself has made, not at all that tests before it keep."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def loops(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Return a switch: whether loops over bodies stay loops, whatever the model."""
    from mbs_dynamics.compiler.passes import strategy
    from mbs_dynamics.representation import formulas

    deep = strategy.DEEP
    shallow = {  # thresholds of formulas in which something is handed on from body to body
        name: getattr(formulas, name)
        for name in (
            *("PAIRS_IN_GROUND", "CARRIED_SCREWS", "CARRIED_COLUMNS"),
            *("ARTICULATED", "BY_MASS_MATRIX"),
        )
    }

    def switch(on: bool) -> None:
        monkeypatch.setattr(strategy, "MANY", 1 if on else sys.maxsize)
        monkeypatch.setattr(strategy, "DEEP", deep if on else float("inf"))
        for name in ("LONG", "SCATTERED"):
            monkeypatch.setattr(strategy, name, -1 if on else sys.maxsize)
        for name, usual in shallow.items():
            monkeypatch.setattr(formulas, name, 0 if on else usual)

    return switch
