# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The comparison with another revision: verdicts from made-up times, and wrong arguments."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks import against
from benchmarks.comparison import bounds, cases, tables
from benchmarks.comparison.bounds import BROKEN, OK, UNMEASURED, Result, verdicts

pytestmark = pytest.mark.backend_independent

ROBOT = Result("UR5", cases.ROBOT, "mass_matrix", bounds.ONE, old=1e-6, new=1e-6)
LARGE = replace(ROBOT, mechanism="chain of 60", kind=cases.LARGE)


def state(title: str, *results: Result) -> str:
    """Return the verdict of the bound whose title begins like this."""
    (found,) = [x for x in verdicts(results) if x.bound.title.startswith(title)]
    return found.state


@pytest.mark.parametrize(("ratio", "expected"), [(0.5, OK), (1.09, OK), (1.11, BROKEN)])
def test_one_slow_function_of_a_robot_breaks_its_bound(ratio: float, expected: str) -> None:
    slow = replace(ROBOT, subject="jacobian", new=ratio * 1e-6)
    assert state("robots, one state: each", ROBOT, slow) == expected
    assert state("robots, one state: each", replace(slow, kind=cases.SHORT)) == expected


@pytest.mark.parametrize(("ratio", "expected"), [(1.05, OK), (1.07, BROKEN)])
def test_the_geometric_mean_of_robots_breaks_its_bound(ratio: float, expected: str) -> None:
    slow = replace(ROBOT, subject="jacobian", new=ratio * 1e-6)
    assert state("robots, one state: geometric mean", ROBOT, slow) == expected
    assert state("robots, one state: each", ROBOT, slow) == OK


@pytest.mark.parametrize(("ratio", "expected"), [(1.2, OK), (1.3, BROKEN)])
def test_batches_have_bounds_of_their_own(ratio: float, expected: str) -> None:
    slow = replace(ROBOT, what=bounds.batch_of(1000), new=ratio * 1e-6)
    assert state("robots, batches: each", slow) == expected
    assert state("robots, batches: geometric mean", slow) == BROKEN
    assert state("robots, one state: each", slow) == UNMEASURED


def test_what_fails_only_now_is_broken() -> None:
    failing = replace(ROBOT, fault="now: SingularError")
    assert state("every function", ROBOT) == OK
    assert state("every function", ROBOT, failing) == BROKEN
    assert state("robots, one state: each", failing) == BROKEN


def test_what_breaks_a_bound_is_measured_again_and_the_least_times_count() -> None:
    slow = replace(ROBOT, subject="jacobian", new=2e-6)
    assert bounds.suspects([ROBOT, slow]) == [slow]
    again = bounds.merged(slow, replace(slow, old=0.9e-6, new=1e-6))
    assert (again.old, again.new) == (0.9e-6, 1e-6)


def test_the_report_names_what_breaks_a_bound() -> None:
    slow = replace(ROBOT, subject="jacobian", new=2e-6)
    results = [ROBOT, slow, LARGE]
    report = tables.report(results, verdicts(results))
    lines = [x for x in report.splitlines() if x.startswith("| robots, one state: each")]
    assert "UR5: jacobian" in lines[0]
    assert BROKEN in lines[1]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "revision"),
        (["HEAD", "--only", "PUMA"], "no 'PUMA'; there are: compile"),
        (["HEAD", "--write", "no/such/folder/page.md"], "there is no folder no/such/folder"),
    ],
)
def test_wrong_arguments_are_named(
    given: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        against.arguments(given)
    assert said in capsys.readouterr().err
