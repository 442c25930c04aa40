# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Evaluation of programs with loops in two modules; see :mod:`passes.fission`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from mbs_dynamics.compiler.codegen.llvm import emit_module
from mbs_dynamics.compiler.frontend.program import Program
from mbs_dynamics.compiler.ir.nodes import Module
from mbs_dynamics.compiler.jit import machine_code as llvm
from mbs_dynamics.compiler.passes.strategy import TOGETHER
from mbs_dynamics.compiler.runtime.tiles import Tiles, loop_over_states
from mbs_dynamics.compiler.runtime.views import View, aligned


class Divided:
    """A program with loops in two: the first for several states at once, the second for each.

    Some states at a time pass through both.
    """

    def __init__(self, program: Program, rows: Module, wide: Module, lanes: int) -> None:
        ports = (*program.inputs, *program.outputs)
        self._number = {port.name: k for k, port in enumerate(ports)}
        self._rows, self._wide = rows, wide
        orders = [np.arange(x.size) for x in (*rows.inputs, *rows.outputs)]
        self._guards = len(program.guards)
        ir = emit_module(rows, lanes)
        self._first = Tiles(ir, rows.name, len(rows.inputs), orders, self._guards, lanes)
        self._code = llvm.MachineCode(emit_module(wide))
        self._second = self._code.address(wide.name)
        self._states = max(TOGETHER, lanes)

    def evaluate(self, first: int, last: int, views: Sequence[View]) -> int:
        """Evaluate some states, at least as many as there are lanes."""
        blocks = max((last - first) // self._states, 1)
        edges = [first + (last - first) * k // blocks for k in range(blocks + 1)]
        states = max(b - a for a, b in itertools.pairwise(edges))
        size = self._rows.outputs[-1].size
        between = View(aligned((states, size)), 8 * size)
        for a, b in itertools.pairwise(edges):
            status = self._first.part(0, b - a, self._views(self._rows, views, between, a))
            if status:
                return status + a * self._guards if status > 0 else status
            of_wide = self._views(self._wide, views, between, a)
            status = loop_over_states(
                self._second,
                b - a,
                [view.at for view in of_wide],
                [view.by_state for view in of_wide],
                [x.size for x in (*self._wide.inputs, *self._wide.outputs)],
                len(self._wide.inputs),
                0,
            )
            if status:
                return status
        return 0

    def _views(
        self, module: Module, views: Sequence[View], between: View, first: int
    ) -> list[View]:
        """Return where the ports of a module are, from a first state on."""
        ports = (*module.inputs, *module.outputs)
        numbers = [self._number.get(x.name) for x in ports]
        return [between if k is None else views[k].since(first) for k in numbers]
