# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Files of motions, and what they refuse."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest
from damage import damaged
from mechanisms import random_mechanism
from reference import assert_close

import mbs_dynamics as mbs
from mbs_dynamics import files
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.integrate import Motion, load_motion, simulate
from mbs_dynamics.model.coordinates import position_names, velocity_names
from mbs_dynamics.model.joints import Connection, joint

CHAIN = random_mechanism(2, [-1, 0, 1], ["revolute"]).model
START = np.array([0.4, -0.7, 0.9]), np.array([0.5, -0.3, 0.8])


def floating(joints):
    M, names = mbs.spatial_inertia(2.0, (0.1, 0.0, 0.2), np.eye(3)), ["base", "first", "second"]
    kinds = joint("free"), joint("revolute", axis=(0, 1, 0))
    parts = [
        Connection(
            name=f"of {name}", joint=kinds[k > 0], body=name, M_body=M,
            **({"parent": names[k - 1]} if k else {}),
        )
        for k, name in enumerate(names[: joints + 1])
    ]  # fmt: skip
    return mbs.Model.from_joints(parts)


@pytest.mark.parametrize("suffix", [".npz", ".csv"])
def test_saved_and_loaded(tmp_path, suffix):
    motion = simulate(CHAIN, *START, duration=0.05, events={"now": lambda t, q, qd: t - 0.02})
    motion.save(tmp_path / f"motion{suffix}")
    loaded = Motion.load(tmp_path / f"motion{suffix}")
    for name in ("t", "q", "qd", "qdd", "tau", "kinetic", "potential", "momentum"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(motion, name))
    assert loaded.joint_names == motion.joint_names
    if suffix == ".npz":
        assert loaded.method == "rk4"
        assert [event.name for event in loaded.events] == ["now"]
        np.testing.assert_array_equal(loaded.events[0].q, motion.events[0].q)


def test_events_of_a_batch_are_saved(tmp_path):
    motion = simulate(CHAIN, [START[0]] * 2, duration=0.02, events={"now": lambda t, *x: t - 0.01})
    motion.save(tmp_path / "batch.npz")
    loaded = Motion.load(tmp_path / "batch.npz")
    assert [event.member for event in loaded.events] == [(0,), (1,)]
    assert_close(loaded.events[1].q, motion.events[1].q)
    with np.load(tmp_path / "batch.npz") as file:
        data = {name: array for name, array in file.items() if name != "event_member"}
    np.savez(tmp_path / "before.npz", **data)  # as it was before
    assert [event.member for event in Motion.load(tmp_path / "before.npz").events] == [(), ()]


def test_bad_files(tmp_path):
    batch = simulate(CHAIN, [START[0]] * 2, duration=0.01)
    with pytest.raises(ArgumentError, match="batch"):
        batch.save(tmp_path / "batch.csv")
    batch.save(tmp_path / "batch.npz")
    assert Motion.load(tmp_path / "batch.npz").q.shape == (11, 2, 3)
    with pytest.raises(ArgumentError, match=r"\.npz, \.csv"):
        batch.save(tmp_path / "batch.bag")
    with pytest.raises(FileNotFoundError):
        Motion.load(tmp_path / "nothing.npz")
    (tmp_path / "text.npz").write_text("no archive")
    with pytest.raises(ArgumentError, match=r"text\.npz"):
        Motion.load(tmp_path / "text.npz")
    np.savez(tmp_path / "other.npz", t=np.zeros(3))
    with pytest.raises(ArgumentError, match="q, qd"):
        Motion.load(tmp_path / "other.npz")
    with np.load(tmp_path / "batch.npz") as file:
        data = dict(file)
    np.savez(tmp_path / "shape.npz", **{**data, "qd": data["qd"][:5]})
    with pytest.raises(ArgumentError, match=r"qd.*\(5, 2, 3\).*\(11, 2, 3\)"):
        Motion.load(tmp_path / "shape.npz")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ArgumentError, match="first line"):
        Motion.load(tmp_path / "other.csv")
    simulate(CHAIN, *START, duration=0.01).save(tmp_path / "good.csv")
    lines = (tmp_path / "good.csv").read_text().splitlines()
    (tmp_path / "short.csv").write_text("\n".join([*lines[:3], "1,2,3", *lines[3:]]))
    with pytest.raises(ArgumentError, match=r"short\.csv.*4.*3.*21"):
        Motion.load(tmp_path / "short.csv")
    (tmp_path / "text.csv").write_text("\n".join([lines[0], lines[1].replace("0.0", "x")]))
    with pytest.raises(ArgumentError, match="line 2"):
        Motion.load(tmp_path / "text.csv")


@pytest.mark.parametrize("joints", [0, 2])
@pytest.mark.parametrize("suffix", [".npz", ".csv"])
def test_motions_of_floating_mechanisms_are_saved(tmp_path, suffix, joints):
    model = floating(joints)
    motion = simulate(
        model, model.random_state().q, np.arange(6 + joints), duration=0.02,
        control=lambda t, q, qd: -qd, events={"now": lambda t, *state: t - 0.01},
    )  # fmt: skip
    path = tmp_path / f"motion{suffix}"
    motion.save(path)
    loaded = load_motion(path)
    for name in ("t", "q", "qd", "qdd", "tau", "kinetic", "potential", "momentum"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(motion, name))
    assert loaded.position_names == position_names(model.joints)
    assert loaded.joint_names == velocity_names(model.joints)
    if suffix == ".npz":
        assert loaded.method == "rk4"
        np.testing.assert_array_equal(loaded.events[0].q, motion.events[0].q)
    assert f"Motion (21, {7 + joints}), to 0.02 s, rk4" in repr(motion)


@pytest.mark.parametrize("kind", ["joints", "floating"])
@pytest.mark.parametrize("suffix", [".npz", ".csv"])
def test_damaged_files_are_refused_or_read(tmp_path, kind, suffix):
    model = CHAIN if kind == "joints" else floating(2)
    events = {"now": lambda t, q, qd: t - 0.02}
    motion = simulate(model, model.random_state().q, duration=0.05, events=events)
    whole, path = tmp_path / f"whole{suffix}", tmp_path / f"damaged{suffix}"
    motion.save(whole)
    refused = 0
    for some in damaged(whole.read_bytes(), 350):
        path.write_bytes(some)
        try:
            load_motion(path)
        except ArgumentError:
            refused += 1
    assert refused > 100


def bomb(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t.npy", bytes(10**8))


def text_instead(path):
    path.write_bytes(b"\x93NUMPY\x01\x00")


def pickled(path):
    np.savez(path, t=np.array([object()]))


def of_two_dimensions(path):
    with np.load(path.with_name("good.npz")) as file:
        np.savez(path, **{**file, "event_t": np.zeros((2, 2))})


def without_names(path):
    with np.load(path.with_name("good.npz")) as file:
        np.savez(path, **{**file, "joint_names": np.array(1.0)})


@pytest.mark.parametrize("write", [bomb, text_instead, pickled, of_two_dimensions, without_names])
def test_archives_that_hold_no_motion_are_refused(tmp_path, monkeypatch, write):
    monkeypatch.setattr(files, "LARGEST", 10**7)
    simulate(CHAIN, *START, duration=0.02).save(tmp_path / "good.npz")
    write(tmp_path / "bad.npz")
    with pytest.raises(ArgumentError, match=r"bad\.npz"):
        load_motion(tmp_path / "bad.npz")
