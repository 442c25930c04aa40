# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Files of results: URDF, parameters of the nodes, and YAML and MJCF of position servos."""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np
from lxml import etree

from mbs_dynamics.errors import missing_extra
from mbs_dynamics.identification.consistent import is_consistent
from mbs_dynamics.identification.identify import Identification
from mbs_dynamics.identification.servos import ServoIdentification
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.urdf import link_inertias
from mbs_dynamics.model.urdf_document import UrdfDocument
from mbs_dynamics.model.urdf_tree import tree_of
from mbs_dynamics.yaml_files import yaml_text

NODES_HEADER = """\
# Identified damping (N m s/rad or N s/m) and motor inertias (kg m^2 or kg).
# Coulomb friction is in the URDF; friction_scale is the share that is compensated.
# There is no parameter for the offsets of the torque sensors [N m or N]:
"""

SERVOS_HEADER = """\
# Identified position servos: stiffness N m/rad, damping N m s/rad, friction N m,
# inertia kg m^2, offset rad, delay s (N/m and so on for prismatic joints).
"""


def identified_urdf(
    source: str | os.PathLike[str], result: Identification, *, friction: bool = True
) -> bytes:
    """Return a URDF file with identified inertias, damping and friction, unchanged elsewhere.

    ``source`` is the path of the description, or its text. Without ``friction``, damping and
    friction are unchanged as well. The file is in UTF-8.

    The inertia of a body is the sum over links that are fixed to each other. Fixed links keep their
    inertias, and the link that the joint moves gets the remainder. If that is inconsistent, the
    link gets the whole inertia, and the others none.
    """
    joints = {
        joint: (parameters["viscous"], parameters["coulomb"])
        for joint, parameters in result.joint_parameters.items()
    }
    return _changed_urdf(source, result, joints if friction else {})


def servo_urdf(source: str | os.PathLike[str], result: ServoIdentification) -> bytes:
    """Return a URDF file with the damping and friction of servos, unchanged elsewhere.

    Identified inertias are included if there was a known load.
    """
    joints = {name: (servo.damping, servo.friction) for name, servo in result.servos.items()}
    return _changed_urdf(source, result.identification, joints)


def _changed_urdf(
    source: str | os.PathLike[str],
    result: Identification | None,
    joints: Mapping[str, tuple[float, float]],
) -> bytes:
    """Return a URDF file with identified inertias, and (damping, friction) of ``joints``."""
    document = UrdfDocument(source)
    if result is not None:
        for link, inertia in _link_inertias(source, result).items():
            document.set_inertia(link, inertia)
    for joint, (damping, friction) in joints.items():
        document.set_dynamics(joint, damping, friction)
    return document.to_bytes()


def _link_inertias(
    source: str | os.PathLike[str], result: Identification
) -> dict[str, Inertia | None]:
    """Return the new inertias by link, in the frames of the links; None removes an inertia."""
    model, described = result.torque_model.model, link_inertias(tree_of(source))
    changes: dict[str, Inertia | None] = {}
    for i, parameters in enumerate(result.inertial):
        name = model.bodies[i].name
        fixed = {
            frame.name: described[frame.name].transformed(frame.placement)
            for frame in model.frames.values()
            if frame.body == i != GROUND and frame.name != name and frame.name in described
        }
        carrying = {link: inertia for link, inertia in fixed.items() if inertia.mass > 0.0}
        others = sum((np.asarray(one.parameters) for one in carrying.values()), np.zeros(10))
        rest = parameters - others
        if is_consistent(rest):
            changes[name] = Inertia.from_parameters(rest)
        else:
            changes[name] = Inertia.from_parameters(parameters)
            changes |= dict.fromkeys(carrying)
    return changes


def node_parameters(result: Identification) -> str:
    """Return a YAML file of parameters for the impedance control node and the simulator.

    ``result.model`` has the same damping and motor inertias.
    """
    joints = {
        name: {term: float(f"{value:.6g}") for term, value in terms.items()}
        for name, terms in result.joint_parameters.items()
    }
    order = result.torque_model.model.joint_names
    damping = [joints[name]["viscous"] if name in joints else 0.0 for name in order]
    armature = {name: terms["inertia"] for name, terms in joints.items()}
    offsets = {name: terms["offset"] for name, terms in joints.items()}
    parameters = {
        "/**/impedance_control_node": {"ros__parameters": {"armature": armature}},
        "/**/simulator_node": {"ros__parameters": {"joint_damping": damping}},
    }
    return NODES_HEADER + f"# {yaml_text(offsets, flow=True)}" + yaml_text(parameters)


def servo_yaml(result: ServoIdentification) -> str:
    """Return a YAML file of the servos by joint."""
    fields = ("stiffness", "damping", "friction", "inertia", "offset", "delay")
    servos = {
        name: {field: float(f"{getattr(servo, field):.5g}") for field in fields}
        for name, servo in result.servos.items()
    }
    return SERVOS_HEADER + yaml_text({"servos": servos})


def servo_mjcf(urdf: str, model: Model, result: ServoIdentification) -> str:
    """Return an MJCF of a URDF, given as text, whose joints are moved by the identified servos.

    It has no meshes. Raises MbsError without MuJoCo.
    """
    try:
        import mujoco
    except ImportError as error:
        raise missing_extra("MJCF needs MuJoCo", "mjcf", error) from error
    robot = UrdfDocument(urdf).root
    etree.strip_elements(robot, "visual", "collision", "mujoco", with_tail=False)
    options = etree.SubElement(robot, "mujoco")
    etree.SubElement(options, "compiler", fusestatic="false", balanceinertia="false")
    spec = mujoco.MjSpec.from_string(etree.tostring(robot, encoding="unicode"))
    spec.compile()
    root = etree.fromstring(spec.to_xml())
    actuators = etree.SubElement(root, "actuator")
    for joint in root.iter("joint"):
        name = joint.get("name")
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
        etree.SubElement(actuators, "position", actuator)
    etree.indent(root)
    return str(etree.tostring(root, encoding="unicode")) + "\n"
