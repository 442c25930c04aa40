# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""The C99 emitter: a program as one function without dependencies beyond math.h."""

from __future__ import annotations

from typing import Any

from mbs_dynamics.tracing import graph as g
from mbs_dynamics.tracing.graph import Condition, Symbol
from mbs_dynamics.tracing.program import Program

PRECISIONS = {"double": ("double", ""), "single": ("float", "f")}
"""For each precision the type in C, and the suffix of its constants and mathematical functions."""


def emit_c(program: Program) -> str:
    """Return a C99 file with the program as one function; see :func:`c_function`."""
    return "#include <math.h>\n\n" + c_function(program)


def c_signature(program: Program, *, name: str | None = None, precision: str = "double") -> str:
    """Return the declaration of the function, without the semicolon."""
    kind, _ = PRECISIONS[precision]
    # ISO C has no arrays of size zero
    arguments = [f"const {kind} {port.name}[{port.size or 1}]" for port in program.inputs]
    arguments += [f"{kind} out_{port.name}[{port.size or 1}]" for port in program.outputs]
    return f"int {name or program.name}({', '.join(arguments)})"


def c_function(program: Program, *, name: str | None = None, precision: str = "double") -> str:
    """Return C99 source of ``int <name>(const double inputs..., double outputs...)``.

    It returns 0, or k if the k-th of the program's guards, counted from one, is not positive; the
    outputs then mean nothing.

    All arguments are flat, row-major arrays of the sizes written in the signature; outputs must not
    overlap inputs. The function allocates nothing and keeps no state. In single precision every
    number and every operation is a float.
    """
    kind, suffix = PRECISIONS[precision]
    lines = [c_signature(program, name=name, precision=precision), "{"]
    for node in program.nodes:
        type_ = "int" if isinstance(node, Condition) else kind
        lines.append(f"  const {type_} t{node.id} = {_expression(node, suffix)};")
    for port, values in zip(program.outputs, program.values, strict=True):
        lines += [f"  out_{port.name}[{k}] = {_ref(x, suffix)};" for k, x in enumerate(values)]
    unused = {port.name for port in program.inputs} - {
        node.args[0] for node in program.nodes if node.op == g.INPUT
    }
    unused.update(f"out_{port.name}" for port in program.outputs if not port.size)
    lines += [f"  (void){name};" for name in sorted(unused)]
    lines += [
        f"  if (!({_ref(x, suffix)} > 0)) return {k};" for k, (x, _) in enumerate(program.guards, 1)
    ]
    return "\n".join([*lines, "  return 0;", "}", ""])


def c_constant(x: float, suffix: str = "") -> str:
    """Return a number as C writes it; a suffix of ``f`` makes it a float."""
    names = {"inf": "INFINITY", "-inf": "(-INFINITY)", "nan": "NAN"}
    text = repr(float(x))
    return names.get(text, f"({text}{suffix})")


def _ref(x: Any, suffix: str) -> str:
    return f"t{x.id}" if isinstance(x, (Symbol, Condition)) else c_constant(x, suffix)


def _expression(node: Symbol | Condition, suffix: str) -> str:
    if node.op == g.INPUT:
        return f"{node.args[0]}[{node.args[1]}]"
    args = [_ref(x, suffix) for x in node.args]
    if node.op == g.NEG:
        return f"-{args[0]}"
    if node.op == g.SELECT:
        return f"{args[0]} ? {args[1]} : {args[2]}"
    if node.op in (g.SIN, g.COS, g.SQRT, g.ATAN2):
        return f"{node.op}{suffix}({', '.join(args)})"
    return f"{args[0]} {node.op} {args[1]}"
