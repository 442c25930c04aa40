# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Reads descriptions of robots and builds their models, under gravity and with loads on links.

No ROS is needed.
"""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from mbs_dynamics.control.environment import LinkLoad, with_load
from mbs_dynamics.errors import ArgumentError, ModelWarning, UnknownNameError, UrdfError, quoted
from mbs_dynamics.model.coordinates import check_single
from mbs_dynamics.model.model import Model, warnings_about
from mbs_dynamics.model.urdf_xml import BLANK
from mbs_dynamics.model.urdf_xml import text_of as text_in
from mbs_dynamics.ros.interface import existing_file


class UnknownXacroArgumentError(
    UnknownNameError, kind="xacro argument", plural="xacro arguments that the file reads"
):
    """An argument was given to a xacro file that it does not read."""


def read_robot(argument: str, path: str, xacro_args: str = "") -> str:
    """Return the URDF in a file, expanded by xacro if its name ends in ``.xacro``.

    ``xacro_args`` holds arguments of the file as a command line would, ``"name:=arm dof:=6"``.
    Raises ArgumentError for a file or arguments that cannot be used, UnknownXacroArgumentError for
    an argument that the file does not read, and UrdfError for one that is not a robot description;
    the messages begin with the name of ``argument``.
    """
    file = existing_file(argument, path)
    given = split_arguments("xacro_args", xacro_args)
    if file.suffix == ".xacro":
        return _expanded(file, given)
    if given:
        raise ArgumentError(
            f"xacro_args is {quoted(xacro_args)}, but {str(file)!r} is not a .xacro file"
        )
    try:
        text = text_in(file)
    except UrdfError as error:
        raise UrdfError(f"{argument} names {str(file)!r}, which cannot be read: {error}") from error
    if not text.startswith("<"):
        raise UrdfError(
            f"{argument} names {str(file)!r}, which is not XML; it begins with "
            f"{text[:30]!r}; must be a URDF, or a .xacro that becomes one"
        )
    return text


def text_of(description: str, argument: str = "robot_description", xacro_args: str = "") -> str:
    """Return the URDF in an argument that is its text or its path. Raises as read_robot."""
    if not description.lstrip(BLANK).startswith("<"):
        return read_robot(argument, description, xacro_args)
    if xacro_args:
        raise ArgumentError(f"xacro_args is {quoted(xacro_args)}; {argument} is not a .xacro file")
    return description


def split_arguments(argument: str, text: str) -> dict[str, str]:
    """Return the arguments in a text such as ``"name:=arm label:='my arm'"`` by name."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ArgumentError(f"{argument} is {quoted(text)}: {error}") from error
    arguments = {}
    for word in words:
        name, separator, value = word.partition(":=")
        if not name or not separator:
            raise ArgumentError(
                f"{argument} has {quoted(word)}; must be name:=value, split by spaces"
            )
        arguments[name] = value
    return arguments


class _Arguments(dict[str, str]):
    """The arguments of a xacro file, with a record of those that it reads."""

    def __init__(self, given: Mapping[str, str]) -> None:
        super().__init__(given)
        self.read: set[str] = set()

    def __contains__(self, name: object) -> bool:
        self.read.add(str(name))
        return super().__contains__(name)

    def __getitem__(self, name: str) -> str:
        self.read.add(name)
        return super().__getitem__(name)


def _expanded(file: Path, given: Mapping[str, str]) -> str:
    try:
        import xacro
    except ImportError as error:
        raise UrdfError(
            f"{str(file)!r} needs xacro ({error}); install it: pip install xacro, or in ROS "
            "apt install ros-$ROS_DISTRO-xacro"
        ) from error
    arguments = _Arguments(given)
    told = " ".join(f"{name}:={value}" for name, value in given.items()) or "none"
    try:
        text = str(xacro.process_file(str(file), mappings=arguments).toxml())
    except Exception as error:  # expressions in the file raise anything
        problem = " ".join(str(error).split()) or type(error).__name__
        raise UrdfError(f"xacro failed on {str(file)!r}: {problem} (xacro_args: {told})") from error
    if "<link" not in text:
        raise UrdfError(
            f"{str(file)!r} becomes no robot: a .xacro that only defines macros is for others to "
            "include; must be one that calls them"
        )
    UnknownXacroArgumentError.check(given, sorted(arguments.read))
    return text


def loads_of(numbers: Iterable[tuple[str, Sequence[float]]]) -> list[LinkLoad]:
    """Return the loads in the parameters ``loads.<link>``."""
    loads = []
    for link, values in numbers:
        mass, x, y, z, *tensor = values
        ixx, ixy, ixz, iyy, iyz, izz = tensor or (0.0,) * 6
        about_com = ((ixx, ixy, ixz), (ixy, iyy, iyz), (ixz, iyz, izz))
        loads.append(LinkLoad(link, mass, (x, y, z), about_com))
    return loads


def model_of(
    text: str,
    root: str = "",
    tip: str = "",
    loads: Iterable[LinkLoad] = (),
    *,
    floating_base: bool = False,
) -> Model:
    """Return the model that the text of a URDF describes, from link ``root`` to link ``tip``.

    All joints but that of a ``floating_base`` have one degree of freedom.

    ``loads`` are permanent: they become part of the bodies that carry them. Its warnings are in
    ``model.diagnostics``. Raises UrdfError or ModelError, and what :func:`with_load` raises.
    """
    if not text.lstrip(BLANK).startswith("<"):
        raise UrdfError(f"a robot description is XML; this one begins with {text[:40]!r}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        model = Model.from_urdf(
            text, root=root or None, tip=tip or None, floating_base=floating_base
        )
    check_single(model.joints, "robot_description", *model.joint_names[:floating_base])
    for load in loads:
        model = with_load(model, load)
    return model.loaded() if model.payloads else model


def remarks_about(model: Model) -> list[str]:
    """Return the warnings about a model for the log, or one where no link has mass or inertia."""
    remarks = warnings_about(model)
    if any(body.inertia.mass or body.inertia.tensor.any() for body in model.bodies):
        return remarks
    one = (
        f"no moving link of model {quoted(model.name)} has mass or inertia: its torques are zero, "
        "and it cannot be simulated"
    )
    return [one, *(each for each in remarks if not each.endswith("the mass matrix is singular"))]
