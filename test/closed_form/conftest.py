# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Moving bodies of the tests of single rigid bodies."""

import pytest
from moving_bodies import Scene


@pytest.fixture(params=range(2))
def scene(request):
    return Scene(request.param)


@pytest.fixture(params=range(2))
def centred(request):
    return Scene(request.param, at_com=True)
