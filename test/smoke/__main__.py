# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Checks for every platform, in seconds, with nothing but what runs the package.

    python test/smoke [--expect native] [--expect ros] [--json FILE]

Every algorithm is compared with the plain Python back end, and the main ones with identities.
Neither pytest nor a reference library is needed, so that this runs where those do not: see
platforms/run.py.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import platform
import shutil
import sys
import time
import timeit
import traceback
from pathlib import Path

import numpy as np
from bench import FOLDER, arm, checks, state

import mbs_dynamics as mbs

for name in ("kernels", "identities", "simulations", "node"):
    importlib.import_module(name)


def versions() -> dict[str, str]:
    """Return what runs here."""
    found = {"Python": platform.python_version(), "machine": platform.machine()}
    found["NumPy"] = np.__version__
    with contextlib.suppress(ImportError):
        import llvmlite

        found["llvmlite"] = llvmlite.__version__
    return found


def call_time() -> float:
    """Return the seconds of a call of gravity torques of the arm with an array: the least."""
    kernel, q = mbs.compile(mbs.gravity_torques, arm()), state()[0].copy()
    timer = timeit.Timer(lambda: kernel(q))
    number, _ = timer.autorange()
    return min(timer.repeat(5, max(1, number // 5))) / max(1, number // 5)


def main() -> int:
    """Run all checks; return how many failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--expect", action="append", choices=["native", "ros"], default=[])
    parser.add_argument("--json", type=Path, help="where the results are written, too")
    given = parser.parse_args()
    found = versions()
    print(", ".join(f"{name} {version}" for name, version in found.items()), flush=True)
    start, failed, remarks = time.monotonic(), {}, {}
    for function in checks:
        begin = time.monotonic()
        try:
            remarks[function.__name__] = function(set(given.expect)) or ""
        except Exception as error:
            failed[function.__name__] = f"{type(error).__name__}: {error}"
            traceback.print_exc()
        result = "FAILED" if function.__name__ in failed else "ok    "
        took = time.monotonic() - begin
        remark = remarks.get(function.__name__, "")
        print(f"{result} {took:5.1f} s  {function.__name__:18s} {remark}".rstrip(), flush=True)
    seconds, per_call = time.monotonic() - start, call_time()
    print(f"{seconds:.1f} s; a call of gravity torques takes {1e6 * per_call:.2f} us")
    if given.json:
        results = {"versions": found, "failed": failed, "remarks": remarks}
        results.update(seconds=seconds, microseconds=1e6 * per_call)
        given.json.write_text(json.dumps(results))
    shutil.rmtree(FOLDER, ignore_errors=True)
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
