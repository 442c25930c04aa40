# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A traced function whose loops have stayed loops."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from mbs_dynamics.compiler.frontend.graph import Condition, Symbol
from mbs_dynamics.compiler.frontend.loops import Forest
from mbs_dynamics.compiler.frontend.program import KIND, Operations, Port, Program
from mbs_dynamics.compiler.ir.counting import evaluations
from mbs_dynamics.compiler.ir.nodes import CONSTANT, TABLE, For, Module
from mbs_dynamics.compiler.ir.text import text


class LoopProgram(Program):
    """A program as a loop nest. Its nodes are those of the same function traced without loops."""

    in_loops = True

    module: Module
    forest: Forest
    """What the loops run over."""

    def __init__(
        self,
        module: Module,
        forest: Forest,
        inputs: tuple[Port, ...],
        outputs: tuple[Port, ...],
        guards: tuple[str, ...],
        expand: Callable[[], Program],
        result_type: Any = None,
    ) -> None:
        given = {
            "name": module.name,
            "module": module,
            "forest": forest,
            "inputs": inputs,
            "outputs": outputs,
            "guards": tuple((0.0, text) for text in guards),
            "_expand": expand,
            "result_type": result_type,
        }
        for name, value in given.items():
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what it is made of."""
        texts = tuple(text for _, text in self.guards)
        given = self.module, self.forest, self.inputs, self.outputs, texts
        return LoopProgram, (*given, self._expand, self.result_type)  # type: ignore[attr-defined]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LoopProgram):
            return NotImplemented
        return self is other or self._content() == other._content()

    __hash__ = Program.__hash__

    def _content(self) -> tuple[Any, ...]:
        buffers = {x.name: x.data for x in self.module.buffers(CONSTANT, TABLE)}
        data = {name: x.tobytes() for name, x in buffers.items() if x is not None}
        return text(self.module), data, self.inputs, self.outputs, self.guards, self.result_type

    @cached_property
    def expanded(self) -> Program:
        """The same function without loops."""
        expand: Callable[[], Program] = self._expand  # type: ignore[attr-defined]
        return expand()

    @property
    def nodes(self) -> tuple[Symbol | Condition, ...]:
        """The nodes of the same function without loops."""
        return self.expanded.nodes

    @property
    def values(self) -> tuple[tuple[Symbol | float, ...], ...]:
        """The entries of the outputs of the same function without loops."""
        return self.expanded.values

    @cached_property
    def operations(self) -> Operations:
        """How many operations of each kind one evaluation takes."""
        counts: dict[str, int] = {}
        for op, times in evaluations(self.module).items():
            if op in KIND:
                counts[KIND[op]] = counts.get(KIND[op], 0) + times
        return Operations(**counts)

    @property
    def has_wide_loops(self) -> bool:
        """Whether there are loops over pairs or columns, of which lanes do several at once."""
        bodies = (procedure.body for procedure in self.module.procedures)
        return any(isinstance(x, For) and x.parallel for body in bodies for x in body)
