# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The command ``mbs-dynamics``; each of the other files has the subcommands of one topic."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence

import mbs_dynamics as mbs
from mbs_dynamics.cli import (
    calibrate,
    excite,
    export,
    identify,
    info,
    replay,
    simulate,
    teaching,
    tune_collision,
    view,
)
from mbs_dynamics.cli.options import check_files


def command_line() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="mbs-dynamics",
        description="Kinematics and dynamics of multibody systems.",
        epilog="example: mbs-dynamics info arm7; mbs-dynamics COMMAND --help describes a command",
    )
    parser.add_argument("--version", action="version", version=mbs.__version__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    topics = (info, view, simulate, identify, tune_collision, excite, calibrate, teaching)
    for topic in (*topics, replay, export):  # in the order of the help text
        topic.add_commands(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    for stream in (sys.stdout, sys.stderr):  # their encoding may lack characters of a name
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    parser = command_line()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    try:
        check_files(options)
        return int(options.run(options))
    except mbs.MbsError as error:
        print(f"mbs-dynamics: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of the pipe has closed it
        sys.stderr.close()
        return 0
    except OSError as error:
        cause = f"{error.filename!r}: {error.strerror}" if error.filename else str(error)
        print(f"mbs-dynamics: cannot read or write {cause}", file=sys.stderr)
        return 1
