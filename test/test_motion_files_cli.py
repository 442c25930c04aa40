# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Files that one command writes and others read; names and paths on the command line."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from bags import write_bag
from made_once import made_once

import mbs_dynamics as mbs
from mbs_dynamics import yaml_files
from mbs_dynamics.cli import main
from mbs_dynamics.control.log import Log
from mbs_dynamics.control.motors import Frame, Motors
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.resources import robot_path
from mbs_dynamics.timeseries import TimeSeries

ARM = mbs.Model.from_urdf(robot_path("arm7"))
NAMES = ARM.joint_names


WRITERS = {
    "simulate": (".csv", ".npz"),
    "excite": (".csv",),
    "excite --trajectory": (".yaml",),
    "retime": (".csv", ".npz", ".yaml"),
    "log": (".csv",),
    "record": ("_sqlite3", "_mcap"),
}
"""Kinds of files that commands write, and bags that ROS records."""

TORQUES = ("simulate", "log", "record")
"""Writers whose files have torques; the others plan motions."""

READERS = {
    "plot": ["plot", "FILE", "--figure", "OUT.png"],
    "view": ["view", "arm7", "--motion", "FILE", "--write", "OUT.html"],
    "retime": ["retime", "arm7", "FILE", "--out", "OUT.npz", "--tolerance", "0.01"],
    "simulate": ["simulate", "arm7", "--duration", "0.2", "--torques", "FILE", "--out", "OUT.csv"],
    "validate": ["validate", "arm7", "FILE", "--gravity", "0", "0", "0"],
    "identify": ["identify", "arm7", "FILE", "--gravity", "0", "0", "0", "--force"],
}
NEED_TORQUES = ("simulate", "validate", "identify")
NEEDS = {"plot": "matplotlib", "view": "viser"}
FILES = [f"{writer}{kind}" for writer, kinds in WRITERS.items() for kind in kinds]
PAIRS = (
    *((file, "retime") for file in FILES),
    *(("simulate.csv", reader) for reader in READERS),
    *(("excite.csv", reader) for reader in NEED_TORQUES),
)
"""Each kind of file with one reader, each reader with one kind, and those that lack torques."""


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Write a motion by every writer, and return the folder."""
    pytest.importorskip("scipy")
    pytest.importorskip("rosbags")
    return made_once(tmp_path_factory, "written", write_all)


def write_all(folder):
    torques = folder / "torques.csv"
    t = np.arange(0.0, 6.0, 0.01)
    tau = np.sin(np.outer(t, np.arange(2.0, 9.0))) * 0.2 * ARM.effort_limits[:7] ** 0.5
    head = ",".join(["t", *NAMES])
    np.savetxt(torques, np.column_stack([t, tau]), delimiter=",", header=head, comments="")
    start = [f"{name}={x:g}" for name, x in zip(NAMES, 0.5 * (ARM.lower + ARM.upper), strict=True)]
    still = ["--gravity", "0", "0", "0", "--damping", "5", "--q", *start]
    for kind in WRITERS["simulate"]:
        out = ["--every", "10", "--out", str(folder / f"simulate{kind}")]
        given = ["--duration", "6", "--torques", str(torques), *still, *out]
        assert main(["simulate", "arm7", *given]) == 0
    out = ["--out", str(folder / "excite.csv")]
    also = ["--trajectory", str(folder / "excite --trajectory.yaml")]
    assert main(["excite", "arm7", "--duration", "8", *out, *also]) == 0
    for kind in WRITERS["retime"]:
        out = ["--out", str(folder / f"retime{kind}"), "--tolerance", "0.01"]
        assert main(["retime", "arm7", str(folder / "excite.csv"), *out]) == 0
    swing = TimeSeries.read(folder / "simulate.csv")
    with (folder / "log.csv").open("w") as stream:
        rows = {name: _motor(k) for k, name in enumerate(NAMES)}
        log = Log(stream, Motors({"when_silent": "damp", "motors": rows}, ARM))
        for t, q, qd, tau in zip(swing.t, swing.q, swing.qd, swing.tau, strict=True):
            frames = [Frame(k, t, *each) for k, each in enumerate(zip(q, qd, tau, strict=True))]
            log.write(t, SimpleNamespace(stamp=t + 0.0 * q, q=q, qd=qd, effort=tau), frames, [])
    for kind in WRITERS["record"]:
        write_bag(folder / f"record{kind}", swing, kind[1:])


def _motor(k):
    names = ("position_per_radian", "command_per_newton_metre", "feedback_per_newton_metre")
    return {"motor": k, "sign": 1, "kp": 50.0, "kd": 1.0} | dict.fromkeys(names, 1.0)


@pytest.mark.long
@pytest.mark.parametrize(("file", "reader"), PAIRS)
def test_what_a_command_writes_every_other_command_reads(file, reader, written, tmp_path, capsys):
    pytest.importorskip(NEEDS.get(reader, "numpy"))
    source, out = written / file, str(tmp_path / "out")
    words = [str(source) if w == "FILE" else w.replace("OUT", out) for w in READERS[reader]]
    code, said = main(words), capsys.readouterr()
    if reader in NEED_TORQUES and not file.startswith(TORQUES):
        assert code == 1
        assert re.search("no (torques|efforts)", said.err)
        assert not list(tmp_path.iterdir())
    else:
        assert (code, said.err.count("Traceback")) == (0, 0), said.err
        assert reader in NEED_TORQUES[1:] or list(tmp_path.iterdir())


@pytest.mark.long
def test_columns_are_declared_for_every_command_that_reads(written, tmp_path, capsys):
    """The same motion in degrees and milliseconds, by other names."""
    series = TimeSeries.read(written / "simulate.csv")
    table, head = [1e3 * series.t, *np.degrees(series.q.T), *series.tau.T], ["Clock"]
    head += [f"{what}{k}" for what in ("angle", "load") for k in range(1, 8)]
    path = tmp_path / "foreign.csv"
    np.savetxt(path, np.column_stack(table), delimiter=",", header=",".join(head), comments="")
    declared = ["Clock=t[ms]", *(f"angle{k}=q_joint{k}[deg]" for k in range(1, 8))]
    declared += [f"load{k}=tau_joint{k}[N m]" for k in range(1, 8)]
    for reader, words in READERS.items():
        if reader == "view":
            continue  # reads as plot does
        given = [w.replace("OUT", str(tmp_path / "out")).replace("FILE", str(path)) for w in words]
        assert main([*given, "--columns", *declared]) == 0, (reader, capsys.readouterr().err)
        assert main(given) == 1, reader
        assert "--columns" in capsys.readouterr().err, reader
    again = TimeSeries.read(tmp_path / "out.csv")
    np.testing.assert_allclose(again.tau[:20:10], series.tau[:2], atol=1e-9)


@pytest.mark.parametrize("text", ["t,joint2,joint2\n0,5,0\n", "t,joint2,tau_joint2\n0,5,0\n"])
def test_a_torque_that_is_stated_twice_is_refused_by_name(text, tmp_path, capsys):
    (tmp_path / "tau.csv").write_text(text)
    assert main(["simulate", "arm7", "--torques", str(tmp_path / "tau.csv")]) == 1
    assert "joint2" in capsys.readouterr().err


def test_a_torque_that_is_missing_is_refused_by_column_and_row(tmp_path, capsys):
    (tmp_path / "tau.csv").write_text("t,joint2,joint4\n0,5,0\n1,,2\n")
    assert main(["simulate", "arm7", "--torques", str(tmp_path / "tau.csv")]) == 1
    assert "'joint2' must be finite; got nan in row 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["simulate", "arm7", "--q", "joint1=1", "joint1=2"],
        ["validate", "arm7", "RUN", "--columns", "a=q_joint1", "a=q_joint2"],
    ],
)
def test_a_name_given_twice_is_refused(arguments, tmp_path, capsys):
    run = tmp_path / "run.csv"
    run.write_text("t,a\n0,1\n1,2\n")
    assert main([str(run) if word == "RUN" else word for word in arguments]) == 1
    assert "twice" in capsys.readouterr().err


def test_a_home_sign_is_expanded_in_paths_of_inputs_and_outputs(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert main(["simulate", "arm7", "--duration", "0.05", "--out=~/m.npz"]) == 0
    (tmp_path / "arm.urdf").write_text(robot_path("arm7").read_text())
    assert main(["export", "~/arm.urdf", "--functions", "gravity_torques", "--out=~/c"]) == 0
    assert (tmp_path / "m.npz").exists()
    assert (tmp_path / "c" / "arm7.h").exists()
    assert not (tmp_path / "~").exists()


@pytest.mark.parametrize("flow", [None, True, False])
def test_yaml_keeps_names_that_look_like_numbers(flow):
    yaml = pytest.importorskip("yaml")
    names = ["1", "yes", "on", "null", "1e3", "~", "0x1F", "a: b", "\u00fc", "\U0001f600"]
    value = {"friction": dict.fromkeys(names, 0.5), "names": names, "x": [1e-9, 1.0, -0.0]}
    text = yaml_files.yaml_text(value, flow=flow)
    assert yaml.safe_load(text) == value
    assert yaml_files.read_yaml(text) == value


@pytest.mark.parametrize("start", ["[", "{", "- ", "{a: "])
def test_values_that_are_nested_too_deeply_are_refused(start):
    pytest.importorskip("yaml")
    with pytest.raises(ArgumentError, match="levels deep in line 1"):
        yaml_files.read_yaml(20000 * start)
    assert yaml_files.read_yaml(90 * "[" + 90 * "]")
