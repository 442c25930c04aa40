# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Operation counts: the published formulas, and those of this package's programs."""

import pytest
from mechanisms import ARM_URDF

import mbs_dynamics as mbs
from mbs_dynamics.algorithms.forward_dynamics import METHODS
from mbs_dynamics.cli import main
from mbs_dynamics.operation_counts import (
    PUBLISHED,
    Count,
    algorithm_counts,
    forward_dynamics_counts,
    slender_chain,
)
from mbs_dynamics.resources import robot_path

WALKER_ORIN = "Walker and Orin, O(n^3)"


@pytest.mark.parametrize(
    ("name", "at_6", "at_10"),
    [
        ("Mohan and Saha, slender rods", (910, 767), (1602, 1367)),
        ("Saha", (862, 797), (1626, 1545)),
        ("Featherstone", (996, 871), (1792, 1567)),
        ("Valasek", (1013, 891), (1917, 1715)),
        ("Brandl et al.", (1278, 1122), (2278, 2002)),
        (WALKER_ORIN, (633, 475), (1653, 1209)),
    ],
)
def test_published_totals(name, at_6, at_10):
    assert (PUBLISHED[name](6), PUBLISHED[name](10)) == (at_6, at_10)


@pytest.mark.parametrize(
    ("name", "multiplications", "both"),
    [
        ("Mohan and Saha, slender rods", 10, 12),
        ("Saha", 10, 14),
        ("Featherstone", 12, 14),
        ("Valasek", 13, 16),  # printed: 15
        ("Brandl et al.", 15, 18),  # printed: 14 and 16
    ],
)
def test_from_how_many_joints_on_a_recursion_needs_fewer(name, multiplications, both):
    counts = [(n, PUBLISHED[name](n), PUBLISHED[WALKER_ORIN](n)) for n in range(3, 40)]
    assert next(n for n, a, b in counts if a[0] < b[0]) == multiplications
    assert next(n for n, a, b in counts if a[0] < b[0] and a[1] < b[1]) == both


@pytest.mark.long
def test_our_recursions_are_linear_in_the_number_of_joints_and_the_factorization_is_not():
    counts = forward_dynamics_counts([4, 6, 8])
    assert len(counts) == len(PUBLISHED) + len(METHODS)
    for method in METHODS:
        totals = [sum(count) for count in counts[f"{method}, ours"]]
        second = [a - 2 * b + c for a, b, c in zip(totals, totals[1:], totals[2:], strict=False)]
        if method == "mass_matrix":
            assert all(x > 0 for x in second)
        else:  # constants of different bodies that happen to be equal are shared
            assert all(abs(x) < 0.02 * totals[0] for x in second)


@pytest.mark.parametrize("robot", ["slender", "arm7"])
def test_body_fixed_recursions_need_the_fewest_operations(robot):
    """Also for the twist of the last body of a chain, which passes through all others."""
    model = slender_chain(6) if robot == "slender" else mbs.Model.from_urdf(robot_path(robot))
    for row in algorithm_counts(model, (mbs.twists, mbs.accelerations, mbs.inverse_dynamics)):
        totals = {name: operations.total for name, operations in row.operations.items()}
        assert min(totals, key=totals.get) == "body_fixed", row.title
    assert 2 * totals["body_fixed"] < totals["spatial"]  # of inverse dynamics


@pytest.mark.parametrize("size", ["x", "0", "101", "2.5"])
def test_count_refuses_sizes_that_are_no_numbers_of_joints(size, capsys):
    with pytest.raises(SystemExit):
        main(["count", "--sizes", size])
    assert f"must be a number of joints from 1 to 100; got '{size}'" in capsys.readouterr().err


@pytest.mark.long
def test_count_prints_both_tables(tmp_path, capsys):
    assert main(["count", "--sizes", "3", "6"]) == 0
    out = capsys.readouterr().out
    assert "n = 6" in out
    assert "910 / 767" in out
    path, arm = tmp_path / "arm.urdf", mbs.Model.from_urdf(ARM_URDF)
    path.write_text(ARM_URDF)
    assert main(["count", str(path)]) == 0
    kernel = mbs.compile(mbs.gravity_torques, arm, representation="spatial", backend="python")
    multiplications, additions = Count.of(kernel.operations)
    assert f"{multiplications} / {additions}" in capsys.readouterr().out
