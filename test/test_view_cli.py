# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The command view, and simulate --view: addresses, files, and what they refuse."""

import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

import numpy as np
import pytest
from backends import run_python
from urdf_reference import STATED, chain
from waiting import TIMEOUT, wait_until

pytest.importorskip("viser")

import mbs_dynamics as mbs
from mbs_dynamics.cli import main
from mbs_dynamics.integrate import simulate
from mbs_dynamics.resources import robot_path
from mbs_dynamics.timeseries import TimeSeries


@pytest.fixture(scope="module")
def motion(tmp_path_factory):
    path = tmp_path_factory.mktemp("motions") / "swing.npz"
    arm = mbs.Model.from_urdf(robot_path("arm7"))
    simulate(arm, np.full(7, 0.3), duration=0.1).save(path)
    return path


def refused(capsys, *arguments):
    """Run the command, which must fail, and return what it says."""
    assert main(["view", *map(str, arguments)]) == 1
    said = capsys.readouterr().err
    assert said.startswith("mbs-dynamics: ")
    return said


def test_what_cannot_be_shown_is_refused_in_a_line(capsys, tmp_path, motion):
    two_links = tmp_path / "two.urdf"
    two_links.write_text(chain(("j", "prismatic", STATED)))
    says = {
        (): "give a robot, or --ros for a live one",
        (two_links, "--motion", motion, "--port", 0): "no joint",
        ("arm7", "--write", tmp_path / "a.png"): "--write must end in .html",
        ("arm7", "--package-path", tmp_path / "no"): "there is no file",
        ("arm7", "--port", 99999): "the port must be 0 to 65535; got 99999",
        ("arm7", "--layers", "shadows", "--port", 0): "no layer 'shadows'",
        ("arm7", "--q", "elbow=1", "--port", 0): "no joint 'elbow'",
        ("arm7", "--ros"): "does not take 'robot'",
    }
    for arguments, words in says.items():
        assert words in refused(capsys, *arguments), arguments


def test_a_port_that_is_taken_is_refused(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"port {port} is taken" in refused(capsys, "arm7", "--port", port)


@pytest.mark.long
def test_a_scene_is_written_as_a_file_that_needs_nothing_else(capsys, tmp_path, motion):
    for more in ((), ("--motion", motion)):
        file = tmp_path / f"scene{len(more)}.html"
        assert main(["view", "arm7", *map(str, more), "--write", str(file)]) == 0
        assert f"wrote {file}" in capsys.readouterr().out
        html = file.read_text()
        assert not re.findall(r'(?:src|href)="https?://', html)
        assert len(html) > 500_000


@contextmanager
def command(*arguments):
    """Run the command in a process of its own, and yield it with the address of its page."""
    given = [sys.executable, "-m", "mbs_dynamics.cli", *map(str, arguments), "--no-browser"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(given, start_new_session=True, **pipes)
    try:
        said, end = "", time.monotonic() + TIMEOUT
        while "http" not in said and time.monotonic() < end and process.poll() is None:
            if select.select([process.stdout], [], [], 0.2)[0]:
                said += os.read(process.stdout.fileno(), 4096).decode()
        address = re.search(r"http://127\.0\.0\.1:\d+", said)
        assert address, said + process.stderr.read()
        yield process, address.group()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.process
def test_the_page_is_served_to_this_machine_until_ctrl_c():
    with command("view", "arm7", "--port", 0) as (process, address):
        with urllib.request.urlopen(address) as answer:
            assert b"<html" in answer.read()
        port = int(address.rsplit(":")[-1])
        found = socket.getaddrinfo(socket.gethostname(), port, socket.AF_INET)
        for other in {one[4][0] for one in found if not one[4][0].startswith("127.")}:
            with pytest.raises(OSError, match="refused"):
                socket.create_connection((other, port), timeout=1.0)
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT) == 0
        assert process.stderr.read() == ""


@pytest.mark.process
def test_a_simulation_is_shown_and_then_played(tmp_path):
    file = tmp_path / "motion.npz"
    given = ("simulate", "arm7", "--q", "joint2=1", "--duration", 0.2, "--out", file)
    with command(*given, "--view", "--port", 0) as (process, _):
        wait_until(file.exists)
        time.sleep(0.5)
        assert process.poll() is None  # plays it now
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT) == 0
    q = np.zeros(7)
    q[1] = 1.0
    arm = mbs.Model.from_urdf(robot_path("arm7"))
    expected = simulate(arm, q, duration=0.2)
    np.testing.assert_allclose(TimeSeries.read(file).q, expected.q, atol=1e-12)


@pytest.mark.process
@pytest.mark.parametrize(
    ("missing", "arguments", "words"),
    [
        ("viser", ["arm7"], 'install it: pip install "mbs_dynamics[view]"'),
        ("rclpy", ["--ros"], "--ros needs ROS 2"),
    ],
)
def test_what_is_not_installed_is_named(missing, arguments, words):
    code = f"import sys; sys.modules[{missing!r}] = None; from mbs_dynamics.cli import main; "
    code += f"sys.exit(main(['view', *{arguments!r}]))"
    done = run_python(code)
    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr
