# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Which programs of the intermediate representation are valid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from mbs_dynamics.compiler.ir import nodes as ir
from mbs_dynamics.compiler.ir import operations as ops

ARITY = {
    **dict.fromkeys((ops.ADD, ops.SUB, ops.MUL, ops.DIV, ops.ATAN2, ops.LESS, ops.LESS_EQUAL), 2),
    **dict.fromkeys((ops.NEG, ops.SIN, ops.COS, ops.SQRT), 1),
    ops.SELECT: 3,
}
"""How many operands each operation has."""


class InvalidProgram(Exception):  # noqa: N818
    """A program breaks a rule of the intermediate representation: an error of the compiler."""


def verify(module: ir.Module) -> ir.Module:
    """Return the module; raise InvalidProgram if it breaks a rule.

    - A value is defined before it is used. It ends with the loop or case that it is in; until then
      it is not defined again.
    - Variables are those of loops around a statement, or parameters of its procedure.
    - Inputs and constants are not written; only scratch memory and outputs are, and what is read
      of these is written somewhere. Tables are for indices alone.
    - Conditions are operands of a selection, as its first one, and of nothing else.
    - No two inputs, outputs, other buffers or procedures have one name.
    - Checks stand outside of loops, cases and procedures.
    - A parallel loop has no loop or call within. Each iteration stores to entries of its own.
    """
    for buffer in (*module.inputs, *module.outputs):
        _require(buffer.kind in (ir.INPUT, ir.OUTPUT), f"{buffer} is no input or output")
    others = module.buffers(ir.SCRATCH, ir.CONSTANT, ir.TABLE)
    for named in (module.inputs, module.outputs, others, module.procedures):
        for name, times in Counter(x.name for x in named).items():
            _require(times == 1, f"{times} have the name {name!r}")
    stores = [x for x in module.statements if isinstance(x, ir.Store | ir.Fill | ir.Sines)]
    written = {*module.inputs, *(x.buffer for x in stores)}
    for load in module.statements:
        if isinstance(load, ir.Load) and load.buffer.kind not in (ir.CONSTANT, ir.TABLE):
            _require(load.buffer in written, f"{load.buffer} is read and never written")
    checks, outside = (
        sum(isinstance(x, ir.Check) for x in body) for body in (module.statements, module.body)
    )
    _require(checks == outside, "a check stands within a loop, a case or a procedure")
    for procedure in module.procedures:
        _Verifier(procedure.parameters).body(procedure.body)
    _Verifier(()).body(module.body)
    return module


def last_verified(stages: Iterable[tuple[str, ir.Module]]) -> ir.Module:
    """Return the module after the last pass; raise InvalidProgram, which names the pass."""
    for name, module in stages:
        try:
            verify(module)
        except InvalidProgram as error:
            raise InvalidProgram(f"after {name} of {module.name}: {error}") from None
    return module


def _require(holds: bool, rule: str) -> None:
    if not holds:
        raise InvalidProgram(rule)


class _Verifier:
    """Variables and values defined at a point of a body."""

    def __init__(self, parameters: Sequence[ir.Variable]) -> None:
        self.variables = set(parameters)
        self.values: dict[int, bool] = {}
        """Values that can be used, and whether they are conditions."""
        self.loop: ir.Variable | None = None
        """The variable of the parallel loop around."""

    def body(self, body: Sequence[ir.Statement]) -> None:
        """Verify statements; what they define ends with them."""
        before = dict(self.values)
        for statement in body:
            for at in ir.indices_of(statement):
                self.index(at)
            self.statement(statement)
        self.values = before

    def index(self, at: ir.Index) -> None:
        for atom, _ in at.terms:
            variables: ir.Index = ir.index(atom)
            if isinstance(atom, ir.Lookup):
                _require(atom.table.kind == ir.TABLE, f"{atom.table} is no table")
                variables = atom.at
            for x, _ in variables.terms:
                _require(x in self.variables, f"variable {x} is not defined")

    def statement(self, statement: ir.Statement) -> None:
        """Verify one statement, of which the indices are valid."""
        match statement:
            case ir.Let(value, op, args):
                _require(len(args) == ARITY.get(op, -1), f"{op!r} of {len(args)} operands")
                for k, x in enumerate(args):
                    self.operand(x, condition=op == ops.SELECT and k == 0)
                self.define(value, op in ops.CONDITIONS)
            case ir.Load(value, buffer, _):
                _require(buffer.kind != ir.TABLE, f"a double is loaded from table {buffer}")
                self.define(value)
            case ir.Store(buffer, at, x):
                self.written(buffer)
                self.operand(x)
                if self.loop is not None:
                    _require(at.factor(self.loop) != 0, f"iterations share {buffer}[{at}]")
            case ir.Fill(buffer, first, entries):
                self.written(buffer)
                _require(0 <= first <= first + entries <= buffer.size, f"{buffer} is too short")
            case ir.Sines(buffer, first, angles, width):
                self.written(buffer)
                _require(0 < len(angles) <= width, f"{len(angles)} angles, width {width}")
                _require(first % width == 0, f"sines of width {width} begin at {buffer}[{first}]")
                _require(0 <= first <= buffer.size - 2 * width, f"{buffer} is too short for sines")
                _require(self.loop is None, "a parallel loop has several sines within")
                for x in angles:
                    self.operand(x)
            case ir.Check(value, _):
                self.operand(value)
            case ir.For() | ir.Switch() | ir.Call():
                _require(self.loop is None, "a parallel loop has a loop, a case or a call within")
                self.compound(statement)

    def compound(self, statement: ir.For | ir.Switch | ir.Call) -> None:
        """Verify a statement that has others within, or calls them."""
        if isinstance(statement, ir.For):
            _require(statement.variable not in self.variables, f"{statement.variable} is taken")
            self.variables.add(statement.variable)
            self.loop = statement.variable if statement.parallel else None
            self.body(statement.body)
            self.loop = None
            self.variables.remove(statement.variable)
        elif isinstance(statement, ir.Switch):
            for _, body in statement.cases:
                self.body(body)
        else:
            parameters, arguments = statement.procedure.parameters, statement.arguments
            name = statement.procedure.name
            _require(
                len(parameters) == len(arguments),
                f"{name} is called with {len(arguments)} arguments",
            )

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
