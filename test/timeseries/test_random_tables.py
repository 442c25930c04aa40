# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Tables in random units, declared or not: identified rightly, or rejected with the right hint."""

import numpy as np
import pytest
from urdf_reference import load

import mbs_dynamics as mbs
from mbs_dynamics.identification import identify
from mbs_dynamics.resources import robot_path
from mbs_dynamics.timeseries import TimeSeries, TimeSeriesError

ARM = load(robot_path("arm7"), tip="link4")
LOADED = ARM.with_payload("link4", 1.0, (0.0, 0.02, 0.1)).loaded()
N = ARM.n

UNITS = {
    "t": {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9, "min": 1 / 60, "h": 1 / 3600, "rows": None},
    "q": {"rad": 1.0, "deg": 180 / np.pi},
    "qd": {"rad/s": 1.0, "deg/s": 180 / np.pi, "rpm": 30 / np.pi},
    "tau": {"N m": 1.0, "mN m": 1e3, "kg cm": 100 / 9.80665, "N cm": 100.0, "0.0032 N m": 312.5},
}
"""Units of each quantity in one of its SI unit; the first is SI."""


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


def write_table(path, rng, digits, t, motion):
    """Write a table in a random form: names or numbers of joints, separators, encodings."""
    names = ARM.joint_names if rng.random() < 0.5 else "1234"
    style = ["{0}_{1}", "{0}[{1}]", "{0}.{1}"][rng.integers(3)]
    columns = {"t": t}
    for kind, values in motion.items():
        for name, column in zip(names, values.T, strict=True):
            columns[style.format(kind, name)] = column
    order = rng.permutation(list(columns))
    between, comma = [(",", 0), (";", 1), ("\t", 1), (";", 0), (" ", 0)][rng.integers(5)]
    rows = zip(*(columns[name] for name in order), strict=True)
    text = "\n".join(between.join(digits % x for x in row) for row in rows)
    text = text.replace(".", ",") if comma else text
    text = between.join(order) + "\n" + text + "\n"
    path.write_bytes(text.encode(["utf-8", "utf-8-sig"][rng.integers(2)]))


def outcome(seed, folder):
    """Return what was made, the declarations that were not given, and what became of it."""
    rng = np.random.default_rng(seed)
    rate = float(rng.choice([50, 100, 125, 250, 500]))
    t, *motion = measured(rng, rng.uniform(20.0, 40.0), rate)
    units = {
        kind: list(of_kind)[0 if rng.random() < 0.4 else rng.integers(len(of_kind))]
        for kind, of_kind in UNITS.items()
    }
    start = 0.0 if rng.random() < 0.7 else 1.7e9 if units["t"] in ("s", "ms") else 100.0
    clock = np.arange(len(t)) if units["t"] == "rows" else (start + t) * UNITS["t"][units["t"]]
    given = {
        kind: UNITS[kind][units[kind]] * x
        for kind, x in zip(("q", "qd", "tau"), motion, strict=True)
        if kind != "qd" or rng.random() < 0.7
    }
    digits = "%.10g" if rng.random() < 0.5 else "%.12f"
    write_table(folder / "run.csv", rng, digits, clock, given)
    needed = {
        kind: f"rows/{rate:.4g}" if unit == "rows" else f"[{unit}]"
        for kind, unit in units.items()
        if unit != next(iter(UNITS[kind])) and (kind == "t" or kind in given)
    }
    if np.min(np.diff([float(digits % x) for x in clock])) <= 0.0:
        needed["t"] = f"rows/{rate:.4g}"
    stated = {kind: text for kind, text in needed.items() if rng.random() < 0.6}
    lacking = {kind: text for kind, text in needed.items() if kind not in stated}
    made = f"{seed}: {needed}, stated {list(stated)}, {list(given)}, {rate:g} Hz"
    try:
        found = identify(ARM, [TimeSeries.read(folder / "run.csv", columns=stated)])
    except TimeSeriesError as error:
        return made, lacking, str(error), None
    poses = np.random.default_rng(0).uniform(ARM.lower, ARM.upper, (50, N))
    true, g = (mbs.gravity_torques(one, poses) for one in (LOADED, found.model))
    error = float(np.linalg.norm(g - true) / np.linalg.norm(true))
    return made, lacking, str(found.notes), error if found.better else None


def check(made, lacking, said, error):
    if error is not None:
        assert error < 0.01, (made, said)
    elif not lacking:
        pytest.fail(f"{made} is rejected: {said}")
    else:
        hints = [f"{kind}={text}" for kind, text in lacking.items()]
        if "tau" in lacking:
            hints += ["tau=[", "--gains"] if lacking["tau"] == "[0.0032 N m]" else []
        if lacking.get("t", "").startswith("rows"):
            hints.append("t=rows/")
        assert any(hint in said for hint in hints), (made, said)


@pytest.mark.long
@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(k, marks=pytest.mark.slow) for k in range(1000, 1100))]
)
def test_a_random_table_is_identified_or_rejected_with_the_right_hint(seed, tmp_path):
    check(*outcome(seed, tmp_path))
