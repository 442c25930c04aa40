# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A bus of simulated drives on an arm in MuJoCo: what they report, take, and do when they fail.

    bus = SimulatedBus(model, motors, q=posture)
    while bus.time < 1.0:
        command = arm.step(bus.time, bus.read())
        bus.write(command.motors)
        bus.advance(0.004)

Faults of what is reported are callables in ``bus.faults``: a frame in, a frame or None out. Faults
of the drives are attributes: ``command_factor``, ``feedback_factor``, ``encoder_jump``, ``wraps``,
``dead``.
``cut`` interrupts the bus in both directions. A loop that dies or pauses does not call ``write``:
after ``timeout`` the drives do what ``when_silent`` of the table says.
"""

import math
from collections import deque

import mujoco
import numpy as np

from mbs_dynamics.control.motors import Frame, MotorCommand
from mbs_dynamics.lie import so3
from mbs_dynamics.model.body import GROUND


def frames_of(motors, stamps, q, qd, tau):
    """Frames of all motors, as the formulas of the documentation have them; each in their order."""
    return [
        Frame(
            m.motor,
            float(stamp),
            float(m.zero + m.sign * m.position_per_radian * position),
            float(m.sign * m.velocity_per_radian * velocity),
            float(m.sign * m.feedback_per_newton_metre * effort),
        )
        for m, stamp, position, velocity, effort in zip(
            motors.motors, stamps, q, qd, tau, strict=True
        )
    ]


class SimulatedBus:
    """Drives and arm.

    ``model`` is the true arm, ``true_motors`` the true table if it is not ``motors``. ``q`` are
    initial positions (m,) in the order of the table, ``fixed`` those of joints without motors, by
    name. ``latency`` in s is that of frames, and that of commands; ``noise`` are standard
    deviations of position, velocity and effort in SI; ``torque_step`` in N m rounds commands and
    reported efforts; ``friction`` (Coulomb friction with stiction), ``damping`` and ``armature`` in
    N m, N m s/rad and kg m^2 are one for all joints, or (m,). For ``switching`` s a drive that
    starts or stops to control its position exerts no torque. ``wall`` is a link, whose origin is
    the centre of a ball of 2 cm without friction, and the pose of a wall that it meets; z points
    out of it.
    """

    def __init__(
        self,
        model,
        motors,
        true_motors=None,
        *,
        q=None,
        fixed=(),
        latency=0.001,
        noise=(0.0, 0.0, 0.0),
        torque_step=0.0,
        friction=0.0,
        damping=0.0,
        armature=0.01,
        timeout=0.05,
        switching=0.0,
        step=0.001,
        seed=0,
        wall=None,
    ):
        self.model, self.motors = model, true_motors or motors
        self.latency, self.noise, self.torque_step = latency, noise, torque_step
        self.timeout, self.switching = timeout, switching
        self.rng = np.random.default_rng(seed)
        self.names = self.motors.joint_names
        self.mujoco = mujoco_of(model, self.names, dict(fixed), wall)
        self.mujoco.opt.timestep = self._step = step
        order = np.array([self.mujoco.joint(name).id for name in self.names])
        self._order = order  # coordinates of MuJoCo, and its actuators
        self.mujoco.dof_frictionloss[order] = friction
        self.mujoco.dof_solimp[:, :2] = 0.9999  # stiction does not creep
        self.mujoco.dof_solref[:] = 4.0 * step, 1.0
        self.mujoco.dof_damping[order] = damping
        self.mujoco.dof_armature[order] = armature
        limits = np.array(self.motors.limits)
        self.mujoco.actuator_forcerange[order] = np.stack([-limits, limits], axis=1)
        self.data = mujoco.MjData(self.mujoco)
        self.joint_of = [self.names.index(motor.joint) for motor in self.motors.motors]
        self._shares = [1.0 / self.joint_of.count(joint) for joint in self.joint_of]
        count = len(self.motors.motors)

        self.faults = []
        """Callables from a frame to the frame that is read, or None."""
        self.command_factor = dict.fromkeys((m.motor for m in self.motors.motors), 1.0)
        """By motor: factor of the efforts that it takes, beside that of its table."""
        self.feedback_factor = dict(self.command_factor)
        self.encoder_jump = dict.fromkeys(self.command_factor, 0.0)
        """By motor in rad or m: error of its encoder, in its own loop as well."""
        self.wraps = {}
        """By motor: lower end of the turn in rad within which it reports and takes positions."""
        self.dead = set()
        """Motors that exert no torque."""
        self.cut = False
        """Whether neither frames nor commands pass."""
        self.push = np.zeros(len(self.names))
        """(m,) external torques in N m."""
        self.moved = 0.0
        """Largest motion of a joint since ``mark``, in rad or m."""

        self.time = 0.0
        self._rows = {motor.motor: row for row, motor in enumerate(self.motors.motors)}
        self._commands = [None] * count  # in force
        self._arrived = [0.0] * count
        self._switched = [-math.inf] * count
        self._queue = deque()
        self._past = deque()
        self.data.qpos[self._order] = 0.0 if q is None else q
        mujoco.mj_forward(self.mujoco, self.data)
        self.mark()
        self._record()

    # -- truth -------------------------------------------------------------------------------------

    @property
    def q(self):
        """(m,) true positions in rad or m, in the order of the table."""
        return self.data.qpos[self._order]

    @property
    def qd(self):
        """(m,) true velocities."""
        return self.data.qvel[self._order]

    @property
    def torques(self):
        """(m,) true torques of the drives in N m or N."""
        return self.data.actuator_force[self._order]

    @property
    def contact(self):
        """Force in N with which the wall pushes back."""
        force = np.zeros(6)
        if self.data.ncon:
            mujoco.mj_contactForce(self.mujoco, self.data, 0, force)
        return force[0]

    def mark(self):
        """Measure ``moved`` from here on."""
        self._marked, self.moved = self.q, 0.0

    def place(self, q, qd=0.0):
        """Move the arm to positions (m,) and velocities, without time passing."""
        self.data.qpos[self._order], self.data.qvel[self._order] = q, qd
        mujoco.mj_forward(self.mujoco, self.data)
        self._past.clear()
        self._record()
        self.mark()

    def load(self, link, mass, com=(0.0, 0.0, 0.0)):
        """Attach a load to a link, or take it off with a mass of zero."""
        frame = self.model.frames[link]
        body = self.mujoco.body(f"load of {self.model.bodies[frame.body].name}").id
        self.mujoco.body_mass[body] = mass
        self.mujoco.body_inertia[body] = 1e-3 * mass
        self.mujoco.body_ipos[body] = (frame.placement @ [*com, 1.0])[:3]

    # -- the bus -----------------------------------------------------------------------------------

    def read(self):
        """Return the latest frames, one for each motor that reports."""
        if self.cut:
            return []
        while len(self._past) > 1 and self._past[1][0] <= self.time - self.latency + 1e-9:
            self._past.popleft()
        stamp, *state = self._past[0]
        q, qd, tau = (x.tolist() for x in state)
        rows, found = [], []
        noises = (self.rng.normal(0.0, 1.0, (len(self.joint_of), 3)) * self.noise).tolist()
        for motor, joint, share, noise in zip(
            self.motors.motors, self.joint_of, self._shares, noises, strict=True
        ):
            effort = self._rounded(tau[joint] * share + noise[2])
            factor = 0.0 if motor.motor in self.dead else self.feedback_factor[motor.motor]
            position = q[joint] + self.encoder_jump[motor.motor] + noise[0]
            if motor.motor in self.wraps:
                low = self.wraps[motor.motor]
                position = low + (position - low) % math.tau
            rows.append((stamp, position, qd[joint] + noise[1], factor * effort))
        for frame in frames_of(self.motors, *zip(*rows, strict=True)):
            for fault in self.faults:
                frame = frame and fault(frame)
            if frame:
                found.append(frame)
        return found

    def write(self, commands):
        """Send commands to the drives; they arrive after the latency."""
        for command in commands:
            assert all(math.isfinite(x) for x in command[1:]), command
        if not self.cut:
            self._queue.append((self.time + self.latency, list(commands)))

    def advance(self, duration):
        """Let time pass."""
        end = self.time + duration
        self._drive_again_at = self.time
        self.data.qfrc_applied[self._order] = self.push
        while self.time < end - 1e-9:
            if self._deliver() or self.time >= self._drive_again_at:
                self._drive()
            mujoco.mj_step(self.mujoco, self.data)
            self.time += self._step
            self._record()
            self.moved = max(self.moved, np.abs(self._past[-1][1] - self._marked).max())

    def _record(self):
        self._past.append((self.time, self.q, self.qd, self.torques))

    def _rounded(self, torque):
        return self.torque_step * round(torque / self.torque_step) if self.torque_step else torque

    def _deliver(self):
        """Let commands arrive; return whether any did."""
        count = len(self._queue)
        while self._queue and self._queue[0][0] <= self.time + 1e-9:
            arrived, commands = self._queue.popleft()
            for command in commands:
                row = self._rows[command.motor]
                before = self._commands[row]
                if before is not None and (before.kp > 0.0) != (command.kp > 0.0):
                    self._switched[row] = self.time
                self._commands[row], self._arrived[row] = MotorCommand(*command), arrived
        return len(self._queue) < count

    def _drive(self):
        """Set what the drives do until another command arrives, or a time of theirs is over."""
        self._drive_again_at = math.inf
        total = [[0.0] * 4 for _ in self.names]  # effort, offset of the position loop, K, D
        q = self.q.tolist()
        for row, (motor, joint) in enumerate(zip(self.motors.motors, self.joint_of, strict=True)):
            command, jump = self._commands[row], self.encoder_jump[motor.motor]
            if command is None or motor.motor in self.dead:
                continue
            late = self._arrived[row] + self.timeout
            if self.time > late:
                self._arrived[row] = math.inf  # once
                held = motor.zero + motor.sign * motor.position_per_radian * (q[joint] + jump)
                kp, kd = {"damp": (0.0, motor.kd), "hold": (motor.kp, motor.kd)}.get(
                    self.motors.when_silent, (0.0, 0.0)
                )
                if self.motors.when_silent != "last":
                    command = MotorCommand(motor.motor, held, 0.0, kp, kd, 0.0)
                self._commands[row] = command
                late = math.inf
            over = self._switched[row] + self.switching
            self._drive_again_at = min(self._drive_again_at, over if self.time < over else late)
            if self.time < over:
                continue
            K = command.kp / motor.kp * motor.stiffness if motor.kp else 0.0
            D = command.kd / motor.kd * motor.damping if motor.kd else 0.0
            position = (command.position - motor.zero) / motor.position_per_radian
            if motor.motor in self.wraps:  # the shorter way
                off = motor.sign * position - q[joint]
                position += motor.sign * (math.remainder(off, math.tau) - off)
            velocity = command.velocity / motor.velocity_per_radian
            effort = command.effort / motor.command_per_newton_metre
            effort = self._rounded(motor.sign * effort * self.command_factor[motor.motor])
            offset = K * (motor.sign * position - jump) + D * motor.sign * velocity
            total[joint] = [
                x + y for x, y in zip(total[joint], (effort, offset, K, D), strict=True)
            ]
        total = np.array(total)
        self.data.ctrl[self._order] = total[:, 0] + total[:, 1]
        self.mujoco.actuator_biasprm[self._order, 1:3] = -total[:, 2:]


# -- faults of what is reported --------------------------------------------------------------------


def _for(motors, change):
    return lambda frame: change(frame) if not motors or frame.motor in motors else frame


def silent(*motors):
    """Return a fault: these motors, or all, report nothing."""
    return _for(motors, lambda frame: None)


def nan(*motors, fields=("position", "velocity", "effort")):
    """Return a fault: these motors, or all, report NaN."""
    return _for(motors, lambda frame: frame._replace(**dict.fromkeys(fields, math.nan)))


def reports(*motors, **fields):
    """Return a fault: these motors, or all, report these values, as error=3, temperature=95.0."""
    return _for(motors, lambda frame: frame._replace(**fields))


def shifted(*motors, **fields):
    """Return a fault: values of these motors, or of all, are shifted, as position=1.0, stamp=-2."""
    return _for(
        motors,
        lambda frame: frame._replace(**{k: getattr(frame, k) + x for k, x in fields.items()}),
    )


def frozen(*motors):
    """Return a fault: these motors, or all, repeat their values with fresh stamps."""
    first = {}
    return _for(
        motors, lambda frame: first.setdefault(frame.motor, frame)._replace(stamp=frame.stamp)
    )


def once(fault, *, count=1):
    """Return a fault that ends after the first ``count`` frames that it applies to."""
    left = [count]

    def apply(frame):
        changed = fault(frame) if left[0] else frame
        if changed is not frame:
            left[0] -= 1
        return changed

    return apply


# -- the arm ---------------------------------------------------------------------------------------


def mujoco_of(model, driven, fixed, wall=None):
    """MuJoCo's model of the bodies of a model, with an actuator for each driven joint.

    All other joints are rigid, at their ``fixed`` positions or zero. ``wall`` as for the bus.
    """
    spec = mujoco.MjSpec()
    spec.compiler.balanceinertia = True  # descriptions of makers violate A + B >= C
    spec.option.gravity = model.gravity
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    if wall is None:
        spec.option.disableflags = int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    bodies = {GROUND: spec.worldbody}
    for i, body in enumerate(model.bodies):
        joint, inertia = body.joint, body.inertia
        home = body.home_rel
        if joint.name not in driven:
            own = joint.mimics or joint.name
            home = home @ joint.motion([joint.ratio * fixed.get(own, 0.0) + joint.offset])
        x, y, z, w = so3.to_quaternion(home[:3, :3])
        bodies[i] = made = bodies[body.parent].add_body(
            name=body.name, pos=home[:3, 3], quat=[w, x, y, z]
        )
        tensor = inertia.tensor_at_com
        made.mass, made.ipos = inertia.mass, inertia.com
        made.fullinertia = [*np.diag(tensor), tensor[0, 1], tensor[0, 2], tensor[1, 2]]
        made.explicitinertial = True
        load = made.add_body(name=f"load of {body.name}")
        load.mass, load.inertia, load.explicitinertial = 1e-9, [1e-12] * 3, True
        load.ipos = [1e-3] * 3  # else MuJoCo takes it for zero for good
        if joint.name in driven:
            X = joint.screw
            turns = bool(X[:3].any())
            kind = mujoco.mjtJoint
            made.add_joint(
                name=joint.name,
                type=kind.mjJNT_HINGE if turns else kind.mjJNT_SLIDE,
                axis=X[:3] if turns else X[3:],
                pos=np.cross(X[:3], X[3:]) if turns else np.zeros(3),
            )
            spec.add_actuator(
                name=joint.name,
                target=joint.name,
                trntype=mujoco.mjtTrn.mjTRN_JOINT,
                biastype=mujoco.mjtBias.mjBIAS_AFFINE,
                gainprm=[1.0] + [0.0] * 9,
                forcelimited=True,
                forcerange=[-1.0, 1.0],
            )
    if wall is not None:
        link, pose = wall
        frame = model.frames[link]
        place = {"pos": frame.placement[:3, 3], "condim": 1, "mass": 0.0}
        bodies[frame.body].add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.02, 0, 0], **place)
        x, y, z, w = so3.to_quaternion(pose[:3, :3])
        plane = {"size": [1.0, 1.0, 0.1], "pos": pose[:3, 3], "quat": [w, x, y, z], "condim": 1}
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, **plane)
    return spec.compile()
