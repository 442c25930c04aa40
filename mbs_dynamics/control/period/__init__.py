# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""One control period of an arm under guard, as one traced function; see ``function.py``."""
