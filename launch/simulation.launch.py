# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Start a simulated arm, with gravity compensation and the dynamics node.

ros2 launch mbs_dynamics simulation.launch.py urdf:=/path/to/arm.urdf.xacro

Gravity compensation starts disabled, as on a real arm:
ros2 service call /gravity_compensation_node/enable std_srvs/srv/SetBool "{data: true}"
"""

from __future__ import annotations

from pathlib import Path

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

COMMANDS = "forward_effort_controller/commands"
"""Relative, so that each namespace has a topic of its own."""

ARGUMENTS = ("namespace", "urdf", "params_file", "gravity_compensation", "dynamics", "use_sim_time")


def description(path: Path) -> str:
    """Return the URDF in a file; a .xacro is expanded."""
    if path.suffix == ".xacro":
        import xacro  # needed for such files only

        return str(xacro.process_file(str(path)).toxml())
    return path.read_text(encoding="utf-8")


def joints_of(text: str) -> list[str]:
    """Return the joints that have a motor: those that move and mimic no other."""
    import warnings

    from mbs_dynamics import Model, ModelWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # the nodes say them
        return list(Model.from_urdf(text).joint_names)


def nodes(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    given = {name: LaunchConfiguration(name).perform(context) for name in ARGUMENTS}
    text = description(Path(given["urdf"]))
    simulated_time = given["use_sim_time"] == "true"

    def node(executable: str, *parameters: object) -> Node:
        return Node(
            package="mbs_dynamics",
            executable=executable,
            name=executable,
            namespace=given["namespace"],
            parameters=list(parameters),
            output="screen",
        )

    started: list[LaunchDescriptionEntity] = [
        node(
            "simulator_node",
            given["params_file"],
            {
                # as a str: launch would read the XML as YAML
                "robot_description": ParameterValue(text, value_type=str),
                "command_topic": COMMANDS,
                "publish_clock": simulated_time,
            },
        )
    ]
    if given["gravity_compensation"] == "true":
        commanded = {
            "joints": joints_of(text),
            "command_topic": COMMANDS,
            "compensates_itself": False,  # the simulated arm does not
            "max_age": 0.0,  # stamps fall behind the clock where the simulation is too slow
            "use_sim_time": simulated_time,
        }
        started.append(node("gravity_compensation_node", commanded))
    if given["dynamics"] == "true":
        shown = {
            "publish_energy": True,
            "publish_external_torques": True,
            "publish_tool_wrench": True,
            "use_sim_time": simulated_time,
        }
        started.append(node("dynamics_node", shown))
    return started


def generate_launch_description() -> LaunchDescription:
    share = FindPackageShare("mbs_dynamics")
    switch = {"choices": ["true", "false"]}
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "namespace",
                default_value="",
                description="Namespace of the nodes and of all their topics.",
            ),
            DeclareLaunchArgument(
                "urdf",
                default_value=PathJoinSubstitution([share, "urdf", "arm7.urdf"]),
                description="Path of a URDF, or of a .xacro that becomes one.",
            ),
            DeclareLaunchArgument(
                "params_file",
                default_value=PathJoinSubstitution([share, "config", "simulation.yaml"]),
                description="YAML file with the parameters of the simulator.",
            ),
            DeclareLaunchArgument(
                "gravity_compensation",
                default_value="true",
                description="Start gravity_compensation_node as well. It starts disabled.",
                **switch,
            ),
            DeclareLaunchArgument(
                "dynamics",
                default_value="true",
                description="Start dynamics_node as well, with energy and external torques.",
                **switch,
            ),
            DeclareLaunchArgument(
                "use_sim_time",
                default_value="false",
                description="Publish simulated time on /clock, and let the other nodes use it.",
                **switch,
            ),
            OpaqueFunction(function=nodes),
        ]
    )
