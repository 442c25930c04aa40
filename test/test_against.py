# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The comparison with another revision: verdicts from made-up times, and wrong arguments."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import against
from benchmarks.comparison import bounds, cases, processes, tables, worker
from benchmarks.comparison.bounds import BROKEN, OK, UNMEASURED, Result, verdicts
from benchmarks.mechanisms import chain

pytestmark = pytest.mark.backend_independent

ROBOT = Result("UR5", cases.ROBOT, "mass_matrix", bounds.ONE, old=1e-6, new=1e-6)
LARGE = replace(ROBOT, mechanism="chain of 100", kind=cases.LARGE)


def state(title: str, *results: Result) -> str:
    """Return the verdict of the bound whose title begins like this."""
    (found,) = [x for x in verdicts(results) if x.bound.title.startswith(title)]
    return found.state


def test_nothing_is_judged_without_results() -> None:
    assert {verdict.state for verdict in verdicts([])} == {UNMEASURED}


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


@pytest.mark.parametrize(("ratio", "expected"), [(1.9, OK), (2.1, BROKEN)])
def test_large_trees_have_a_bound_of_their_own(ratio: float, expected: str) -> None:
    slow = replace(LARGE, new=ratio * 1e-6)
    assert state("chains and trees", slow) == expected
    assert state("robots, one state: each", slow) == UNMEASURED


def test_the_panda_is_judged_only_with_all_functions() -> None:
    panda = replace(ROBOT, mechanism="Panda", what=bounds.COMPILED, new=0.05)
    everything = [replace(panda, subject=name) for name in cases.FUNCTIONS]
    title = "compilation: all functions of the Panda"
    assert state(title, *everything[1:]) == UNMEASURED
    assert state(title, *everything) == OK
    assert state(title, *everything[1:], replace(everything[0], new=1.0)) == BROKEN
    assert state(title, *everything[1:], replace(everything[0], left_out="old: new")) == OK


@pytest.mark.parametrize(("seconds", "expected"), [(2.9, OK), (3.1, BROKEN)])
def test_each_function_of_a_humanoid_has_seconds(seconds: float, expected: str) -> None:
    compiled = replace(ROBOT, mechanism="G1", what=bounds.COMPILED, old=9.0, new=seconds)
    assert state("compilation: each function of a humanoid", compiled) == expected


@pytest.mark.parametrize("name", ["chain of 100", "chain of 200"])
def test_cubic_results_of_chains_may_take_longer_to_compile(name: str) -> None:
    slow = replace(LARGE, mechanism=name, what=bounds.COMPILED, new=6.0)
    title = "compilation: each function of a chain"
    assert state(title, slow) == BROKEN
    assert state(title, replace(slow, subject="christoffel_symbols")) == UNMEASURED


def test_what_fails_only_now_is_broken() -> None:
    failing = replace(ROBOT, fault="now: SingularError")
    assert state("every function", ROBOT) == OK
    assert state("every function", ROBOT, failing) == BROKEN
    assert state("robots, one state: each", failing) == BROKEN


def test_what_neither_version_can_do_is_left_out() -> None:
    absent = replace(ROBOT, left_out="old: AttributeError")
    assert state("every function", absent) == UNMEASURED
    assert "AttributeError" in tables.report([absent], verdicts([absent]))


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


def test_workers_build_the_chain_of_the_other_benchmarks(tmp_path: Path) -> None:
    made = {each.name: each.description for each in cases.mechanisms(tmp_path)}
    ours, theirs = worker.described(json.dumps(made["chain of 30"])), chain(30)
    assert ours.parents == theirs.parents
    for a, b in zip(ours.bodies, theirs.bodies, strict=True):
        np.testing.assert_allclose(a.home_rel, b.home_rel, atol=1e-14)
        np.testing.assert_allclose(a.inertia.matrix(), b.inertia.matrix(), atol=1e-12)


def test_only_chooses_parts_mechanisms_and_functions(tmp_path: Path) -> None:
    everything = cases.mechanisms(tmp_path)
    names = ["one-state", "chain of 30", "mass_matrix"]
    (job,) = cases.Selection(only=names).jobs(everything)
    assert (job.mechanism.name, job.subject.label) == ("chain of 30", "mass_matrix")
    assert job.one_state
    assert not job.compiled
    assert not job.batches


def test_quick_leaves_out_the_largest_batches_but_not_the_panda(tmp_path: Path) -> None:
    jobs = [*cases.Selection(quick=True).jobs(cases.mechanisms(tmp_path, quick=True))]
    assert max(size for job in jobs for size in job.batches) == 1000
    panda = {job.subject.function for job in jobs if job.mechanism.name == "Panda" if job.compiled}
    assert panda == {*cases.FUNCTIONS}


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


@pytest.mark.parametrize("revision", ["no-such-revision", "--all", "HEAD:setup.py"])
def test_an_unknown_revision_is_an_error_before_anything_starts(revision: str) -> None:
    if not (processes.CHECKOUT / ".git").exists():
        pytest.skip("no checkout of git")
    with pytest.raises(processes.ComparisonError, match=revision):
        processes.resolve(revision)


def test_a_worker_of_another_package_says_so(tmp_path: Path) -> None:
    with pytest.raises(processes.ComparisonError):
        processes.Worker(processes.Version("elsewhere", tmp_path))


def test_a_worker_that_dies_is_reported() -> None:
    version = processes.Version("this one", processes.CHECKOUT)
    with processes.Worker(version) as started:
        with pytest.raises(processes.CaseError, match="no_such"):
            started.ask("no_such_request")
        started._process.kill()
        with pytest.raises(processes.ComparisonError, match="3"):
            started.ask("sample", number=3)
