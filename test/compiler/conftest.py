# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests that reach into thresholds of the compiler."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator

import pytest


@pytest.fixture
def young() -> Iterator[None]:
    """Collections look at what the test itself has made, not at all that tests before it keep."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def loops(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Return a switch: whether loops over bodies stay loops, whatever the model."""
    from mbs_dynamics.algorithms import _in_loops as in_loops

    deep = in_loops.DEEP

    def switch(on: bool) -> None:
        monkeypatch.setattr(in_loops, "MANY", 1 if on else sys.maxsize)
        monkeypatch.setattr(in_loops, "DEEP", deep if on else float("inf"))
        monkeypatch.setattr(in_loops, "LONG", -1 if on else sys.maxsize)

    return switch
