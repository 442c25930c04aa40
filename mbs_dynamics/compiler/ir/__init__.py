# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The intermediate representation: what its programs are, which are valid, and what they mean."""
