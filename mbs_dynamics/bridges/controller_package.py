# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Writes an ament_cmake package with a controller for ros2_control, for one robot.

The controller is one C++ class for every robot, in the folder ``controller`` beside this module. It
is copied as it is; the control period of the robot, its tables and its test vectors are generated.
"""

from __future__ import annotations

import math
import re
import string
import struct
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.environment import LARGEST_LOAD, WIDEST
from mbs_dynamics.control.guard import LARGEST_TURN
from mbs_dynamics.control.period.checks import CHECKS
from mbs_dynamics.control.period.export import export_period
from mbs_dynamics.control.period.following import Traced
from mbs_dynamics.control.period.function import Period, initial
from mbs_dynamics.control.period.laws import FLOAT, JOINT, LINK
from mbs_dynamics.control.period.records import NEVER, Layout, Settings
from mbs_dynamics.control.period.references import TARGET
from mbs_dynamics.control.period.sentences import fault_of
from mbs_dynamics.control.period.settings import period_settings
from mbs_dynamics.control.period.transitions import CLEAR, DISABLE, ENABLE, NONE
from mbs_dynamics.control.settings import (
    GRAVITY_TOLERANCE,
    LARGEST_SHARE,
    RATE_SHARE,
    ArmSettings,
)
from mbs_dynamics.errors import ArgumentError, UnknownJointError
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.coordinates import check_single
from mbs_dynamics.model.diagnostics import stopping_effort, stopping_speed
from mbs_dynamics.model.model import STANDARD_GRAVITY, Model, without_payloads
from mbs_dynamics.model.orders import tools
from mbs_dynamics.model.urdf import MAX_LENGTH
from mbs_dynamics.model.urdf_xml import document_of, text_of

FILES = Path(__file__).parent / "controller"
PREFIX = "guarded"
"""First part of the names in C, the same for every robot; each package has its own namespace."""

LONGEST_PAUSE = 0.05
"""Time in s between two updates of the controller that is a fault, unless ``stale_timeout`` in
``parameters.yaml`` is longer."""

MODES = ("floating", "joint", "cartesian")
"""Modes of the controller, in the order of their laws."""

NUMBERS, TEXT = True, False
DESCRIBED = (
    ("link", "inertial/origin", "xyz", "0 0 0", NUMBERS),
    ("link", "inertial/origin", "rpy", "0 0 0", NUMBERS),
    ("link", "inertial/mass", "value", "0", NUMBERS),
    *(
        ("link", "inertial/inertia", name, "0", NUMBERS)
        for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    ),
    ("joint", "", "type", "", TEXT),
    ("joint", "parent", "link", "", TEXT),
    ("joint", "child", "link", "", TEXT),
    ("joint", "origin", "xyz", "0 0 0", NUMBERS),
    ("joint", "origin", "rpy", "0 0 0", NUMBERS),
    ("joint", "axis", "xyz", "1 0 0", NUMBERS),
    *(("joint", "limit", name, "", NUMBERS) for name in ("lower", "upper", "effort", "velocity")),
    ("joint", "dynamics", "friction", "", NUMBERS),
    ("joint", "mimic", "joint", "", TEXT),
    ("joint", "mimic", "multiplier", "1", NUMBERS),
    ("joint", "mimic", "offset", "0", NUMBERS),
    ("joint", "safety_controller", "k_velocity", "", NUMBERS),
)
"""Values of a description that change the period: element, path, attribute, default, kind."""

VECTORS, PERIOD = 200, 0.02
"""Number of periods in the test vectors, and the time in s between them."""


def export_controller(
    source: str | Path,
    directory: str | Path,
    joints: Sequence[str] = (),
    *,
    link: str = "",
    modes: Collection[str] = MODES,
    name: str = "",
) -> Path:
    """Write the package ``<name>_guarded_controller`` below a directory, and return its folder.

    ``source`` is a URDF: a path, or its text. ``joints`` are those to command, in the order of the
    arrays in parameters; by default all that move. ``link`` is the one that the mode cartesian
    moves; by default the tool. ``name`` is by default that of the robot; two controllers for one
    robot, as for each of its arms, need one each. ``modes`` are those of :data:`MODES` that the
    controller has beside floating; a control period with fewer is faster. An existing package is
    replaced, except files in ``config`` and ``launch``, which users change.

    Raises UnknownJointError or UnknownBodyError for names that the robot does not have; ModelError
    for a joint of several degrees of freedom; ArgumentError for another mode, a joint of which each
    effort is clamped to 0, or whose velocity limit is 0 or less, a link that does not move, or more
    joints than a period takes; UrdfError for a description that cannot be read; OSError
    if a file cannot be written.
    """
    for mode in modes:
        checks.one_of("modes", mode, MODES)
    text = text_of(source)
    model = Model.from_urdf(text)
    check_single(model.joints, "a controller")
    chosen = list(joints) or list(model.joint_names)
    UnknownJointError.check(chosen, model.joint_names)
    for joint in chosen:
        described = model.joints[model.joint_names.index(joint)]
        if stopping := stopping_effort(described) or stopping_speed(described):
            raise ArgumentError(f"joint {joint!r} {stopping}: state a positive one in the URDF")
    moved = link or tools(model)[0]
    if model.frames[moved].body == GROUND:
        raise ArgumentError(f"link {moved!r} does not move; must be one that does")
    robot = re.sub(r"[^a-z0-9]+", "_", (name or model.name).lower()).strip("_")
    names: dict[str, Any] = {
        "package": f"{robot if robot[:1].isalpha() else 'robot'}_guarded_controller",
        "joints": ", ".join(chosen),
        "interfaces": "\n".join(f"      - {joint}" for joint in chosen),
    }
    package: Path = Path(directory) / names["package"]
    layouts = Period(model, traced=Traced("joint" in modes, moved if "cartesian" in modes else ""))
    given = _settings(layouts.model, chosen)
    export_period(layouts, given, package / "src", prefix=PREFIX)
    names |= _robot(layouts, chosen, description_digest(text))
    generated = {
        **_vectors(layouts, given),
        "urdf/mock.urdf": _with_mock_hardware(text, chosen, model),
    }
    for file in sorted(one for one in FILES.rglob("*") if one.is_file()):
        path = str(file.relative_to(FILES))
        content = file.read_text(encoding="utf-8")
        is_template = file.suffix not in (".cpp", ".hpp") and file.name != "parameters.yaml"
        generated[path] = string.Template(content).substitute(names) if is_template else content
    for path, content in generated.items():
        target = package / path
        if target.exists() and path.startswith(("config", "launch")):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")
    return package


def check_controller(source: str | Path, package: str | Path) -> str:
    """Return why a package does not match a description; empty if it does.

    Raises ArgumentError for a folder without such a package, UrdfError for a description that
    cannot be read.
    """
    header = Path(package) / "src" / "guarded_robot.h"
    try:
        found = re.search(r"DESCRIPTION 0x([0-9a-f]{16})", header.read_text(encoding="utf-8"))
    except OSError as error:
        raise ArgumentError(
            f"{str(package)!r} is not the folder of an exported controller: {error}"
        ) from error
    digest = description_digest(text_of(source))
    if found and found[1] == digest:
        return ""
    return (
        f"{str(package)!r} was written for another description, with the digest "
        f"{found[1] if found else 'none'}; that of this one is {digest}. Export it anew"
    )


def description_digest(text: str) -> str:
    """Return 16 hexadecimal digits of what a period depends on in a URDF.

    Comments, meshes, tags of ros2_control and the order of elements do not matter. The controller
    computes the same from the description that it is given.
    """
    lines = []
    for element in document_of(text)[1].named("link", "joint"):
        line = f"{element.tag}\0{element.get('name', '')}\0".encode()
        for tag, path, attribute, default, numbers in DESCRIBED:
            if tag != element.tag:
                continue
            below: Any = element
            for name in filter(None, path.split("/")):
                below = next(below.named(name), None) if below is not None else None
            value = default if below is None else below.get(attribute, default)
            if numbers:  # + 0.0 makes 0 of -0
                line += b"".join(struct.pack("<d", float(x) + 0.0) for x in value.split()) + b"\0"
            else:
                line += value.encode() + b"\0"
        lines.append(line)
    digest = 0xCBF29CE484222325  # FNV-1a, 64 bits
    for byte in b"".join(sorted(lines)):
        digest = ((digest ^ byte) * 0x100000001B3) % 2**64
    return f"{digest:016x}"


def _settings(model: Model, joints: Sequence[str]) -> Settings:
    places = [model.joint_names.index(name) for name in joints]
    given = ArmSettings.of(joints, stale_timeout=LONGEST_PAUSE)
    loads = np.zeros((model.nb, 10))
    return period_settings(model, places, given, model.gravity, loads, longest_pause=LONGEST_PAUSE)


def _robot(layouts: Period, joints: Sequence[str], digest: str) -> dict[str, Any]:
    """Return what the header of the robot holds, by the names in its template."""
    model, traced = layouts.model, layouts.traced
    places = [model.joint_names.index(name) for name in joints]
    links = [
        f"  {{{_quoted(name)}, {frame.body if frame.body != GROUND else -1}, "
        f"{_numbers(frame.placement[:3, :3].ravel())}, {_numbers(frame.placement[:3, 3])}}},"
        for name, frame in model.frames.items()
    ]
    kinds = [check.kind for check in CHECKS]
    described = [f"  {{{', '.join(map(_quoted, row[:4]))}, {row[4]:d}}}," for row in DESCRIBED]
    return dict(
        name=model.name,
        digest=digest,
        count=len(places),
        places=", ".join(map(str, places)),
        friction=_numbers([model.joints[k].friction for k in places]),
        mass=float(without_payloads(model).total_mass),
        rate_share=RATE_SHARE,
        largest_friction=LARGEST_SHARE,
        largest_turn=LARGEST_TURN,
        never=NEVER,
        overload=kinds.index("overload"),
        standard_gravity=math.hypot(*STANDARD_GRAVITY),
        gravity_tolerance=GRAVITY_TOLERANCE,
        largest_load=LARGEST_LOAD,
        farthest_load=MAX_LENGTH,
        widest_load=WIDEST,
        laws=sum(1 << int(law) for law in (FLOAT, JOINT, LINK) if law in traced.available),
        link=traced.link,
        links="\n".join(links),
        described="\n".join(described),
    )


def _quoted(text: str) -> str:
    return f'"{text}"'


def _numbers(values: Any) -> str:
    return "{" + ", ".join(f"{float(x)!r}" for x in values) + "}"


def _vectors(layouts: Period, given: Settings) -> dict[str, str]:
    """Return files with requests and samples of successive periods, and what they lead to.

    A row holds the request, the sample, the mode, the fault, and the torques (n,). The fault is a
    file of its own, in words.
    """
    n = layouts.model.n
    settings = layouts.settings.packed(given)
    state = layouts.state.packed(initial(given))
    limited = given.low > -NEVER
    middle = np.where(limited, 0.5 * (given.spring_low + given.spring_high), 0.0)
    amplitude = np.where(limited, 0.1 * (given.spring_high - given.spring_low), 0.3)
    amplitude = np.minimum(amplitude, 0.5 * given.fastest)
    actions = {5: ENABLE, 165: CLEAR, 170: ENABLE, 190: DISABLE}
    asked: dict[str, Any] = {"sends": 1.0, "law": FLOAT, "pace": 1.0, "target": middle}
    asked["target_pose"] = np.eye(4)[:3]
    rows, words = [], ""
    for k in range(VECTORS):
        now = np.round((k + 1) * PERIOD, 6)
        q, qd = np.round([middle + amplitude * math.sin(now), amplitude * math.cos(now)], 6)
        effort = np.round(layouts.gravity(q, given.gravity, given.loads), 4)
        if k == 30 or 50 <= k < 60:
            q = np.full(n, math.nan)  # one bad sample, and a lost sensor
        known = {
            "now": now, "stamp": now, "received": now, "reported": 1.0, "q": q, "qd": qd,
            "effort": effort, "floats": 1.0,
        }  # fmt: skip
        sample = _filled(layouts.sample, known)
        if k in (20, 173):
            asked |= {"law": {20: LINK, 173: JOINT}[k], "motion": k, "follows": TARGET * (k > 20)}
        asked["action"] = actions.get(k, NONE)
        request = _filled(layouts.request, asked)
        result = layouts(state, sample, request, settings)
        state = result.state
        after, output = layouts.state.unpacked(state), layouts.output.unpacked(result.output)
        if fault := fault_of(after, layouts.model.joint_names, range(n)):
            words = words or fault.reason
        rows.append([*request, *sample, after.mode, after.fault, *output.torque])
    text = "".join(" ".join(f"{x:.17g}" for x in row) + "\n" for row in rows)
    return {"test/vectors.txt": text, "test/fault.txt": words + "\n"}


def _filled(layout: Layout[Any], known: Mapping[str, Any]) -> FloatArray:
    """Return a record with some fields, and zeros in the others."""
    record = layout.record(**{name: known.get(name, 0.0) for name in layout.places})
    vector: FloatArray = layout.packed(record)
    return vector


def _with_mock_hardware(text: str, joints: Sequence[str], model: Model) -> str:
    """Return a URDF with mock_components in place of its hardware.

    They take positions and efforts of the joints to command.
    """
    start = dict(zip(model.joint_names, model.neutral(within_limits=True).tolist(), strict=True))
    lines = [
        '<ros2_control name="mock" type="system">',
        "  <hardware><plugin>mock_components/GenericSystem</plugin></hardware>",
    ]
    for name in model.joint_names:
        kinds = ("position", "effort") if name in joints else ()
        states = {"position": start[name], "velocity": 0.0, "effort": 0.0}
        lines += [
            f'  <joint name="{name}">',
            *(f'    <command_interface name="{kind}"/>' for kind in kinds),
            *(
                f'    <state_interface name="{kind}"><param name="initial_value">{value:g}</param>'
                "</state_interface>"
                for kind, value in states.items()
            ),
            "  </joint>",
        ]
    system = "\n".join([*lines, "</ros2_control>", "</robot>"])
    without = re.sub(r"<\?xml.*?\?>|<ros2_control\b.*?</ros2_control>", "", text, flags=re.DOTALL)
    end = without.rindex("</")
    return without[:end].strip() + "\n" + system + "\n"
