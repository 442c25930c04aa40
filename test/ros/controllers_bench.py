# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A controller manager with the semantics of ros2_control's (jazzy), without ROS, and its time.

Read in controller_manager.cpp: a STRICT request is refused as a whole if a controller does not
exist, is in the state asked for already, or is neither active nor inactive; if a chain would be
torn; if an interface is claimed by another controller; or if the hardware refuses. Then the
controllers are deactivated, then activated. If one activation fails, those activated by this
request are deactivated again, and those that it has deactivated stay so. Requests are served one
after the other, and a list waits for the end of a switch.
"""

import heapq
import itertools
import types

from mbs_dynamics.errors import ControllerError, NoAnswerError
from mbs_dynamics.ros.compensation.controller_list import Controller

ANSWER = 2.0
"""Time in s after which a client gives up."""

READY = ("active", "inactive")


class Controllers:
    """Controllers in their states, which change at once."""

    def __init__(self, **controllers):
        """``controllers``: name=(state, *command interfaces); ``other/x`` is one of a chain."""
        self.all = {}
        for name, (state, *interfaces) in controllers.items():
            chained = {one.partition("/")[0] for one in interfaces} & {*controllers}
            about = "some/Controller", tuple(interfaces), tuple(sorted(chained))
            self.all[name] = Controller(name, state, *about)
        self.requests = []
        """All requests to switch: (activate, deactivate)."""
        self.refusal = lambda activate: ""
        """Why the hardware refuses a request with these controllers to activate."""
        self.failing = {}
        """The state that an activation of a controller ends in, by its name."""
        self.stuck = set()
        """Controllers that fail to be deactivated. They stay active, and lose their interfaces."""
        self._released = set()

    def state(self, name):
        return self.all[name].state

    def set(self, name, state):
        self.all[name] = self.all[name]._replace(state=state)

    def end(self, name):
        """End a controller and the chain that leads to it, as an error in its update does."""
        self.set(name, "inactive")
        for one in [*self.all.values()]:
            if name in one.chained_to and one.state == "active":
                self.end(one.name)

    def listed(self):
        """Return the list: interfaces are known of those that are active or inactive."""
        hidden = {"command_interfaces": (), "chained_to": ()}
        return [
            one._replace(chained_to=tuple(other for other in one.chained_to if other in self.all))
            if one.state in READY
            else one._replace(**hidden)
            for one in self.all.values()
        ]

    def switch(self, activate, deactivate):
        """Switch as STRICT asks for; return why that failed, "" if it succeeded."""
        self.requests.append(([*activate], [*deactivate]))
        refused = self.refused(activate, deactivate) or self.refusal([*activate])
        if refused:
            return refused
        stuck = [name for name in deactivate if name in self.stuck]
        self._released = (self._released | {*stuck}) - {*activate}
        for name in deactivate:
            self.set(name, "active" if name in stuck else "inactive")
        failed = [name for name in activate if name in self.failing]
        for name in activate:
            self.set(name, self.failing.get(name, "inactive" if failed else "active"))
        lines = [("activate", failed), ("deactivate", stuck)]
        return " ".join(f"Unable to {do} controllers: {names}" for do, names in lines if names)

    def refused(self, activate, deactivate):
        for names, action in ((deactivate, "deactivate"), (activate, "activate")):
            for name in names:
                if name not in self.all:
                    return f"Could not {action} controller with name {name!r}: it does not exist"
        for name in activate:
            if self.state(name) not in READY:
                return f"Controller with name {name!r} is not in 'inactive' state"
            if self.state(name) == "active":
                return f"Controller with name {name!r} is already active."
            for other in self.all[name].chained_to:
                if other not in self.all:
                    return f"a command interface of {other!r} is not available"
                acts = self.state(other) == "active"
                if other in deactivate if acts else other not in activate:
                    return f"The following controller with name {other!r} does not act"
        for name in deactivate:
            if self.state(name) != "active":
                return f"Controller with name {name!r} can not be deactivated: it is not active."
            for one in self.all.values():
                if name in one.chained_to and one.state == "active" and one.name not in deactivate:
                    return f"preceding controller with name {one.name!r} is currently active"
        claimed = [one.name for one in self.all.values() if one.state == "active"]
        gone = {*deactivate} | self._released
        taken = [self.all[n].command_interfaces for n in claimed if n not in gone]
        for name in activate:
            if {*self.all[name].command_interfaces} & {*itertools.chain(*taken)}:
                return f"Unable to activate controller {name!r}: an interface is claimed"
            taken.append(self.all[name].command_interfaces)
        return ""


class World:
    """A clock that coroutines share: each waits by ``await world.sleep(seconds)``."""

    def __init__(self, now=0.0):
        self.now = now
        self._queue, self._count = [], itertools.count()

    @types.coroutine
    def sleep(self, seconds):
        yield seconds

    def start(self, coroutine):
        self._push(self.now, coroutine)

    def _push(self, when, coroutine):
        heapq.heappush(self._queue, (when, next(self._count), coroutine))

    def step(self):
        """Run the coroutine that is due next until it waits."""
        self.now, _, coroutine = heapq.heappop(self._queue)
        try:
            seconds = coroutine.send(None)
        except StopIteration:
            return
        self._push(self.now + seconds, coroutine)

    def result(self, coroutine):
        """Return the result of a coroutine, or raise what it raises, when its time has come."""
        outcome = []

        async def run():
            try:
                outcome.append((await coroutine, None))
            except Exception as error:
                outcome.append((None, error))

        self.start(run())
        while not outcome:
            self.step()
        value, error = outcome[0]
        if error is not None:
            raise error
        return value


class Manager:
    """The client of :class:`Controllers` in a :class:`World`: calls take time, and may get lost."""

    name = "/controller_manager"

    def __init__(self, controllers, world):
        self.controllers, self.world = controllers, world
        self.here = True
        self.elsewhere = ()
        """The names of other managers in the graph."""
        self.blocks = 0.0
        """How long the hardware blocks the next switch, in s."""
        self.loses = 0
        """How many of the next answers get lost."""
        self.starts = None
        """Whether the position controller starts from the last command."""
        self.busy_until = self.answers_at = 0.0
        self.after_switch = lambda activate, deactivate: None

    def present(self):
        return self.here

    def others(self):
        return self.elsewhere

    async def pause(self, seconds):
        await self.world.sleep(seconds)

    async def starts_from_command(self, controller):
        await self.world.sleep(0.002)
        return self.starts

    async def list(self):
        await self._served(0.002, "list_controllers")
        return self.controllers.listed()

    async def switch(self, activate, deactivate):
        takes, self.blocks = 0.006 + self.blocks, 0.0
        answer, begins = [], max(self.world.now, self.busy_until)
        if self.here:  # it may take effect without an answer
            self.world.start(self._act(begins + 0.9 * takes, activate, deactivate, answer))
        await self._served(takes, "switch_controller")
        if answer[0]:
            raise ControllerError(f"refused to switch controllers: {answer[0]}")

    async def _act(self, when, activate, deactivate, answer):
        await self.world.sleep(when - self.world.now)
        answer.append(self.controllers.switch(activate, deactivate))
        self.after_switch([*activate], [*deactivate])

    async def _served(self, seconds, service):
        if not self.here:
            raise ControllerError(f"there is no service {service}")
        self.busy_until = max(self.busy_until, self.world.now) + seconds
        lost = self.loses > 0
        self.loses -= lost
        takes = self.busy_until - self.world.now
        waits = ANSWER if lost else min(takes, ANSWER)
        self.answers_at = self.world.now + waits
        await self.world.sleep(waits)
        if lost or takes > ANSWER:
            raise NoAnswerError(f"no answer from {service} within {ANSWER:g} s")
