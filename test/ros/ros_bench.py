# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A node in its own process, and a probe that communicates with it, for tests over DDS."""

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import InertiaStamped, Vector3Stamped
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.srv import GetParameters, SetParametersAtomically
from rclpy.executors import SingleThreadedExecutor, TimeoutException
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from waiting import TIMEOUT

from mbs_dynamics.ros.entry_points import interface_of
from mbs_dynamics.ros.messages import stamp_of, time_of
from mbs_dynamics.ros.node_base import LATCHED, message_type

STEP = 0.01
"""Longest wait in s for a message, until conditions are looked at again."""

DEPTH = 10
"""Messages of a topic that a node stores at most."""

ASK_AGAIN = 0.5
"""Seconds without an answer after which a service is called again."""

_numbers = itertools.count()


class NodeProcess:
    """A node, run as a user runs it, in a namespace of its own unless told otherwise."""

    def __init__(self, executable, *arguments, namespace="", **parameters):
        self.executable = executable
        self.namespace = namespace or f"/test_{os.getpid()}_{next(_numbers)}"
        self.name = f"{self.namespace}/{executable}"
        self._log = tempfile.NamedTemporaryFile("w+", suffix=".log")  # noqa: SIM115
        command = self.command(*arguments)
        for name, value in parameters.items():
            command += ["-p", f"{name}:={value}"] if value is not None else []
        given = {"cwd": Path(__file__).parents[2], "env": {**os.environ, "PYTHONFAULTHANDLER": "1"}}
        output = {"stdout": self._log, "stderr": subprocess.STDOUT}
        self.process = subprocess.Popen(command, start_new_session=True, **given, **output)

    def command(self, *arguments):
        module = ["-m", f"mbs_dynamics.ros.{self.executable}", "--ros-args"]
        return [sys.executable, *module, "-r", f"__ns:={self.namespace}", *arguments]

    @property
    def log(self):
        return Path(self._log.name).read_text(encoding="utf-8")

    def wait(self):
        try:
            return self.process.wait(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)  # it writes where its threads are
            self.process.wait()
            raise AssertionError(f"has not ended by itself\n{self.log}") from None

    def stop(self, how=signal.SIGINT):
        """Send a signal and return the exit code."""
        self.process.send_signal(how)
        return self.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):  # none is left, mostly
            os.killpg(self.process.pid, signal.SIGKILL)  # and what launch has started
        self.process.wait()
        self._log.close()


class Probe:
    """Publishes what the node hears, and keeps the latest of what it says.

    ``beside`` is another probe: what either waits for, both hear meanwhile.
    """

    def __init__(self, node_process, beside=None):
        self.target = node_process
        self.node = Node(
            f"probe_{next(_numbers)}",
            namespace=node_process.namespace,
            start_parameter_services=False,  # which an executor asks about at each message
        )
        self._beside = beside
        self.executor = beside.executor if beside else SingleThreadedExecutor()
        self.executor.add_node(self.node)
        publisher, name = self.node.create_publisher, node_process.name
        self._description = publisher(String, "robot_description", LATCHED)
        self._joint_states = publisher(JointState, "joint_states", qos_profile_sensor_data)
        self._gravity = publisher(Vector3Stamped, f"{name}/gravity", 1)
        self._payload = publisher(InertiaStamped, f"{name}/payload", 1)
        self.latest = {}
        self._answers = {}
        """By stamp in ns: what was heard with it, by topic."""
        self.health = {}
        self._clients = {}
        self.node.create_subscription(DiagnosticArray, "/diagnostics", self._hear_health, 10)
        self.latest_stamp = time.time_ns()
        """The stamp of the latest state that was sent, in ns."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.executor.remove_node(self.node)
        if self._beside is None:
            self.executor.shutdown()
        self.node.destroy_node()

    def _hear_health(self, message):
        for status in message.status:
            node, part = status.name.split(": ")
            if f"/{node}" == self.target.name:
                self.health[part] = status

    def hear(self, *topics):
        """Subscribe to outputs of the node, such as "gravity_torques" or "twist/tool"."""
        published = interface_of(self.target.executable).published
        types = {one.name.removeprefix("~/").partition("/")[0]: one.type for one in published}
        for topic in topics:
            self.node.create_subscription(
                message_type(types[topic.partition("/")[0]]),
                f"{self.target.name}/{topic}",
                lambda message, topic=topic: self._hear(topic, message),
                10,
            )

    def _hear(self, topic, message):
        self.latest[topic] = message
        self._answers.setdefault(stamp_in(message), {})[topic] = message

    def spin(self, seconds):
        """Process messages for so many seconds."""
        end = time.monotonic() + seconds
        while True:
            # with another timeout an executor begins anew, at the subscriptions
            self.executor.spin_once(timeout_sec=STEP)
            if time.monotonic() >= end:
                return

    def drain(self):
        """Process all messages that have arrived.

        Each pass of the executor takes one message of each topic, and ends with TimeoutException.
        """
        found = True
        while found:
            found = False
            with contextlib.suppress(TimeoutException):
                while True:
                    handler, *_ = self.executor.wait_for_ready_callbacks(timeout_sec=0.0)
                    found = True
                    handler()
                    if handler.exception() is not None:
                        raise handler.exception()

    def until(self, condition, again=None, every=0.05):
        """Spin until the condition holds, doing something again and again meanwhile."""
        end = time.monotonic() + TIMEOUT
        while not condition():
            if self.target.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"what was waited for did not come\n{self.target.log}")
            if again is not None:
                again()
            self.spin(every)

    def until_end(self, again, every=0.01):
        """Spin until the process has ended, doing something again and again meanwhile."""
        end = time.monotonic() + TIMEOUT
        while self.target.process.poll() is None:
            assert time.monotonic() < end, f"has not ended by itself\n{self.target.log}"
            again()
            self.spin(every)

    def known(self):
        """Wait until the node knows all that was created here; process what it said before.

        Publishers, subscriptions and clients are announced in the order in which they are created,
        so that a node that answers a new client has heard of all others. To a client that it does
        not know yet a service drops its answer, though this client knows the service.
        """
        client = self.node.create_client(GetParameters, f"{self.target.name}/get_parameters")
        self.until(client.service_is_ready)
        self._answered(client, GetParameters.Request())
        self.node.destroy_client(client)
        self.drain()

    def processed(self):
        """Wait until the node has processed all that was sent.

        Before it answers a request it takes a message of each topic, of which it stores few.
        """
        for _ in range(DEPTH):
            self.get("use_sim_time")

    # -- what the node hears -----------------------------------------------------------------------

    def describe(self, text):
        self._description.publish(String(data=text))

    def state(self, names, positions, velocities=()):
        """Return a state with a stamp of its own, now."""
        q, qd = (np.asarray(x, float).tolist() for x in (positions, velocities))
        message = JointState(name=list(names), position=q, velocity=qd)
        self.latest_stamp = max(self.latest_stamp + 1, time.time_ns())
        message.header.stamp = time_of(self.latest_stamp)
        return message

    def send(self, *args, **kwargs):
        message = self.state(*args, **kwargs)
        self._joint_states.publish(message)
        return message

    def answer(self, topics, *args, **kwargs):
        """Send a state again and again until one is answered on all topics; return the answers."""
        return self.answered(topics, lambda: self.send(*args, **kwargs))

    def answered(self, topics, send):
        """Send states again and again until one is answered on all topics; return the answers.

        They have one stamp: answers to states before are not among them.
        """
        since, found = self.latest_stamp, []
        self._answers.clear()

        def complete():
            found.extend(
                [heard[topic] for topic in topics]
                for stamp, heard in self._answers.items()
                if stamp > since and heard.keys() >= set(topics)
            )
            return bool(found)

        self.until(complete, again=send, every=0.02)
        return found[0]

    def answered_since(self, stamp):
        """Return the topics with answers to states after a stamp in ns."""
        return {topic for at, heard in self._answers.items() if at > stamp for topic in heard}

    def gravity(self, vector, frame_id=""):
        message = Vector3Stamped()
        message.header.frame_id = frame_id
        message.vector.x, message.vector.y, message.vector.z = map(float, vector)
        self._gravity.publish(message)

    def payload(self, link, mass, com=(0.0, 0.0, 0.0)):
        message = InertiaStamped()
        message.header.frame_id = link
        inertia = message.inertia
        inertia.m = float(mass)
        inertia.com.x, inertia.com.y, inertia.com.z = map(float, com)
        self._payload.publish(message)

    # -- services of the node ----------------------------------------------------------------------

    def call(self, kind, service, request, *, once=False, again=None):
        """Call a service of the node; ``once``: what two calls do is not what one does.

        Until the answer to a single call comes, ``again`` is done again and again.
        """
        client = self._clients.get(service)
        if client is None:
            client = self.node.create_client(kind, f"{self.target.name}/{service}")
            self._clients[service] = client
            self.until(client.service_is_ready)
            if once:
                self.known()
        if once:
            future = client.call_async(request)
            self.until(future.done, again, every=0.01 if again else 0.001)
            return future.result()
        return self._answered(client, request)

    def _answered(self, client, request):
        """Return the answer to a request, which is repeated if that gets lost."""
        futures, asked = [], time.monotonic()

        def ask():
            if time.monotonic() >= asked + ASK_AGAIN * len(futures):
                futures.append(client.call_async(request))

        self.until(lambda: any(f.done() for f in futures), again=ask, every=0.001)
        return next(f.result() for f in futures if f.done())

    def set(self, **values):
        """Set parameters all at once; return the reason of a refusal, "" if there is none."""
        parameters = [Parameter(k, value=x).to_parameter_msg() for k, x in values.items()]
        request = SetParametersAtomically.Request(parameters=parameters)
        result = self.call(SetParametersAtomically, "set_parameters_atomically", request).result
        assert result.successful == (not result.reason), result
        return result.reason

    def get(self, name):
        request = GetParameters.Request(names=[name])
        return self.call(GetParameters, "get_parameters", request).values[0]

    def transition(self, label):
        request = ChangeState.Request(transition=Transition(label=label))
        return self.call(ChangeState, "change_state", request, once=True).success

    def lifecycle_state(self):
        return self.call(GetState, "get_state", GetState.Request()).current_state.label

    # -- diagnostics -------------------------------------------------------------------------------

    def level(self, part):
        return self.health[part].level if part in self.health else None

    def said(self, part):
        return self.health[part].message if part in self.health else ""

    def value_of(self, part, key):
        pairs = self.health[part].values if part in self.health else ()
        return {pair.key: pair.value for pair in pairs}.get(key)

    def rejected(self, kind):
        """How many messages of a kind were rejected, as far as diagnostics have said so."""
        return int(self.value_of("input", f"rejected: {kind}") or 0)


def jacobian_of(message, link, representation):
    """Return (6, n), linear part first, and the joint names, reading the layout as documented."""
    rows, columns = message.layout.dim
    said = f"linear_xyz_angular_xyz; body={link}; representation={representation}; stamp="
    assert rows.label.startswith(said)
    assert (rows.size, rows.stride) == (6, len(message.data))
    assert columns.stride == columns.size
    # std_msgs/MultiArrayLayout: multiarray(i, j) = data[offset + dim[1].stride i + j]
    assert message.layout.data_offset == 0
    return np.reshape(message.data, (6, columns.size)), columns.label.split(",")


def twist_of(message):
    """Return (6,), linear part first."""
    v, w = message.twist.linear, message.twist.angular
    return np.array([v.x, v.y, v.z, w.x, w.y, w.z])


def stamp_in(message):
    """Return the stamp in ns of a message, in its header or in the first label of an array."""
    if hasattr(message, "header"):
        return stamp_of(message.header.stamp)
    *_, stamp = message.layout.dim[0].label.partition("stamp=")
    sec, nanosec = stamp.partition(";")[0].split(".")
    return 10**9 * int(sec) + int(nanosec)


def wrench_of(message):
    """Return (6,), force first."""
    f, m = message.wrench.force, message.wrench.torque
    return np.array([f.x, f.y, f.z, m.x, m.y, m.z])
