# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Lines of LLVM IR that compute with one number or a vector of them."""

from __future__ import annotations

import struct
from collections.abc import Sequence

WIDTH = 8
"""Lanes of vectors in code for one state: angles or iterations that are computed at once."""

PER_CALL = 2
"""Angles of several states that are computed at once: 0.8 of the time of one after the other."""


def constant(x: float) -> str:
    """Return a double as LLVM writes it, to the bit."""
    bits = struct.unpack("<Q", struct.pack("<d", x))[0]
    return f"0x{bits:016X}"


class Body:
    """Lines of IR."""

    def __init__(self, lanes: int = 1) -> None:
        self.lanes = lanes
        self.lines: list[str] = []
        self.real, self.bit, self.word = self.type("double"), self.type("i1"), self.type("i64")
        self.sqrt = "f64" if lanes == 1 else f"v{lanes}f64"
        self._spare = 0

    def type(self, scalar: str) -> str:
        """Return the type of a value that has this type in one state."""
        return scalar if self.lanes == 1 else f"<{self.lanes} x {scalar}>"

    def constant(self, x: float) -> str:
        """Return a number as an operand."""
        return f"splat (double {constant(x)})" if self.lanes > 1 else constant(x)

    def whole(self, n: int) -> str:
        """Return an integer as an operand."""
        return f"splat (i64 {n})" if self.lanes > 1 else str(n)

    def set(self, name: str, expression: str) -> str:
        """Emit the definition of a value and return its name."""
        self.lines.append(f"  {name} = {expression}")
        return name

    def new(self, expression: str) -> str:
        """Emit the definition of a value without a name of its own, and return its name."""
        self._spare += 1
        return self.set(f"%v{self._spare}", expression)

    def library(self, name: str, args: Sequence[str]) -> str:
        """Return a call of the C library's function, made for one lane after another."""
        if self.lanes == 1:
            return f"call double @{name}({', '.join(f'double {x}' for x in args)})"
        result = expression = "poison"
        for lane in range(self.lanes):
            each = [self.new(f"extractelement {self.real} {x}, i64 {lane}") for x in args]
            value = self.new(f"call double @{name}({', '.join(f'double {x}' for x in each)})")
            if lane:
                result = self.new(expression)
            expression = f"insertelement {self.real} {result}, double {value}, i64 {lane}"
        return expression
