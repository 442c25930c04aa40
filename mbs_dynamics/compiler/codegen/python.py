# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Plain Python of any program: the walk of :class:`ir.text.Printer` over its module."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mbs_dynamics.compiler.ir import nodes as ir
from mbs_dynamics.compiler.ir import operations as ops
from mbs_dynamics.compiler.ir.text import Printer


class Failed(Exception):  # noqa: N818
    """A guard was not positive; the argument is its index."""


def _failed(guard: int) -> None:
    raise Failed(guard)


NAMESPACE: dict[str, Any] = {
    **{row.name: row.meaning for row in ops.ROWS if f"{row.name}(" in row.python},
    "quotient": ops.quotient,
    "failed": _failed,
    "inf": math.inf,
    "nan": math.nan,
    "__builtins__": {},
}


def emit_python(module: ir.Module) -> str:
    """Return the source of ``def <name>(<inputs>)``, which takes flat lists and returns flat lists.

    It refers to the names of :data:`NAMESPACE`. An input whose name has another meaning there gets
    an underscore.
    """
    return "\n".join([*_Python(module).lines(module), ""])


def compile_python(module: ir.Module) -> Callable[..., Sequence[list[float]]]:
    """Return a module as a Python function of flat lists; one flat list per output.

    The function raises :class:`Failed` where a guard is not positive.
    """
    names = dict(NAMESPACE)
    exec(compile(emit_python(module), f"<{module.name}>", "exec"), names)
    return names[module.name]  # type: ignore[no-any-return]


class _Python(Printer):
    def __init__(self, module: ir.Module) -> None:
        self.names = {x: f"{x.kind}_{x.name}" for x in (*module.outputs, *module.scratch)}
        taken = {*NAMESPACE, *self.names.values(), *(x.name for x in module.procedures)}
        for buffer in module.inputs:
            name = buffer.name
            while name in taken or re.fullmatch(r"t\d+", name):
                name += "_"
            self.names[buffer] = name
            taken.add(name)

    def lines(self, module: ir.Module) -> Iterator[str]:
        yield f"def {module.name}({', '.join(self.names[x] for x in module.inputs)}):"
        for buffer in (*module.outputs, *module.scratch):
            yield f"    {self.names[buffer]} = [0.0] * {buffer.size}"
        for procedure in module.procedures:
            yield f"    def {procedure.name}():"
            yield from (self.margin + line for line in self.body(procedure.body))
        yield from self.body(module.body)
        yield f"    return {', '.join(self.names[x] for x in module.outputs)},"

    def entry(self, buffer: ir.Buffer, at: int) -> str:
        return f"{self.names[buffer]}[{at}]"

    def operand(self, x: ir.Operand) -> str:
        return repr(x) if isinstance(x, float) else f"t{x}"

    def define(self, value: int, expression: str, *, condition: bool = False) -> str:
        return f"t{value} = {expression}"

    def check(self, value: str, status: int) -> str:
        return f"if not {value} > 0.0: failed({status - 1})"
