# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The acts of the demonstration, each with what must be true in the end."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from mbs_dynamics.ros.demo import check as demo_check
from mbs_dynamics.ros.demo.stage import Stage

STILL = 0.01
"""A robot that moves less than this, in rad or m, stays where it is."""

SEEN = 0.05
"""A robot that moves more than this has moved."""

LONGEST_SETTLE = 15.0
"""Seconds in which the robot has to come to rest."""

WATCH = 1.5
"""Seconds for which it then has to stay."""


class Claim(NamedTuple):
    """Something that must be true, with what was found."""

    text: str
    good: bool


class Act(NamedTuple):
    """A part of the story."""

    title: str
    play: Callable[[], Iterator[Claim]]


def acts(stage: Stage, simulator: Callable[[int], None]) -> list[Act]:
    """Return the story. ``simulator`` sends a signal to the process of the robot."""
    plan = stage.plan

    def at_its_place() -> bool:
        """Put the robot back; on a busy machine it may have fallen before anybody hears of it."""
        stage.reset()
        return stage.soon(lambda: _moved(stage, plan.posture) < STILL, 1.0)

    def sag() -> Iterator[Claim]:
        stage.until("a robot at its place", at_its_place)
        stage.pause(0.5)
        fell = _moved(stage, plan.posture)
        if plan.sags:
            yield Claim(f"the robot sags: {fell:.2f} rad or m in half a second", fell > SEEN)
        else:
            yield Claim("gravity does not move this robot from here", fell < SEEN)
        yield Claim(f"{stage.commands} commands while disabled", stage.commands == 0)

    def float_() -> Iterator[Claim]:
        stage.until("a robot at its place", at_its_place)
        refused = stage.enable()
        yield Claim(f"~/enable {'refuses: ' + refused if refused else 'is granted'}", not refused)
        stage.until("word that it is enabled", lambda: stage.enabled is True)
        yield _stays(stage)
        yield _right(stage, 0.0)

    def push() -> Iterator[Claim]:
        before = stage.q
        stage.push()
        stage.until("an effect of the push", lambda: _moved(stage, before) > SEEN)
        yield Claim(f"a push on {plan.tip} moves it", True)
        yield _stays(stage)

    def payload() -> Iterator[Claim]:
        before = stage.q
        stage.payload("simulator_node")
        if plan.sags:
            stage.until("a load that pulls", lambda: _moved(stage, before) > SEEN)
            yield Claim(f"{plan.load:g} kg on {plan.tip}, not announced, pull it down", True)
        else:
            stage.pause(WATCH)
        stage.payload("gravity_compensation_node", "dynamics_node")
        yield _stays(stage)
        yield _right(stage, plan.load)

    def cut() -> Iterator[Claim]:
        simulator(signal.SIGSTOP)
        try:
            stage.until("word that it has stopped", lambda: stage.enabled is False)
            stage.until("a last command of zero", lambda: not stage.commanded.any())
            yield Claim("joint states stop: compensation stops, torques ramp to zero", True)
            heard = stage.commands
            stage.listen(1.0)
            silent = stage.commands == heard
            yield Claim("and it commands nothing any more", silent)
        finally:
            simulator(signal.SIGCONT)
        stage.pause(1.0)
        latched = stage.enabled is False and stage.commands == heard
        yield Claim("joint states are back: it stays off until it is enabled again", latched)

    return [
        Act("without compensation", sag),
        Act("compensation is enabled", float_),
        Act("a push", push),
        Act("a payload", payload),
        Act("joint_states are cut", cut),
    ]


def _moved(stage: Stage, q: np.ndarray) -> float:
    return float(np.abs(stage.q - q).max())


def _stays(stage: Stage) -> Claim:
    """Let the robot come to rest, and see whether it stays."""
    end, still = stage.now + LONGEST_SETTLE, False
    while not still and stage.now < end:
        before = stage.q
        stage.pause(0.5)
        still = _moved(stage, before) < 0.1 * STILL
    before = stage.q
    stage.pause(WATCH)
    if not stage.enabled:
        return Claim("compensation has stopped", False)
    drift = _moved(stage, before)
    return Claim(f"it floats: moves by {drift:.4f} rad or m in {WATCH:g} s", drift < STILL)


def _right(stage: Stage, mass: float) -> Claim:
    """Compare the dynamics node with finite differences of the poses of the loaded robot."""
    model = stage.model
    if mass:
        model = model.with_payload(stage.plan.tip, mass=mass, com=(0.0, 0.0, 0.0)).loaded()
    end = stage.now + LONGEST_SETTLE
    while True:  # a load that is new takes the node a moment
        assert stage.gravity is not None
        tau, q = stage.gravity
        error = demo_check.error(tau, demo_check.gravity_torques(model, q))
        good = error <= demo_check.TOLERANCE
        if good or stage.now > end:
            said = f"torques of dynamics_node against finite differences: {error:.0e} off"
            return Claim(said, good)
        stage.pause(0.2)
