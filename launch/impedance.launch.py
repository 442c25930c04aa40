# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Start the impedance control node. Torques are enabled by its service alone.

ros2 launch mbs_dynamics impedance.launch.py params_file:=/path/to/my_arm.yaml

With a simulated arm: ros2 launch mbs_dynamics impedance.launch.py simulation:=true
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from launch import LaunchDescription
from launch_ros.actions import Node

from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros import launching

NODE, DEFAULT = "impedance_control_node", "impedance_control.yaml"

RATE = 500.0
"""Rate in Hz of the joint states for which config/impedance_control.yaml states its stiffness."""


def stiffness_at(rate: float, asked: dict[str, Any]) -> dict[str, Any]:
    """Return the stiffness of the parameters ``asked`` for joint states at a lower rate in Hz.

    The largest stiffness is proportional to the squared rate.
    """
    share = min(1.0, rate / RATE) ** 2
    scaled: dict[str, Any] = {}
    for name, value in asked.items():
        if name.startswith("stiffness."):
            scaled[name] = share * value
        elif name in ("linear_stiffness", "angular_stiffness"):
            scaled[name] = [share * x for x in value]
        elif name == "posture_frequency":
            scaled[name] = share**0.5 * value
    return scaled


def nodes(given: launching.Given) -> list[Node]:
    if not given.on("simulation"):
        return launching.described_node(given, NODE, "command_topic", "algorithm")
    asked = given.asked(NODE)
    text = given.description(asked.get("robot_description_file") or str(robot_path("arm7")))
    topic = given["command_topic"] or asked.get("command_topic", "")
    simulated = {
        "robot_description": text,
        "robot_description_file": "",
        "joints": asked.get("joints", [""]),
        **({"command_topic": topic} if topic else {}),
    }
    soft: dict[str, Any] = {}
    if Path(given["params_file"]).name == DEFAULT:  # not the stiffness that a user states
        rate = float(given.asked("simulator_node", "simulator_").get("rate", RATE))
        in_command = given.in_command()
        soft = stiffness_at(rate, {k: x for k, x in asked.items() if k not in in_command})
    controlled = {
        **launching.SIMULATED,
        **soft,
        **given.texts("command_topic", "algorithm"),
        **given.time(),
    }
    return [
        given.node("simulator_node", prefix="simulator_", fixed=simulated),
        given.node(NODE, fixed=controlled),
    ]


def generate_launch_description() -> LaunchDescription:
    arguments = [
        *launching.arm_arguments(NODE, DEFAULT),
        launching.BooleanArgument("simulation", "Start simulator_node as well, as the arm."),
        *launching.parameter_arguments("simulator_node", "simulator_"),
        launching.time_argument(),
    ]
    namespace = "Namespace of the node and of robot_description, joint_states and imu."
    return launching.launch_file(__file__, namespace, arguments, nodes)
