# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Checks for every platform, in seconds, with nothing but what runs the package.

    python test/smoke [--expect native] [--expect ros]

Every algorithm is compared with the plain Python back end.
Neither pytest nor a reference library is needed, so that this runs where those do not: see
noxfile.py.
"""

import argparse
import contextlib
import platform
import shutil
import sys
import traceback

import numpy as np
from bench import FOLDER
from kernels import CHECKS
from node import node


def versions() -> dict[str, str]:
    """Return what runs here."""
    found = {"Python": platform.python_version(), "machine": platform.machine()}
    found["NumPy"] = np.__version__
    with contextlib.suppress(ImportError):
        import llvmlite

        found["llvmlite"] = llvmlite.__version__
    return found


def main() -> int:
    """Run all checks; return how many failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--expect", action="append", choices=["native", "ros"], default=[])
    expected = set(parser.parse_args().expect)
    print(", ".join(f"{name} {version}" for name, version in versions().items()), flush=True)
    failed = 0
    for function in (*CHECKS, node):
        try:
            said = function(expected) or ""
            print(f"ok      {function.__name__:18s} {said}".rstrip(), flush=True)
        except Exception:
            traceback.print_exc()
            print(f"FAILED  {function.__name__}", flush=True)
            failed += 1
    shutil.rmtree(FOLDER, ignore_errors=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
