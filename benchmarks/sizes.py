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
"""Longer chains and humanoids: time to trace and compile, and to evaluate beside Pinocchio."""

from __future__ import annotations

from collections.abc import Iterator
from time import thread_time
from typing import Any

import pinocchio as pin

import mbs_dynamics as mbs
from benchmarks import mechanisms
from benchmarks.mechanisms import HUMANOIDS, Twins, chain_twins, robot
from benchmarks.report import Table
from benchmarks.timing import Call, interleaved, kernel_alone, median, ratio
from mbs_dynamics.tracing import Kernel

LENGTHS = (10, 30, 60)

COLUMNS = (
    "mechanism",
    "n",
    "algorithm",
    "operations",
    "trace ms",
    "compile ms",
    "kernel us",
    "Kernel us",
    "Pinocchio us",
    "kernel / Pin.",
    "Kernel / Pin.",
)

NOTE = (
    "Body-fixed; traced and compiled once, in a warm process. Pinocchio is called from Python. "
    "forward_kinematics leaves out the reading of Pinocchio's placements."
)


def sizes() -> Iterator[Table]:
    """Yield one table of chains and one of humanoids."""
    yield _table("Chains with generic placements and inertias", map(chain_twins, LENGTHS))
    yield _table("Humanoids with fixed bases", map(robot, HUMANOIDS))


def _table(title: str, mechanisms: Iterator[Twins]) -> Table:
    table = Table(title, COLUMNS, note=NOTE)
    for twins in mechanisms:
        table.rows += [_row(twins, *subject) for subject in _subjects(twins)]
    return table


def _subjects(twins: Twins) -> Iterator[tuple[Any, tuple[Any, ...], Call]]:
    model, data = twins.pin_model, twins.pin_data
    q, qd, qdd = twins.model.random_state(1)
    p, pd, pdd = twins.configuration(q), twins.velocity(qd), twins.velocity(qdd)
    yield mbs.inverse_dynamics, (q, qd, qdd), Call(pin.rnea, (model, data, p, pd, pdd))
    yield mbs.gravity_torques, (q,), Call(pin.computeGeneralizedGravity, (model, data, p))
    yield mbs.bias_torques, (q, qd), Call(pin.nonLinearEffects, (model, data, p, pd))
    yield mbs.mass_matrix, (q,), Call(pin.crba, (model, data, p))
    yield mbs.forward_dynamics, (q, qd, qdd), Call(pin.aba, (model, data, p, pd, pdd))
    yield mbs.forward_kinematics, (q,), Call(pin.forwardKinematics, (model, data, p))
    frame = model.getFrameId(twins.model.leaves[0])
    jacobian = Call(pin.computeFrameJacobian, (model, data, p, frame, pin.LOCAL))
    yield mbs.jacobian, (q,), jacobian


def _row(twins: Twins, function: Any, arrays: tuple[Any, ...], theirs: Call) -> list[Any]:
    model = twins.model
    defaults = {"gravity": model.gravity, "payload": model.payload_parameters}
    begin = thread_time()
    program = mechanisms.program(function, model, "body_fixed")
    traced = thread_time()
    kernel = Kernel(program, backend="llvm", defaults=defaults)
    compiled = thread_time()
    ours = {"kernel": kernel_alone(kernel, arrays, 20), "Kernel": Call(kernel, arrays)}
    taken = interleaved({**ours, "pinocchio": theirs})
    return [
        twins.name,
        model.n,
        function.__name__,
        program.operations.total,
        1e3 * (traced - begin),
        1e3 * (compiled - traced),
        *(median(samples) for samples in taken.values()),
        *(ratio(taken[way], taken["pinocchio"]) for way in ours),
    ]
