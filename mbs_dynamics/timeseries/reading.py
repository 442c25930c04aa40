# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The reader of motion data: from the columns of a file to a time series."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, UnknownJointError, listed, quoted
from mbs_dynamics.output_files import missing_file
from mbs_dynamics.timeseries.bags import BAGS, joined, read_bag
from mbs_dynamics.timeseries.columns import UNITS, Declarations, Meaning, column_name
from mbs_dynamics.timeseries.joints import matched
from mbs_dynamics.timeseries.lerobot import is_dataset, read_lerobot
from mbs_dynamics.timeseries.series import KINDS, TimeSeries, TimeSeriesError
from mbs_dynamics.timeseries.tables import Columns, read_csv, read_npz
from mbs_dynamics.timeseries.trajectories import TRAJECTORIES, read_trajectory

TABLES = (".csv", ".tsv", ".txt")
"""Endings of tables of text."""


def read(
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    topic: str = "",
    timed: bool = True,
) -> TimeSeries:
    """Return the motion data in a file; see :meth:`TimeSeries.read`."""
    path = Path(path).expanduser()
    declared = Declarations(columns or {})
    return assembled(columns_of(path, topic), declared, timed=timed)


def columns_of(path: Path, topic: str = "") -> Columns:
    """Return the columns of a file, by the names that they have there."""
    kind = path.suffix.lower()
    if not path.exists():
        raise TimeSeriesError(missing_file(path))
    if is_dataset(path):
        return read_lerobot(path, topic)
    if path.is_dir() or kind in BAGS:
        return read_bag(path, topic)
    if kind in TABLES:
        return read_csv(path)
    if kind == ".npz":
        return read_npz(path)
    if kind in TRAJECTORIES:
        return read_trajectory(path)
    raise TimeSeriesError(
        f"{path} is not motion data; valid: "
        f"{', '.join((*TABLES, '.npz', *BAGS, '.parquet', *TRAJECTORIES))}, and "
        "the folders of bags and of LeRobot datasets"
    )


def read_torques(
    path: Path, joint_names: Sequence[str], *, columns: Mapping[str, str], topic: str = ""
) -> TimeSeries:
    """Return torques over time of all joints of a robot, with positions of zero.

    They are in columns ``tau_<joint>`` or ``<joint>``, or in columns that ``columns`` declares.
    Joints without a column have zero torque. Raises ArgumentError for a file without times or
    torques and for torques that are not finite, UnknownJointError for an unknown joint, and the
    errors of :meth:`TimeSeries.read`.
    """
    table = columns_of(path, topic)
    bare = {name: f"tau_{name}" for name in table.values if name in joint_names}
    declared = Declarations({**bare, **columns})
    t, given, _, sources = quantities(table, declared, declared.meanings(table.values))
    torques = given["tau"]
    if t is None or not torques:
        raise ArgumentError(
            f"{path}: has no {'time' if t is None else 'torques'}; columns are t and "
            f"tau_<joint> or <joint>, with the joints {listed(joint_names)}, or are declared by "
            f"--columns; the file has {listed(list(table.values))}"
        )
    for name, values in torques.items():
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values))[0])
            raise ArgumentError(
                f"{path}: {quoted(sources[column_name('tau', name)])} must be finite; got "
                f"{values[row]:g} in row {row + 1}"
            )
    if set(torques) & set(joint_names):  # the names are those of this robot, so all must exist
        UnknownJointError.check(torques, joint_names)
    else:
        pairs = matched(str(path), tuple(torques), joint_names)
        torques = {name: torques[other] for name, other in pairs.items()}
    tau = np.zeros((len(t), len(joint_names)))
    for name, values in torques.items():
        tau[:, list(joint_names).index(name)] = values
    return TimeSeries(t, tuple(joint_names), 0.0 * tau, tau=tau, name=str(path))


def merged(
    source: str, samples: Iterable[tuple[float, Mapping[str, Sequence[float]]]]
) -> TimeSeries:
    """Return the series of samples (time, {joint: (position, velocity, effort)}) in SI units.

    A sample may have only some of the joints, and NaN for unknown values.
    """
    rows: dict[str, dict[float, Sequence[float]]] = {}
    for t, joints in samples:
        for joint, values in joints.items():
            rows.setdefault(joint, {})[t] = values
    tables = {
        joint: np.array([(t, *values) for t, values in sorted(one.items())])
        for joint, one in rows.items()
    }
    return assembled(joined(source, tables), Declarations({}))


def assembled(columns: Columns, declared: Declarations, *, timed: bool = True) -> TimeSeries:
    """Return the time series of columns, by their names and the declarations of the user."""
    meanings = declared.meanings(columns.values)
    t, given, units, sources = quantities(columns, declared, meanings)
    if not timed and declared.rate is None:
        t, units = np.arange(float(len(columns))), units | {"t"}
    for name in [name for name, x in given["q"].items() if np.isnan(x).all()]:
        columns.notes.append(f"{name} has no positions and was left out")
        for of_joint in given.values():
            of_joint.pop(name, None)
    for kind, called in columns.unstated.items():
        if given[kind] and kind not in units and kind != "goal":
            example = "deg" if kind == "q" else next(iter(UNITS[kind]))
            raise TimeSeriesError(
                f"{columns.name}: info.json states no unit of {called}; declare it, as in "
                f"--columns {kind}=[{example}], or {kind}=none"
            )
    if t is None or not given["q"]:
        what = "time" if t is None else "positions"
        how = "NAME=t[ms], or t=rows/RATE" if t is None else "NAME=q_joint1[deg]"
        raise TimeSeriesError(
            f"{columns.name}: has no {what}; columns are t, q_<joint>, qd_<joint> and tau_<joint>, "
            f"or are declared by --columns, as in {how}; the file has "
            f"{listed(list(columns.values))}"
        )
    positions, joints = _names(columns, given)
    absent = np.full(len(t), np.nan)
    arrays = {"q": np.column_stack([given["q"][name] for name in positions])}
    for kind in KINDS[1:]:
        if given[kind]:
            arrays[kind] = np.column_stack([given[kind].get(name, absent) for name in joints])
    further = {}
    for name, one in meanings.items():
        if not one.kind:
            with suppress(TimeSeriesError):  # a column of text
                further[name] = columns.numbers(name)
    keep, notes = _complete(columns.name, t, given, sources)
    return TimeSeries(
        t[keep],
        joints,
        columns={name: x[keep] for name, x in further.items() if np.isfinite(x[keep]).all()},
        positions=positions,
        name=Path(columns.name).name,
        notes=(*columns.notes, *notes),
        declared=frozenset(units),
        sources=sources,
        **{kind: x[keep] for kind, x in arrays.items()},
    )


def _names(
    columns: Columns, given: dict[str, dict[str, FloatArray]]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the columns of positions, and of the joints, which have the rates.

    They differ for joints with several coordinates, such as ``base[0]`` to ``base[6]``.
    """
    positions = tuple(given["q"])
    for name in [name for name in given["goal"] if name not in positions]:
        columns.notes.append(f"{name} has goals but no positions, and was left out")
        del given["goal"][name]
    rates = tuple(dict.fromkeys(name for kind in KINDS[1:] for name in given[kind]))
    several = [x for x in positions if x not in rates and f"{x.split('[')[0]}[0]" in given["qd"]]
    others = set(rates) == set(given["qd"]) and not set(rates) <= set(positions)
    joints = tuple(given["qd"]) if several or others else positions
    unknown = [name for name in rates if name not in joints]
    if unknown:
        kind = next(kind for kind in KINDS[1:] if unknown[0] in given[kind])
        called = column_name(kind, unknown[0])
        raise TimeSeriesError(
            f"{columns.name}: has {kind} of {quoted(unknown[0])}, but no position of it; joints "
            f"with positions are {listed(positions)}. Declare its joint, as in --columns "
            f"{called}={column_name(kind, positions[0])}, or {called}=none if it is not to be used"
        )
    return positions, joints


def quantities(
    columns: Columns, declared: Declarations, meanings: Mapping[str, Meaning]
) -> tuple[FloatArray | None, dict[str, dict[str, FloatArray]], set[str], dict[str, str]]:
    """Return (t, given, units, sources).

    ``t`` (N,) are the times, ``given`` columns in SI units by quantity and joint, ``units`` the
    quantities with declared units, and ``sources`` the names in the file by those of
    :func:`column_name`. Raises TimeSeriesError if two columns have the same meaning.
    """
    given: dict[str, dict[str, FloatArray]] = {kind: {} for kind in KINDS}
    sources: dict[str, str] = {}
    stated: dict[str, bool] = {}
    t = None
    for name, one in meanings.items():
        if not one.kind:
            continue
        key = column_name(one.kind, one.joint) if one.joint else one.kind
        if key in sources:
            what = one.kind if one.kind == "t" else f"{one.kind} of {one.joint}"
            raise TimeSeriesError(
                f"{columns.name}: {sources[key]!r} and {name!r} are both {what}; declare which "
                f"one is not used, as in --columns {quoted(name)}=none"
            )
        sources[key] = name
        stated[one.kind] = stated.get(one.kind, True) and one.declared
        values = one.factor * columns.numbers(name)
        if one.kind == "t":
            t = values
        elif not one.joint:
            raise TimeSeriesError(f"{columns.name}: {name!r} names no joint")
        else:
            given[one.kind][one.joint] = values
    units = {kind for kind, every in stated.items() if every}
    units |= {f"angle of {one.joint}" for one in meanings.values() if one.angle}
    if declared.rate is not None:
        t, units = np.arange(len(columns)) / declared.rate, units | {"t"}
    return t, given, units, sources


def _check_order(name: str, column: str, t: FloatArray) -> None:
    """Raise TimeSeriesError for times that do not increase, such as those of a coarse clock."""
    late = np.flatnonzero(np.diff(t) <= 0.0)
    if not len(late):
        return
    row, length = int(late[0]), float(t[-1] - t[0])
    rate = f"{(len(t) - 1) / length:.4g}" if length > 0.0 else "RATE"
    raise TimeSeriesError(
        f"{name}: {quoted(column)} does not increase in {len(late)} rows, such as "
        f"{t[row]:.12g} s, then {t[row + 1]:.12g} s. If the rows have equal periods and the clock "
        f"is too coarse, declare their rate, as in --columns t=rows/{rate}"
    )


def _complete(
    name: str,
    t: FloatArray,
    arrays: Mapping[str, Mapping[str, FloatArray]],
    sources: Mapping[str, str],
) -> tuple[NDArray[np.bool_], list[str]]:
    """Return a mask (N,) of rows without missing values, and a note on the others."""
    time = sources.get("t", "t")
    given = {time: t} | {
        sources[column_name(kind, joint)]: x
        for kind, by_joint in arrays.items()
        for joint, x in by_joint.items()
        if not np.isnan(x).all()
    }
    keep: NDArray[np.bool_] = np.isfinite(np.array(list(given.values()))).all(axis=0)
    left_out = len(t) - int(keep.sum())
    _check_order(name, time, t[keep])
    if not left_out:
        return keep, []
    rows = []
    for row in np.flatnonzero(~keep)[:10]:
        lacking = [key for key, x in given.items() if not np.isfinite(x[row])]
        rows.append(f"{row + 1} ({', '.join(lacking[:3])})")
    more = ", ..." if left_out > 10 else ""
    if left_out > 0.5 * len(t):
        raise TimeSeriesError(
            f"{name}: {left_out} of {len(t)} rows lack values: {', '.join(rows)}{more}. Declare "
            "columns that are not to be used, as in --columns NAME=none"
        )
    return keep, [f"{left_out} rows with missing values were left out: {', '.join(rows)}{more}"]
