# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The supported platforms, an environment each, for `make platforms`; uv fetches what is missing.

nox -s smoke-3.14 runs one; nox --list shows all.
"""

from pathlib import Path

import nox

ROOT = Path(__file__).parent
PYTHONS = ["3.10", "3.11", "3.12", "3.13", "3.14"]

nox.options.default_venv_backend = "uv|virtualenv"
nox.options.sessions = ["smoke", "lowest", "without_llvmlite", "ros", "pages"]

PAGES = {
    "fast": ["docs/tutorials/python.md", "docs/how_to/task_space.md"],
    "fast,plot": ["docs/tutorials/simulate.md"],
    "fast,identify": ["docs/how_to/identification.md", "docs/examples/identification.md"],
    "fast,mjcf": ["docs/coming_from/mujoco.md"],
}
"""Pages by the extras that they ask for."""


def smoke_test(session: nox.Session, *expected: str) -> None:
    """Run the smoke test elsewhere, so that the installed package is imported."""
    options = [word for name in expected for word in ("--expect", name)]
    session.chdir(session.create_tmp())
    session.run("python", str(ROOT / "test" / "smoke"), *options)


@nox.session(python=PYTHONS)
def smoke(session: nox.Session) -> None:
    """The newest NumPy and llvmlite, in a wheel if one is given: nox -s smoke -- dist/*.whl."""
    package = session.posargs[0] if session.posargs else str(ROOT)
    session.install(f"mbs_dynamics[fast] @ {Path(package).resolve().as_uri()}")
    smoke_test(session, "native")


@nox.session(python=PYTHONS[0])
def lowest(session: nox.Session) -> None:
    """The lowest versions that pyproject.toml admits."""
    session.install("--resolution", "lowest-direct", ".[fast]")
    smoke_test(session)


@nox.session(python="3.12")
def without_llvmlite(session: nox.Session) -> None:
    """Plain Python in place of machine code."""
    session.install(".")
    smoke_test(session)


@nox.session(python=PYTHONS)
@nox.parametrize("distribution", ["jazzy", "kilted"])
def ros(session: nox.Session, distribution: str) -> None:
    """ROS 2 as wheels (x86-64 Linux), and a node over DDS."""
    extras = nox.project.load_toml(ROOT / "pyproject.toml")["project"]["optional-dependencies"]
    wheels = [name.replace("-jazzy-", f"-{distribution}-") for name in extras["ros"]]
    session.install(".[fast]", *wheels)
    smoke_test(session, "native", "ros")


@nox.session(python="3.12")
@nox.parametrize("extras", list(PAGES))
def pages(session: nox.Session, extras: str) -> None:
    """Examples of pages, with nothing but the extras that they ask for."""
    session.install(f".[{extras}]")
    session.chdir(session.create_tmp())  # some examples write figures
    for page in PAGES[extras]:
        session.run("python", "-m", "doctest", str(ROOT / page))


@nox.session(python="3.12")
def other_libraries(session: nox.Session) -> None:
    """Statements of pages about Drake, adam, Modern Robotics and the Robotics Toolbox."""
    others = ["drake", "adam-robotics", "roboticstoolbox-python", "modern_robotics"]
    session.install("-e", ".[test]", *others)
    session.run("pytest", "-q", "-m", "", "test/test_other_libraries.py")
