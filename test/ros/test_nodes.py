# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Each node beside its tables and its page, in this process."""

import functools
import importlib
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")

from gravity_bench import JOINTS, REST, Q
from rclpy.exceptions import ParameterException
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from mbs_dynamics.control.force_calibration import Calibration
from mbs_dynamics.errors import MbsError
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.dynamics.interface import PUBLISHED
from mbs_dynamics.ros.entry_points import INTERFACES, interface_of
from mbs_dynamics.ros.node_base import message_type, profile

pytestmark = pytest.mark.usefixtures("ros", "controller_manager_msgs")

ROOT = Path(__file__).parents[2]
ARM7 = robot_path("arm7")


def class_of(name):
    """Return the class of a node, which its module has."""
    module = importlib.import_module(f"mbs_dynamics.ros.{name}")
    kinds = [one for one in vars(module).values() if hasattr(one, "interface")]
    return next(one for one in kinds if one.interface is interface_of(name))


NODES = {name: class_of(name) for name in INTERFACES}
TEXT = {"robot_description": ARM7.read_text(encoding="utf-8")}
NEEDED = {
    "dynamics_node": TEXT,
    "impedance_control_node": TEXT | {"joints": JOINTS, "compensates_itself": False},
    "gravity_compensation_node": TEXT | {"joints": JOINTS, "compensates_itself": False},
    "simulator_node": TEXT,
    "wrench_compensation_node": TEXT | {"sensor_frame": "flange"},
}
"""Parameters without which a node does not start, or has no robot."""


def starter():
    """Yield a function that makes and starts a node, and returns None if it does not start."""
    made = []

    def make(name, needed=None, **values):
        given = (NEEDED.get(name, {}) if needed is None else needed) | values
        overrides = [Parameter(k.replace("__", "."), value=v) for k, v in given.items()]
        made.append(NODES[name](namespace="nodes", parameter_overrides=overrides))
        return made[-1] if made[-1].start() else None

    yield make
    for node in made:
        node.destroy_node()


start = pytest.fixture(starter)


@pytest.fixture(scope="module")
def running(ros, controller_manager_msgs):
    """Return a function that returns the one running node of a name."""
    for make in starter():
        yield functools.cache(make)


OTHERS = re.compile(r"/(rosout|parameter_events|clock|\w*parameters?\w*|get_type_description)$")


def ends(node):
    """Return topics and services of a node by name, with types and qualities as declared."""
    namespace, full = node.get_namespace(), node.get_fully_qualified_name()

    def short(name):
        name = name.replace(f"{full}/", "~/", 1).removeprefix(f"{namespace}/")
        name = re.sub(r"^(~/(?:twist|jacobian))/\w+", r"\1/<body>", name)
        return re.sub(r"^(~/joint_wrench)/\w+", r"\1/<joint>", name)

    topics = [(one, one.msg_type) for one in node.publishers]
    topics += [(one, one.msg_type) for one in node.subscriptions]
    found = {short(x.topic_name): (kind, x.qos_profile) for x, kind in topics}
    found |= {short(one.service_name): (one.srv_type, None) for one in node.services}
    return {k: v for k, v in found.items() if not OTHERS.search(f"/{k}") or k == "/clock"}


def without_description(name):
    """Return the parameters of a node that subscribes to its description if it can."""
    given = NEEDED.get(name, {}).items()
    return {k: v for k, v in given if k not in TEXT or name == "simulator_node"}


def page_of(name):
    """Return the page of a node, with those of other nodes that it refers to."""
    folder = ROOT / "docs" / "reference" / "nodes"
    own = (folder / f"{name}.md").read_text(encoding="utf-8")
    others = set(re.findall(r"\]\((\w+_node\.md)", own))
    return " ".join(" ".join([own, *((folder / x).read_text("utf-8") for x in others)]).split())


REQUESTED = {
    "dynamics_node": {"publish": PUBLISHED, "joint_wrenches": ["joint4"]},
    "gravity_compensation_node": {"use_imu": True},
    "simulator_node": {"publish_clock": True, "contact_planes": [0.0, 0.0, 1.0, -9.0]},
}


@pytest.mark.parametrize("name", NODES)
def test_parameters_topics_services_and_diagnostics_are_as_declared_and_documented(
    start, name, tmp_path
):
    given = dict(REQUESTED.get(name, {}))
    if name == "wrench_compensation_node":
        path = tmp_path / "sensor.yaml"
        Calibration(np.zeros(6), 1.0, np.zeros(3)).write(path, "flange")
        given["calibration_file"] = str(path)
    node = start(name, without_description(name), **given)
    check_parameters(node, name, {*NEEDED.get(name, {}), *given})
    interface = interface_of(name)
    callbacks = {Path(one.topic_name).name: one.callback for one in node.subscriptions}
    if "robot_description" in callbacks:
        callbacks["robot_description"](String(data=ARM7.read_text("utf-8")))
        node._on_time() if name.startswith("gravity") else None
        message = JointState(name=JOINTS, position=Q, velocity=REST, effort=REST)
        message.header.stamp = node.get_clock().now().to_msg()
        callbacks["joint_states"](message)
    found, entries, due = ends(node), {}, set()
    for one in (*interface.subscribed, *interface.published, *interface.services):
        topic = getattr(node._settings, one.name[1:-1]) if one.name[0] == "<" else one.name
        entries.setdefault(topic, one)
        # a condition is a parameter, or in words
        due |= {topic} if not one.condition or getattr(node._settings, one.condition, 0) else set()
    lifecycle = {k for k, (kind, _) in found.items() if kind.__module__.startswith("lifecycle")}
    assert bool(lifecycle) == interface.lifecycle
    assert due <= found.keys() - lifecycle <= entries.keys()
    for topic in found.keys() - lifecycle:
        (kind, quality), one = found[topic], entries[topic]
        assert kind is message_type(one.type)
        if quality is not None:
            expected = profile(one.quality)
            assert quality.reliability == expected.reliability
            assert quality.durability == expected.durability
    statuses = []
    node._diagnostics = SimpleNamespace(publish=lambda array: statuses.extend(array.status))
    node._publish_diagnostics()
    page = page_of(name)
    keys = {pair.key for status in statuses for pair in status.values}
    assert len(keys) > 3
    named = lifecycle | {key for key in keys if not key.startswith("latency")}
    assert [name for name in named if f"`{name}`" not in page] == []


def check_parameters(node, name, given):
    """Check that ROS has the parameters of a node as declared, with defaults if not given."""
    for one in interface_of(name).parameters:
        if one.per not in ("", "joint"):
            continue
        full = f"{one.name}.{JOINTS[2]}" if one.per else one.name
        found = node.describe_parameter(full)
        assert found.description == one.description + (f" Unit: {one.unit}." if one.unit else "")
        assert (found.additional_constraints, found.read_only) == (one.remarks, one.read_only)
        ranges = [(x.from_value, x.to_value) for x in found.floating_point_range]
        assert ranges == ([one.range] if one.range else [])
        if one.name not in given and not one.per:
            value = node.get_parameter(one.name).value
            assert (tuple(value) if isinstance(value, list) else value) == one.default


def test_ranges_end_at_the_limits_of_the_arm_once_it_is_known(running):
    node = running("gravity_compensation_node")
    node._on_time()
    ends = {"effort_limits.joint3": 110.0, "damping.joint3": 50.0}
    for name, high in ends.items():
        (found,) = node.describe_parameter(name).floating_point_range
        assert found.to_value == pytest.approx(high)


FILE = {"robot_description": str(ARM7)}
FLANGE = FILE | {"sensor_frame": "flange"}


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("command_watchdog_node", {"command_topic": "/commands"}, "<controller>/commands"),
        ("command_watchdog_node", {"position_controller": "forward_effort_controller"}, "another"),
        ("dynamics_node", {"representation": "hybird"}, "did you mean 'hybrid'"),
        ("dynamics_node", {"max_rat": 5.0}, "did you mean 'max_rate'"),
        ("dynamics_node", {"max_rate": "5"}, "max_rate"),
        ("dynamics_node", {"robot_description": "/no/such.urdf"}, "/no/such.urdf"),
        ("dynamics_node", {"robot_description": __file__}, "not XML"),
        ("dynamics_node", FILE | {"bodies": ["tol"]}, "did you mean 'tool'"),
        ("dynamics_node", {"loads__tool": [1.5, 0.0]}, "loads.tool has 2"),
        ("dynamics_node", {"bodies": ["a", "b", "a"]}, "bodies"),
        ("dynamics_node", {"gravity": [0.0, 0.0, -981.0]}, "gravity"),
        ("gravity_compensation_node", {"position_margin": 0.2}, "constant in nodes, 0.05"),
        ("gravity_compensation_node", {"effort_scale": 0.3}, "effort_limits state"),
        ("gravity_compensation_node", {"tip": "link3"}, "tip is not a parameter any more"),
        ("gravity_compensation_node", {"on_fault": "explode"}, "explode"),
        (
            "gravity_compensation_node",
            {"position_controller": "forward_effort_controller"},
            "which takes the torques; must be another one",
        ),
        ("gravity_compensation_node", {"gravity": [0.0, 0.0, -12.0]}, "gravity"),
        ("gravity_compensation_node", {"compensates_itself": "maybe"}, "compensates_itself"),
        ("gravity_compensation_node", {"joints": ["joint1", "joint1"]}, "joint1"),
        ("gravity_compensation_node", FILE | {"joints": ["elbow"]}, "no joint 'elbow'"),
        ("impedance_control_node", {"mode": "law"}, "law is empty"),
        ("impedance_control_node", {"linear_stiffness": [1.0]}, "linear_stiffness"),
        ("impedance_control_node", {"adds_to_position_control": True}, "adds_to_position_control"),
        ("simulator_node", FILE | {"joints": ["joint9"]}, "no joint 'joint9'"),
        ("simulator_node", FILE | {"joint_damping": [-1.0]}, "joint_damping"),
        ("simulator_node", FILE | {"contact_planes": [0.0, 0.0, 1.0]}, "contact_planes"),
        ("simulator_node", FILE | {"initial_positions": [1.0, 2.0]}, "initial_positions"),
        ("teaching_node", {"other_topics": ["gripper"]}, "'topic: joint ...'"),
        ("teaching_node", {"other_topics": ["a: x", "b: x y"]}, "twice: x"),
        ("wrench_compensation_node", {"sensor_frame": ""}, "sensor_frame"),
        ("wrench_compensation_node", FILE | {"sensor_frame": "flang"}, "did you mean 'flange'"),
        ("wrench_compensation_node", FLANGE | {"calibration_file": __file__}, __file__),
    ],
)
def test_bad_parameters_end_the_start_and_are_named(start, capfd, name, values, said):
    try:
        assert start(name, {}, **values) is None
        found = capfd.readouterr().err
    except (MbsError, ParameterException) as error:
        found = str(error)
    assert said in found


def test_the_quality_of_service_is_overridden_by_parameters(start):
    """rclpy writes into the profile that it is given: other topics must not change with it."""
    overrides = {
        "/nodes/dynamics_node/gravity_torques.publisher.reliability": "best_effort",
        "/nodes/joint_states.subscription.depth": 50,
    }
    node = start("dynamics_node", **{f"qos_overrides.{k}": x for k, x in overrides.items()})
    found = ends(node)
    assert found["~/gravity_torques"][1].reliability.name == "BEST_EFFORT"
    assert found["~/bias_torques"][1].reliability.name == "RELIABLE"
    assert found["joint_states"][1].depth == 50
    declared = node.get_parameters_by_prefix("qos_overrides")
    assert {x.rpartition(".")[0] for x in declared} == {x.rpartition(".")[0] for x in overrides}


def test_parameters_of_other_nodes_are_ignored_and_named(start, capfd):
    assert start("dynamics_node", max_rate=10.0, ramp_time=1.0)
    assert "are not parameters: ramp_time" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("dynamics_node", {"representation": "mixed"}, "twists in publish"),
        ("dynamics_node", {"bodies": ["base_link"]}, "base_link"),
        ("dynamics_node", {"gravity": [0.0, -9.81]}, "gravity has shape"),
        ("dynamics_node", {"root": "link1"}, "read-only"),
        ("gravity_compensation_node", {"stale_timeout": 0.0}, "out of range"),
        ("gravity_compensation_node", {"ramp_time": float("nan")}, "ramp_time"),
        ("gravity_compensation_node", {"damping__joint2": 91.0}, "out of range"),
        ("teaching_node", {"speed": -1.0}, "out of range"),
    ],
)
def test_bad_values_are_refused_and_change_nothing(running, name, values, said):
    node = running(name)
    node._on_time() if name.startswith("gravity") else None
    before = node._settings
    given = [Parameter(k.replace("__", "."), value=v) for k, v in values.items()]
    result = node.set_parameters_atomically(given)
    assert not result.successful
    assert said in result.reason
    assert node._settings is before
    for one in given:
        if node.has_parameter(one.name):
            assert node.get_parameter(one.name).value != one.value
