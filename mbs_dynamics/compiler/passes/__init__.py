# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""From programs to programs of the intermediate representation, each a step of the pipeline."""
