# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""``python -m mbs_dynamics.cli`` is the command mbs-dynamics."""

import sys

from mbs_dynamics.cli import main

if __name__ == "__main__":
    sys.exit(main())
