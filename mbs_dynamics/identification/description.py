# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Writes identified parameters into the URDF, and as parameters of the nodes."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from mbs_dynamics.errors import MbsError
from mbs_dynamics.identification.consistent import is_consistent
from mbs_dynamics.identification.identify import Identification
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.urdf import link_inertias
from mbs_dynamics.yaml_files import yaml_text

TENSOR = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}

INDENT = "  "


def identified_urdf(
    source: str | os.PathLike[str], result: Identification, *, friction: bool = True
) -> bytes:
    """Return a URDF file with identified inertias, damping and friction, unchanged elsewhere.

    Without ``friction``, damping and friction are unchanged as well. The file is in UTF-8. The
    inertia of a body is that of all links fixed to each other. Fixed links keep theirs, and the
    link that the joint moves gets the remainder; if that is inconsistent, it gets all, and the
    others none. Raises MbsError without lxml.
    """
    try:
        from lxml import etree
    except ImportError as error:
        raise MbsError(f"URDF files are written with lxml ({error}): install it") from error
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    tree = etree.parse(os.fspath(source), parser)
    children = {
        (etree.QName(x).localname, x.get("name", "")): x for x in tree.getroot().iterchildren("*")
    }
    for link, inertia in link_changes(source, result).items():
        parent = children["link", link]
        new = None if inertia is None else _inertial(etree, parent, inertia)
        _put(etree, parent, "inertial", new)
    for joint, parameters in result.joint_parameters.items() if friction else ():
        parent = children["joint", joint]
        dynamics = _child(etree, parent, "dynamics")
        if dynamics is None:
            dynamics = _element(etree, parent, "dynamics")
            _put(etree, parent, "dynamics", dynamics)
        dynamics.set("damping", repr(float(parameters["viscous"])))
        dynamics.set("friction", repr(float(parameters["coulomb"])))
    root = tree.getroot()
    top = [*reversed([*root.itersiblings(preceding=True)]), root, *root.itersiblings()]
    head = ['<?xml version="1.0" encoding="utf-8"?>', tree.docinfo.doctype]
    parts = [line.encode() for line in head if line]
    parts += [etree.tostring(x, encoding="UTF-8", with_tail=False) for x in top]
    return b"\n".join(parts) + b"\n"


def _element(etree: Any, parent: Any, name: str, **attributes: str) -> Any:
    """Return a new element in the namespace of its future parent."""
    return etree.Element(etree.QName(etree.QName(parent).namespace, name), attributes)


def _child(etree: Any, parent: Any, name: str) -> Any:
    """Return the child of this name, or None."""
    return next((x for x in parent.iterchildren("*") if etree.QName(x).localname == name), None)


def _put(etree: Any, parent: Any, name: str, new: Any) -> None:
    """Replace a child of an element of the second level, append it, or with None remove it."""
    old, outer, inner = _child(etree, parent, name), "\n" + INDENT, "\n" + 2 * INDENT
    if new is not None:
        etree.indent(new, space=INDENT, level=2)
        new.tail = outer if old is None else old.tail
    if old is not None and new is not None:
        parent.replace(old, new)
    elif old is not None:
        before = old.getprevious()
        if before is None:
            parent.text = old.tail
        else:
            before.tail = old.tail
        parent.remove(old)
    elif new is not None:
        if len(parent):
            parent[-1].tail = inner
        else:
            parent.text = inner
        parent.append(new)


def _inertial(etree: Any, parent: Any, inertia: Inertia) -> Any:
    """Return the element of an inertia."""
    tensor = inertia.tensor_at_com
    entries = {name: repr(float(tensor[place])) for name, place in TENSOR.items()}
    inertial = _element(etree, parent, "inertial")
    centre = " ".join(map(repr, inertia.com.tolist()))
    inertial.append(_element(etree, parent, "origin", xyz=centre, rpy="0 0 0"))
    inertial.append(_element(etree, parent, "mass", value=repr(float(inertia.mass))))
    inertial.append(_element(etree, parent, "inertia", **entries))
    return inertial


def link_changes(
    source: str | os.PathLike[str], result: Identification
) -> dict[str, Inertia | None]:
    """Return the inertias of the links that change, in their frames; None for no inertia."""
    model, own = result.torque_model.model, link_inertias(source)
    changes: dict[str, Inertia | None] = {}
    for i, parameters in enumerate(result.inertial):
        name = model.bodies[i].name
        fixed = {
            frame.name: own[frame.name].transformed(frame.placement)
            for frame in model.frames.values()
            if frame.body == i != GROUND and frame.name != name and frame.name in own
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
    """Return a YAML file of parameters for gravity_compensation_node and simulator_node."""
    joints = result.joint_parameters
    order = [joints.get(name) for name in result.torque_model.model.joint_names]

    def by_name(term: str) -> dict[str, float]:
        return {name: float(f"{one[term]:.6g}") for name, one in joints.items()}

    def in_order(term: str) -> list[float]:
        return [float(f"{one[term]:.6g}") if one else 0.0 for one in order]

    compensated: dict[str, Any] = {
        "friction": by_name("coulomb"),
        "friction_speed": float(result.torque_model.friction_speed),
    }
    simulated: dict[str, Any] = {
        "joint_damping": in_order("viscous"),
        "joint_friction": in_order("coulomb"),
        "joint_armature": in_order("inertia"),
    }
    nodes = {"gravity_compensation_node": compensated, "simulator_node": simulated}
    head = (
        "# Friction (N m or N; damping N m s/rad or N s/m) and inertias of motors (kg m^2 or kg)\n"
        "# that were identified, for the nodes. The share of the friction that is compensated is\n"
        "# friction_scale. No parameter takes the offsets of the torque sensors [N m or N]:\n"
    )
    offsets = yaml_text(by_name("offset"), flow=True)
    return f"{head}# {offsets}" + yaml_text(
        {f"/**/{node}": {"ros__parameters": given} for node, given in nodes.items()}
    )
