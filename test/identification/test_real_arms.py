# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings of real arms: held-out errors, and possible inertias."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from robots import robot
from urdf_reference import load

from mbs_dynamics.cli import main

UR10 = Path(__file__).parent / "recordings" / "ur10.csv"
"""An excerpt under its own license, see the page beside it."""

ARMS = Path(os.environ.get("MBS_RECORDINGS") or Path(__file__).parents[3] / "shared/data/arms")
"""Further recordings of others, which are not part of this repository."""

without = pytest.mark.skipif(not ARMS.is_dir(), reason=f"there are no recordings in {ARMS}")
CASES = [
    pytest.param("ur10_robot.urdf", UR10, "", 0.05, id="UR10"),
    *(
        pytest.param(urdf, ARMS / data, more and ARMS / more, most, id=name, marks=without)
        for name, urdf, data, more, most in (
            ("Panda", "panda.urdf", "unisa/panda_exciting_trajectory.db3", "", 0.02),
            ("LWR4+", "lwr4/kuka_lwr4.urdf", "lwr4/run_1.npz", "lwr4/run_2.npz", 0.06),
            ("Gen3", "kinova_gen3/gen3.urdf", "kinova_gen3/opti_traj_testing1.csv", "", 0.045),
        )
    ),
]


@pytest.mark.long
@pytest.mark.parametrize(("urdf", "recording", "validation", "most"), CASES)
def test_held_out_torques(urdf, recording, validation, most, tmp_path, request):
    path = ARMS / urdf if (ARMS / urdf).exists() else robot(urdf)
    out, figures = tmp_path / "out.urdf", tmp_path / "out.json"
    arguments = ["identify", str(path), str(recording), "--out", str(out)]
    arguments += ["--json", str(figures), "--report", str(tmp_path / "report.html")]
    if "Gen3" in request.node.name:  # its times are numbers of rows, at 1 kHz
        arguments += ["--columns", "t=rows/1000"]
    if validation:
        arguments += ["--validate", str(validation)]
    assert main(arguments) == 0
    found = json.loads(figures.read_text(encoding="utf-8"))
    error = found["relative_error"]
    assert error["identified"] <= most
    assert error["identified"] <= error["description_with_friction"] <= error["description"]
    assert found["consistent"]
    for body in load(out).bodies:
        assert not body.inertia.violations()
    assert "<svg" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.process
def test_the_example_identifies_a_ur10_as_the_readme_says(tmp_path):
    example = Path(__file__).parents[2] / "examples" / "identify_recording.py"
    command = [sys.executable, example, robot("ur10_robot.urdf"), UR10, tmp_path / "figure.png"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "description 40.9%, identified 4.1%\n"
    assert (tmp_path / "figure.png").stat().st_size > 10_000
