# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Motion data of joints: one type (``series``), one reader and one writer.

``tables``, ``bags``, ``lerobot`` and ``trajectories`` read files as columns. ``columns`` finds the
quantity, joint and unit of each one, ``reading`` assembles a series of them, ``joints`` matches
names with a model, and ``plausibility`` checks units that were not declared.
"""

from mbs_dynamics.timeseries.series import TimeSeries, TimeSeriesError

__all__ = ["TimeSeries", "TimeSeriesError"]
