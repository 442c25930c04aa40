# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The period with all laws, which is traced once."""

import pytest
from random_periods import MODEL

from mbs_dynamics.control.period.following import Traced
from mbs_dynamics.control.period.function import Period


@pytest.fixture(scope="session")
def layouts():
    return Period(MODEL, traced=Traced(joints=True, link="hand", collisions=True))
