# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Tables and arrays: the grammar of columns, declarations, and what is rejected."""

import numpy as np
import pytest

from mbs_dynamics.timeseries import TimeSeries, TimeSeriesError

T = np.arange(60) * 0.01
ONE, TWO = np.sin(T), 2.0 + np.cos(T)
RAD = np.pi / 180.0


def table(path, head, columns=(T, ONE, TWO, ONE, TWO), between=",", encoding="utf-8", end=""):
    rows = [between.join(f"{x:.9g}" for x in row) for row in np.column_stack(columns)]
    path.write_bytes(f"{head}\n{chr(10).join(rows)}\n{end}".encode(encoding))
    return path


@pytest.mark.parametrize(
    ("head", "joints", "factor"),
    [
        ("t,q_a,q_b,tau_a,tau_b", ("a", "b"), 1.0),
        ("time,position_a,position_b,effort_a,effort_b", ("a", "b"), 1.0),
        ("Time,Position1,Position2,Torque1,Torque2", ("1", "2"), 1.0),
        ("t,q[0],q[1],tau[0],tau[1]", ("0", "1"), 1.0),
        ("t,q.a.x,q.b.x,tau.a.x,tau.b.x", ("a.x", "b.x"), 1.0),
        ("# t,q_a,q_b,tau_a,tau_b", ("a", "b"), 1.0),
        ("# recorded by me\n# twice\nt,q_a,q_b,tau_a,tau_b", ("a", "b"), 1.0),
        ("t,q_a [deg],q_b (deg),tau_a [N m],tau_b[Nm]", ("a", "b"), RAD),
        ("t [s],q_a,q_b,raw_a,raw_b", ("a", "b"), 1.0),
    ],
)
def test_names_of_columns(head, joints, factor, tmp_path):
    found = TimeSeries.read(table(tmp_path / "run.csv", head))
    assert found.joints == joints
    np.testing.assert_allclose(found.q, factor * np.column_stack([ONE, TWO]), atol=1e-8)
    if "raw_a" in head:
        np.testing.assert_allclose(found.columns["raw_b"], TWO, atol=1e-8)
    else:
        np.testing.assert_allclose(found.tau[:, 1], TWO, atol=1e-8)


@pytest.mark.parametrize(
    ("columns", "kind", "expected"),
    [
        ({"Time": "t[ms]", "J1": "q_a[deg]", "J2": "q_b"}, "q", (RAD * ONE, TWO)),
        ({"Time": "t[ms]", "J": "q", "J1": "q_a", "J2": "q_b"}, None, "'J'"),
        ({"Time": "t=x", "J1": "q_a", "J2": "q_b"}, None, "--columns Time=t=x"),
        ({"J1": "q_a", "J2": "q_b", "t": "rows/50"}, "t", (np.arange(60) / 50.0,)),
        ({"J1": "q_a", "J2": "none", "q": "[2 deg]", "t": "[ms]"}, "q", (2 * RAD * ONE,)),
        ({"J1": "q_a", "J2": "q_b[mm]", "q": "[deg]"}, "q", (RAD * ONE, 1e-3 * TWO)),
        ({"J1": "q_a", "J2": "none"}, "q", (ONE,)),
        ({"J": "none", "J1": "q_a", "J2": "q_b [deg]", "q": "[rad]"}, None, "'J'"),
        ({"Tim": "t"}, None, "no column 'Tim' .did you mean 'Time'"),
        ({"t": "t[ms]", "J1": "q_a", "J2": "q_b"}, None, "no column 't'"),
        ({"Time": "clock"}, None, "--columns Time=clock: valid:"),
        ({"q": "[furlong]"}, None, "'furlong'; valid units are rad, deg"),
        ({"t": "rows/0"}, None, "t=rows/RATE"),
        ({"tau": "[%]"}, None, r"'%'; valid units are N m.* --columns tau=\[0.0032 N m\]"),
    ],
)  # fmt: skip
def test_declarations(columns, kind, expected, tmp_path):
    path = table(tmp_path / "run.csv", "Time,J1,J2", (1e3 * T, ONE, TWO))
    if kind is None:
        with pytest.raises(TimeSeriesError, match=expected):
            TimeSeries.read(path, columns=columns)
        return
    found = TimeSeries.read(path, columns=columns)
    values = getattr(found, kind).reshape(60, -1)
    np.testing.assert_allclose(values, np.column_stack(expected), atol=1e-8)


def test_a_whole_quantity_is_declared_or_left_out(tmp_path):
    path = table(tmp_path / "run.csv", "t,q_a,qd_a,tau_a,tau_b [N m]", (T, ONE, TWO, ONE, TWO))
    with pytest.raises(TimeSeriesError, match=r"tau of 'b', but no position.*tau_b=none"):
        TimeSeries.read(path)
    columns = {"tau": "[0.0032 N m]", "qd": "none", "tau_b [N m]": "q_b"}
    found = TimeSeries.read(path, columns=columns)
    assert found.joints == ("a", "b")
    assert found.qd is None
    assert "tau" in found.declared
    np.testing.assert_allclose(found.tau[:, 0], 0.0032 * ONE, atol=1e-8)
    assert np.isnan(found.tau[:, 1]).all()


def test_arrays_are_declared_by_their_name(tmp_path):
    path, q = tmp_path / "run.npz", np.column_stack([ONE, TWO])
    np.savez(path, stamps=1e3 * T, state=q, motor=2.0 * q, joints=np.array(["a", "b"]))
    found = TimeSeries.read(path, columns={"stamps": "t[ms]", "state": "q[deg]", "motor": "tau"})
    assert found.joints == ("a", "b")
    np.testing.assert_allclose(found.t, T, atol=1e-12)
    np.testing.assert_allclose(found.q, RAD * q)
    np.testing.assert_allclose(found.tau, 2.0 * q)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("between", [",", ";", "\t", " "])
def test_separators_and_byte_order_marks(encoding, between, tmp_path):
    head = between.join(["t", "q_älter", "q_b", "tau_älter", "tau_b"])
    path = table(tmp_path / "run.csv", head, between=between, encoding=encoding)
    if between != ",":
        path.write_bytes(path.read_bytes().decode(encoding).replace(".", ",").encode(encoding))
    found = TimeSeries.read(path)
    assert found.joints == ("älter", "b")
    np.testing.assert_allclose(found.q, np.column_stack([ONE, TWO]), atol=1e-8)


@pytest.mark.parametrize(
    ("head", "end", "said"),
    [
        ("t,q_a,q_b,tau_a,tau_b", "0.1,2\n", "line 62: 2 cells; the header has 5"),
        ("t,q_a,q_b,tau_a,tau_b", "1.1,1,2,x,3\n", "line 62: 'tau_a' is 'x'; valid: numbers"),
        ("t,q_a,q_a,tau_a,tau_b", "", "the header has 'q_a' twice"),
        ("t,q_a,pos_a,tau_a,tau_b", "", r"'q_a' and 'pos_a' are both q of a.*pos_a'=none"),
        ("t,time,q_b,tau_a,tau_b", "", r"'t' and 'time' are both t; .*=none"),
        ("t,q_a,q_b,tau_a,tau_c", "", "tau of 'c', but no position"),
        ("s,q_a,q_b,tau_a,tau_b", "", r"has no time.*NAME=t\[ms\], or t=rows/RATE"),
        ("t,x,y,tau_a,tau_b", "", r"has no positions.*NAME=q_joint1\[deg\]"),
        ("t,q_a,q_b,tau_a [%],tau_b", "", "'tau_a .%.' is in '%'"),
        ("0,1,2,3,4", "", "has no header"),
        (
            "t,q_a,q_b,tau_a,tau_b",
            "0.2,1,2,1,2\n",
            "'t' does not increase in 1 rows, such as 0.59 s",
        ),
    ],
)
def test_rejects_tables_by_column_and_line(head, end, said, tmp_path):
    path = table(tmp_path / "run.csv", head, end=end)
    with pytest.raises(TimeSeriesError, match=said):
        TimeSeries.read(path)


def test_a_clock_that_is_coarser_than_the_rows_is_declared_by_row_numbers(tmp_path):
    path = table(tmp_path / "run.csv", "t,q_a", (np.floor(T / 0.05) * 0.05, ONE))
    with pytest.raises(TimeSeriesError, match=r"t=rows/107\.3"):
        TimeSeries.read(path)
    assert TimeSeries.read(path, columns={"t": "rows/100"}).t[-1] == pytest.approx(0.59)


def test_rows_with_missing_values_are_left_out_and_named(tmp_path):
    path = table(tmp_path / "run.csv", "t,q_a,q_b,tau_a,tau_b", end="0.7,1,2,,2\n0.8,1,2,nan,2\n")
    found = TimeSeries.read(path)
    assert len(found) == 60
    assert found.notes == ("2 rows with missing values were left out: 61 (tau_a), 62 (tau_a)",)
    gaps = np.where(np.arange(60) < 40, np.nan, ONE)
    path = table(tmp_path / "run.csv", "t,q_a,tau_a", (T, ONE, gaps))
    with pytest.raises(TimeSeriesError, match=r"40 of 60 rows lack values: 1 .tau_a"):
        TimeSeries.read(path)


@pytest.mark.parametrize("time", ["x", "t"])
def test_still_poses_need_no_time(time, tmp_path):
    path = table(tmp_path / "run.csv", f"{time},q_a,tau_a", (0.0 * T, ONE, TWO))
    found = TimeSeries.read(path, timed=False)
    assert len(found) == 60
    assert "t" in found.declared


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("absent.csv", None, "there is no file"),
        ("run.bin", b"t", r"run.bin is not motion data; valid: \.csv"),
        ("run.npz", b"no archive", "is not a .npz file"),
        ("run.csv", b"\xfft,q", "cannot be read as text"),
        ("run.csv", b"t,q_a\n", "no lines of numbers"),
    ],
)
def test_rejects_other_files(name, data, said, tmp_path):
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(TimeSeriesError, match=said):
        TimeSeries.read(tmp_path / name)


def test_objects_in_archives_are_not_loaded(tmp_path):
    np.savez(tmp_path / "run.npz", t=np.array([{}], dtype=object))
    with pytest.raises(TimeSeriesError, match=r"allow_pickle"):
        TimeSeries.read(tmp_path / "run.npz")


def test_names_of_joints_that_stand_twice_are_refused(tmp_path):
    archive, points = tmp_path / "run.npz", tmp_path / "run.yaml"
    np.savez(archive, t=T, q=np.column_stack([ONE, TWO]), joints=np.array(["a", "a"]))
    point = "{positions: [1.0, 2.0], time_from_start: {sec: 1, nanosec: 0}}"
    points.write_text(f"joint_names: [a, a]\npoints: [{point}]\n")
    for path in (archive, points):
        with pytest.raises(TimeSeriesError, match="the names of joints have 'a' twice"):
            TimeSeries.read(path)


def test_the_user_is_believed_before_the_file(tmp_path):
    path = table(tmp_path / "run.csv", "t,q_a [deg],q_b [deg]", (T, ONE, TWO))
    found = TimeSeries.read(path, columns={"q": "[rad]", "q_b [deg]": "q_b[mrad]"})
    np.testing.assert_allclose(found.q, np.column_stack([ONE, 1e-3 * TWO]), atol=1e-8)
