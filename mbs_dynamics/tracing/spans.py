# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Which columns of a row, which rows beyond or before it, a loop within a loop runs over."""

from __future__ import annotations

ALL, BEYOND, SINCE, BELOW = "all", "beyond", "since", "below"
"""What a loop within runs over: all columns of its tree, those of the rows beyond, those of its
tree from the row on, those before it. Loops over pairs run over the rows beyond where nothing is
said."""

AFTER, UNTIL = "after", "until"
"""Of loops over pairs of a row and what is attached to rows: to those beyond the row; to the row
itself and those that it is beyond."""
