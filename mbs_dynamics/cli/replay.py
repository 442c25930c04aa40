# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The command ``replay``, which reproduces the decisions of a guarded arm."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.cli.description import Description
from mbs_dynamics.cli.options import Command
from mbs_dynamics.control.period.history import Replay, replayed
from mbs_dynamics.control.period.records import State
from mbs_dynamics.control.period.sentences import MODES, fault_of
from mbs_dynamics.model.model import Model
from mbs_dynamics.timeseries import TimeSeries
from mbs_dynamics.timeseries.tables import WRITTEN


def add_commands(commands: Any) -> None:
    """Add the command to the parser's subcommands."""
    purpose = "reproduce every command and verdict of a guarded arm from its history"
    command = Command(commands, "replay", _run, purpose, "robot.urdf history.npz")
    command.robot()
    command.file("history", ".npz that write_history of the arm has written")
    command.output("--out", "states and commanded torques, as .csv or .npz", WRITTEN)
    command.part()


def _run(options: argparse.Namespace) -> int:
    model = Description(options).model()
    replay = replayed(model, options.history)
    states = replay.layouts.state.unpacked(replay.states)
    sent = replay.sent
    periods, times = int(sent.sum()), np.asarray(states.now)[sent]
    print(f"{periods} periods in {times[-1] - times[0]:.3f} s")
    _print_changes(model, replay, states)
    if replay.difference:
        print(
            f"the last state differs by {replay.difference:.3g} from the recorded one: the history "
            "is from another description, version or back end"
        )
    else:
        print("the last state is exactly the recorded one")
    if options.out is not None:
        _written(model, replay, states, sent).write(options.out)
        print(f"wrote {options.out}")
    return 1 if replay.difference else 0


def _print_changes(model: Model, replay: Replay, states: State) -> None:
    """Print the times of changes of the mode, and the faults."""
    modes = np.asarray(states.mode)
    for k in [0, *(np.flatnonzero(np.diff(modes)) + 1)]:
        s = replay.layouts.state.unpacked(replay.states[k])
        joints = np.flatnonzero(replay.commanded[k]).tolist()
        fault = fault_of(s, model.joint_names, joints)
        external = "an external reason" if s.fault < 0.0 else ""
        reason = external if fault is None else str(fault)
        suffix = f": {reason}" if reason else ""
        print(f"{float(s.now):12.4f} s  {MODES[float(s.mode)]}{suffix}")


def _written(model: Model, replay: Replay, states: State, sent: FloatArray) -> TimeSeries:
    """Return the states and commands of sent periods, from the first with all joints known."""
    q, qd = np.asarray(states.q), np.asarray(states.qd)
    t, torques = np.asarray(states.now), replay.layouts.output.unpacked(replay.outputs).torque
    known = sent & np.isfinite(q).all(axis=1) & np.isfinite(qd).all(axis=1)
    rows = np.flatnonzero(known)
    rows = rows[np.diff(t[rows], prepend=-np.inf) > 0.0]  # successive periods may have one time
    return TimeSeries(
        t[rows], model.joint_names, q[rows], qd=qd[rows], tau=np.asarray(torques)[rows]
    )
