# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Parts of the simulation: explicit Runge-Kutta schemes, dense output, the line of progress."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest

from mbs_dynamics.integrate.progress import Progress
from mbs_dynamics.integrate.runge_kutta import TABLEAUS, DormandPrince, runge_kutta_step

pytestmark = pytest.mark.backend_independent


def rate(t, y):
    return np.array([y[1] * np.cos(t), -y[0] * y[0]])


@pytest.mark.parametrize("order", TABLEAUS)
def test_tableaus(order):
    def end(steps):
        y, h = np.array([1.0, 0.2]), 1.0 / steps
        for k in range(steps):
            y = runge_kutta_step(TABLEAUS[order], rate, k * h, y, h)
        return y

    pair = DormandPrince(rate, 0.0, np.array([1.0, 0.2]), rtol=1e-13, atol=1e-13)
    reference = pair.at(1.0)
    errors = [np.abs(end(steps) - reference).max() for steps in (40, 80)]
    assert abs(math.log2(errors[0] / errors[1]) - order) < 0.1


def test_dense_output_and_tolerance():
    pair = DormandPrince(
        lambda t, y: np.array([y[1], -y[0]]), 0.0, np.array([0.0, 1.0]), rtol=1e-9, atol=1e-9
    )
    times = np.linspace(0.0, 20.0, 401)
    found = np.array([pair.at(t) for t in times])
    assert np.abs(found - np.stack([np.sin(times), np.cos(times)], axis=1)).max() < 1e-7
    assert pair.evaluations == 1 + 6 * (pair.steps + pair.rejected)
    assert pair.steps < 400


def test_progress():
    stream = io.StringIO()
    progress = Progress(10.0, None, stream)  # no terminal
    progress.update(5.0)
    progress.close()
    assert stream.getvalue() == ""
    progress = Progress(10.0, True, stream)
    progress.update(5.0)
    progress.close()
    assert "5 of 10 s" in stream.getvalue()
    assert stream.getvalue().endswith("\n")
