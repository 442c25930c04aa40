# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Start a simulated arm, with gravity compensation or impedance control, and the dynamics node.

ros2 launch mbs_dynamics simulation.launch.py urdf:=/path/to/arm.urdf.xacro

Gravity compensation starts disabled, as on a real arm:
ros2 service call /gravity_compensation_node/enable std_srvs/srv/SetBool "{data: true}"

The parameters of a real arm are rehearsed by
gravity_compensation_params_file:=my_arm.yaml
"""

from __future__ import annotations

from launch import LaunchDescription
from launch_ros.actions import Node

from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros import launching
from mbs_dynamics.ros.simulator.interface import SimulatorSettings
from mbs_dynamics.ros.simulator.world import initial_state

COMMANDS = "forward_effort_controller/commands"
"""Relative, so that each namespace has a topic of its own."""

SHOWN = {"publish_energy": True, "publish_external_torques": True, "publish_tool_wrench": True}
"""Outputs of dynamics_node in addition to its defaults, unless its file sets them."""

PREFIXES = {
    "gravity_compensation_node": "gravity_compensation_",
    "impedance_control_node": "impedance_",
    "teaching_node": "teaching_",
    "dynamics_node": "dynamics_",
}

FREQUENCY = 40.0
"""Natural frequency in rad/s of a joint on its spring, with the other joints free."""


def stiffness_of(text: str, given: launching.Given) -> dict[str, float]:
    """Return the joints that have a motor, those that move and mimic no other, and stiffnesses."""
    import warnings

    from mbs_dynamics import Model, ModelError, ModelWarning, inverse_mass_matrix

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # the nodes log them
        model = Model.from_urdf(text)
    if not model.n:
        raise ModelError(f"robot {model.name!r} has no joint that moves: nothing to simulate")
    settings = SimulatorSettings(robot_description=text, **given.numbers("initial_positions"))
    q, _ = initial_state(model, settings)
    mobilities = inverse_mass_matrix(model, q).diagonal().tolist()
    return {
        name: FREQUENCY**2 / mobility
        for name, mobility in zip(model.joint_names, mobilities, strict=True)
    }


def nodes(given: launching.Given) -> list[Node]:
    simulated = given.asked("simulator_node")
    asked = {name: given.asked(name, prefix) for name, prefix in PREFIXES.items()}
    named = (file.get("robot_description_file") for file in (simulated, *asked.values()))
    text = given.description(next(filter(None, named), str(robot_path("arm7"))))
    stiffness = stiffness_of(text, given)
    joints = list(stiffness)
    controller = "gravity_compensation_node"
    soft: dict[str, float] = {}
    if given.on("impedance"):
        controller = "impedance_control_node"
        soft = {f"stiffness.{name}": K for name, K in stiffness.items()}
        soft["friction_scale"] = 0.9
    commanded = asked[controller]
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
    if soft or given.on("gravity_compensation"):
        started.append(
            given.node(
                controller,
                prefix=PREFIXES[controller],
                defaults={"joints": joints, "command_topic": COMMANDS, **soft},
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
        name = "teaching_node"
        started.append(given.node(name, prefix=PREFIXES[name], fixed=given.time()))
    if given.on("rviz"):
        started.append(given.rviz())
    return [*started, *given.state_publisher(text, wanted=given.on("rviz"))]


def generate_launch_description() -> LaunchDescription:
    arguments = [
        *launching.urdf_arguments(
            "robot_description_file of a parameter file, or the arm of this package."
        ),
        *launching.parameter_arguments("simulator_node", default="simulation.yaml"),
        launching.argument("initial_positions")(
            'Posture at the start, such as "[0, -1.2, 1.5]", rad or m: one number for '
            "all joints or one for each, in the order of the model."
        ),
        launching.BooleanArgument(
            "gravity_compensation",
            "Start gravity_compensation_node as well. It starts disabled.",
            default="true",
        ),
        *launching.parameter_arguments("gravity_compensation_node", "gravity_compensation_"),
        launching.BooleanArgument(
            "impedance",
            "Start impedance_control_node in place of gravity_compensation_node.",
        ),
        *launching.parameter_arguments("impedance_control_node", "impedance_"),
        launching.BooleanArgument(
            "dynamics",
            "Start dynamics_node as well, with energy and external torques.",
            default="true",
        ),
        *launching.parameter_arguments("dynamics_node", "dynamics_"),
        launching.BooleanArgument(
            "teaching",
            "Start teaching_node as well, which records and plays motions.",
        ),
        *launching.parameter_arguments("teaching_node", "teaching_"),
        launching.BooleanArgument(
            "rviz",
            "Start RViz and robot_state_publisher as well, and draw what dynamics_node publishes.",
        ),
        launching.algorithm_argument("the nodes"),
        launching.time_argument(" true: publish it, too."),
    ]
    namespace = "Namespace of the nodes and of all their topics."
    return launching.launch_file(__file__, namespace, arguments, nodes)
