# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Algorithms of a model as C99, for real-time controllers and microcontrollers.

The two files need nothing beyond math.h. Their functions allocate nothing and keep no state, so
that they may run in an update loop and in several threads.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mbs_dynamics import checks
from mbs_dynamics.algorithms import Algorithm, algorithm_of
from mbs_dynamics.algorithms._algorithm import asked_of
from mbs_dynamics.algorithms.arguments import MEANINGS
from mbs_dynamics.algorithms.kernels import placements
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import Port, Program
from mbs_dynamics.compiler.codegen.c import PRECISIONS, CFunction, c_constant, emit_c
from mbs_dynamics.compiler.passes.pipeline import lower
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.model import Model

WIDTH = 96


def export_c(
    model: Model,
    functions: Iterable[Callable[..., Any]],
    directory: str | Path,
    *,
    prefix: str | None = None,
    precision: str = "double",
    **options: Any,
) -> tuple[Path, Path]:
    """Write algorithms of a model as ``<prefix>.c`` and ``<prefix>.h``, and return the paths.

    Each algorithm becomes ``int <prefix>_<algorithm>(inputs..., outputs...)`` on flat, row-major
    arrays. It returns 0, or the number of the quantity that was not positive, as listed in the
    header. Names, orders and sizes of joints and bodies, gravity, payloads and armature are
    constants in the header. Where wrenches in fixed joints separate loads, the payload of that
    function is the constant ``<prefix>_joint_wrenches_payload``.

    ``prefix`` is by default the model's name, made an identifier. ``precision`` is ``"double"`` or
    ``"single"``. The other options apply to every algorithm that has them, as in
    :func:`~mbs_dynamics.compile`: ``body="tool"``, ``representation="hybrid"``, ``wrenches=True``.

    Raises ArgumentError for an object that is not an algorithm, an option that no algorithm has, or
    a prefix that is not an identifier; UnknownBodyError and the like; OSError if a file cannot be
    written.
    """
    if prefix is None:
        prefix = re.sub(r"\W", "_", model.name, flags=re.ASCII)
        prefix = prefix if prefix[:1].isalpha() else f"robot_{prefix.strip('_')}".rstrip("_")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", prefix):
        raise ArgumentError(f"prefix must be an identifier of C; got {prefix!r}")
    checks.one_of("precision", precision, PRECISIONS)
    chosen = list(functions)
    algorithms = [algorithm_of(function) for function in chosen]
    names = [algorithm.name for algorithm in algorithms]
    if not names or len(set(names)) < len(names):
        raise ArgumentError(f"functions must be one or more, each once; got {names}")
    known = {name for algorithm in algorithms for name in _known(algorithm)}
    unknown = [name for name in options if name not in known]
    if unknown:
        raise ArgumentError(
            f"none of the functions has an option {unknown[0]!r}; they have: "
            + (", ".join(sorted(known)) or "none")
        )
    library = _Library(model, prefix, precision)
    for function, algorithm in zip(chosen, algorithms, strict=True):
        given = {name: value for name, value in options.items() if name in _known(algorithm)}
        _, arrays, asked = asked_of(function, given)
        program = algorithm.program(model, arrays, asked)
        library.add(algorithm, program, given)
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    source, header = folder / f"{prefix}.c", folder / f"{prefix}.h"
    source.write_text(library.source(), encoding="utf-8")
    header.write_text(library.header(), encoding="utf-8")
    return source, header


def _known(algorithm: Algorithm) -> set[str]:
    """Return the names of options and optional arrays."""
    return {*algorithm.options, *algorithm.arrays} - set(algorithm.required)


class _Library:
    """The text of the two files."""

    def __init__(self, model: Model, prefix: str, precision: str) -> None:
        self.model, self.prefix, self.precision = model, prefix, precision
        self.kind, self.suffix, _ = PRECISIONS[precision]
        self._separate_loads: dict[str, FloatArray] = {}
        self._declarations: list[str] = []
        self._definitions: list[str] = []

    def add(self, algorithm: Algorithm, program: Program, options: dict[str, Any]) -> None:
        on = algorithm.model_for(self.model, algorithm.complete(options))
        if on.payloads.bodies != self.model.payloads.bodies:
            self._separate_loads[f"{algorithm.name}_payload"] = on.payloads.parameters
        name = f"{self.prefix}_{algorithm.name}"
        function = emit_c(lower(program, "c"), name=name, precision=self.precision)
        room = f"{name}_WORKSPACE".upper()
        paragraphs = [*self._paragraphs_of(algorithm, program, options), *_memory(function, room)]
        size = f"#define {room} {function.workspace}\n" if function.workspace else ""
        signature = "\n".join(textwrap.wrap(function.signature, WIDTH, subsequent_indent="    "))
        declared = f"{_comment(paragraphs)}\n{size}{signature};\n"
        self._declarations.append(declared)
        self._definitions.append(function.definition)

    def header(self) -> str:
        about = f"Kinematics and dynamics of {self.model.name!r}, written by mbs_dynamics."
        declarations = (f"extern {declared};\n" for declared in self._constants())
        return HEADER.format(
            about=_comment([about, *USE]),
            guard=f"{self.prefix}_H".upper(),
            upper=self.prefix.upper(),
            joints=self.model.n,
            bodies=self.model.nb,
            constants="".join(declarations),
            functions="\n".join(self._declarations),
        )

    def source(self) -> str:
        constants = (
            f"{declared} = {{{', '.join(entries)}}};"
            for declared, entries in self._constants().items()
        )
        include = f'#include "{self.prefix}.h"\n\n#include <math.h>\n'
        return "\n".join([include, *constants, "", *self._definitions])

    def _constants(self) -> dict[str, list[str]]:
        """Return the entries of all arrays that have some, by declaration."""
        model = self.model
        numbers = {
            "gravity": model.gravity,
            "payload": model.payloads.parameters,
            "armature": model.armature if model.armature.any() else np.zeros(0),
            "placements": placements(model),
            **self._separate_loads,
        }
        constants = {
            f"char *const {self.prefix}_{kind}_names": [_string(text) for text in names]
            for kind, names in (("joint", model.joint_names), ("body", model.body_names))
        }
        for name, x in numbers.items():
            entries = [c_constant(value, self.suffix) for value in x.ravel()]
            constants[f"{self.kind} {self.prefix}_{name}"] = entries
        return {f"const {key}[{len(x)}]": x for key, x in constants.items() if x}

    def _paragraphs_of(
        self, algorithm: Algorithm, program: Program, options: dict[str, Any]
    ) -> Iterable[str]:
        summary = (inspect.getdoc(algorithm.equations) or algorithm.name).split("\n\n")[0]
        yield summary.replace("(..., ", "(").replace("(...)", "(1)")  # no batch axes in C
        if options:
            yield "With " + ", ".join(f"{name} = {value}" for name, value in options.items()) + "."
        yield "\n".join(
            f"{port.name}{_shape(port)}: {MEANINGS.get(port.name, ('', 'an array'))[1]}"
            for port in program.inputs
        )
        yield "\n".join(f"out_{port.name}{_shape(port)}: the result" for port in program.outputs)
        yield f"{program.operations}."
        if program.guards:
            yield "\n".join(
                f"Returns {k} if {message}" for k, message in enumerate(program.guards, 1)
            )


HEADER = """\
{about}
#ifndef {guard}
#define {guard}

#ifdef __cplusplus
extern "C" {{
#endif

#define {upper}_JOINTS {joints}
#define {upper}_BODIES {bodies}

/* Names in the order of all arrays; gravity (m/s^2), payloads, armature, placements. */
{constants}
{functions}
#ifdef __cplusplus
}}
#endif

#endif
"""

USE = (
    "Compile the .c file as C99 or later and link with -lm. All arrays are flat and row-major; "
    "outputs must not overlap inputs. The functions allocate nothing, keep no state and may run in "
    "several threads. They return 0, or the number of the quantity that was not positive: the "
    "outputs are then invalid. NaN in an input gives NaN only in outputs that depend on it, and "
    "comparisons may hide it: check that all inputs and outputs are finite before you command a "
    "motor.",
)


def _memory(function: CFunction, room: str) -> Iterator[str]:
    """Yield the memory requirements of a large function."""
    if function.workspace:
        yield (
            f"workspace: room for {room} numbers, which need no values; "
            "calls at the same time need one workspace each."
        )
    elif function.stack:
        yield f"Takes {function.stack} bytes of the stack for intermediate values."


def _shape(port: Port) -> str:
    return "".join(f"[{size}]" for size in port.shape)


def _comment(paragraphs: Iterable[str]) -> str:
    lines: list[str] = []
    for paragraph in paragraphs:
        for line in paragraph.splitlines():
            lines += textwrap.wrap(_harmless(line), WIDTH - 3)
    return "/* " + "\n * ".join(lines) + " */"


def _harmless(text: str) -> str:
    """Return a line that is safe in a comment: without its end, trigraphs or control characters."""
    for pair in ("*/", "/*", "??"):
        while pair in text:
            text = text.replace(pair, " ".join(pair))
    return "".join(x if " " <= x <= "~" else ascii(x)[1:-1] for x in text)


def _string(text: str) -> str:
    """Return a string of C in UTF-8; special characters are octal escapes."""
    data = text.encode("utf-8", "surrogatepass")
    plain = (" " <= chr(x) <= "~" and chr(x) not in '"?\\' for x in data)
    letters = (chr(x) if fine else f"\\{x:03o}" for x, fine in zip(data, plain, strict=True))
    return f'"{"".join(letters)}"'
