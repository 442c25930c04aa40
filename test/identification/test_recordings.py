# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings: from bags, tables and arrays; and what is found wrong with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from bags import write_bag
from identification_bench import JOINTS, TRUE, recorded

from mbs_dynamics.errors import UnknownJointError
from mbs_dynamics.identification import Recording, RecordingError, read_recording
from mbs_dynamics.identification.cleaning import cleaned
from mbs_dynamics.identification.recording import matched, merged
from mbs_dynamics.identification.signals import cutoff_of, filtered, rate_of
from mbs_dynamics.model.joint import Limits

pytestmark = pytest.mark.backend_independent

SHORT = recorded(1, duration=3.0, rate=100.0)


def assert_same(found, expected=SHORT, velocities=True):
    assert found.joints == expected.joints
    np.testing.assert_allclose(found.t - found.t[0], expected.t - expected.t[0], atol=1e-9)
    np.testing.assert_allclose(found.q, expected.q)
    np.testing.assert_allclose(found.tau, expected.tau)
    if velocities:
        np.testing.assert_allclose(found.qd, expected.qd)
    else:
        assert found.qd is None


def test_tables(tmp_path):
    head = ["t", *(f"{x}_{name}" for x in ("q", "qd", "tau") for name in JOINTS)]
    table = np.column_stack([SHORT.t, SHORT.q, SHORT.qd, SHORT.tau])
    path = tmp_path / "run.csv"
    np.savetxt(path, table, delimiter=",", header=", ".join(head), comments="", fmt="%.17g")
    assert_same(read_recording(path))
    renamed = [name.replace("q_joint1", "first") for name in head]
    np.savetxt(path, table, delimiter=",", header=",".join(renamed), comments="", fmt="%.17g")
    found = read_recording(path, columns={"first": "q_joint1"})
    assert set(found.joints) == set(JOINTS)


def test_tables_with_numbers_in_place_of_names(tmp_path):
    head = ["Time", *(f"{x}{k}" for x in ("Position", "Torque") for k in range(1, 8))]
    path = tmp_path / "vendor.csv"
    table = np.column_stack([SHORT.t, SHORT.q, SHORT.tau])
    np.savetxt(path, table, delimiter=",", header=",".join(head), comments="", fmt="%.17g")
    found = read_recording(path)
    assert found.joints == ()
    assert_same(found.of(TRUE), velocities=False)


@pytest.mark.parametrize("between", [",", ";", "\t"])
def test_tables_with_the_joint_first_and_other_separators(tmp_path, between):
    words = ("pos", "vel", "effort")
    head = ["timestamp", *(f"{name}_{word}" for word in words for name in JOINTS)]
    path = tmp_path / "run.csv"
    table = np.column_stack([SHORT.t, SHORT.q, SHORT.qd, SHORT.tau])
    line = between.join(head)
    np.savetxt(path, table, delimiter=between, header=line, comments="", fmt="%.17g")
    assert_same(read_recording(path))


@pytest.mark.parametrize(
    "names",
    [
        {"t": "t", "q": "q", "qd": "qd", "tau": "tau"},
        {"t": "times", "q": "positions", "qd": "velocities", "tau": "torques"},
    ],
)
def test_arrays(tmp_path, names):
    path = tmp_path / "run.npz"
    arrays = {name: getattr(SHORT, key) for key, name in names.items()}
    np.savez(path, **arrays, joints=np.array(JOINTS))
    assert_same(read_recording(path))
    np.savez(path, **arrays)
    assert_same(read_recording(path).of(TRUE))


@pytest.mark.parametrize("storage", ["sqlite3", "mcap"])
@pytest.mark.parametrize("whole", [True, False], ids=["folder", "file"])
def test_bags(tmp_path, storage, whole):
    write_bag(tmp_path / "bag", SHORT, storage)
    suffix = {"sqlite3": "*.db3", "mcap": "*.mcap"}[storage]
    path = tmp_path / "bag" if whole else next((tmp_path / "bag").glob(suffix))
    assert_same(read_recording(path))
    with pytest.raises(RecordingError, match="/joint_states"):
        read_recording(path, topic="/other")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("run.bin", "t", "valid are .db3, .mcap"),
        ("run.csv", "t,q_a\n1,2\n", "has no torques of a"),
        ("run.csv", "q_a,tau_a\n1,2\n", "has no time"),
        ("run.csv", "t,q_a,tau_a\n1,2\n", "line 2: 2 cells; the header has 3"),
        ("run.csv", "t,q_a,tau_a\n1,2,on\n", "line 2: 'tau_a' is 'on'"),
        ("run.csv", "1,2,3\n4,5,6\n", "has no header"),
        ("run.npz", "no archive", "is no .npz file of NumPy"),
        ("run.db3", "no database", "cannot be read as a bag"),
    ],
)
def test_files_that_hold_no_recording(tmp_path, name, text, said):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RecordingError, match=said.replace(".", r"\.")):
        read_recording(path)
    with pytest.raises(RecordingError):
        read_recording(tmp_path / "absent.csv")


def test_names_with_another_prefix_are_those_of_the_model():
    panda = [f"panda_joint{k}" for k in range(1, 8)]
    names, notes = matched(
        "run", [f"fer_joint{k}" for k in range(1, 8)], [*panda, "panda_finger_joint1"]
    )
    assert names == panda
    assert "taken for panda_joint1" in notes[0]
    assert matched("run", ["x", "y"], panda) == (["x", "y"], ())


def test_joints_are_brought_into_the_order_of_the_model():
    order = [6, 0, 3, 1, 2, 5, 4]
    mixed = Recording(
        "mixed",
        (*(JOINTS[k] for k in order), "gripper"),
        SHORT.t,
        np.column_stack([SHORT.q[:, order], SHORT.t]),
        np.column_stack([SHORT.tau[:, order], SHORT.t]),
    )
    assert_same(mixed.of(TRUE), velocities=False)
    fewer = replace(SHORT, joints=JOINTS[:3], q=SHORT.q[:, :3], tau=SHORT.tau[:, :3], qd=None)
    assert "were not recorded: joint4" in fewer.of(TRUE).notes[0]
    with pytest.raises(UnknownJointError, match="'a, b'"):
        replace(fewer, joints=("a", "b"), q=SHORT.q[:, :2], tau=SHORT.tau[:, :2]).of(TRUE)
    with pytest.raises(RecordingError, match=r"3 .*7"):
        replace(fewer, joints=()).of(TRUE)


def test_joints_in_several_messages_are_merged():
    samples = []
    for k, t in enumerate(SHORT.t):
        values = zip(JOINTS, SHORT.q[k], SHORT.qd[k], SHORT.tau[k], strict=True)
        rows = {name: (q, qd, tau) for name, q, qd, tau in values}
        samples.append((t, {name: rows[name] for name in JOINTS[:4]}))
        if k % 2 == 0:
            samples.append((t + 0.001, {name: rows[name] for name in JOINTS[4:]}))
    found = merged("split", samples)
    assert "interpolated" in found.notes[0]
    np.testing.assert_allclose(found.q[10:-10], SHORT.q[10:-10], atol=0.01)


@pytest.mark.parametrize("limited", [True, False])
def test_degrees_are_said(limited):
    free = [replace(b, joint=replace(b.joint, limits=Limits())) for b in TRUE.bodies]
    model = TRUE if limited else replace(TRUE, bodies=tuple(free))
    turns = replace(SHORT, q=SHORT.q + 4.0 * np.pi * (np.arange(7) == 0), qd=None)
    if not limited:
        assert len(cleaned(turns, model)) == 1
    with pytest.raises(RecordingError, match="not in rad"):
        cleaned(replace(SHORT, q=np.degrees(SHORT.q)), model)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tau": np.zeros_like(SHORT.tau)}, "holds no efforts of any joint"),
        ({"tau": np.where(np.arange(7) == 2, np.nan, SHORT.tau)}, "no efforts of joint3"),
        ({"q": np.tile(SHORT.q[0], (300, 1))}, "positions are constant"),
    ],
)
def test_what_holds_nothing_is_refused(changes, said):
    with pytest.raises(RecordingError, match=said):
        cleaned(replace(SHORT, **changes), TRUE)


def test_too_few_samples_are_refused():
    few = replace(SHORT, t=SHORT.t[:20], q=SHORT.q[:20], tau=SHORT.tau[:20], qd=SHORT.qd[:20])
    with pytest.raises(RecordingError, match=r"20 .*50"):
        cleaned(few, TRUE)


def test_gaps_divide_and_clocks_that_go_back_are_mended():
    keep = (SHORT.t < 1.0) | (SHORT.t > 1.5)
    gap = replace(SHORT, t=SHORT.t[keep], q=SHORT.q[keep], tau=SHORT.tau[keep], qd=SHORT.qd[keep])
    parts = cleaned(gap, TRUE)
    assert len(parts) == 2
    assert "1 gap(s)" in parts[0].notes[0]
    assert sum(len(part.t) for part in parts) == keep.sum()
    t = SHORT.t.copy()
    t[100] = t[98]
    (part,) = cleaned(replace(SHORT, t=t, qd=None), TRUE)
    assert "1 samples whose time does not advance" in part.notes[0]
    np.testing.assert_allclose(part.q[150], SHORT.q[150], atol=1e-9)


def test_bad_samples_and_wrapped_angles_are_mended():
    q, tau = SHORT.q.copy(), SHORT.tau.copy()
    q[:, 0] = (q[:, 0] + 3.0 + np.pi) % (2.0 * np.pi) - np.pi
    tau[7, 2] = np.nan
    (part,) = cleaned(replace(SHORT, q=q, tau=tau), TRUE)
    assert any("wrapped angles were unwrapped: joint1" in note for note in part.notes)
    assert any("1 samples that are not finite" in note for note in part.notes)
    assert np.abs(np.diff(part.q[:, 0])).max() < 0.1


@pytest.mark.parametrize("effort", [0.0, np.nan])
def test_a_gripper_without_efforts_is_left_out(effort):
    q, tau = SHORT.q.copy(), SHORT.tau.copy()
    q[:, 6], tau[:, 6] = 0.04, effort
    (part,) = cleaned(replace(SHORT, q=q, tau=tau, qd=None), TRUE)
    assert part.joints == JOINTS[:6]
    assert "neither move nor have torques: joint7" in part.notes[0]


def test_stretches_without_torques_are_left_out():
    tau = SHORT.tau.copy()
    tau[40:45] = 0.0
    (part,) = cleaned(replace(SHORT, tau=tau), TRUE)
    assert "5 samples without any torque" in part.notes[0]
    assert part.tau.any(axis=1).all()


@pytest.mark.parametrize("clock", ["counted", "milliseconds"])
def test_a_clock_in_other_units_is_found_by_the_velocities(clock):
    t = np.arange(len(SHORT.t), dtype=float) if clock == "counted" else 1e3 * SHORT.t
    (part,) = cleaned(replace(SHORT, t=t), TRUE)
    assert rate_of(part) == pytest.approx(100.0, rel=1e-3)
    assert "the clock is not that of the velocities" in part.notes[0]


def test_velocities_that_are_none_are_not_used():
    for qd in (np.zeros_like(SHORT.q), np.random.default_rng(1).normal(size=SHORT.q.shape)):
        (part,) = cleaned(replace(SHORT, qd=qd), TRUE)
        assert part.qd is None
        assert "are not used" in part.notes[0]


@pytest.mark.parametrize("velocities", [True, False])
def test_rates_have_no_shift_in_time(velocities):
    """Against the exact rates of a motion; noise on the positions."""
    long = recorded(1, duration=20.0, rate=100.0)
    rng = np.random.default_rng(2)
    noisy = replace(
        long,
        q=long.q + 1e-5 * rng.normal(size=long.q.shape),
        qd=long.qd if velocities else None,
    )
    cutoff = cutoff_of([noisy])
    found = filtered(noisy, cutoff)
    exact = np.stack([np.interp(found.t, long.t, x) for x in long.qd.T], axis=1)
    assert np.abs(found.qd - exact).max() < 0.02 * np.abs(exact).max()
    lag = [
        np.argmax(np.correlate(a - a.mean(), b - b.mean(), "full")) - (len(a) - 1)
        for a, b in zip(found.qd.T, exact.T, strict=True)
    ]
    assert lag == [0] * 7
    assert found.rate >= 5.0 * cutoff
