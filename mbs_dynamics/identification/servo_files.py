# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Files of identified position servos: YAML, and an MJCF with joints and actuators."""

from __future__ import annotations

import tempfile
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from mbs_dynamics.errors import missing_extra
from mbs_dynamics.identification.servos import ServoIdentification
from mbs_dynamics.model.model import Model
from mbs_dynamics.yaml_files import yaml_text

HEAD = """\
# Identified position servos: stiffness N m/rad, damping N m s/rad, friction N m,
# inertia kg m^2, offset rad, delay s (N/m and so on for prismatic joints).
"""


def servo_yaml(result: ServoIdentification) -> str:
    """Return a YAML file of the servos by joint."""
    fields = ("stiffness", "damping", "friction", "inertia", "offset", "delay")
    servos = {
        name: {field: float(f"{getattr(servo, field):.5g}") for field in fields}
        for name, servo in result.servos.items()
    }
    return HEAD + yaml_text({"servos": servos})


def servo_mjcf(urdf: str, model: Model, result: ServoIdentification) -> str:
    """Return an MJCF of a URDF, given as text, whose joints are moved by the identified servos.

    It has no meshes. Raises MbsError without MuJoCo.
    """
    try:
        import mujoco
    except ImportError as error:
        raise missing_extra("MJCF needs MuJoCo", "mjcf", error) from error
    robot = ElementTree.fromstring(urdf)
    for link in robot.iter("link"):
        for shape in (*link.findall("visual"), *link.findall("collision")):
            link.remove(shape)
    for options in robot.findall("mujoco"):
        robot.remove(options)
    options = ElementTree.SubElement(robot, "mujoco")
    ElementTree.SubElement(options, "compiler", fusestatic="false", balanceinertia="false")
    text = ElementTree.tostring(robot, encoding="unicode")
    compiled = mujoco.MjModel.from_xml_string(text)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "arm.xml"
        mujoco.mj_saveLastXML(str(path), compiled)
        tree = ElementTree.parse(path)
    root = tree.getroot()
    actuators = ElementTree.SubElement(root, "actuator")
    for joint in root.iter("joint"):
        name = joint.get("name", "")
        if name not in result.servos:
            continue
        servo = result.servos[name]
        joint.set("armature", f"{servo.inertia:.6g}")
        joint.set("damping", f"{servo.damping:.6g}")
        joint.set("frictionloss", f"{servo.friction:.6g}")
        joint.attrib.pop("actuatorfrcrange", None)
        actuator = {"name": name, "joint": name, "kp": f"{servo.stiffness:.6g}"}
        most = float(model.effort_limits[model.joint_names.index(name)])
        if np.isfinite(most):
            actuator["forcerange"] = f"{-most:g} {most:g}"
        ElementTree.SubElement(actuators, "position", actuator)
    ElementTree.indent(tree)
    return ElementTree.tostring(root, encoding="unicode") + "\n"
