# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests that reach into thresholds of the compiler."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _verified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verify every program after each pass."""
    from verifier import verified

    from mbs_dynamics.compiler.passes import pipeline

    passes = {target: tuple(map(verified, runs)) for target, runs in pipeline.PASSES.items()}
    monkeypatch.setattr(pipeline, "PASSES", passes)
