# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Episodes of LeRobot datasets: Parquet files, described by ``meta/info.json``.

The features ``observation.state``, ``observation.velocity``, ``observation.effort`` and ``action``
are arrays with a value for each name in info.json. Time is the frame number divided by ``fps``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from mbs_dynamics.errors import listed, missing_extra, shortened
from mbs_dynamics.timeseries.columns import column_name
from mbs_dynamics.timeseries.series import TimeSeriesError
from mbs_dynamics.timeseries.tables import Columns

INFO = Path("meta") / "info.json"

FEATURES = {
    "observation.state": "q",
    "observation.velocity": "qd",
    "observation.effort": "tau",
    "action": "goal",
}
"""Features of measured values, and their quantities."""

ENDINGS = {
    **{".pos": "q", ".position": "q", ".vel": "qd", ".velocity": "qd"},
    **{".torque": "tau", ".effort": "tau", ".eff": "tau"},
}
"""Suffixes of names in ``observation.state``, and their quantities."""


def is_dataset(path: Path) -> bool:
    """Return whether a path is a Parquet file, or the folder of a dataset."""
    return path.suffix == ".parquet" or (path / INFO).is_file()


def read_lerobot(path: Path, episode: str = "") -> Columns:
    """Return an episode as columns ``t``, ``q_<joint>``, ``qd_...``, ``tau_...``, ``goal_...``.

    ``path`` is the folder of the dataset or one of its Parquet files. ``episode`` is the number of
    the episode; it is needed if there are several. Raises TimeSeriesError for a dataset that
    cannot be read, and BackendError without pyarrow.
    """
    try:
        from pyarrow import dataset
    except ImportError as error:
        raise missing_extra(f"{path}: LeRobot datasets need pyarrow", "lerobot", error) from None
    root = next((x for x in (path, *path.resolve().parents) if (x / INFO).is_file()), None)
    if root is None:
        raise TimeSeriesError(f"{path}: there is no {INFO} in a folder above")
    try:
        info = json.loads((root / INFO).read_text(encoding="utf-8"))
        features, fps = dict(info["features"]), float(info["fps"])
        files = sorted((path / "data").rglob("*.parquet")) if path.is_dir() else [path]
        data = dataset.dataset(files, format="parquet")
        numbers = set(data.to_table(columns=["episode_index"])["episode_index"].to_pylist())
        wanted = int(episode) if episode else min(numbers)
        table = data.to_table(filter=dataset.field("episode_index") == wanted)
        arrays = {
            name: np.stack(table[name].to_numpy())
            for name in (*FEATURES, "frame_index")
            if name in table.column_names and len(table)
        }
    except Exception as error:  # pyarrow raises many kinds
        raise TimeSeriesError(
            f"{path}: cannot be read as a LeRobot dataset: {shortened(repr(error))}"
        ) from error
    if not episode and len(numbers) > 1:
        raise TimeSeriesError(
            f"{path}: has {len(numbers)} episodes, {min(numbers)} to {max(numbers)}; choose one, "
            f"as in --topic {min(numbers)}"
        )
    if wanted not in numbers:
        raise TimeSeriesError(f"{path}: has no episode {episode}; it has {listed(sorted(numbers))}")
    frames = np.ravel(arrays.pop("frame_index", np.arange(len(next(iter(arrays.values()), ())))))
    columns = Columns(str(path), {"t": frames / fps})
    for feature, array in arrays.items():
        _add(columns, feature, np.atleast_2d(array.T).T, features.get(feature, {}))
    return columns


def _add(columns: Columns, feature: str, array: Any, description: dict[str, Any]) -> None:
    """Add the columns of a feature, with its unit if info.json states one."""
    names = description.get("names")
    while isinstance(names, dict):  # as {"motors": [...]}
        names = next(iter(names.values()), None)
    if not names or len(names) != array.shape[1]:
        names = [str(k) for k in range(array.shape[1])]
    unit = description.get("unit", description.get("units"))
    for k, name in enumerate(map(str, names)):
        kind = FEATURES[feature]
        ending = next((x for x in ENDINGS if name.endswith(x)), "")
        if ending and feature in ("observation.state", "action"):
            if feature == "action" and ENDINGS[ending] != "q":
                continue  # a commanded rate or torque
            kind = kind if feature == "action" else ENDINGS[ending]
        one = unit[k] if isinstance(unit, list) and len(unit) == len(names) else unit
        stated = f" [{one}]" if isinstance(one, str) else ""
        columns.values[column_name(kind, name.removesuffix(ending)) + stated] = array[:, k]
        if not stated:
            columns.unstated[kind] = feature
