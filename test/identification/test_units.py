# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Clocks, units and tables as others write them: an error, or the truth, never a third thing."""

from __future__ import annotations

import warnings
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from bags import write_bag
from damage import damaged
from identification_bench import JOINTS, TRUE, recorded

import mbs_dynamics as mbs
from mbs_dynamics import files
from mbs_dynamics.errors import MbsError
from mbs_dynamics.identification import RecordingError, identify, read_recording, validate
from mbs_dynamics.identification.cleaning import cleaned
from mbs_dynamics.identification.signals import rate_of
from mbs_dynamics.resources import robot_path

pytestmark = pytest.mark.backend_independent

with warnings.catch_warnings():
    warnings.simplefilter("ignore", mbs.ModelWarning)  # of the links that are left out
    ARM = mbs.Model.from_urdf(robot_path("arm7"), tip="link4")
LOADED = ARM.with_payload("link4", 1.0, (0.0, 0.02, 0.1)).loaded()
N = ARM.n

CLOCKS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9, "min": 1 / 60, "h": 1 / 3600, "samples": None}
VELOCITIES = {
    **{"rad/s": 1.0, "deg/s": 180 / np.pi, "rpm": 30 / np.pi, "half": 0.5, "97 %": 0.97},
    **{
        "gears": np.array([100.0, -160.0, 100.0, 81.0]),
        "one lacks": 1.0,
        "none": None,
        "zero": 0.0,
    },
}
TORQUES = {
    **{"N m": 1.0, "mN m": 1e3, "kg cm": 100 / 9.80665, "N cm": 100.0, "kg m": 1 / 9.80665},
    **{"%": 100.0 / ARM.effort_limits, "of limit": 1.0 / ARM.effort_limits},
}


def measured(rng, duration, rate):
    """Return times, positions, velocities and torques of the loaded arm, with friction."""
    t = np.arange(0.0, duration, 1.0 / rate)
    w, half = 2.0 * np.pi * rng.uniform(0.07, 0.12), 0.5 * (ARM.upper - ARM.lower)
    a, b = 0.35 * rng.normal(size=(2, 5, N)) / np.arange(1, 6)[:, None]
    k, phase = w * np.arange(1, 6)[:, None], w * np.arange(1, 6) * t[:, None]
    scale = np.minimum(1.0, 0.5 * half / (np.abs(a) + np.abs(b)).sum(axis=0))
    a, b, s, c = scale * a, scale * b, np.sin(phase), np.cos(phase)
    q = 0.5 * (ARM.upper + ARM.lower) + s @ a + c @ b
    qd, qdd = c @ (k * a) - s @ (k * b), -s @ (k**2 * a) - c @ (k**2 * b)
    tau = mbs.inverse_dynamics(LOADED, q, qd, qdd) + 0.5 * np.tanh(qd / 0.05) + 0.3 * qd
    return t, q, qd + 1e-3 * rng.normal(size=q.shape), tau + 0.05 * rng.normal(size=q.shape)


def write_table(path, rng, t, q, qd, tau, clock="", torque=""):
    """Write a table in a random form, with desired positions; given units stand in the header."""
    names = ARM.joint_names if rng.random() < 0.5 else "1234"
    style = ["{0}_{1}", "{0}[{1}]", "{0}.{1}"][rng.integers(3)]
    columns = [("t" + (f"[{clock}]" if clock else ""), t)]
    for word, values in (("q", q), ("qd", qd), ("tau", tau), ("q_d", q + 0.1)):
        unit = f"[{torque.replace(' ', '')}]" if word == "tau" and torque else ""
        for j, name in enumerate(names):
            if values is not None and np.isfinite(values[:, j]).all():
                columns.append((style.format(word, name) + unit, values[:, j]))
    columns = [columns[k] for k in rng.permutation(len(columns))]
    between, comma = [(",", 0), (";", 1), ("\t", 1), (";", 0), (" ", 0)][rng.integers(5)]
    digits = "%.10g" if rng.random() < 0.5 else "%.12f"
    rows = [
        between.join(digits % x for x in row) for row in zip(*dict(columns).values(), strict=True)
    ]
    text = "\n".join(row.replace(".", ",") if comma else row for row in rows)
    text = between.join(name for name, _ in columns) + "\n" + text + "\n"
    path.write_bytes(text.encode(["utf-8", "utf-8-sig", "utf-16", "latin-1"][rng.integers(4)]))


def outcome(seed, folder):
    """Return what was made, what became of it, and the relative error of gravity, or None."""
    rng = np.random.default_rng(seed)
    rate = float(rng.choice([50, 100, 125, 250, 500]))
    t, q, qd, tau = measured(rng, rng.uniform(20.0, 60.0), rate)
    clock, velocity, torque = (rng.choice(list(one)) for one in (CLOCKS, VELOCITIES, TORQUES))
    clock, velocity, torque = (
        usual if rng.random() < share else one
        for usual, share, one in (("s", 0.4, clock), ("none", 0.2, velocity), ("N m", 0.6, torque))
    )
    stated = rng.random(2) < 0.3
    factor = rate if CLOCKS[clock] is None else CLOCKS[clock]
    start = 0.0 if rng.random() < 0.7 else 1.7e9 if clock in ("s", "ms") else 100.0
    qd = None if velocity == "none" else VELOCITIES[velocity] * qd
    if velocity == "one lacks":
        qd[:, 1] = np.nan
    write_table(
        folder / "run.csv", rng, (start + t) * factor, q, qd, TORQUES[torque] * tau,
        clock if stated[0] and clock != "samples" else "",
        torque if stated[1] and torque != "of limit" else "",
    )  # fmt: skip
    made = f"{seed}: {clock}, {velocity}, {torque}, stated {stated}, {rate:g} Hz"
    try:
        found = identify(ARM, [read_recording(folder / "run.csv")])
    except RecordingError as error:
        return made, str(error), None
    if not found.better:
        return made, "not written", None
    poses = np.random.default_rng(0).uniform(ARM.lower, ARM.upper, (50, N))
    true, g = (mbs.gravity_torques(one, poses) for one in (LOADED, found.model))
    return made, str(found.notes), float(np.linalg.norm(g - true) / np.linalg.norm(true))


@pytest.mark.parametrize("seed", [5, 9, 11, 21, 23, 56])
def test_a_random_table_is_identified_rightly_or_refused(seed, tmp_path):
    made, said, error = outcome(seed, tmp_path)
    assert error is None or error < 0.01, (made, said)


@pytest.mark.slow
def test_a_hundred_random_tables_are_identified_rightly_or_refused(tmp_path):
    made = [outcome(seed, tmp_path) for seed in range(1000, 1100)]
    assert [one for one in made if one[2] is not None and one[2] >= 0.01] == []
    assert sum(one[2] is not None for one in made) > 40


LONG = recorded(1, duration=12.0, rate=100.0)


@pytest.mark.parametrize(
    ("factor", "said"),
    [
        (1e3, "in ms:"),
        (1e6, "in us:"),
        (1e9, "in ns:"),
        (1 / 60, "in minutes:"),
        (100.0, "samples"),
    ],
)
def test_a_clock_in_another_unit_is_named(factor, said):
    with pytest.raises(RecordingError, match="not in s") as error:
        cleaned(replace(LONG, t=np.round(factor * LONG.t, 9), qd=None), TRUE)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("factor", "said"),
    [
        (180.0 / np.pi, "velocities are 57.3 times the rates of the positions, as if in deg/s"),
        (30.0 / np.pi, "as if in rpm"),
        (0.5, "velocities are 0.5 times"),
        (0.97, "velocities are 0.97 times"),
        (np.where(np.arange(7) == 1, -100.0, 1.0), "velocities of joint2 are -100 times"),
    ],
)
def test_a_uniform_clock_is_trusted_and_velocities_in_other_units_are_not_used(factor, said):
    (part,) = cleaned(replace(LONG, qd=factor * LONG.qd), TRUE)
    assert rate_of(part) == pytest.approx(100.0)
    assert said in part.notes[0]
    assert part.qd is None or np.isnan(part.qd).any(axis=0).tolist() == [False, True] + 5 * [False]


def test_a_clock_that_velocities_and_torques_contradict_is_refused():
    with pytest.raises(RecordingError, match=r"0\.01 s.*0\.0125"):
        cleaned(replace(LONG, t=1.25 * LONG.t), TRUE)
    half = replace(LONG, t=np.arange(len(LONG.t), dtype=float), qd=0.5 * LONG.qd)
    with pytest.raises(RecordingError, match="not in s"):
        cleaned(half, TRUE)


def test_stamps_that_are_coarser_than_samples_are_spaced_equally():
    (part,) = cleaned(replace(LONG, t=np.floor(LONG.t / 0.05) * 0.05, qd=None), TRUE)
    assert rate_of(part) == pytest.approx(100.0, rel=0.01)
    assert "coarser" in part.notes[0]


@pytest.mark.parametrize(
    ("factor", "said"),
    [(100 / 9.80665, "kg cm"), (1e3, "mN m"), (100.0 / TRUE.effort_limits, "not in N m|factor")],
)
def test_torques_in_other_units_are_named(factor, said):
    """Per cent of limits that differ by joint are told by the masses, which no limit states."""
    with pytest.raises(RecordingError, match=said):
        validate(TRUE, replace(LONG, tau=factor * LONG.tau))


T = np.arange(60) * 0.01
ONE, TWO = np.sin(T), 2.0 + np.cos(T)
RAD = np.pi / 180.0


def table(path, head, columns, between=",", comma=False, encoding="utf-8", end=""):
    rows = [between.join(f"{x:.6g}" for x in row) for row in np.column_stack(columns)]
    text = "\n".join(row.replace(".", ",") if comma else row for row in rows)
    path.write_bytes(f"{head}\n{text}\n{end}".encode(encoding))
    return path


@pytest.mark.parametrize(
    ("head", "joints", "first"),
    [
        ("t,q_2,q_1,tau_2,tau_1", (), (TWO, ONE)),
        ("t,Position10,Position9,Torque10,Torque9", "numbers 9, 10", None),
        ("t,q_a,q_b,tau_a,tau_b", ("a", "b"), (ONE, TWO)),
        ("t,q[0],q_d[0],tau_J[0],tau_J_d[0]", (), (ONE,)),
        ("t,q_a,q_cmd_a,tau_a,tau_a_cmd", ("a",), (ONE,)),
        ("t,q_a,q_d,tau_a,tau_d", ("a", "d"), (ONE, TWO)),
        ("t,q_a,pos_a,tau_a,tau_b", "both q of a", None),
        ("t,q_a [deg],q_b_deg,tau_a (N m),tau_b_Nm", ("a", "b"), (RAD * ONE, RAD * TWO)),
        ("t,q_a,q_b,tau_a [kg cm],tau_b [%]", "is in '%'", None),
        ("t,q_a,q_b,tau_a [furlong],tau_b", "is in 'furlong'", None),
        ("# t,q_a,q_b,tau_a,tau_b", ("a", "b"), (ONE, TWO)),
        ("sep=,\nt,q_a,q_b,tau_a,tau_b\ns,rad,rad,N m,N m", ("a", "b"), (ONE, TWO)),
        ("t,/a/position,/b/position,/a/effort,/b/effort", ("/a", "/b"), (ONE, TWO)),
    ],
)  # fmt: skip
def test_headers(head, joints, first, tmp_path):
    path = table(tmp_path / "run.csv", head, [T, ONE, TWO, ONE, TWO])
    if first is None:
        with pytest.raises(RecordingError, match=joints):
            read_recording(path)
        return
    found = read_recording(path)
    assert found.joints == joints
    np.testing.assert_allclose(found.q, np.stack(first, axis=1), atol=1e-5)


def test_ten_joints_are_in_the_order_of_their_numbers(tmp_path):
    order = [1, 10, *range(2, 10)]
    head = ",".join(["t", *(f"{word}_{k}" for word in ("q", "tau") for k in order)])
    values = [np.full(60, float(k)) for k in order]
    found = read_recording(table(tmp_path / "run.csv", head, [T, *values, *values]))
    assert found.q[0].tolist() == found.tau[0].tolist() == list(range(1, 11))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1"])
@pytest.mark.parametrize(("between", "comma"), [(",", 0), (";", 1), ("\t", 1), (" ", 0), ("|", 0)])
def test_encodings_and_separators(encoding, between, comma, tmp_path):
    head = between.join(["t", "q_älter", "q_b", "tau_älter", "tau_b"])
    path = table(tmp_path / "run.csv", head, [T, ONE, TWO, ONE, TWO], between, comma, encoding)
    found = read_recording(path)
    assert found.joints == ("älter", "b")
    np.testing.assert_allclose(found.q, np.stack([ONE, TWO], axis=1), atol=1e-5)


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("0.1,2", "line 62: 2 cells; the header has 5"),
        ("0.1,1,2,x,3", "line 62: 'tau_a' is 'x'"),
        ("0.1,1,2,1,\0", "no text"),
        ('"0,1",1,2,1,2', "has a comma, and others have decimal points"),
    ],
)
def test_damaged_rows_are_named(end, said, tmp_path):
    path = table(tmp_path / "run.csv", "t,q_a,q_b,tau_a,tau_b", [T, ONE, TWO, ONE, TWO], end=end)
    with pytest.raises(RecordingError, match=said):
        read_recording(path)


def test_joints_without_velocities_leave_the_others_theirs(tmp_path):
    head = [
        "t",
        *(f"{w}_{n}" for w in ("q", "qd", "tau") for n in JOINTS if (w, n) != ("qd", JOINTS[2])),
    ]
    columns = [LONG.t, LONG.q, np.delete(LONG.qd, 2, axis=1), LONG.tau]
    found = read_recording(table(tmp_path / "run.csv", ",".join(head), columns))
    assert "no velocities of joint3" in found.notes
    (part,) = cleaned(found, TRUE)
    assert np.isnan(part.qd).all(axis=0).tolist() == [k == 2 for k in range(7)]
    assert identify(TRUE, [found]).errors.identified < 0.02


def test_columns_that_do_not_exist_or_mean_nothing_are_refused(tmp_path):
    path = table(tmp_path / "run.csv", "Time,q_a,tau_a", [1e3 * T, ONE, TWO])
    with pytest.raises(RecordingError, match=r"'Tim'.*'Time'"):
        read_recording(path, columns={"Tim": "t"})
    with pytest.raises(RecordingError, match="Time=clock"):
        read_recording(path, columns={"Time": "clock"})
    np.testing.assert_allclose(read_recording(path, columns={"Time": "t[ms]"}).t, T, atol=1e-5)


def survives(folder, count):
    """Read damaged recordings of all kinds; return the share that was refused by an MbsError."""
    short = recorded(1, duration=0.3, rate=100.0)
    arrays = {name: getattr(short, name) for name in ("t", "q", "qd", "tau")}
    np.savez_compressed(folder / "r.npz", **arrays, joints=np.array(JOINTS))
    head = ",".join(["t", *(f"{word}_{name}" for word in ("q", "qd", "tau") for name in JOINTS)])
    written = [folder / "r.npz", table(folder / "r.csv", head, list(arrays.values()))]
    for storage, suffix in (("sqlite3", "db3"), ("mcap", "mcap")):
        write_bag(folder / storage, short, storage)
        written += (folder / storage).glob(f"*.{suffix}")
    assert len(written) == 4
    refused = 0
    for path in written:
        copy = folder / f"damaged{path.suffix}"
        for some in damaged(path.read_bytes(), count):
            copy.write_bytes(some)
            try:
                read_recording(copy)
            except MbsError:
                refused += 1
    return refused / (len(written) * count)


def test_damaged_recordings_are_refused(tmp_path):
    assert survives(tmp_path, 30) > 0.5


@pytest.mark.slow
def test_a_thousand_damaged_recordings_of_each_kind_are_refused(tmp_path):
    assert survives(tmp_path, 1000) > 0.5


def archive(path, shape, size):
    """Write an archive of an array t of some shape, and with some bytes of zeros."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file, file.open("t.npy", "w") as t:
        given = {"descr": "<f8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(t, given)
        for _ in range(size // 2**20):
            t.write(bytes(2**20))
    return path


def test_archives_that_would_exhaust_the_memory_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "LARGEST", 2**21)  # and 4 kB of zeros as compressed
    for shape, size, said in (
        ((2**19,), 2**22, "valid is at most"),
        ((10**12,), 0, "holds 0 bytes"),
    ):
        with pytest.raises(RecordingError, match=said):
            read_recording(archive(tmp_path / "bomb.npz", shape, size))
    objects = np.array([{}], dtype=object)
    np.savez(tmp_path / "objects.npz", t=objects)
    with pytest.raises(RecordingError, match="holds objects"):
        read_recording(tmp_path / "objects.npz")
