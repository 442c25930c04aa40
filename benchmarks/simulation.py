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
"""Simulated steps per second: one arm, and a batch of them, beside MuJoCo's rollout."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from mujoco import rollout
from numpy.typing import NDArray

import mbs_dynamics as mbs
from benchmarks.report import Table
from benchmarks.timing import Call, interleaved, median, ratio
from mbs_dynamics.integrate import JointForces, Stepper, simulate

ARMS = {
    "UR5": "ur_description/urdf/ur5_robot.urdf",
    "xArm 7": "xarm_description/urdf/xarm7.urdf",
}

INTEGRATORS = {
    "semi_implicit_euler": mujoco.mjtIntegrator.mjINT_EULER,
    "rk4": mujoco.mjtIntegrator.mjINT_RK4,
}

STEP = 1e-3
SINGLE_STEPS = 500
MEMBERS, BATCH_STEPS = 1000, 20
ROUNDS = 15

COLUMNS = (
    "arm",
    "integrator",
    "arms at once",
    "us a step",
    "steps per s",
    "times real time",
    "MuJoCo us a step",
    "MuJoCo / ours",
)

NOTE = (
    f"Steps of {STEP:g} s under constant torques, without damping, friction, stops and contacts; "
    "all constraints of MuJoCo are switched off. Times are those of one thread, for one step of "
    "one arm. Ours is Stepper.run, MuJoCo's its rollout in C; both return all states."
)


def simulation() -> Iterator[Table]:
    """Yield the table of the compiled loops, and one of what a user of simulate waits for."""
    table = Table("Open-loop steps beside MuJoCo's rollout", COLUMNS, note=NOTE)
    for name, file in ARMS.items():
        model, theirs = mbs.Model.from_urdf(_file(file)), _mujoco(_file(file))
        for method, integrator in INTEGRATORS.items():
            theirs.opt.integrator = integrator
            for members, steps in ((1, SINGLE_STEPS), (MEMBERS, BATCH_STEPS)):
                table.rows.append(_row(name, model, theirs, method, members, steps))
    yield table
    yield _whole()


def _file(below: str) -> Path:
    distribution = importlib.metadata.distribution("example-robot-data")
    found = [file for file in distribution.files or () if str(file).endswith(f"robots/{below}")]
    return Path(str(distribution.locate_file(found[0])))


def _row(
    name: str, model: mbs.Model, theirs: Any, method: str, members: int, steps: int
) -> list[Any]:
    rng = np.random.default_rng(1)
    state = rng.uniform(-0.5, 0.5, (members, 2, model.n))
    effort = np.zeros(model.n)
    stepper = Stepper(model, method=method)
    start: NDArray[Any] = state[0] if members == 1 else state
    data = mujoco.MjData(theirs)
    size = mujoco.mj_stateSize(theirs, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    states = np.zeros((members, size))
    states[:, 1 : 1 + 2 * model.n] = state.reshape(members, -1)  # the first entry is the time
    count = members * steps
    taken = interleaved(
        {
            "ours": Call(stepper.run, (start, effort, STEP, steps), evaluations=count),
            "mujoco": Call(
                rollout.rollout, (theirs, data, states), {"nstep": steps}, evaluations=count
            ),
        },
        ROUNDS,
    )
    ours = median(taken["ours"])
    return [
        name,
        method,
        members,
        ours,
        1e6 / ours,
        1e6 * STEP / ours,
        median(taken["mujoco"]),
        ratio(taken["mujoco"], taken["ours"]),
    ]


def _whole() -> Table:
    """A second of motion by simulate, with accelerations, energies and momenta."""
    table = Table(
        "One second at 1 kHz of the 7-joint arm by simulate",
        ("what", "ms", "times real time"),
        note="With accelerations, energies and momenta of all states. A law is a Python function.",
    )
    arm = mbs.Model.from_urdf(_file(ARMS["xArm 7"]))
    forces = JointForces.of(arm, damping=0.5, friction=0.5, stops=True)
    q = np.full(arm.n, 0.3)
    cases: dict[str, dict[str, Any]] = {
        "rk4": {},
        "rk4, friction and stops": {"forces": forces},
        "semi_implicit_euler, friction and stops": {
            "method": "semi_implicit_euler",
            "forces": forces,
        },
        "rk4, control law": {"control": lambda t, q, qd: -0.01 * qd},
        "dormand_prince": {"method": "dormand_prince"},
        "implicit_midpoint": {"method": "implicit_midpoint"},
    }
    calls = {
        name: Call(simulate, (arm, q), {"duration": 1.0, "step": STEP, **given})
        for name, given in cases.items()
    }
    for name, samples in interleaved(calls, 11).items():
        milliseconds = 1e-3 * median(samples)
        table.rows.append([name, milliseconds, 1e3 / milliseconds])
    return table


def _mujoco(file: Path) -> Any:
    """MuJoCo's model of a URDF, without meshes, contacts, constraints, damping and friction."""
    shapes = re.compile(r"<(visual|collision)\b.*?</\1>|<(visual|collision)\b[^>]*/>", re.DOTALL)
    options = '<mujoco><compiler fusestatic="false" balanceinertia="false"/></mujoco>'
    text = re.sub(r"(<robot\b[^>]*>)", rf"\1{options}", shapes.sub("", file.read_text()), count=1)
    model = mujoco.MjModel.from_xml_string(text)
    off = mujoco.mjtDisableBit
    model.opt.disableflags |= off.mjDSBL_CONSTRAINT | off.mjDSBL_CONTACT
    model.opt.timestep = STEP
    model.dof_damping[:] = 0.0
    model.dof_frictionloss[:] = 0.0
    return model
