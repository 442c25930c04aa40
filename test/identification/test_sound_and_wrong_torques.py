# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Sound torques of several arms are never refused, and wrong ones always, with few poses too."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from identification_bench import erroneous, motion, poses_of, ranges, refused
from robots import robot
from urdf_reference import load

import mbs_dynamics as mbs
from mbs_dynamics.identification.data import Data
from mbs_dynamics.identification.static import StillData
from mbs_dynamics.resources import robot_path
from mbs_dynamics.timeseries import TimeSeries

ARMS = {"arm7": "", "ur5_robot.urdf": "", "panda.urdf": "panda_hand", "kinova.urdf": ""}
"""Descriptions, and the last link where there is a gripper."""

NOISES = (0.005, 0.01, 0.03, 0.05)
"""Standard deviations of torques, as shares of the largest."""

DESCRIBED = ((0.0, 0.0), (0.1, 0.0), (0.0, 0.3), (0.05, 0.5))
"""What a description does not know: a load, in masses of the arm, and errors of its masses."""


@lru_cache
def arm(name):
    path = robot_path(name) if name == "arm7" else robot(name)
    return load(path, **({"tip": ARMS[name]} if ARMS[name] else {}))


def true_arm(model, load, share, rng):
    true = erroneous(model, share, rng, shift=0.02 * np.sqrt(share))
    mass = load * true.total_mass
    return true.with_payload(model.body_names[-1], mass, (0.02, 0.0, 0.05)) if load else true


def still(model, true, count, noise, rng):
    """Return poses, torques with noise and friction at rest, and gravity torques."""
    middle, half = ranges(model)
    q = middle + np.minimum(0.9 * half, 1.5) * rng.uniform(-1.0, 1.0, (count, model.n))
    g = mbs.gravity_torques(true, q)
    friction = 0.03 * np.abs(g).max(axis=0) * rng.uniform(-1.0, 1.0, g.shape)
    return q, g + noise * np.abs(g).max() * rng.normal(size=g.shape) + friction, g


def moving(model, true, noise, rng):
    """Return a recording of 10 s with friction, and its gravity torques."""
    t = np.arange(0.0, 10.0, 0.02)
    q, qd, qdd = motion(t, rng, model=model)
    tau = mbs.inverse_dynamics(true, q, qd, qdd)
    friction = 0.05 * np.maximum(np.abs(tau).max(axis=0), 0.1 * np.abs(tau).max())
    tau = tau + friction * (np.tanh(qd / 0.05) + 0.5 * qd)
    tau += noise * np.sqrt(np.square(tau).mean(axis=0)) * rng.normal(size=tau.shape)
    return TimeSeries(t, model.joint_names, q, qd, tau=tau), mbs.gravity_torques(true, q)


def wrong_torques(tau, g, others, rng):
    """Return torques that are not those of the arm, by what is wrong with them."""
    n, sizes = tau.shape[1], g.std(axis=0)
    strong = np.flatnonzero(sizes > 0.15 * sizes.max())
    one, two = rng.permutation(strong)[:2]
    order = np.arange(n)
    order[[one, two]] = two, one
    three = np.isin(np.arange(n), [one, *np.setdiff1d(np.arange(1, n), strong[:2])[:2]])
    return {
        "exchanged": tau[:, order],
        "of other poses": others,
        "reversed": -tau,
        "reversed in one joint": np.where(np.arange(n) == one, -tau, tau),
        "constant": 0.0 * tau + 2.0,
        "constant in one joint": np.where(np.arange(n) == one, 1.5, tau),
        "times 4 in three joints": np.where(three, 4.0 * tau, tau),
        "amperes": tau / np.resize([11.5, 11.5, 8.0, 8.0, 5.0, 5.0, 5.0], n),
        "kg m": tau / 9.80665,
        "of the motors": tau / np.resize([160.0, 160.0, 160.0, 160.0, 100.0, 100.0, 100.0], n),
        "without gravity": tau - g,
    }


@pytest.mark.parametrize("count", [6, 20])
@pytest.mark.parametrize("name", ARMS)
def test_sound_torques_of_still_poses_are_never_refused(name, count):
    model = arm(name)
    for seed, (noise, unknown) in enumerate((x, y) for x in NOISES for y in DESCRIBED):
        rng = np.random.default_rng([seed, count])
        q, tau, _ = still(model, true_arm(model, *unknown, rng), count, noise, rng)
        found = refused(StillData.read, model, poses_of(q, tau, model.joint_names))
        assert not found, (noise, unknown)


@pytest.mark.parametrize("count", [8, 20])
@pytest.mark.parametrize("name", ARMS)
def test_wrong_torques_of_still_poses_are_always_refused(name, count):
    model = arm(name)
    passed = []
    for seed, unknown in enumerate(DESCRIBED):
        rng = np.random.default_rng([seed, count])
        true = true_arm(model, *unknown, rng)
        q, tau, g = still(model, true, count, 0.01, rng)
        _, others, _ = still(model, true, count, 0.01, rng)
        for what, wrong in wrong_torques(tau, g, others, rng).items():
            if not refused(StillData.read, model, poses_of(q, wrong, model.joint_names)):
                passed.append((unknown, what))
    assert not passed


@pytest.mark.long
@pytest.mark.parametrize("name", ARMS)
def test_motions_are_refused_only_for_wrong_torques(name):
    model, passed = arm(name), []
    for seed, unknown in enumerate(DESCRIBED):
        rng = np.random.default_rng([seed, 1])
        true = true_arm(model, *unknown, rng)
        series, g = moving(model, true, 0.03, rng)
        others, _ = moving(model, true, 0.03, rng)
        assert not refused(Data.read, model, [series]), unknown
        for what, wrong in wrong_torques(series.tau, g, others.tau, rng).items():
            if not refused(Data.read, model, [replace(series, tau=wrong)]):
                passed.append((unknown, what))
    assert not passed


@pytest.mark.parametrize("count", [6, 20])
@pytest.mark.parametrize("name", ARMS)
def test_torques_of_one_joint_that_are_scaled_are_refused(name, count):
    model = arm(name)
    for seed, (noise, unknown) in enumerate((x, y) for x in (0.01, 0.03) for y in DESCRIBED):
        rng = np.random.default_rng([seed, count, 3])
        q, tau, g = still(model, true_arm(model, *unknown, rng), count, noise, rng)
        for joint in np.argsort(g.std(axis=0))[-2:]:
            scaled = np.where(np.arange(model.n) == joint, 4.0 * tau, tau)
            message = refused(StillData.read, model, poses_of(q, scaled, model.joint_names))
            assert message, (seed, joint)
            if not any(unknown):  # otherwise another one of two may be named
                assert model.joint_names[joint] in message, (seed, message)


def test_torques_of_an_arm_with_a_load_that_poses_do_not_show_need_their_unit():
    model, rng = arm("arm7"), np.random.default_rng(3)
    q, tau, _ = still(model, true_arm(model, 0.3, 0.0, rng), 6, 0.03, rng)
    poses = poses_of(q, tau, model.joint_names)
    assert "tau=[N m]" in refused(StillData.read, model, poses)
    assert not refused(StillData.read, model, replace(poses, declared=poses.declared | {"tau"}))
