# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of algorithms."""

import pytest


@pytest.fixture(autouse=True)
def _back_end(request, monkeypatch):
    """Evaluate equations as plain Python, which is compiled in a tenth of the time of LLVM.

    The default back end evaluates searches, which take thousands of states, Solo, which is large,
    and what verifies kernels. That back ends agree is shown by test_back_ends.py.
    """
    name = request.node.nodeid
    if not any(each in name for each in ("inverse_kinematics", "solo", "verification")):
        monkeypatch.setenv("MBS_BACKEND", "python")
