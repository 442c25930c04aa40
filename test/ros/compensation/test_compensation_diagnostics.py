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
"""What the diagnostics of the gravity compensation node say of the model, without a node."""

import pytest

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticStatus
from gravity_bench import ARM7, Bench

from mbs_dynamics.ros.compensation.diagnostics import model_status


def test_the_model_in_force_and_waiting():
    found = model_status(Bench(describe="").core)
    assert (found.level, found.message) == (DiagnosticStatus.WARN, "no robot_description yet")
    bench = Bench().enabled()
    found = model_status(bench.core)
    assert (found.level, found.message) == (DiagnosticStatus.OK, "model 'arm7' in force")
    other = ARM7.replace('effort="180"', 'effort="170"', 1)
    assert bench.core.describe(other, bench.now)
    found = model_status(bench.core)
    assert found.level == DiagnosticStatus.WARN
    assert found.message.startswith("a new robot_description waits")
