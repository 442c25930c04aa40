# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Writes identified parameters into the URDF, and as parameters of the nodes."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, NamedTuple
from xml.parsers import expat

import numpy as np

from mbs_dynamics import checks
from mbs_dynamics.errors import ArgumentError, UnknownJointError
from mbs_dynamics.files import read_yaml_file, yaml_text
from mbs_dynamics.identification.consistent import is_consistent
from mbs_dynamics.identification.identify import Identification
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.model import Model, with_drivetrain
from mbs_dynamics.model.urdf import link_inertias
from mbs_dynamics.model.urdf_xml import text_of

TENSOR = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}

INDENT = "  "

DECLARED = re.compile(rb"""<\?xml[^>]*\sencoding\s*=\s*["']([A-Za-z][\w.-]*)""")


def identified_urdf(
    source: str | os.PathLike[str], result: Identification, *, friction: bool = True
) -> bytes:
    """Return a URDF file with identified inertias, damping and friction, unchanged elsewhere.

    Without ``friction``, damping and friction are unchanged as well. The file is in UTF-8, whatever
    the encoding of the source. The inertia of a body is that of all links fixed to each other.
    Fixed links keep theirs, and the link that the joint moves gets the remainder; if that is
    inconsistent, it gets all, and the others none.
    """
    data = text_of(Path(source)).encode()
    stated = DECLARED.search(data[:200])
    if stated is not None and stated[1].lower() not in (b"utf-8", b"us-ascii"):
        data = data[: stated.start(1)] + b"UTF-8" + data[stated.end(1) :]
    elements = _elements(data)
    edits: list[tuple[int, int, bytes]] = []
    for link, inertia in link_changes(source, result).items():
        edits += _with_child(data, elements, ("link", link), "inertial", _inertial(inertia))
    for joint, parameters in result.joint_parameters.items() if friction else ():
        values = {"damping": parameters["viscous"], "friction": parameters["coulomb"]}
        place = elements.get(("joint", joint, "dynamics"))
        tag = "<dynamics/>"
        if place is not None:
            tag = data[place.begin : place.end].decode()
            tag = tag.replace(f"<{place.prefix}", "<").replace(f"</{place.prefix}", "</")
        for name, value in values.items():
            tag = _with_attribute(tag, name, repr(float(value)))
        edits += _with_child(data, elements, ("joint", joint), "dynamics", [tag])
    for begin, end, text in sorted(edits, reverse=True):
        data = data[:begin] + text + data[end:]
    return data


class _Element(NamedTuple):
    """Position of an element in a file."""

    begin: int
    end: int
    inner_end: int
    """Where its end tag begins; -1 if it has none."""
    prefix: str
    """Of its namespace, with a colon; empty if it has none."""


def _elements(data: bytes) -> dict[tuple[str, ...], _Element]:
    """Return links and joints by kind and name, their inertial and dynamics by one name more."""
    parser = expat.ParserCreate()
    path: list[tuple[str, str, int]] = []
    elements: dict[tuple[str, ...], _Element] = {}

    def start(tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(":")[2]
        path.append((tag, attributes.get("name", ""), parser.CurrentByteIndex))

    def end(tag: str) -> None:
        prefix, colon, tag = tag.rpartition(":")
        _, name, begin = path.pop()
        at = parser.CurrentByteIndex  # start of the end tag, or end of an empty-element tag
        own = data.startswith(b"</", at)
        last, inner = (data.index(b">", at) + 1, at) if own else (at, -1)
        element = _Element(begin, last, inner, prefix + colon)
        if len(path) == 1 and tag in ("link", "joint"):
            elements[tag, name] = element
        elif len(path) == 2 and tag in ("inertial", "dynamics"):
            elements[path[1][0], path[1][1], tag] = element

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.Parse(data, True)
    return elements


def _with_child(
    data: bytes,
    elements: dict[tuple[str, ...], _Element],
    parent: tuple[str, str],
    child: str,
    lines: list[str],
) -> list[tuple[int, int, bytes]]:
    """Return the edits that replace a child of an element by lines, or append them."""
    place, whole = elements.get((*parent, child)), elements[parent]
    prefix = (whole if place is None else place).prefix
    lines = [re.sub(r"<(/?)(?=\w)", rf"<\1{prefix}", line) for line in lines if prefix] or lines
    if place is not None:
        indent = _indent(data, place.begin)
        if not lines:
            return [
                (place.begin - len(indent), place.end + data[place.end :].startswith(b"\n"), b"")
            ]
        text = ("\n" + indent.decode()).join(lines)
        return [(place.begin, place.end, text.encode())]
    if not lines:
        return []
    outer = _indent(data, whole.begin).decode()
    inner = "\n" + outer + INDENT
    text = inner + inner.join(lines) + "\n" + outer
    if whole.inner_end >= 0:
        before = len(data[: whole.inner_end].rstrip())
        return [(before, whole.inner_end, text.encode())]
    opened = data[whole.begin : whole.end].decode().rstrip("/> ") + ">"
    return [(whole.begin, whole.end, f"{opened}{text}</{prefix}{parent[0]}>".encode())]


def _indent(data: bytes, begin: int) -> bytes:
    """Return the blanks before an element, if it is the first in its line."""
    line = data[data.rfind(b"\n", 0, begin) + 1 : begin]
    return line if not line.strip() else b""


def _with_attribute(tag: str, name: str, value: str) -> str:
    pattern = re.compile(rf"""(\s{name}\s*=\s*)("[^"]*"|'[^']*')""")
    if pattern.search(tag):
        return pattern.sub(rf'\g<1>"{value}"', tag, count=1)
    return re.sub(r"\s*(/?>)", rf' {name}="{value}"\1', tag, count=1)


def _inertial(inertia: Inertia | None) -> list[str]:
    """Return the lines of the element of an inertia; none for none."""
    if inertia is None:
        return []
    tensor = inertia.tensor_at_com
    entries = " ".join(f'{name}="{float(tensor[place])!r}"' for name, place in TENSOR.items())
    centre = " ".join(map(repr, inertia.com.tolist()))
    return [
        "<inertial>",
        f'{INDENT}<origin xyz="{centre}" rpy="0 0 0"/>',
        f'{INDENT}<mass value="{float(inertia.mass)!r}"/>',
        f"{INDENT}<inertia {entries}/>",
        "</inertial>",
    ]


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
        "# that were identified, for the nodes and for with_identified_joints. The share of the\n"
        "# friction that is compensated is friction_scale. No parameter takes the offsets of the\n"
        "# torque sensors [N m or N]:\n"
    )
    offsets = yaml_text(by_name("offset"), flow=True)
    return f"{head}# {offsets}" + yaml_text(
        {f"/**/{node}": {"ros__parameters": given} for node, given in nodes.items()}
    )


def with_identified_joints(model: Model, source: str | os.PathLike[str]) -> Model:
    """Return a model with the armature, damping and friction of a file of :func:`node_parameters`.

    ``mbs-dynamics identify`` writes ``source``, a .yaml, beside the URDF. Joints that were not
    recorded keep theirs. Raises ArgumentError for a file that cannot be read or is none of these,
    and if its joints are not those of the model in the same order; UnknownJointError for a name
    that the model does not have.
    """
    given = read_yaml_file(Path(source))
    try:
        parts = [
            given[f"/**/{node}"]["ros__parameters"]
            for node in ("gravity_compensation_node", "simulator_node")
        ]
        named = dict(parts[0]["friction"])
        rows = [parts[1][name] for name in ("joint_armature", "joint_damping", "joint_friction")]
    except (KeyError, TypeError, ValueError):
        raise ArgumentError(f"{source}: is no parameter file of mbs-dynamics identify") from None
    values = checks.numbers(f"the parameters in {source}", rows, (3, model.n)).T
    order = list(model.joint_names)
    by_joint = {}
    for name, friction in named.items():
        if name not in order:
            raise UnknownJointError(name, order)
        own = values[order.index(name)].tolist()
        identified = dict(zip(("armature", "damping", "friction"), own, strict=True))
        if not np.isclose(identified["friction"], friction, rtol=1e-5, atol=1e-12):
            raise ArgumentError(f"{source}: joint {name!r} is at another place than in the model")
        by_joint[name] = identified
    return with_drivetrain(model, by_joint)
