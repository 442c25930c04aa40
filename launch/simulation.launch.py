# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Start a simulated arm, with gravity compensation or impedance control, and the dynamics node.

ros2 launch mbs_dynamics simulation.launch.py urdf:=/path/to/arm.urdf.xacro

Gravity compensation starts disabled, as on a real arm:
ros2 service call /gravity_compensation_node/enable std_srvs/srv/SetBool "{data: true}"

The parameters of a real arm are rehearsed by gravity_compensation_params_file:=my_arm.yaml
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, Shutdown
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

from mbs_dynamics import inverse_mass_matrix
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros import launching
from mbs_dynamics.ros.interface import read_parameters
from mbs_dynamics.ros.robot_description import model_of
from mbs_dynamics.ros.simulator.interface import SimulatorSettings
from mbs_dynamics.ros.simulator.world import initial_state
from mbs_dynamics.yaml_files import read_yaml

PREFIXES = {
    "gravity_compensation_node": "gravity_compensation_",
    "impedance_control_node": "impedance_",
    "dynamics_node": "dynamics_",
    "teaching_node": "teaching_",
}
COMMANDS = "forward_effort_controller/commands"
SIMULATED = {
    "robot_description": "",
    "compensates_itself": False,
    "position_controller": "",  # there is no controller manager
    "adds_to_position_control": False,
    "use_imu": False,
}
"""Parameters of a node that commands the simulated arm, where they differ from a real one's."""
FREQUENCY = 40.0
"""Natural frequency in rad/s of a joint on its spring, with the other joints free."""


def node(executable, parameters, **options):
    return Node(
        package="mbs_dynamics",
        executable=executable,
        namespace=LaunchConfiguration("namespace"),
        parameters=parameters,
        output="screen",
        **options,
    )


def nodes(context):
    impedance = launching.asked(context, "impedance")
    controller = "impedance_control_node" if impedance else "gravity_compensation_node"
    commanded = in_file(context, controller) | launching.in_command(context, PREFIXES[controller])
    path = commanded.get("robot_description") or str(robot_path("arm7"))
    urdf = launching.description(context, path)
    model = model_of(urdf)
    joints = {"joints": list(model.joint_names), "command_topic": COMMANDS}
    real = {name: commanded[name] for name in joints if name in commanded}
    simulated = [*launching.described(urdf), launching.typed(joints | real)]
    positions = launching.value(context, "initial_positions")
    if positions:
        simulated.append({"initial_positions": [float(x) for x in read_yaml(positions)]})
    if launching.value(context, "use_sim_time"):
        simulated.append({"publish_clock": launching.asked(context, "use_sim_time")})
    own = launching.parameters(context, "algorithm")
    started = [node("simulator_node", [*own, *simulated], on_exit=Shutdown())]
    if impedance or launching.asked(context, "gravity_compensation"):
        stiffness = stiffnesses(model) if impedance else {}
        given = launching.parameters(
            context, "algorithm", "use_sim_time", prefix=PREFIXES[controller]
        )
        # after the file: ROS gives precedence to the section (/** or a node) that was named last
        defaults = {name: x for name, x in (joints | stiffness).items() if name not in commanded}
        known = [*given, launching.typed(defaults | SIMULATED)]
        started.append(node(controller, known, on_exit=Shutdown()))
    if launching.asked(context, "dynamics"):
        publish = ["gravity_torques", "bias_torques", "twists", "jacobians"]
        shown = {"publish": [*publish, "energy", "external_torques", "tool_wrench"]}
        given = launching.parameters(context, "algorithm", "use_sim_time", prefix="dynamics_")
        named = in_file(context, "dynamics_node") | launching.in_command(context, "dynamics_")
        started.append(node("dynamics_node", given if "publish" in named else [*given, shown]))
    if launching.asked(context, "teaching"):
        given = launching.parameters(context, "use_sim_time", prefix="teaching_")
        started.append(node("teaching_node", given))
    rviz, space = launching.asked(context, "rviz"), LaunchConfiguration("namespace")
    if rviz or launching.asked(context, "robot_state_publisher"):
        given = launching.described(urdf)
        if launching.value(context, "use_sim_time"):
            given.append({"use_sim_time": launching.asked(context, "use_sim_time")})
        publisher = "robot_state_publisher"
        started.append(
            Node(package=publisher, executable=publisher, namespace=space, parameters=given)
        )
    if rviz:
        file = PathJoinSubstitution([FindPackageShare("mbs_dynamics"), "config/mbs_dynamics.rviz"])
        started.append(
            Node(package="rviz2", executable="rviz2", namespace=space, arguments=["-d", file])
        )
    return launching.checked(context, started)


def in_file(context, executable):
    """Return the parameters that the file of a node holds for it."""
    name = f"{PREFIXES[executable]}params_file"
    file, space = launching.value(context, name), launching.value(context, "namespace")
    full_name = "/".join(["", *filter(None, space.split("/")), executable])
    return read_parameters(name, file, full_name) if file else {}


def stiffnesses(model):
    """Return the stiffness of each joint, and compensation of most of its friction."""
    q, _ = initial_state(model, SimulatorSettings(robot_description="<robot/>"))
    mobilities = inverse_mass_matrix(model, q).diagonal()
    stiffness = {
        f"stiffness.{name}": FREQUENCY**2 / float(mobility)
        for name, mobility in zip(model.joint_names, mobilities, strict=True)
    }
    return {"friction_scale": 0.9, **stiffness}


def generate_launch_description():
    arguments = [
        *launching.parameter_arguments("simulator_node", file="simulation.yaml"),
        *launching.robot_arguments(),
        *launching.arguments(
            initial_positions='Posture at the start, "[0, -1.2, 1.5]", rad or m.',
            algorithm=launching.ALGORITHM,
        ),
    ]
    for executable, prefix in PREFIXES.items():
        arguments += launching.parameter_arguments(executable, prefix)
    for name, default, about in (
        ("gravity_compensation", "true", "Start gravity_compensation_node, which is disabled."),
        ("impedance", "false", "Start impedance_control_node in its place."),
        ("dynamics", "true", "Start dynamics_node, with energy and external torques."),
        ("teaching", "false", "Start teaching_node, which records and plays motions."),
        ("robot_state_publisher", "false", "Start robot_state_publisher for this robot."),
        ("rviz", "false", "Start RViz and robot_state_publisher."),
    ):
        arguments.append(DeclareLaunchArgument(name, default_value=default, description=about))
    return LaunchDescription([*arguments, launching.UDP, OpaqueFunction(function=nodes)])
