# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Thirty changes of equations and decisions, each of which a test has to find: `make mutants`.

A mutant replaces one text, which a file must contain exactly once, in a copy of the checkout, and
runs tests of that file. It survives if they pass. The tests run without a mutant first.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
COPIED = (
    "mbs_dynamics", "test", "urdf", "docs", "examples", "pyproject.toml", "README.md",
    "package.xml",  # by which a checkout is known
)  # fmt: skip

DYNAMICS = "test/algorithms/test_algorithms.py"
MOVES = "test/representation test/algorithms/test_algorithms.py"
LIE = "test/lie"
MODEL = "test/model/test_inertia.py test/model/test_screws.py test/model/test_dh.py"

MUTANTS = [
    # file below mbs_dynamics, text, what replaces it, tests
    ("lie/so3.py", "less(q[..., 3], 0.0), -1.0, 1.0", "less(q[..., 3], 0.0), 1.0, 1.0", "test/lie test/model/test_joint_kinds.py"),
    ("lie/so3.py", "np.eye(3) - 0.5 * X +", "np.eye(3) + 0.5 * X +", LIE),
    ("lie/so3.py", "times(series.sinc3(angle2), X @ X)\n\n\ndef dexp_inv", "times(series.cosc(angle2), X @ X)\n\n\ndef dexp_inv", LIE),
    ("lie/se3.py", "return pose(R, -(R @ C[..., :3, 3:])[..., 0])", "return pose(R, (R @ C[..., :3, 3:])[..., 0])", LIE),
    ("lie/se3.py", "return _lower(R, so3.hat(C[..., :3, 3]) @ R)", "return _lower(R, R @ so3.hat(C[..., :3, 3]))", LIE),
    ("lie/se3.py", "np.block([[-h, -p], [-p, np.zeros((3, 3))]])", "np.block([[-h, -p], [p, np.zeros((3, 3))]])", LIE),
    ("representation/operators.py", "return (se3.ad(V[i]) @ self.screw(i)) @ rate  # D (66c)", "return -(se3.ad(V[i]) @ self.screw(i)) @ rate", MOVES),
    ("representation/operators.py", "return -(se3.ad(V).T @ (self.inertia(i) @ V))  # D (38), (41)", "return se3.ad(V) @ (self.inertia(i) @ V)", MOVES),
    ("representation/operators.py", "return (se3.ad(V[p]) @ self.screw(i)) @ rate", "return (se3.ad(V[i]) @ self.inertia(i)) @ self.screw(i) @ rate", MOVES),
    ("representation/operators.py", "return _turning(V[:3], self.inertia(i))  # D (53)", "return 0.0 * _turning(V[:3], self.inertia(i))", MOVES),
    ("representation/body_axes.py", "_square(omega) @ M.moment", "_square(omega) @ -M.moment", MOVES),
    ("algorithms/newton_euler.py", "W[p] = W[p] + rep.transform(i).T @ W[i]", "W[p] = W[p] - rep.transform(i).T @ W[i]", DYNAMICS),
    ("algorithms/newton_euler.py", "W[i] = W[i] - loads.wrenches[i]", "W[i] = W[i] + loads.wrenches[i]", DYNAMICS),
    ("algorithms/newton_euler.py", "linear = Vd[3:] - np.asarray(model.gravity)", "linear = Vd[3:] + np.asarray(model.gravity)", DYNAMICS),
    ("algorithms/newton_euler.py", "linear = linear + so3.hat(V[:3]) @ V[3:]", "linear = linear - so3.hat(V[:3]) @ V[3:]", "test/algorithms/test_moving_base.py"),
    ("algorithms/newton_euler.py", "+ model.rotor(i) @ acceleration[i]", "- model.rotor(i) @ acceleration[i]", "test/algorithms/test_joints.py"),
    ("algorithms/coriolis.py", "gamma[k, i, j] = -y.T", "gamma[k, i, j] = y.T", DYNAMICS),
    ("algorithms/coriolis.py", "gamma[i, j, k] = gamma[i, k, j] = S_i.T @ W_i", "gamma[i, j, k] = S_i.T @ W_i", DYNAMICS),
    ("algorithms/coriolis.py", "so3.hat(self.momentum) @ X[3:] - self.moments.T @ X[:3]", "so3.hat(self.momentum) @ X[3:] + self.moments.T @ X[:3]", "test/algorithms/test_derivations.py test/representation test/algorithms/test_algorithms.py"),
    ("algorithms/energy.py", "return np.asarray(0.5 * (of_bodies + rotors))", "return np.asarray(0.5 * of_bodies)", "test/algorithms/test_joints.py"),
    ("algorithms/energy.py", "rate[i] = rep.screw_rate(i, V[i]).T @ P[i] - rep.screw(i).T @ W[i]", "rate[i] = rep.screw_rate(i, V[i]).T @ P[i] + rep.screw(i).T @ W[i]", "test/algorithms/test_joints.py"),
    ("algorithms/energy.py", "return np.concatenate([about_origin - so3.hat(", "return np.concatenate([about_origin + so3.hat(", "test/algorithms/test_joints.py"),
    ("algorithms/factorization.py", "(i, A[i, k] * inverse)", "(i, A[i, k])", DYNAMICS),
    ("algorithms/derivatives.py", "solution(-model.to_coordinates(x, 2))", "solution(model.to_coordinates(x, 2))", "test/algorithms/test_dynamics_derivatives.py"),
    ("model/inertia.py", "- m * d_hat @ d_hat)", "+ m * d_hat @ d_hat)", MODEL),
    ("model/inertia.py", "self.mass * v - c @ omega", "self.mass * v + c @ omega", MODEL),
    ("model/coordinates.py", "(np.abs(q - lower) <= margin) |", "(np.abs(q - lower) > margin) |", "test/identification/test_still_poses.py"),
    ("model/dh.py", "(a / 2, 0.0, d), along_x)", "(a, 0.0, d), along_x)", MODEL),
    ("compiler/frontend/graph.py", "return -self.args[0].sin()", "return self.args[0].sin()", "test/compiler/test_graph.py test/compiler/test_emitters.py"),
    ("compiler/frontend/graph.py", "return _scaled(x, 1.0 / c)", "return _scaled(x, c)", "test/compiler/test_graph.py"),
]  # fmt: skip


def passes(copy: Path, tests: str) -> bool:
    """Return whether tests pass in the copy."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    # what a mutant leaves as it was is not compiled again: kernels are stored by their code
    kernels = {"MBS_CACHE": "1", "MBS_CACHE_DIR": str(copy / "kernels")}
    done = subprocess.run(
        [*command, *tests.split()], cwd=copy, env=os.environ | kernels, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    if done.returncode not in (0, 1):
        raise SystemExit(f"pytest ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.returncode == 0


def main() -> int:
    """Run all mutants; return 1 if one survives."""
    survivors = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in COPIED:
            source = ROOT / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, copy / name)
        for tests in sorted({mutant[3] for mutant in MUTANTS}):
            if not passes(copy, tests):
                raise SystemExit(f"{tests} fails without a mutant")
        for file, old, new, tests in MUTANTS:
            path = copy / "mbs_dynamics" / file
            text = path.read_text(encoding="utf-8")
            if text.count(old) != 1:
                raise SystemExit(f"{file} contains {old!r} {text.count(old)} times, not once")
            path.write_text(text.replace(old, new), encoding="utf-8")
            survived = passes(copy, tests)
            path.write_text(text, encoding="utf-8")
            survivors += survived
            print(f"{'SURVIVED' if survived else 'killed'} {file}: {old} -> {new}", flush=True)
    print(f"{survivors} of {len(MUTANTS)} mutants survived")
    return int(survivors > 0)


if __name__ == "__main__":
    sys.exit(main())
