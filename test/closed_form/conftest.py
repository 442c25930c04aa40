# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Moving bodies of the tests of single rigid bodies, and the back end of all tests here."""

import pytest
from moving_bodies import Scene


@pytest.fixture(autouse=True)
def _back_end(monkeypatch):
    """Evaluate the algorithms that closed forms are compared with as plain Python."""
    monkeypatch.setenv("MBS_BACKEND", "python")


@pytest.fixture(params=range(2))
def scene(request):
    return Scene(request.param)


@pytest.fixture(params=range(2))
def centred(request):
    return Scene(request.param, at_com=True)
