# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels: calls, back ends, batches, simulations, the cache, exported C, the command line."""

import ctypes
import importlib
import importlib.util
import json
import pkgutil
import shutil
import subprocess
import sys
from typing import Any

import numpy as np
from bench import FOLDER, arm, close, state

import mbs_dynamics as mbs
from mbs_dynamics import integrate
from mbs_dynamics.compiler import default_backend
from mbs_dynamics.compiler.runtime.native import layout, vectorcall
from mbs_dynamics.resources import robot_path
from mbs_dynamics.timeseries import TimeSeries

STATES = 200  # of a batch, more than vector code needs
OPTIONS = {"body": "tool", "joints": ("joint2", "joint4"), "order": 2, "bodies": None}


def options_of(function: Any) -> dict[str, Any]:
    """Return a value for each option that an algorithm has no default for."""
    known = mbs.algorithms.algorithm_of(function).options
    return {name: OPTIONS[name] for name in OPTIONS if name in known}


def call(expected: set[str]) -> str:
    """Kernels are called the way that this platform is said to have."""
    kernel = mbs.compile(mbs.gravity_torques, arm())
    used = bool(vectorcall.code_of(kernel))
    assert used == (default_backend() == "llvm" and layout.unsupported_reason() is None)
    why = layout.unsupported_reason() or f"the back end is {default_backend()}"
    assert used or "native" not in expected, f"no native call: {why}"
    return f"{default_backend()}, {'native call' if used else why}"


def back_ends(expected: set[str]) -> str:
    """Each algorithm computes what the plain Python back end computes."""
    rng = np.random.default_rng(1)
    others = ["llvm"] if importlib.util.find_spec("llvmlite") else []
    for function in mbs.ALGORITHMS:
        options = options_of(function)
        plain = mbs.compile(function, arm(), backend="python", **options)
        given = [rng.uniform(-1.0, 1.0, port.shape) for port in plain.inputs[: plain.required]]
        wanted = plain(*given)
        for backend in others:
            found = mbs.compile(function, arm(), backend=backend, **options)(*given)
            several = isinstance(wanted, tuple)
            for one, other in zip(*(x if several else [x] for x in (found, wanted)), strict=True):
                close(one, other, 1e-10)
    return f"{len(mbs.ALGORITHMS)} algorithms, python beside {', '.join(others) or 'nothing'}"


def batches(expected: set[str]) -> None:
    """Batches of either layout have the results of single states."""
    rows = np.random.default_rng(2).uniform(-1.0, 1.0, (3, STATES, arm().n))
    for function in (mbs.inverse_dynamics, mbs.forward_dynamics):
        kernel = mbs.compile(function, arm())
        single = np.array([kernel(*given) for given in zip(*rows, strict=True)])
        for given in (rows, [np.asfortranarray(x) for x in rows]):
            close(kernel(*given), single, 1e-10)


def simulation(expected: set[str]) -> None:
    """Arms keep their energy by all methods; motions are stored in files."""
    q, qd, *_ = state()
    for method in integrate.METHODS:
        motion = integrate.simulate(arm(), q, qd, duration=0.02, method=method, progress=False)
        close(motion.energy, np.full_like(motion.energy, motion.energy[0]), 1e-2)
    motion.series.write(FOLDER / "motion.npz")
    close(TimeSeries.read(FOLDER / "motion.npz").q, motion.q)


def kept(expected: set[str]) -> str:
    """The next start finds the compiled kernels."""
    if default_backend() != "llvm":
        return "only llvm keeps kernels"
    q = state()[0]
    tau = mbs.gravity_torques(arm(), q.tolist()).tolist()  # as below, and with the same code
    place = FOLDER / "cache"
    stored = {path.name for path in place.iterdir()}
    assert stored, "nothing was stored"
    code = (
        "import json, sys, mbs_dynamics as mbs\n"
        "from mbs_dynamics.resources import robot_path\n"
        "arm = mbs.Model.from_urdf(robot_path('arm7'))\n"
        f"tau = mbs.gravity_torques(arm, {q.tolist()}).tolist()\n"
        "print(json.dumps([tau, 'llvmlite.binding' in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found, with_llvm = json.loads(done.stdout)
    assert found == tau
    assert {path.name for path in place.iterdir()} == stored, "it was compiled again"
    return f"{len(stored)} objects, loaded {'with' if with_llvm else 'without'} LLVM"


def exported_c(expected: set[str]) -> str:
    """Exported C compiles without warnings and computes the same."""
    compiler = shutil.which("cc")
    source, _ = mbs.export_c(arm(), [mbs.gravity_torques], FOLDER / "c")
    if compiler is None:
        return "written; there is no cc to compile it"
    library = source.with_suffix(".so")
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    done = subprocess.run([compiler, *flags, source, "-o", library, "-lm"], stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr.decode()
    given = state()[0].copy(), np.array(arm().gravity), np.empty(arm().n)
    function = getattr(ctypes.CDLL(str(library)), f"{source.stem}_gravity_torques")
    assert function(*(ctypes.c_void_p(x.ctypes.data) for x in given)) == 0
    close(given[-1], mbs.gravity_torques(arm(), given[0]))
    return "compiled"


def modules(expected: set[str]) -> None:
    """Every module that needs no ROS, and no package that is not here, can be imported."""
    needed = {"view.": "viser"} | {f"bridges.{x}": x for x in ("casadi", "jax", "sympy", "torch")}
    absent = [part for part, name in needed.items() if importlib.util.find_spec(name) is None]
    left_out = ("mbs_dynamics.ros", *(f"mbs_dynamics.{part}" for part in absent))
    for _, name, _ in pkgutil.walk_packages(mbs.__path__, "mbs_dynamics."):
        if not name.startswith(left_out):
            importlib.import_module(name)


def command_line(expected: set[str]) -> None:
    """The command that is installed beside this Python reports on a robot."""
    command = [sys.executable, "-m", "mbs_dynamics.cli", "info", str(robot_path("arm7"))]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "link7" in done.stdout


CHECKS = call, back_ends, batches, simulation, kept, exported_c, modules, command_line
