# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Motion data of joints: one type, one reader and one writer."""

from mbs_dynamics.timeseries.series import TimeSeries, TimeSeriesError

__all__ = ["TimeSeries", "TimeSeriesError"]
