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
"""Cases of parametrized tests: a few that differ in what the code can tell apart, and the rest."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def mostly_slow(cases: Iterable[Any], quick: Collection[Any]) -> list[Any]:
    """Return all cases as parameters of a test; all but the quick ones are marked slow."""
    cases = list(cases)
    if cases and not set(quick) <= set(cases):
        raise LookupError(f"no cases {sorted(set(quick) - set(cases))}; the cases are: {cases}")
    return [case if case in quick else pytest.param(case, marks=pytest.mark.slow) for case in cases]
