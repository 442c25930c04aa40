# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Torques, joints and positions that are not what they seem are refused; right ones never."""

from dataclasses import replace

import numpy as np
import pytest
from identification_bench import JOINTS, TRUE, poses_of, recorded, with_still_joints, wrong
from robots import all_files, robot

import mbs_dynamics as mbs
from mbs_dynamics.cli import main
from mbs_dynamics.identification import (
    fitted_gains,
    identify,
    identify_payload,
    identify_static,
    validate,
)
from mbs_dynamics.identification.preparation import prepared
from mbs_dynamics.timeseries import TimeSeries, TimeSeriesError

RIGHT = recorded(1, duration=12.0, rate=100.0)
"""With friction, offsets and motor inertia, which the description does not have."""

ALL = np.arange(7)
HEAVY = wrong(share=0.6)
GEARS = np.array([160.0] * 4 + [100.0] * 3)


def refused(recording, said, model=TRUE):
    with pytest.raises(TimeSeriesError, match=said) as error:
        validate(model, recording)
    return str(error.value)


@pytest.mark.parametrize("factor", [0.3, 0.5, 2.0, 3.0])
def test_right_torques_pass_where_all_masses_are_wrong(factor):
    bodies = tuple(
        replace(body, inertia=type(body.inertia).from_parameters(factor * body.inertia.parameters))
        for body in TRUE.bodies
    )
    assert validate(replace(TRUE, bodies=bodies), RIGHT)[0].description > 0.2


@pytest.mark.parametrize("noise", [0.01, 1.0])
def test_right_torques_pass_with_a_wrong_description(noise):
    heavy = TRUE.with_payload("tool", 3.0, (0.0, 0.05, 0.1)).loaded()
    noisy = recorded(1, duration=12.0, rate=100.0, noise=noise)  # of 1.0 a quarter is left
    assert validate(heavy, noisy)[0].description > 0.1


def times(**factors):
    return np.array([factors.get(name, 1.0) for name in JOINTS])


def noise_in(tau, *joints):
    noise = 0.02 * np.random.default_rng(0).normal(size=tau.shape)
    return np.where(np.isin(ALL, joints), noise, tau)


WRONG = {
    "reversed in joint1": (lambda tau: tau * times(joint1=-1.0), "of joint1 have the opposite"),
    "reversed in joint6": (lambda tau: tau * times(joint6=-1.0), "of joint6 have the opposite"),
    "reversed in two joints": (
        lambda tau: tau * times(joint2=-1.0, joint4=-1.0),
        "of joint2, joint4 have the opposite sign",
    ),
    "fourfold in three joints": (
        lambda tau: tau * times(joint2=4.0, joint3=4.0, joint4=4.0),
        r"of joint2, joint3, joint4 divided by a factor, .* joint4 (3\.9|4\.0)",
    ),
    "a quarter in joint4": (
        lambda tau: tau * times(joint4=0.25),
        r"of joint4 divided by a factor, .* joint4 0\.2",
    ),
    "zero in joint4": (lambda tau: np.where(ALL == 3, 0.0, tau), "no efforts of joint4"),
    "constant in joint4": (lambda tau: np.where(ALL == 3, 1.5, tau), "no efforts of joint4"),
    "missing in joint4": (lambda tau: np.where(ALL == 3, np.nan, tau), "no efforts of joint4"),
    "about other axes": (
        lambda tau: noise_in(tau, 1, 3),
        "of joint2, joint4 are without gravity",
    ),
}
"""Torques that cannot be those of the arm, and words of the rejection."""

WRONG_WITH_WRONG_MASSES = {
    "of motors": (lambda tau: tau / 100.0, "in another unit.*--gains"),
    "of motors of two kinds": (lambda tau: tau / GEARS, "in another unit.*--gains"),
    "less the gravity of the description": (
        lambda tau: tau - mbs.gravity_torques(HEAVY, RIGHT.q),
        "subtracts gravity",
    ),
    "exchanged 1, 2": (lambda tau: tau[:, [1, 0, 2, 3, 4, 5, 6]], "joint1, joint2 are exchanged"),
    "exchanged 2, 4": (lambda tau: tau[:, [0, 3, 2, 1, 4, 5, 6]], "joint2, joint4 are exchanged"),
    "exchanged 4, 6": (lambda tau: tau[:, [0, 1, 2, 5, 4, 3, 6]], "joint4, joint6 are exchanged"),
}


@pytest.mark.parametrize(("change", "said"), WRONG.values(), ids=WRONG)
def test_wrong_torques_are_refused_by_what_is_wrong(change, said):
    refused(replace(RIGHT, tau=change(RIGHT.tau)), said)


@pytest.mark.parametrize(
    ("change", "said"), WRONG_WITH_WRONG_MASSES.values(), ids=WRONG_WITH_WRONG_MASSES
)
def test_wrong_torques_are_told_from_wrong_masses(change, said):
    refused(replace(RIGHT, tau=change(RIGHT.tau)), said, model=HEAVY)


def test_torques_without_gravity_are_named_and_the_clock_is_not_blamed():
    tau = RIGHT.tau - mbs.gravity_torques(TRUE, RIGHT.q)
    for qd in (RIGHT.qd, None):
        said = refused(replace(RIGHT, tau=tau, qd=qd), "without gravity.*subtracts gravity")
        assert "clock" not in said


def test_a_factor_of_all_joints_may_be_stated():
    six = replace(RIGHT, tau=6.0 * RIGHT.tau, declared=frozenset({"tau"}))
    assert validate(TRUE, six)[0].description > 0.5


@pytest.mark.long
@pytest.mark.parametrize("reach", [0.3, 0.8])
def test_positions_in_per_cent_that_are_declared_as_degrees_are_named(reach):
    right = recorded(4, duration=12.0, rate=100.0, reach=reach, velocities=False)
    middle, half = 0.5 * (TRUE.upper + TRUE.lower), 0.5 * (TRUE.upper - TRUE.lower)
    percent = 100.0 * (right.q - middle) / half
    declared = replace(right, q=np.radians(percent), declared=frozenset({"q"}))
    assert (np.abs(declared.q) < TRUE.upper).all()
    refused(declared, "per cent of the ranges.*convert them", model=wrong())
    with pytest.raises(TimeSeriesError, match="per cent of the ranges"):
        identify(TRUE, [declared])
    validate(wrong(), right)


def test_a_load_without_the_weight_of_the_arm_is_no_arm():
    """As of a driver that subtracts the gravity torques that it knows, without the load."""
    loaded = TRUE.with_payload("tool", mass=1.5, com=(0.0, 0.0, 0.05))
    right = replace(recorded(1, 12.0, 100.0, noise=0.0, arm=loaded), qd=None)
    without = replace(right, tau=right.tau - mbs.gravity_torques(TRUE, right.q))
    assert "without gravity" in refused(without, "a load on 'tool' alone explains the torques")
    validate(TRUE, right)


@pytest.mark.skipif(not all_files(), reason="example-robot-data is not installed")
@pytest.mark.parametrize(("first", "last"), [(-1.0, 1.0), (0.0, 1.0), (0.0, 100.0)])
def test_positions_that_are_shares_of_the_ranges_are_named(first, last):
    """Of a small arm with parallel axes other masses and offsets would nearly explain them."""
    arm = mbs.Model.from_urdf(robot("so101.urdf"))
    low, high, rng = arm.lower, arm.upper, np.random.default_rng(0)
    share = rng.uniform(0.1, 0.9, (30, arm.n))
    q = low + (high - low) * share
    shares = first + (last - first) * share
    stated = last > 1.0
    tau = mbs.gravity_torques(arm, q) * (1.0 + 1e-3 * rng.normal(size=q.shape))
    declared = frozenset({"q"} if stated else ())
    given = np.radians(shares) if stated else shares
    poses = poses_of(given, tau, arm.joint_names, declared=declared)
    with pytest.raises(TimeSeriesError, match=f"of the ranges .* {first:g} to {last:g}: convert"):
        identify_static(arm, poses)
    identify_static(arm, replace(poses, q=q))


@pytest.mark.long
def test_gains_that_the_motion_does_not_show_are_asked_for(tmp_path, capsys):
    gains = np.array([11.5, 11.5, 8.0, 8.0, 5.0, 5.0, 5.0])
    q, qd, qdd = with_still_joints(RIGHT, 0, 0.3)  # no torque of joint1 but friction
    tau = mbs.inverse_dynamics(TRUE, q, qd, qdd)
    tau += 0.05 * np.random.default_rng(0).normal(size=tau.shape)
    tau[:, 0] = 0.05 * np.random.default_rng(1).normal(size=len(tau))
    currents = replace(RIGHT, q=q, qd=None, tau=tau / gains)
    with pytest.raises(TimeSeriesError, match=r"gain of joint1.*--gains joint1="):
        fitted_gains(TRUE, currents)
    found = fitted_gains(TRUE, currents, known=["joint1", "joint7"])
    assert list(found) == list(JOINTS[1:6])
    np.testing.assert_allclose(list(found.values()), gains[1:6], rtol=0.1)


def test_a_joint_without_torques_is_at_rest_where_it_was_recorded():
    q, qd, qdd = with_still_joints(RIGHT, 3, 1.5)
    tau = mbs.inverse_dynamics(TRUE, q, qd, qdd)
    tau[:, 3] = 0.0
    still = replace(RIGHT, q=q, qd=None, tau=tau)
    (part,), _ = prepared(still, TRUE)
    assert (part.q[:, 3] == 1.5).all()
    assert validate(TRUE, still)[0].description < 0.01
    elsewhere = q.copy()
    elsewhere[:, 3] = 0.5
    assert validate(TRUE, replace(still, q=elsewhere))[0].description > 0.1


def test_lost_rows_divide_and_their_instants_are_named():
    keep = np.ones(len(RIGHT.t), bool)
    keep[400:450] = keep[800:830] = False
    q, tau = RIGHT.q[keep], RIGHT.tau[keep]
    rows = replace(RIGHT, t=0.01 * np.arange(keep.sum()), q=q, tau=tau, qd=None)
    parts, notes = prepared(rows, TRUE)
    assert [len(part) for part in parts] == [400, 350, 370]
    assert any("jump 2 time(s)" in note and "t = 4, 7.5 s" in note for note in notes)
    assert validate(TRUE, rows)[0].description_with_friction < 0.03
    assert len(prepared(replace(RIGHT, q=np.round(RIGHT.q, 2), qd=None), TRUE)[0]) == 1


@pytest.mark.long
@pytest.mark.parametrize("names", [["joint2", "joint4"], JOINTS])
def test_reversed_torques_are_declared_as_the_rejection_says(names, tmp_path, capsys):
    path = tmp_path / "run.csv"
    replace(RIGHT, tau=RIGHT.tau * times(**dict.fromkeys(names, -1.0))).write(path)
    assert main(["validate", "arm7", str(path)]) == 1
    said = capsys.readouterr().err
    declared = ["tau=[-1 N m]"]
    if names != JOINTS:
        declared = [f"tau_{name}=tau_{name}[-1 N m]" for name in names]
    assert f"--columns {declared[0]}" in said
    with pytest.raises(TimeSeriesError, match="opposite sign"):
        identify(TRUE, [TimeSeries.read(path)])
    assert main(["validate", "arm7", str(path), "--columns", *declared]) == 0


@pytest.mark.parametrize(
    ("ratio", "said"), [(6.0, ""), (8.85, "lb in"), (10.2, "kg cm"), (1000.0, "mN m")]
)
def test_a_unit_is_named_only_where_the_factor_is_that_of_it(ratio, said):
    found = refused(replace(RIGHT, tau=ratio * RIGHT.tau), "masses.*--columns")
    assert ("likely --columns" in found) == bool(said)
    assert said in found


def with_load(mass, seed=3):
    arm = TRUE.with_payload("tool", mass, (0.0, 0.03, 0.1))
    return recorded(seed, 12.0, 100.0, arm=arm)


@pytest.mark.parametrize("mass", [0.1, 0.3, 3.0, 12.0, 25.0])
def test_light_and_heavy_loads_are_identified(mass):
    found = identify_payload(TRUE, with_load(mass), "tool")
    # The noise of the torques alone is a standard deviation of 0.0024 kg.
    assert found.inertia.mass == pytest.approx(mass, rel=0.01, abs=0.0025)
    np.testing.assert_allclose(found.inertia.com, [0.0, 0.03, 0.1], atol=0.01)


LOADED = TRUE.with_payload("tool", 1.5, (0.0, 0.03, 0.1))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda load: -load.tau, "opposite sign"),
        (lambda load: with_load(1.5, seed=7).tau, "no masses explain"),
        (lambda load: 1e3 * load.tau, "--columns"),
        (lambda load: load.tau - mbs.gravity_torques(LOADED, load.q), "without gravity"),
    ],
)
def test_torques_that_are_not_those_of_an_arm_with_a_load_are_refused(change, said):
    load = with_load(1.5)
    with pytest.raises(TimeSeriesError, match=said):
        identify_payload(TRUE, replace(load, tau=change(load)), "tool")


@pytest.mark.parametrize("mass", [0.3, 1.5, 12.0])  # the clock is not blamed either
def test_a_load_is_not_found_in_torques_without_the_weight_of_the_arm(mass):
    load = with_load(mass)
    tau = load.tau - mbs.gravity_torques(TRUE, load.q)
    for model in (TRUE, wrong()):
        with pytest.raises(TimeSeriesError, match=r"weight of the arm.*without gravity"):
            identify_payload(model, replace(load, tau=tau), "tool")


def test_no_load_is_refused():
    with pytest.raises(TimeSeriesError, match="do not show the load on 'tool'"):
        identify_payload(TRUE, RIGHT, "tool", RIGHT)


def test_recordings_of_different_joints_show_no_load():
    still = np.where(ALL == 6, 0.3, RIGHT.q)
    alone = replace(RIGHT, q=still, qd=None, tau=np.where(ALL == 6, 0.0, RIGHT.tau))
    with pytest.raises(TimeSeriesError, match="the same joints have torques"):
        identify_payload(TRUE, with_load(1.5), "tool", alone)


@pytest.mark.long
def test_a_load_is_found_with_a_description_whose_masses_are_wrong():
    for seed in range(3):
        found = identify_payload(wrong(seed, share=0.6), with_load(5.0), "tool")
        assert found.better
        assert found.inertia.mass == pytest.approx(5.0, abs=1.0)


def test_right_torques_pass_where_the_described_gravity_of_a_joint_is_opposite():
    forearm = TRUE.bodies[3].inertia
    com, tensor = np.array([0.0, 0.0, -0.4]), np.asarray(forearm.tensor_at_com)
    opposite = type(forearm).from_com(4.0 * forearm.mass, com, tensor)
    bodies = (*TRUE.bodies[:3], replace(TRUE.bodies[3], inertia=opposite), *TRUE.bodies[4:])
    _, notes = validate(replace(TRUE, bodies=bodies), RIGHT)
    assert "gravity torques of joint4 have the opposite sign in the description" in notes


def test_friction_that_is_most_of_a_torque_is_not_taken_for_that_of_another_motion():
    base = np.where(ALL == 0, 30.0, 0.0)  # N m of joint1, whose inertial torques are 2 N m
    stiff = RIGHT.tau + base * np.tanh(RIGHT.qd / 0.1)
    assert validate(TRUE, replace(RIGHT, tau=stiff))[0].description > 0.1
