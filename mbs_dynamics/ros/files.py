# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Reads files of robot descriptions and of parameters.

No ROS is needed. xacro and PyYAML are imported where they are needed.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mbs_dynamics.errors import ArgumentError, UnknownNameError, UrdfError


class UnknownXacroArgumentError(UnknownNameError):
    """An argument was given to a xacro file that it does not read."""

    kind = "xacro argument"
    plural = "xacro arguments that the file reads"


def existing_file(argument: str, path: str) -> Path:
    """Return the path of a file; ``~`` is the home directory.

    Raises ArgumentError, which names the argument and the most similar file beside, if there is no
    such file.
    """
    found = Path(path).expanduser()
    if found.is_file():
        return found
    beside = [each.name for each in found.parent.glob("*")]
    close = difflib.get_close_matches(found.name, beside, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    if not found.parent.is_dir():
        hint = f"; there is no folder {str(found.parent)!r} either"
    raise ArgumentError(f"{argument} names {str(found)!r}, which is no file{hint}")


def read_robot(argument: str, path: str, xacro_args: str = "") -> str:
    """Return the URDF in a file, expanded by xacro if its name ends in ``.xacro``.

    ``xacro_args`` holds arguments of the file as a command line would, ``"name:=arm dof:=6"``.
    Raises ArgumentError for a file or arguments that cannot be used, UnknownXacroArgumentError for
    an argument that the file does not read, and UrdfError for a file that is no robot description;
    the messages begin with the name of ``argument``.
    """
    file = existing_file(argument, path)
    given = split_arguments("xacro_args", xacro_args)
    if file.suffix == ".xacro":
        return _expanded(file, given)
    if given:
        raise ArgumentError(f"xacro_args is {xacro_args!r}, but {str(file)!r} is no .xacro file")
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UrdfError(f"{argument} names {str(file)!r}, which cannot be read: {error}") from error
    if not text.lstrip().startswith("<"):
        raise UrdfError(
            f"{argument} names {str(file)!r}, which is no XML; it begins with "
            f"{text.lstrip()[:30]!r}. Valid is a URDF, or a .xacro that becomes one"
        )
    return text


def split_arguments(argument: str, text: str) -> dict[str, str]:
    """Return the arguments in a text such as ``"name:=arm label:='my arm'"`` by name."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ArgumentError(f"{argument} is {text!r}: {error}") from error
    found = {}
    for word in words:
        name, separator, value = word.partition(":=")
        if not name or not separator:
            raise ArgumentError(f"{argument} has {word!r}; valid is name:=value, split by spaces")
        found[name] = value
    return found


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
        raise UrdfError(f"{str(file)!r} needs the package xacro: {error}") from error
    arguments = _Arguments(given)
    told = " ".join(f"{name}:={value}" for name, value in given.items()) or "none"
    try:
        text = str(xacro.process_file(str(file), mappings=arguments).toxml())
    except Exception as error:  # expressions in the file raise anything
        said = " ".join(str(error).split()) or type(error).__name__
        for name in sorted(given.keys() - arguments.read):
            close = difflib.get_close_matches(name, arguments.read, n=1)
            told += f"; did you mean {close[0]!r} by {name!r}?" if close else ""
        raise UrdfError(f"xacro failed on {str(file)!r}: {said} (xacro_args: {told})") from error
    for name in given:
        if name not in arguments.read:
            raise UnknownXacroArgumentError(name, sorted(arguments.read))
    return text


def read_parameters(argument: str, path: str, node: str) -> dict[str, Any]:
    """Return the parameters in a YAML file that apply to a node, nested names joined by dots.

    ``node`` is the full name, such as ``/left/dynamics_node``. As for ROS, a key ``/**`` stands for
    any number of names and ``/*`` for one. Raises ArgumentError for a file that cannot be read or
    has nothing for this node.
    """
    file = existing_file(argument, path)
    try:
        groups = parameter_groups(file)
    except ArgumentError as error:
        raise ArgumentError(f"{argument} names {error}") from error
    matching = [values for name, values in groups if applies(name, node)]
    if not matching:
        names = ", ".join(name for name, _ in groups)
        has = f"parameters of {names}" if names else "no key 'ros__parameters'"
        raise ArgumentError(
            f"{argument} names {str(file)!r}, which has {has}; valid is a file with parameters of "
            f"{node}, or of all nodes: '/**: {{ros__parameters: ...}}'"
        )
    found: dict[str, Any] = {}
    for values in matching:
        found.update(flattened(values))
    return found


def flattened(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested parameters as ROS names them: ``{"a": {"b": 1}}`` as ``{"a.b": 1}``."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found.update(flattened(value, f"{prefix}{name}."))
        else:
            found[f"{prefix}{name}"] = value
    return found


def parameter_groups(file: Path) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the full names of nodes, with wildcards, and the parameters that a file has for each.

    Raises ArgumentError for a file that is no YAML.
    """
    import yaml

    class Loader(yaml.SafeLoader):
        """A loader that accepts the tuples that launch writes."""

    Loader.add_constructor("tag:yaml.org,2002:python/tuple", Loader.construct_sequence)
    try:
        with file.open(encoding="utf-8") as stream:
            return list(_groups(yaml.load(stream, Loader)))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        said = " ".join(str(error).split())
        raise ArgumentError(f"{str(file)!r}, which is no YAML: {said}") from error


def _groups(content: Any, above: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    for key, value in content.items() if isinstance(content, Mapping) else ():
        if key == "ros__parameters":
            yield above, value if isinstance(value, Mapping) else {}
        else:
            yield from _groups(value, f"{above}/{str(key).strip('/')}")


def applies(name: str, node: str) -> bool:
    """Return whether a name with the wildcards ``*`` and ``**`` stands for a node's full name."""
    parts = {"**": r"(/\w+)*", "*": r"/\w+"}
    pattern = "".join(parts.get(part, f"/{re.escape(part)}") for part in name.split("/")[1:])
    return re.fullmatch(pattern, node) is not None
