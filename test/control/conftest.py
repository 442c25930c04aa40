# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The period with all laws, which is traced once, and the numbers of its checks."""

import invariants
import pytest
from random_periods import MODEL

from mbs_dynamics.control.period.checks import CHECKS
from mbs_dynamics.control.period.following import Traced
from mbs_dynamics.control.period.function import Period

NUMBER = {check.kind: k + 1 for k, check in reversed(list(enumerate(CHECKS)))}
invariants.STALE = (NUMBER["stale"], NUMBER["encoder_jump"])
invariants.UNTRUSTED = (NUMBER["stale"], NUMBER["frozen"])
invariants.FORBIDDING = tuple(k for k, check in enumerate(CHECKS) if check.forbids)
invariants.VELOCITY_LIMIT = NUMBER["velocity_limit"]
invariants.DOUBTS = {
    NUMBER["encoder_jump"]: 3.0,
    NUMBER["motors_apart"]: 3.0,
    NUMBER["velocity_reading"]: 1.0,
    NUMBER["support"]: 4.0,
    NUMBER["drive_error"]: 5.0,
    NUMBER["tracking"]: 5.0,
}


@pytest.fixture(scope="session")
def layouts():
    return Period(MODEL, traced=Traced(joints=True, link="hand", collisions=True))
