# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Which programs of the intermediate representation are valid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from mbs_dynamics.compiler.ir import nodes as ir
from mbs_dynamics.compiler.ir import operations as ops


class InvalidProgram(Exception):  # noqa: N818
    """A program breaks a rule of the intermediate representation: an error of the compiler."""


def verify(module: ir.Module) -> ir.Module:
    """Return the module; raise InvalidProgram if it breaks a rule.

    - A value is defined once, before it is used, in the same body.
    - Inputs are not written; only scratch memory and outputs are, and what is read of these is
      written somewhere. Addresses are within their buffers.
    - Operands are numbers and conditions as the operation's signature says.
    - No two inputs, outputs, scratch buffers or procedures have one name.
    - Checks and calls stand outside of procedures.
    """
    for buffer in (*module.inputs, *module.outputs):
        _require(buffer.kind in (ir.INPUT, ir.OUTPUT), f"{buffer} is not an input or output")
    for named in (module.inputs, module.outputs, module.scratch, module.procedures):
        for name, times in Counter(x.name for x in named).items():
            _require(times == 1, f"{times} have the name {name!r}")
    stores = [x for x in module.statements if isinstance(x, ir.Store | ir.Sines)]
    written = {*module.inputs, *(x.buffer for x in stores)}
    for load in module.statements:
        if isinstance(load, ir.Load):
            _require(load.buffer in written, f"{load.buffer} is read and never written")
    for procedure in module.procedures:
        for x in procedure.body:
            _require(not isinstance(x, ir.Check | ir.Call), "a check or call in a procedure")
        _Verifier().body(procedure.body)
    _Verifier().body(module.body)
    return module


def verified(run: Callable[[ir.Module, str], ir.Module]) -> Callable[[ir.Module, str], ir.Module]:
    """Return a pass that raises InvalidProgram, which names it, for an invalid result."""

    def pass_(module: ir.Module, target: str) -> ir.Module:
        result = run(module, target)
        try:
            return verify(result)
        except InvalidProgram as error:
            raise InvalidProgram(f"after {run.__name__} of {module.name}: {error}") from None

    return pass_


def _require(holds: bool, rule: str) -> None:
    if not holds:
        raise InvalidProgram(rule)


class _Verifier:
    """Values defined at a point of a body."""

    def __init__(self) -> None:
        self.values: dict[int, bool] = {}
        """Values that can be used, and whether they are conditions."""

    def body(self, body: ir.Block) -> None:
        for statement in body:
            match statement:
                case ir.Let(value, op, args):
                    _require(op in ops.TABLE, f"there is no operation {op!r}")
                    row = ops.TABLE[op]
                    _require(len(args) + 2 == len(row.signature), f"{op!r} of {len(args)} operands")
                    for x, kind in zip(args, row.signature, strict=False):
                        self.operand(x, condition=kind == "c")
                    self.define(value, row.is_condition)
                case ir.Load(value, buffer, at):
                    _require(0 <= at < buffer.size, f"{buffer}[{at}], of {buffer.size} entries")
                    self.define(value)
                case ir.Store(buffer, at, x):
                    self.written(buffer)
                    _require(0 <= at < buffer.size, f"{buffer}[{at}], of {buffer.size} entries")
                    self.operand(x)
                case ir.Sines(buffer, first, angles, width):
                    self.written(buffer)
                    _require(0 < len(angles) <= width, f"{len(angles)} angles, width {width}")
                    _require(first % width == 0, f"sines of width {width} at {buffer}[{first}]")
                    _require(0 <= first <= buffer.size - 2 * width, f"{buffer} is too short")
                    for x in angles:
                        self.operand(x)
                case ir.Check(value, _):
                    self.operand(value)

    def operand(self, x: int | float, *, condition: bool = False) -> None:
        if isinstance(x, float):
            _require(not condition, "a number is used as a condition")
            return
        _require(x in self.values, f"value {x} is used where it is not defined")
        _require(self.values[x] == condition, f"value {x} is a condition, or should be one")

    def define(self, value: int, condition: bool = False) -> None:
        _require(value not in self.values, f"value {value} is defined twice")
        self.values[value] = condition

    def written(self, buffer: ir.Buffer) -> None:
        _require(
            buffer.kind in (ir.SCRATCH, ir.OUTPUT), f"{buffer} is written, of kind {buffer.kind}"
        )
