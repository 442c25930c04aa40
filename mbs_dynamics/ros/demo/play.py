# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A demonstration over DDS: a simulated robot, gravity compensation, and the dynamics node.

Four processes. They speak on this machine only, in a ROS domain chosen at random, so that no other
robot hears them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ModelError, ModelWarning
from mbs_dynamics.model import Model
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.demo.domain import unused_domain
from mbs_dynamics.ros.demo.plan import LASTING, Plan
from mbs_dynamics.ros.demo.stage import MissingError, Stage
from mbs_dynamics.ros.demo.story import acts
from mbs_dynamics.ros.demo.table import Table
from mbs_dynamics.ros.process import ros

RAMP = 0.3
"""Seconds in which torques come in and go out."""

PATIENT = 0.5
"""Seconds that a callback may work: a busy machine is no fault here."""

SILENCE = 2.0
"""Seconds without joint_states that end the compensation, four times the default: the simulated
robot shares a computer with whatever else runs there, and stands still while it waits for it."""


def main(robot: str | None) -> int:
    """Run the demonstration and return 0 if each act went as it should, else 1.

    ``robot`` is the path of a URDF, by default the arm that comes with this package. Raises
    UrdfError if it cannot be read, ModelError if it has no joint.
    """
    path = Path(robot) if robot is not None else robot_path("arm7")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # the nodes say them
        model = Model.from_urdf(path)
    if model.n == 0:
        raise ModelError(f"robot {model.name!r} has no joint that moves: there is nothing to show")
    plan = Plan.of(model)
    os.environ["ROS_DOMAIN_ID"] = str(unused_domain())
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    os.environ.pop("ROS_STATIC_PEERS", None)
    code = 1  # if it is interrupted
    with (
        ros(),
        _node("simulator_node", _simulator(path, plan)) as simulator,
        _node("gravity_compensation_node", _compensation(model, plan)),
        _node("dynamics_node", []),
    ):
        try:
            code = _play(Stage(model, plan, Table()), simulator)
        except MissingError as error:
            print(f"FAILED: {error} did not come", file=sys.stderr)
    return code


def _simulator(path: Path, plan: Plan) -> list[str]:
    return [
        f"robot_description_file:={path.resolve()}",
        f"initial_positions:={_list(plan.posture)}",
        f"disturbance_duration:={LASTING}",
        f"joint_damping:={_list(plan.own_damping)}",
        "brakes:=false",
    ]


def _compensation(model: Model, plan: Plan) -> list[str]:
    names = ", ".join(f"'{name}'" for name in model.joint_names)
    each = [
        f"{what}.{joint}:={value!r}"
        for what, values in (("damping", plan.damping), ("effort_limits", plan.efforts))
        for joint, value in zip(model.joint_names, values.tolist(), strict=True)
    ]
    return [
        f"joints:=[{names}]",
        "compensates_itself:=false",
        f"ramp_time:={RAMP}",
        f"max_payload:={plan.load}",
        "max_age:=0.0",  # a simulation that was cut off goes on with stamps of the past
        f"callback_timeout:={PATIENT}",
        f"stale_timeout:={SILENCE}",
        *each,
    ]


def _list(values: FloatArray) -> str:
    return "[" + ", ".join(repr(float(x)) for x in values) + "]"


@contextmanager
def _node(name: str, parameters: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a node as a process of its own, and end it in any case; show its log if it fails."""
    given = [part for parameter in parameters for part in ("-p", parameter)]
    command = [sys.executable, "-m", f"mbs_dynamics.ros.{name}", "--ros-args", *given]
    process = subprocess.Popen(command)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        try:
            process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _play(stage: Stage, simulator: subprocess.Popen[bytes]) -> int:
    plan, model = stage.plan, stage.model
    print(f"{model.name}: {model.n} joints, {plan.tip} is pushed and loaded. Nodes start ...")
    claims = []
    stage.ready()
    for act in acts(stage, simulator.send_signal):
        print(f"\n== {act.title}", flush=True)
        for claim in act.play():
            claims.append(claim)
            stage.table.clear()
            print(f"  {'ok    ' if claim.good else 'FAILED'}  {claim.text}", flush=True)
        stage.table.keep(stage)
    failed = sum(not claim.good for claim in claims)
    print(f"\n{'FAILED' if failed else 'OK'}: {len(claims)} claims, {failed} of them wrong")
    return 1 if failed else 0
