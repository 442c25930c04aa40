# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The period of an arm as C99, for controllers in real time: one function, records as structs.

Laws that are neither in force nor fade out cost no time: the function branches around them.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mbs_dynamics import checks
from mbs_dynamics.compiler.codegen.c import PRECISIONS, c_constant, emit_c
from mbs_dynamics.compiler.passes.pipeline import lower
from mbs_dynamics.control.period.checks import CHECKS
from mbs_dynamics.control.period.function import Period, initial
from mbs_dynamics.control.period.records import Layout, Settings
from mbs_dynamics.control.period.sentences import OPPOSED, REFUSED, SILENT
from mbs_dynamics.control.period.transitions import TRANSITIONS
from mbs_dynamics.errors import ArgumentError

RECORDS = ("state", "sample", "request", "settings", "output", "verdict")
"""Records in the order of the arguments; the state is the first and the fifth."""


def export_period(
    layouts: Period,
    given: Settings,
    directory: str | Path,
    *,
    prefix: str,
    precision: str = "double",
) -> tuple[Path, Path]:
    """Write the period of an arm as ``<prefix>_period.c`` and ``.h``, and return the paths.

    ``given`` are the settings with which ``<prefix>_settings`` is filled, and that are in force in
    ``<prefix>_initial``, the state of an arm of which nothing is known. ``precision`` is
    ``"double"`` or ``"single"``: in single precision times must be small, since a float counts
    only 7 digits; let them begin at zero, and restart them within an hour.

    Raises ArgumentError for another precision or a prefix that is not an identifier, OSError if a
    file cannot be written.
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", prefix):
        raise ArgumentError(f"prefix must be an identifier of C; got {prefix!r}")
    checks.one_of("precision", precision, PRECISIONS)
    kind, suffix, _ = PRECISIONS[precision]
    program = layouts.kernel.program
    function = emit_c(lower(program, "c"), name=f"{prefix}_equations", precision=precision)
    if function.workspace:
        raise ArgumentError(
            f"the period of {layouts.model.name!r} needs more memory than the stack has; valid: "
            "arms of fewer joints"
        )
    extra = [port.name for port in program.inputs if port.name not in RECORDS]
    constants = {
        f"const {prefix}_Settings {prefix}_settings": _initializer(layouts.settings, given, suffix),
        f"const {prefix}_State {prefix}_initial": _initializer(
            layouts.state, initial(given), suffix
        ),
    }
    inputs = {
        f"static const {kind} {prefix}_{name}[{value.size}]": _braced(value.ravel(), suffix)
        for name, value in zip(extra, layouts.model_inputs, strict=True)
    }
    arguments = ", ".join(
        f"const {prefix}_{name.title()} *{name}"
        for name in ("state", "sample", "request", "settings")
    )
    signature = (
        f"int {prefix}_period({arguments}, {prefix}_State *next, {prefix}_Output *output, "
        f"{prefix}_Verdict *verdict)"
    )
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    source, header = folder / f"{prefix}_period.c", folder / f"{prefix}_period.h"
    structs = [_struct(getattr(layouts, name), name, prefix, kind) for name in RECORDS]
    tables = {
        f"const {prefix}_Check {prefix}_checks[{len(CHECKS)}]": [
            f"{{{_string(one.kind)}, {_string(one.sentence)}, {one.stops:d}, {one.forbids:d}}}"
            for one in CHECKS
        ],
        f"const char *const {prefix}_opposed[{len(OPPOSED)}]": map(_string, OPPOSED.values()),
        f"const char *const {prefix}_refused[{len(REFUSED)}]": map(_string, REFUSED.values()),
        f"const char *const {prefix}_silent[1]": [_string(SILENT)],
        f"const char *const {prefix}_joints[{layouts.model.n}]": map(
            _string, layouts.model.joint_names
        ),
    }
    header.write_text(
        HEADER.format(
            guard=f"{prefix}_PERIOD_H".upper(),
            about=_comment(ABOUT.format(name=layouts.model.name, operations=program.operations)),
            joints=layouts.model.n,
            upper=prefix.upper(),
            checks=len(CHECKS),
            structs="\n".join(structs),
            transitions=_comment("\n".join(_transitions())),
            laws=_comment(_laws(layouts)),
            constants="".join(f"extern {declared};\n" for declared in constants),
            tables="".join(f"extern {declared};\n" for declared in tables),
            prefix=prefix,
            signature="\n".join(textwrap.wrap(signature, 96, subsequent_indent="    ")),
        ),
        encoding="utf-8",
    )
    lines = [f'#include "{prefix}_period.h"\n', "#include <math.h>\n"]
    lines += [f"{declared} = {value};\n" for declared, value in {**constants, **inputs}.items()]
    for declared, rows in tables.items():
        lines += [f"{declared} = {{", *(f"  {row}," for row in rows), "};\n"]
    given_to = [f"(const {kind} *){name}" for name in RECORDS[:4]]
    given_to += [f"{prefix}_{name}" for name in extra]
    given_to += [f"({kind} *){name}" for name in ("next", "output", "verdict")]
    lines += [f"static {function.signature};\n", function.definition]
    lines += [signature, "{", f"  return {prefix}_equations({', '.join(given_to)});", "}"]
    source.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return source, header


def _struct(layout: Layout[Any], name: str, prefix: str, kind: str) -> str:
    fields = "".join(
        f"  {kind} {field}{''.join(f'[{size}]' for size in shape)};\n"
        for field, shape in layout.shapes.items()
        if 0 not in shape
    )
    about = (layout.record.__doc__ or "").strip()
    return f"{_comment(about)}\ntypedef struct {{\n{fields}}} {prefix}_{name.title()};\n"


def _transitions() -> Iterator[str]:
    yield "Modes: 0 off, 1 ramping in, 2 on, 3 ramping out, 4 stopping, 5 fault. Transitions:"
    for row in TRANSITIONS:
        modes = " or ".join(f"{mode:g}" for mode in row.modes)
        yield f"{modes}, {row.when}: {row.to:g}"


def _laws(layouts: Period) -> str:
    joints, link, _ = layouts.traced
    laws = ["0 gravity compensation alone"]
    laws += ["1 impedance of the joints, 3 a law of the joints that is called before"] * joints
    laws += [f"2 impedance of {link}, 4 a law of this link that is called before"] * bool(link)
    return (
        f"Laws: {', '.join(laws)}.\nWhat references do: 0 come to rest, 1 go to a target, 2 play a "
        "trajectory."
    )


def _braced(values: Any, suffix: str) -> str:
    """Return an array of numbers, of any shape, as an initializer."""
    if np.ndim(values) == 0:
        return c_constant(float(values), suffix)
    return "{" + ", ".join(_braced(each, suffix) for each in values) + "}"


def _initializer(layout: Layout[Any], record: Any, suffix: str) -> str:
    """Return a record as an initializer, a field on each line."""
    rows = [
        f"  .{name} = {_braced(np.broadcast_to(np.asarray(value, dtype=float), shape), suffix)},"
        for (name, shape), value in zip(layout.shapes.items(), record, strict=True)
        if 0 not in shape
    ]
    lines = [line for row in rows for line in textwrap.wrap(row, 96, subsequent_indent="    ")]
    return "\n".join(["{", *lines, "}"])


def _string(text: str) -> str:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}"'


def _comment(text: str) -> str:
    lines = [line for part in text.splitlines() for line in textwrap.wrap(part, 93)]
    return "/* " + "\n * ".join(lines) + " */"


ABOUT = """One control period of {name!r} under guard, written by mbs_dynamics.
A period is a function of numbers: it allocates nothing, keeps no state, and takes the same time \
under the same laws: those that are in force or fade out. A law begins with the present state as \
its reference. Without a law of the link, `pose` stays as it is. Records hold numbers alone; \
conditions are 1 or 0, and numbers that are not known NaN. Times are those of one steady clock, in \
s. `next` must not be `state`. Returns 0. Operations with all laws: {operations}."""

HEADER = """\
{about}
#ifndef {guard}
#define {guard}

#ifdef __cplusplus
extern "C" {{
#endif

#define {upper}_JOINTS {joints}
#define {upper}_CHECKS {checks}

{transitions}

{laws}

{structs}
/* Settings as they were written, and the state of an arm of which nothing is known. */
{constants}
/* A check: its name, its sentence with {{joint}}, {{value}} and {{limit}} in Python's format,
 * whether it stops an arm, and whether it forbids to enable torques. */
typedef struct {{
  const char *kind;
  const char *sentence;
  int stops;
  int forbids;
}} {prefix}_Check;

/* The checks; state.fault is the number of the one that failed, from 1. Sentences of the checks
 * "support" and "opposed" by state.opposed, from 1; of "refused" by its value, from 1; of "stale"
 * if its value is infinite. Names of the joints. */
{tables}
{signature};

#ifdef __cplusplus
}}
#endif

#endif
"""
