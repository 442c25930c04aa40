# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Start a simulated arm, with gravity compensation and the dynamics node.

ros2 launch mbs_dynamics simulation.launch.py urdf:=/path/to/arm.urdf.xacro

Gravity compensation starts disabled, as on a real arm:
ros2 service call /gravity_compensation_node/enable std_srvs/srv/SetBool "{data: true}"

The parameters of a real arm are rehearsed by
gravity_compensation_params_file:=my_arm.yaml
"""

from __future__ import annotations

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.substitutions import PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros import launching

COMMANDS = "forward_effort_controller/commands"
"""Relative, so that each namespace has a topic of its own."""

SHOWN = {"publish_energy": True, "publish_external_torques": True, "publish_tool_wrench": True}
"""Outputs of dynamics_node in addition to its defaults, unless its file sets them."""

TEACHING = "teaching_"
"""Prefix of the arguments of teaching_node."""

PREFIXES = {"gravity_compensation_node": "gravity_compensation_", "dynamics_node": "dynamics_"}


def joints_of(text: str) -> list[str]:
    """Return the joints that have a motor: those that move and mimic no other."""
    import warnings

    from mbs_dynamics import Model, ModelError, ModelWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # the nodes log them
        model = Model.from_urdf(text)
    if not model.n:
        raise ModelError(f"robot {model.name!r} has no joint that moves: nothing to simulate")
    return list(model.joint_names)


def nodes(given: launching.Given) -> list[Node]:
    simulated = given.in_file("simulator_node")
    asked = {name: given.in_file(name, prefix) for name, prefix in PREFIXES.items()}
    named = (file.get("robot_description_file") for file in (simulated, *asked.values()))
    text = given.description(next(filter(None, named), str(robot_path("arm7"))))
    joints = joints_of(text)
    commanded = asked["gravity_compensation_node"]
    common = {**given.time(), **given.texts("algorithm")}
    started = [
        given.node(
            "simulator_node",
            fixed={
                "robot_description": text,
                "robot_description_file": "",
                "joints": commanded.get("joints", joints),
                "command_topic": commanded.get("command_topic", COMMANDS),
                **given.numbers("initial_positions"),
                **given.texts("algorithm"),
                **({"publish_clock": given.on("use_sim_time")} if given["use_sim_time"] else {}),
            },
        )
    ]
    if given.on("gravity_compensation"):
        started.append(
            given.node(
                "gravity_compensation_node",
                prefix=PREFIXES["gravity_compensation_node"],
                defaults={"joints": joints, "command_topic": COMMANDS},
                fixed={**launching.SIMULATED, **common},
            )
        )
    if given.on("dynamics"):
        started.append(
            given.node(
                "dynamics_node",
                prefix=PREFIXES["dynamics_node"],
                defaults=SHOWN,
                fixed={
                    **launching.DESCRIBED_BY_TOPIC,
                    **common,
                    **({"publish_markers": True} if given.on("rviz") else {}),
                },
            )
        )
    if given.on("teaching"):
        started.append(given.node("teaching_node", prefix=TEACHING, fixed=given.time()))
    if given.on("rviz"):
        started.append(given.rviz())
    return [*started, *given.state_publisher(text, wanted=given.on("rviz"))]


def generate_launch_description() -> LaunchDescription:
    share = FindPackageShare("mbs_dynamics")
    defaults = PathJoinSubstitution([share, "config", "simulation.yaml"])
    arguments = [
        *launching.urdf_arguments(
            "robot_description_file of a parameter file, or the arm of this package."
        ),
        *launching.parameter_arguments("simulator_node", default=defaults),
        DeclareLaunchArgument(
            "initial_positions",
            default_value="",
            description='Posture at the start, such as "[0, -1.2, 1.5]", rad or m: one number for '
            "all joints or one for each, in the order of the model.",
        ),
        DeclareLaunchArgument(
            "gravity_compensation",
            default_value="true",
            choices=launching.SWITCH,
            description="Start gravity_compensation_node as well. It starts disabled.",
        ),
        *launching.parameter_arguments("gravity_compensation_node", "gravity_compensation_"),
        DeclareLaunchArgument(
            "dynamics",
            default_value="true",
            choices=launching.SWITCH,
            description="Start dynamics_node as well, with energy and external torques.",
        ),
        *launching.parameter_arguments("dynamics_node", "dynamics_"),
        DeclareLaunchArgument(
            "teaching",
            default_value="false",
            choices=launching.SWITCH,
            description="Start teaching_node as well, which records and plays motions.",
        ),
        *launching.parameter_arguments("teaching_node", TEACHING),
        DeclareLaunchArgument(
            "rviz",
            default_value="false",
            choices=launching.SWITCH,
            description="Start RViz and robot_state_publisher as well, and draw what dynamics_node "
            "publishes.",
        ),
        launching.algorithm_argument("the nodes"),
        launching.time_argument(" true: publish it, too."),
    ]
    namespace = "Namespace of the nodes and of all their topics."
    return launching.launch_file(__file__, namespace, arguments, nodes)
