# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The operations on doubles, by the names that they have from the trace to the printers."""

from __future__ import annotations

ADD, SUB, MUL, DIV, NEG = "+", "-", "*", "/", "neg"
SIN, COS, SQRT, ATAN2 = "sin", "cos", "sqrt", "atan2"
LESS, LESS_EQUAL, SELECT = "<", "<=", "select"

ARITY = {
    **dict.fromkeys((ADD, SUB, MUL, DIV, ATAN2, LESS, LESS_EQUAL), 2),
    **dict.fromkeys((NEG, SIN, COS, SQRT), 1),
    SELECT: 3,
}
"""How many operands each operation has."""

CONDITIONS = (LESS, LESS_EQUAL)
"""Operations whose values are conditions, not numbers."""
