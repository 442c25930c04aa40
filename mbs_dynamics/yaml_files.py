# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""YAML, read and written by PyYAML: every fault of a file is an ArgumentError."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from mbs_dynamics.errors import ArgumentError, BackendError, MbsError, quoted
from mbs_dynamics.output_files import expanded, missing_file

T = TypeVar("T")

LARGEST_YAML = 2**18
"""Characters of the longest YAML that is read."""

DEEPEST = 100
"""Largest number of lists and dicts that a value is in."""


def yaml_text(value: Any, *, flow: bool | None = None) -> str:
    """Return a value of dicts, lists, numbers and texts as YAML that every reader reads back.

    The innermost lists and dicts stand in one line each; with ``flow`` True all of them, with False
    none. Raises MbsError without PyYAML.
    """
    try:
        import yaml
    except ImportError as error:
        raise MbsError(f"YAML needs PyYAML ({error}); install pyyaml") from error

    class Dumper(yaml.SafeDumper):  # type: ignore[misc]
        """A dumper that repeats equal values, since ROS refuses aliases."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    options = {"sort_keys": False, "allow_unicode": True, "width": math.inf}
    text: str = yaml.dump(value, Dumper=Dumper, default_flow_style=flow, **options)
    return text


def parsed_yaml(path: str | Path, parse: Callable[[Any], T]) -> T:
    """Return what ``parse`` makes of the value in a YAML file; errors name the file.

    Raises ArgumentError.
    """
    path = expanded(path)
    if not path.is_file():
        raise ArgumentError(missing_file(path))
    value = read_yaml_file(path)
    try:
        return parse(value)
    except MbsError as error:
        raise ArgumentError(f"{path}: {error}") from error


def read_yaml_file(path: Path) -> Any:
    """Return the value in a YAML file; ArgumentError if it cannot be read, see `read_yaml`."""
    try:
        with path.open(encoding="utf-8") as stream:
            text = stream.read(LARGEST_YAML + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"{str(path)!r}, which is not YAML: {error}") from error
    try:
        return read_yaml(text)
    except ArgumentError as error:
        raise ArgumentError(f"{str(path)!r}, which {error}") from error


def read_yaml(text: str) -> Any:
    """Return the value of a YAML text.

    Raises BackendError if PyYAML is not installed; ArgumentError for other text, for keys that are
    given twice, for aliases, by which a few lines can stand for billions of values and which ROS
    refuses too, for more than ``LARGEST_YAML`` characters, and for values nested too deeply.
    """
    try:
        import yaml
    except ImportError as error:
        raise BackendError(f"YAML needs PyYAML ({error}): pip install pyyaml") from error

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        """A loader that accepts the tuples that launch writes, and no aliases."""

        depth = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                line = self.peek_event().start_mark.line + 1
                raise ArgumentError(f"has an alias (*name) in line {line}; valid: plain values")
            self.depth += 1
            if self.depth > DEEPEST + 1:
                line = self.peek_event().start_mark.line + 1
                raise ArgumentError(f"has values more than {DEEPEST} levels deep in line {line}")
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            if len(set(keys)) < len(keys):
                twice = next(key for key, times in Counter(keys).items() if times > 1)
                raise ArgumentError(f"has {quoted(twice)} twice in line {node.start_mark.line + 1}")
            return super().construct_mapping(node, deep)

    Loader.add_constructor("tag:yaml.org,2002:python/tuple", Loader.construct_sequence)
    if len(text) > LARGEST_YAML:
        raise ArgumentError(f"has more than {LARGEST_YAML} characters")
    try:
        return yaml.load(text, Loader)
    except ArgumentError:
        raise
    except Exception as error:  # YAMLError, but a thirteenth month or deep lists raise others
        cause = " ".join(str(error).split()) or type(error).__name__
        raise ArgumentError(f"is not YAML: {cause}") from error
