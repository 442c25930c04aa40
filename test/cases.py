# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Cases of parametrized tests: a few that differ in what the code can tell apart, and the rest."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def mostly_slow(cases: Iterable[Any], quick: Collection[Any]) -> list[Any]:
    """Return all cases as parameters of a test; all but the quick ones are marked slow."""
    cases = list(cases)
    if cases and not set(quick) <= set(cases):
        raise LookupError(f"no cases {sorted(set(quick) - set(cases))}; the cases are: {cases}")

    def slow(case: Any) -> Any:
        values = case if isinstance(case, tuple) else (case,)
        return pytest.param(*values, marks=pytest.mark.slow)

    return [case if case in quick else slow(case) for case in cases]
