# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Motion of an arm when its gravity compensation stops, starts and is handed over, over DDS.

The node runs as users run it. MuJoCo simulates the arm in a separate process, with the default
transport of the middleware. Each event comes several times; a trial that a pause of the machine
spoils is repeated. Tables give medians, with extremes where they differ.

    python -m benchmarks.gravity_motion [--only guided ...] [--repetitions 5]
"""

import argparse
import os
import re
import signal
import statistics
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.mechanisms import urdf
from benchmarks.mujoco_over_dds import Motion, Rig
from benchmarks.records import released
from benchmarks.report import Table
from mbs_dynamics.ros.domain import unused_domain
from simulated.mujoco_arm import POSTURES, FloatArray, Statics, bare, compiled

NAN = float("nan")
ATTEMPTS = 20
"""How often a trial is repeated that a pause of the machine spoils."""


Calls = Sequence[tuple[Any, ...]]


def undisturbed(trial: Callable[[], Motion]) -> Motion:
    """Return a trial's motion; repeat it while pauses of the machine spoil it."""
    for _ in range(ATTEMPTS):
        motion = trial()
        if not motion.disturbed:
            return motion
    raise RuntimeError(
        f"{ATTEMPTS} trials were spoiled by pauses of the machine: {motion.disturbed}"
    )


def by_joint(name: str, joints: Sequence[str], values: Sequence[float]) -> dict[str, float]:
    """Return parameters ``<name>.<joint>`` of the node."""
    return {f"{name}.{joint}": float(x) for joint, x in zip(joints, values, strict=True)}


# -- one joint about a vertical axis, guided and let go --------------------------------------------

GUIDED = (-0.5, -0.478, 0.3, -2.0, 0.1, 1.6, 0.7)
"""Where the Panda's joint 1 begins to be guided; its inertia is 0.77 kg m^2 there."""

SPEED, DAMPING, RAMP = 1.0, 20.0, 0.3
"""Of the guided joint, rad/s and N m s/rad, and of the node, s."""

EVENTS: dict[str, Calls] = {
    "joint_states stop": [("inject", "silence")],
    "NaN": [("inject", "position", 3, NAN)],
    "~/enable false": [("enable", False)],
    "deactivate": [("transition", "deactivate")],
    "SIGTERM": [("end", signal.SIGTERM)],
}


def guided_rig(**parameters: Any) -> Rig:
    """Return the Panda with damping at joint 1 alone."""
    given = {"ramp_time": RAMP, "stale_timeout": 0.05, "damping.panda_joint1": DAMPING}
    return Rig(bare(urdf("Panda")), **(given | parameters))


def guided(rig: Rig, calls: Calls) -> Motion:
    """Guide joint 1, all others locked, and let it go as something happens."""

    def trial() -> Motion:
        rig.ready(GUIDED)
        rig.ask("motion", "guide", {0: SPEED})
        time.sleep(0.4)
        return happen(rig, [*calls, ("motion", "let_go", [0])])

    return undisturbed(trial)


def happen(rig: Rig, calls: Calls, seconds: float = 1.0) -> Motion:
    """Let something happen to node or arm, and bring the node back to where it can be enabled."""
    assert rig.node is not None
    names = [call[0] for call in calls]
    made = [("signal", rig.node.pid, *call[1:]) if call[0] == "end" else call for call in calls]
    motion = rig.event(*made, seconds=seconds)
    if "end" in names:
        rig.node.wait(60.0)
        rig.start()
    elif "transition" in names:
        rig.activate()
    return motion


def strongest(name: str) -> FloatArray:
    """Return damping (n,) that an arm in its posture bears at 500 Hz, N m s/rad.

    A joint slows down with a time constant of 25 ms, four times as long as an answer takes.
    """
    statics = Statics(compiled(bare(urdf(name))))
    return np.minimum(30.0, 40.0 * statics.inertias(np.array(POSTURES[name])))


# -- every row of the table of the documentation ---------------------------------------------------

MOVING = {0: 0.5, 1: -0.5}
"""Joints of arm7 that move at the event, rad/s: about the vertical axis, and upwards."""


def heavier(text: str) -> str:
    """Return a description of an arm whose last link has one percent more mass."""
    root = ElementTree.fromstring(text)
    mass = [element for element in root.iter("mass")][-1]
    mass.set("value", str(1.01 * float(mass.get("value", "0"))))
    return ElementTree.tostring(root, encoding="unicode")


def rows(text: str) -> dict[str, Calls]:
    """Return the events of the documentation while torques are commanded."""
    return {
        "joint_states stop": [("inject", "silence")],
        "the same stamp again and again": [("inject", "stamp_repeated")],
        "stamps go back by 1 s": [("inject", "stamp_back", 1.0)],
        "no stamps": [("inject", "stamp_zero")],
        "a joint is missing": [("inject", "missing", 2)],
        "a joint is named twice": [("inject", "twice", 2)],
        "more positions than names": [("inject", "longer")],
        "a position is NaN": [("inject", "position", 3, NAN)],
        "a velocity is NaN": [("inject", "velocity", 3, NAN)],
        "no velocities": [("inject", "no_velocity")],
        "a velocity reads zero permanently": [("inject", "stuck")],
        "a position reads beyond its limit": [("inject", "position", 5, 2.2)],
        "a velocity reads 6 rad/s": [("inject", "velocity", 1, 6.0)],
        "a velocity reads 2.6 rad/s once": [("inject", "glitch", 1, 2.6)],
        "a position jumps by 0.5 rad": [("inject", "offset", 3, 0.5)],
        "a new robot_description": [("describe", heavier(text))],
        "a malformed payload": [("payload", "nowhere", -1.0)],
        "a malformed gravity": [("gravity", NAN, 0.0, 0.0)],
        "somebody else publishes commands": [("rival",)],
        "~/enable false": [("enable", False)],
        "deactivate": [("transition", "deactivate")],
        "SIGINT": [("end", signal.SIGINT)],
        "SIGTERM": [("end", signal.SIGTERM)],
        "SIGKILL": [("end", signal.SIGKILL)],
    }


IMU_ROWS: dict[str, Calls] = {
    "imu messages stop": [("inject", "imu_silence")],
    "the imu sends NaN": [("inject", "imu_nan")],
}


def moving(rig: Rig, calls: Calls, undo: Calls = ()) -> Motion:
    """Guide two joints of arm7 in a bent posture, and let all go as something happens."""

    def trial() -> Motion:
        rig.ready(POSTURES["arm7"])
        rig.ask("motion", "guide", MOVING)
        time.sleep(0.3)
        motion = happen(rig, [*calls, ("motion", "let_go")])
        if undo:
            rig.do(*undo)
            time.sleep(0.1)
        return motion

    return undisturbed(trial)


def row(rig: Rig, text: str, calls: Calls) -> Motion:
    """Let one event happen to a moving arm7, and take back what it leaves behind."""
    undo: dict[str, Calls] = {
        "describe": [("describe", text)],
        "target_joint": [("enable", False)],
        "target_pose": [("enable", False)],
    }
    return moving(rig, calls, undo.get(calls[0][0], ()))


# -- impedance control -----------------------------------------------------------------------------

MODES: dict[str, dict[str, Any]] = {
    "joint": dict.fromkeys((f"stiffness.joint{k}" for k in range(1, 8)), 12.0),
    "cartesian": {"link": "link7", "linear_stiffness": "[300.0, 300.0, 300.0]"},
}
"""Parameters of the modes of impedance control, for arm7."""

REFERENCES: dict[str, dict[str, Calls]] = {
    "joint": {
        "the target jumps by 1 rad": [("target_joint", "joint2", 1.5)],
        "a moving target stops coming": [("target_joint", "joint2", 0.5, 0.3)],
        "the target is NaN": [("target_joint", "joint2", NAN)],
        "the target is of another joint": [("target_joint", "elbow", 1.0)],
        "the target is beyond a limit": [("target_joint", "joint2", 9.0)],
    },
    "cartesian": {
        "the target jumps by some 0.5 m": [("target_pose", "base_link", 0.4, 0.0, 0.6)],
        "the target is NaN": [("target_pose", "base_link", NAN, 0.0, 0.6)],
        "the target is in an unknown frame": [("target_pose", "elsewhere", 0.4, 0.0, 0.6)],
    },
}
"""Events of references, by mode."""


# -- handover, and a start without support ---------------------------------------------------------


def handover(
    rig: Rig, posture: Sequence[float], seconds: float = 2.0, at_once: bool = False
) -> Motion:
    """Switch the position loop off once the node commands what holds the arm.

    With ``at_once`` it is switched off as soon as ~/enable has answered.
    """

    def trial() -> Motion:
        if at_once:
            rig.prepare(posture)
            rig.do(("motion", "let_go"), ("motion", "hold"))
            rig.enable()
        else:
            rig.ready(posture, held=True)
        motion = rig.event(("motion", "release"), seconds=seconds)
        rig.disable()
        return motion.that_goes_on()

    return undisturbed(trial)


def unsupported(rig: Rig, posture: Sequence[float], seconds: float = 5.0) -> Motion:
    """Enable an arm that nothing else holds."""

    def trial() -> Motion:
        motion = rig.unsupported(posture, seconds)
        rig.disable()
        return motion.that_goes_on()

    return undisturbed(trial)


# -- tables ----------------------------------------------------------------------------------------


def spread(values: Sequence[float | None], digits: int = 2) -> str:
    """Return the median, and the extremes where they differ."""
    known = [x for x in values if x is not None]
    if not known:
        return "never"
    middle, low, high = statistics.median(known), min(known), max(known)
    text = f"{middle:.{digits}f}"
    if f"{low:.{digits}f}" != f"{high:.{digits}f}":
        text += f" ({low:.{digits}f} to {high:.{digits}f})"
    return text if len(known) == len(values) else f"{text}, {len(values) - len(known)} never"


COLUMNS = ("what happens", "the node", "kinetic energy before, J", "at its peak, J")


def outcomes(motions: Sequence[Motion]) -> str:
    """Return what the node did, each outcome once."""
    reactions = [motion.outcome for motion in motions]
    kinds = [re.sub(r"[\d.]+", "0", outcome) for outcome in reactions]
    most = max(kinds, key=kinds.count)
    example = reactions[kinds.index(most)]
    if kinds.count(most) == len(reactions):
        return example
    return f"{example} ({kinds.count(most)} of {len(reactions)})"


def energies(motions: Sequence[Motion]) -> list[str]:
    """Return the entries of COLUMNS but the first."""
    records = [motion.record for motion in motions]
    before, peak = ([getattr(r, x) for r in records] for x in ("kinetic_before", "kinetic_peak"))
    return [outcomes(motions), spread(before), spread(peak)]


def show(what: str, motions: Sequence[Motion]) -> None:
    """Say on standard error that a row is done."""
    print(f"{what}: {outcomes(motions)}", file=sys.stderr, flush=True)


def guided_table(repetitions: int) -> Iterator[Table]:
    """The Panda's joint 1, guided at 1 rad/s and let go at an event, others locked."""
    columns = (
        *COLUMNS,
        "turns back at, rad/s",
        "put in, J",
        "rate terms until, ms",
        "zero torque after, s",
    )
    table = Table("A joint about a vertical axis, guided and let go", columns)
    for on_fault in ("ramp_down", "zero", "hold"):
        with guided_rig(on_fault=on_fault) as rig:
            for what, calls in EVENTS.items():
                if on_fault != "ramp_down" and calls[0][0] != "inject":
                    continue
                motions = [guided(rig, calls) for _ in range(repetitions)]
                label = what if on_fault == "ramp_down" else f"{what}, on_fault: {on_fault}"
                show(label, motions)
                records = [motion.record for motion in motions]
                table.rows.append([
                    label,
                    *energies(motions),
                    spread([r.turned_back(0) for r in records]),
                    spread([r.put_in for r in records]),
                    spread([1e3 * r.excess_until for r in records], 0),
                    spread([r.zero_after for r in records], 3),
                ])  # fmt: skip
    yield table


def rows_table(repetitions: int) -> Iterator[Table]:
    """Every event of the documentation, to arm7 in motion, with the node's defaults."""
    columns = (
        *COLUMNS, "g(q) alone, J", "fastest, rad/s", "farthest, rad", "put in, J",
        "rate terms until, ms", "zero torque after, s",
    )  # fmt: skip
    note = (
        "Within 1 s. Two joints move at 0.5 rad/s. *g(q) alone*: peak kinetic energy of the same "
        "arm from the same state under gravity torques that stop, hold or stay as the node did, "
        "from the same moment, without damping and friction."
    )
    table = Table("An arm in motion, damped with a time constant of 100 ms", columns, note=note)
    text = bare(urdf("arm7"))
    damping = by_joint("damping", Rig.joints(text), 0.25 * strongest("arm7"))
    runs: list[tuple[str, Mapping[str, Calls], str]] = [
        ("", {name: calls for name, calls in rows(text).items() if name != "SIGKILL"}, ""),
        ("", IMU_ROWS, "base_link"),
        ("zero", {name: rows(text)[name] for name in ("joint_states stop",)}, ""),
        ("hold", {name: rows(text)[name] for name in ("joint_states stop",)}, ""),
        ("", {"SIGKILL": rows(text)["SIGKILL"]}, ""),
    ]
    for on_fault, events, imu in runs:
        given = {**damping, **({"on_fault": on_fault} if on_fault else {})}
        with Rig(text, imu=imu, **given) as rig:
            for what, calls in events.items():
                count = 1 if what == "SIGKILL" else repetitions
                motions = [row(rig, text, calls) for _ in range(count)]
                label = f"{what}, on_fault: {on_fault}" if on_fault else what
                show(label, motions)
                records = [motion.record for motion in motions]
                table.rows.append([
                    label,
                    *energies(motions),
                    spread([alone(rig, motion) for motion in motions]),
                    spread([r.fastest for r in records]),
                    spread([r.moved for r in records]),
                    spread([r.put_in for r in records], 3),
                    spread([1e3 * r.excess_until for r in records], 0),
                    spread([r.zero_after for r in records], 3),
                ])  # fmt: skip
    yield table


def impedance_table(repetitions: int) -> Iterator[Table]:
    """Every event of the documentation, and those of references, to arm7 on springs."""
    columns = (*COLUMNS, "fastest, rad/s", "farthest, rad", "zero torque after, s")
    note = (
        "Within 1 s. Two joints were led away from the reference at 0.5 rad/s for 0.3 s and are "
        "let go at the event: the springs pull them back. 12 N m/rad in each joint; 300 N/m and 10 "
        "N m/rad at the last link."
    )
    text = bare(urdf("arm7"))
    events: dict[str, Calls] = {"nothing": [("heal",)], **rows(text)}
    del events["SIGKILL"]
    for mode, gains in MODES.items():
        table = Table(f"An arm under impedance control, mode {mode}", columns, note=note)
        with Rig(text, executable="impedance_control_node", mode=mode, **gains) as rig:
            for what, calls in {**events, **REFERENCES[mode]}.items():
                motions = [row(rig, text, calls) for _ in range(repetitions)]
                show(f"{mode}: {what}", motions)
                records = [motion.record for motion in motions]
                table.rows.append([
                    what,
                    *energies(motions),
                    spread([r.fastest for r in records]),
                    spread([r.moved for r in records]),
                    spread([r.zero_after for r in records], 3),
                ])  # fmt: skip
        yield table


def alone(rig: Rig, motion: Motion) -> float:
    """Return the peak kinetic energy under gravity torques alone that go as the node's did, in J.

    The ramp begins when the node's torques begin to go, and takes as long.
    """
    record, log = motion.record, motion.said
    q, qd = record.q[record.at], record.qd[record.at]
    stops = "stopped by a fault" in log or "ramping out" in log
    stays = not stops or "stopped by a fault (hold)" in log
    ramp = np.inf if stays else 0.0 if "stopped by a fault (zero)" in log else rig.ramp_time
    late = rig.stale_timeout if "no valid" in log else 0.0
    silent = record.arrivals[-1] == record.arrivals[len(record.t) // 2]
    frozen = "ramping out" not in log and (stops or silent)
    return max(released(rig.model, q, qd, ramp, 1.0, frozen=frozen, after=late))


def handover_table(repetitions: int, **parameters: Any) -> Iterator[Table]:
    """Arms that a position loop holds, which is then switched off."""
    columns = ("arm", "switched off", "the node", "farthest in 2 s, rad", "fastest, rad/s")
    table = Table("Handover from a position loop", columns)
    for name, posture in POSTURES.items():
        with Rig(bare(urdf(name)), **parameters) as rig:
            for at_once in (False, True):
                motions = [handover(rig, posture, at_once=at_once) for _ in range(repetitions)]
                show(name, motions)
                records = [motion.record for motion in motions]
                table.rows.append([
                    name,
                    "after ~/enable has answered" if at_once else "when torques are gravity's",
                    outcomes(motions),
                    spread([r.moved for r in records], 4),
                    spread([r.fastest for r in records], 4),
                ])  # fmt: skip
    yield table


def unsupported_table(repetitions: int, **parameters: Any) -> Iterator[Table]:
    """Arms that nothing holds as they are enabled."""
    columns = (
        "arm", "the node", "farthest in 5 s, rad", "fastest, rad/s", "fastest at the end, rad/s"
    )  # fmt: skip
    table = Table("An arm that nothing else holds is enabled, with default parameters", columns)
    for name, posture in POSTURES.items():
        with Rig(bare(urdf(name)), **parameters) as rig:
            motions = [unsupported(rig, posture) for _ in range(repetitions)]
        show(name, motions)
        records = [motion.record for motion in motions]
        table.rows.append([
            name,
            outcomes(motions),
            spread([r.moved for r in records]),
            spread([r.fastest for r in records]),
            spread([r.at_the_end for r in records]),
        ])  # fmt: skip
    yield table


def main() -> None:
    """Print the tables that the command line names."""
    tables: dict[str, Callable[[argparse.Namespace], Iterator[Table]]] = {
        "guided": lambda o: guided_table(o.repetitions),
        "rows": lambda o: rows_table(o.repetitions),
        "impedance": lambda o: impedance_table(o.repetitions),
        "handover": lambda o: handover_table(o.repetitions, **given(o)),
        "unsupported": lambda o: unsupported_table(o.repetitions, **given(o)),
    }

    def given(options: argparse.Namespace) -> dict[str, str]:
        return dict(pair.split("=", 1) for pair in options.parameter)

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=tables, default=list(tables))
    parser.add_argument("--repetitions", type=int, default=5, help="of each event")
    parser.add_argument(
        "--parameter",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="of the node, for handover and unsupported starts",
    )
    parser.add_argument("--domain", type=int, default=None, help="ROS domain; an unused one")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # which ends the other processes
    domain = unused_domain() if options.domain is None else options.domain
    os.environ["ROS_DOMAIN_ID"] = str(domain)
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    os.environ.pop("FASTDDS_BUILTIN_TRANSPORTS", None)  # the transport is the middleware's default
    for name in options.only:
        for table in tables[name](options):
            print(table, flush=True)


if __name__ == "__main__":
    main()
