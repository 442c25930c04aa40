# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Simulated steps per second of one arm and of a batch, compared with MuJoCo's rollout."""

import re
from collections.abc import Iterator
from typing import Any

import mujoco
import numpy as np
from mujoco import rollout
from numpy.typing import NDArray

import mbs_dynamics as mbs
from benchmarks.mechanisms import urdf
from benchmarks.report import Table
from benchmarks.timing import Call, interleaved, median, ratio
from mbs_dynamics.integrate import JointForces, Stepper, simulate
from mbs_dynamics.model.joints import Connection, joint

ARMS = {
    "UR5": "ur_description/urdf/ur5_robot.urdf",
    "xArm 7": "xarm_description/urdf/xarm7.urdf",
}

QUADRUPED = "solo_description/robots/solo12.urdf"

FLOATING = """<joint name="float" type="floating"><parent link="world"/><child link="base_link"/>
</joint>"""

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
    "all constraints of MuJoCo are disabled. Times are for one step of one arm in one thread. "
    "Stepper.run is compared with MuJoCo's rollout in C; both return all states."
)


def simulation() -> Iterator[Table]:
    """Yield the table of the compiled loops, and those of whole simulations."""
    table = Table("Open-loop steps, compared with MuJoCo's rollout", COLUMNS, note=NOTE)
    for name, file in ARMS.items():
        model, theirs = mbs.Model.from_urdf(urdf(file)), _mujoco_model(urdf(file).read_text())
        for method, integrator in INTEGRATORS.items():
            theirs.opt.integrator = integrator
            for members, steps in ((1, SINGLE_STEPS), (MEMBERS, BATCH_STEPS)):
                table.rows.append(_row(name, model, theirs, method, members, steps))
    yield table
    yield _whole()
    yield _without_coordinates()


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
    speeds = [ours, 1e6 / ours, 1e6 * STEP / ours, median(taken["mujoco"])]
    return [name, method, members, *speeds, ratio(taken["mujoco"], taken["ours"])]


def _whole() -> Table:
    """A second of motion by simulate, with accelerations, energies and momenta."""
    table = Table(
        "One second at 1 kHz of the 7-joint arm by simulate",
        ("what", "ms", "times real time"),
        note="Includes accelerations, energies and momenta of all states. A law is a Python "
        "function.",
    )
    arm = mbs.Model.from_urdf(urdf(ARMS["xArm 7"]))
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


def _without_coordinates() -> Table:
    """A second of motion on SE(3): of a quadruped on a floating base, and of a body."""
    table = Table(
        "Steps of 1 ms on SE(3): a quadruped of 12 joints on a floating base, and a body",
        ("what", "us a step", "times real time", "MuJoCo / ours"),
        note="simulate, including energies and momenta of all states. "
        "MuJoCo's rollout in C uses the same scheme on quaternions, and returns states only.",
    )
    text = urdf(QUADRUPED).read_text()
    robot = mbs.Model.from_urdf(text, floating_base=True)
    M = mbs.spatial_inertia(2.0, (0.1, -0.05, 0.2), np.diag([0.1, 0.15, 0.2]))
    body = mbs.Model.from_joints(
        [Connection(name="free", joint=joint("free"), body="body", M_body=M)]
    )
    rng = np.random.default_rng(1)
    joints = rng.uniform(-0.3, 0.3, (MEMBERS, robot.n - 6))
    V = np.array([0.5, 0.3, -0.2, 0.1, 0.0, 1.0])
    base = np.tile(body.neutral(), (MEMBERS, 1))
    q, qd = np.concatenate([base, joints], axis=1), np.concatenate([V, np.zeros(robot.n - 6)])
    law = {"control": lambda t, q, qd: -0.1 * qd}
    one, many = (robot, q[0], qd), (robot, q, qd)
    cases: dict[str, tuple[Any, int, dict[str, Any]]] = {
        "quadruped, rk4": (one, SINGLE_STEPS, {}),
        "1000 quadrupeds, rk4": (many, BATCH_STEPS, {}),
        "quadruped, rk4, control law": (one, SINGLE_STEPS, law),
        **{
            f"quadruped, {method}": (one, SINGLE_STEPS, {"method": method})
            for method in ("dormand_prince", "implicit_midpoint")
        },
        "body, rk4": ((body, base[0], V), SINGLE_STEPS, {}),
        "1000 bodies, rk4": ((body, base, V), BATCH_STEPS, {}),
        "body, implicit_midpoint": (
            (body, base[0], V), SINGLE_STEPS, {"method": "implicit_midpoint"},
        ),
    }  # fmt: skip
    text = text.replace("</robot>", FLOATING + "</robot>")
    text = re.sub(r"(<robot\b[^>]*>)", r'\1<link name="world"/>', text, count=1)
    theirs = _mujoco_model(text)
    theirs.opt.integrator = INTEGRATORS["rk4"]
    data = mujoco.MjData(theirs)
    size = mujoco.mj_stateSize(theirs, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    states = np.zeros((MEMBERS, size))
    states[:, 1 + 3] = 1.0  # the quaternion
    states[:, 8 : 8 + robot.n - 6] = joints
    for name, (given, steps, options) in cases.items():
        members = MEMBERS if name.startswith("1000") else 1
        count = members * steps
        calls = {
            "ours": Call(
                simulate, given, {"duration": STEP * steps, "step": STEP, **options},
                evaluations=count,
            )
        }  # fmt: skip
        if name.endswith("quadruped, rk4") or name.endswith("quadrupeds, rk4"):
            start = states[:members]
            calls["mujoco"] = Call(
                rollout.rollout, (theirs, data, start), {"nstep": steps}, evaluations=count
            )
        taken = interleaved(calls, ROUNDS)
        ours = median(taken["ours"])
        beside = ratio(taken["mujoco"], taken["ours"]) if "mujoco" in taken else ""
        table.rows.append([name, ours, 1e6 * STEP / ours, beside])
    return table


def _mujoco_model(text: str) -> Any:
    """MuJoCo's model of a URDF, without meshes, contacts, constraints, damping and friction."""
    shapes = re.compile(r"<(visual|collision)\b.*?</\1>|<(visual|collision)\b[^>]*/>", re.DOTALL)
    options = '<mujoco><compiler fusestatic="false" balanceinertia="false"/></mujoco>'
    text = re.sub(r"(<robot\b[^>]*>)", rf"\1{options}", shapes.sub("", text), count=1)
    model = mujoco.MjModel.from_xml_string(text)
    off = mujoco.mjtDisableBit
    model.opt.disableflags |= off.mjDSBL_CONSTRAINT | off.mjDSBL_CONTACT
    model.opt.timestep = STEP
    model.dof_damping[:] = 0.0
    model.dof_frictionloss[:] = 0.0
    return model
