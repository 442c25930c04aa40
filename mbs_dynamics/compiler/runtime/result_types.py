# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The named tuples that kernels with several outputs return."""

from __future__ import annotations

import functools
from collections import namedtuple
from typing import Any

from mbs_dynamics.compiler.frontend.program import Program


def result_type(program: Program) -> Any:
    """Return the type of the results of a program with several outputs: fields are their names.

    It is the named tuple that the traced function returned, if it did and has the layout of a
    tuple, which calls through machine code rely on; else one made for these names. For one output
    it is None: that is returned as it is.
    """
    if len(program.outputs) == 1:
        return None
    kind = program.result_type
    if kind is not None and not _extended(kind):
        return kind
    return _made(program.name, tuple(port.name for port in program.outputs))


def _extended(kind: type) -> bool:
    """Whether objects of a subclass of tuple hold more than a tuple does, such as a __dict__."""
    more = kind.__basicsize__ != tuple.__basicsize__
    return more or bool(kind.__dictoffset__ or kind.__weakrefoffset__)


@functools.cache
def _made(name: str, fields: tuple[str, ...]) -> Any:
    title = "".join(part.capitalize() for part in name.split("_")) or "Results"
    base: Any = namedtuple(title, fields, rename=True)  # type: ignore[misc]

    def reduced(results: Any) -> tuple[Any, ...]:
        return _unpickled, (name, fields, tuple(results))

    return type(title, (base,), {"__slots__": (), "__reduce__": reduced})


def _unpickled(name: str, fields: tuple[str, ...], results: tuple[Any, ...]) -> Any:
    return _made(name, fields)(*results)
