# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Files of results: URDF, parameters of the nodes, and YAML and MJCF of position servos."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree
from scipy.spatial.transform import Rotation

from mbs_dynamics.errors import missing_extra
from mbs_dynamics.identification.consistent import is_consistent
from mbs_dynamics.identification.identify import Identification
from mbs_dynamics.identification.kinematic_calibration import Calibration
from mbs_dynamics.identification.servos import ServoIdentification
from mbs_dynamics.lie import se3
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.urdf import link_inertias
from mbs_dynamics.model.urdf_elements import TENSOR
from mbs_dynamics.model.urdf_tree import tree_of
from mbs_dynamics.yaml_files import yaml_text

INDENT = "  "

ANY = "{*}"
"""Wildcard for the namespace of a tag, or none."""

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
    tree = _parsed(source)
    root = tree.getroot()
    changes = {} if result is None else link_changes(source, result)
    for name, inertia in changes.items():
        new = None if inertia is None else _inertial(inertia)
        _put(_named(root, "link", name), "inertial", new)
    for name, (damping, friction) in joints.items():
        joint = _named(root, "joint", name)
        if joint.find(ANY + "dynamics") is None:
            _put(joint, "dynamics", etree.Element("dynamics"))
        dynamics = joint.find(ANY + "dynamics")
        dynamics.set("damping", repr(float(damping)))
        dynamics.set("friction", repr(float(friction)))
    return _written(tree)


def calibrated_urdf(source: str | os.PathLike[str], result: Calibration) -> bytes:
    """Return a URDF file with calibrated origins of joints, unchanged elsewhere.

    Position limits are shifted by the zeros, so that they stay where they are on the arm.
    """
    tree = _parsed(source)
    by_body = {body.name: body.joint.name for body in result.model.bodies}
    origins = {joint.name: joint.origin.pose() for joint in tree_of(source).joints.values()}
    for body, xi in result.twists.items():
        if not xi.any():
            continue
        name = by_body[body]
        joint = _named(tree.getroot(), "joint", name)
        pose = origins[name] @ se3.exp(xi)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # yaw is zero at a pitch of 90 degrees
            rpy = Rotation.from_matrix(pose[:3, :3]).as_euler("xyz").tolist()
        xyz = pose[:3, 3].tolist()
        _put(joint, "origin", etree.Element("origin", xyz=_numbers(xyz), rpy=_numbers(rpy)))
        if joint.get("type") == "continuous":
            continue
        for limit in (*joint.findall(ANY + "limit"), *joint.findall(ANY + "safety_controller")):
            for end in ("lower", "upper", "soft_lower_limit", "soft_upper_limit"):
                if limit.get(end) is not None:
                    limit.set(end, repr(float(limit.get(end)) - result.zeros[name]))
    return _written(tree)


def _parsed(source: str | os.PathLike[str]) -> Any:
    """Return the XML document of a path or a text."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    if isinstance(source, str) and source.lstrip().startswith("<"):
        return etree.ElementTree(etree.fromstring(source.encode(), parser))
    return etree.parse(os.fspath(source), parser)


def _written(tree: Any) -> bytes:
    """Return a document as UTF-8, with comments before and after its root on their own lines."""
    root = tree.getroot()
    top = [*reversed([*root.itersiblings(preceding=True)]), root, *root.itersiblings()]
    header = ['<?xml version="1.0" encoding="utf-8"?>', tree.docinfo.doctype]
    parts = [line.encode() for line in header if line]
    parts += [etree.tostring(x, encoding="UTF-8", with_tail=False) for x in top]
    return b"\n".join(parts) + b"\n"


def _named(root: Any, tag: str, name: str) -> Any:
    """Return the link or joint with a name."""
    return next(x for x in root.iterfind(ANY + tag) if x.get("name") == name)


def _put(parent: Any, tag: str, new: Any) -> None:
    """Replace or append a child of a link or joint; remove it if ``new`` is None."""
    old = parent.find(ANY + tag)
    if new is not None:
        etree.indent(new, space=INDENT, level=2)
    if old is not None and new is not None:
        new.tail = old.tail
        parent.replace(old, new)
    elif old is not None:
        before = old.getprevious()
        if before is None:
            parent.text = old.tail
        else:
            before.tail = old.tail
        parent.remove(old)
    elif new is not None:
        new.tail = "\n" + INDENT
        parent.append(new)
        before = new.getprevious()
        if before is None:
            parent.text = "\n" + 2 * INDENT
        else:
            before.tail = "\n" + 2 * INDENT


def _inertial(inertia: Inertia) -> Any:
    """Return the <inertial> element of an inertia."""
    tensor = inertia.tensor_at_com
    inertial = etree.Element("inertial")
    etree.SubElement(inertial, "origin", xyz=_numbers(inertia.com.tolist()), rpy="0 0 0")
    etree.SubElement(inertial, "mass", value=_numbers([float(inertia.mass)]))
    entries = {name: repr(float(tensor[place])) for name, place in TENSOR.items()}
    etree.SubElement(inertial, "inertia", entries)
    return inertial


def _numbers(values: list[float]) -> str:
    return " ".join(map(repr, values))


def link_changes(
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
    joints = result.joint_parameters
    order = [joints.get(name) for name in result.torque_model.model.joint_names]

    def by_name(term: str) -> dict[str, float]:
        return {name: float(f"{one[term]:.6g}") for name, one in joints.items()}

    damping = [float(f"{one['viscous']:.6g}") if one else 0.0 for one in order]
    nodes: dict[str, dict[str, Any]] = {
        "impedance_control_node": {"armature": by_name("inertia")},
        "simulator_node": {"joint_damping": damping},
    }
    header = (
        "# Identified damping (N m s/rad or N s/m) and motor inertias (kg m^2 or kg).\n"
        "# Coulomb friction is in the URDF; friction_scale is the share that is compensated.\n"
        "# There is no parameter for the offsets of the torque sensors [N m or N]:\n"
    )
    offsets = yaml_text(by_name("offset"), flow=True)
    return f"{header}# {offsets}" + yaml_text(
        {f"/**/{node}": {"ros__parameters": given} for node, given in nodes.items()}
    )


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
    robot = _parsed(urdf).getroot()
    for link in robot.iter("link"):
        for shape in (*link.findall("visual"), *link.findall("collision")):
            link.remove(shape)
    for options in robot.findall("mujoco"):
        robot.remove(options)
    options = etree.SubElement(robot, "mujoco")
    etree.SubElement(options, "compiler", fusestatic="false", balanceinertia="false")
    text = etree.tostring(robot, encoding="unicode")
    compiled = mujoco.MjModel.from_xml_string(text)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "arm.xml"
        mujoco.mj_saveLastXML(str(path), compiled)
        tree = etree.parse(path)
    root = tree.getroot()
    actuators = etree.SubElement(root, "actuator")
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
        etree.SubElement(actuators, "position", actuator)
    etree.indent(tree)
    return str(etree.tostring(root, encoding="unicode")) + "\n"
