# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""One mechanism in other libraries: the calls of a user from Python for each algorithm.

The call is the closest counterpart of the algorithm of this package. NOTES describes the additional
results. Algorithms without a counterpart have no entry. Each call returns the result
if it is an array, so that it can be compared before it is timed.
"""

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import quoteattr

import mujoco
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

import mbs_dynamics as mbs
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.joint import Joint

FloatArray = NDArray[np.float64]
Calls = Mapping[str, Callable[[], Any]]

FRAMES = {
    "body_fixed": pin.LOCAL,
    "spatial": pin.WORLD,
    "hybrid": pin.LOCAL_WORLD_ALIGNED,
}
"""Pinocchio's name of a representation; it has none for the mixed one."""

NOTES = """Each library is called from Python with existing model, data and arrays, as its users
call it. Pinocchio: one function, which leaves the result in its data and one half of symmetric
matrices unfilled; poses, twists and accelerations are forwardKinematics, with results not read;
the operational-space inertia is computeMinverse, computeFrameJacobian and two products with an
inverse in NumPy.
MuJoCo: the stages that lead to the result (mj_kinematics, mj_comPos and so on), which also
compute frames and inertias of all bodies about the centre of mass of the tree; forward dynamics
is mj_forward with contacts and constraints disabled. Drake: setting the state, then one or two
functions of MultibodyPlant, which caches results and receives a new state each time.
mbs_dynamics: a call of a kernel, which returns a new array."""


def plain(model: mbs.Model) -> bool:
    """Whether every joint turns about or slides along an axis through its body's origin.

    Or is free.
    """
    for body in model.bodies:
        if body.joint.kind == "free":
            continue
        angular, linear = body.joint.screw[:3], body.joint.screw[3:]
        if body.joint.mimics is not None or (angular.any() and linear.any()):
            return False
    return True


class Pinocchio:
    """Pinocchio's calls for a model of ours whose joints are plain."""

    name = "Pinocchio"

    def __init__(self, model: mbs.Model) -> None:
        self.model = pin.Model()
        self.model.gravity.linear = np.array(model.gravity)
        for body in model.bodies:
            B, M = body.home_rel, body.inertia
            joint = self.model.addJoint(
                body.parent + 1, _pin_joint(body.joint), pin.SE3(B), body.joint.name
            )
            own = pin.Inertia(M.mass, M.com, M.tensor_at_com)
            self.model.appendBodyToJoint(joint, own, pin.SE3.Identity())
            frame = pin.Frame(body.name, joint, 0, pin.SE3.Identity(), pin.FrameType.BODY)
            self.model.addFrame(frame)
        self.data = self.model.createData()
        joints = [(x, self.model.joints[self.model.getJointId(x.name)]) for x in model.joints]
        if any(theirs.idx_v != ours.coordinate for ours, theirs in joints):
            raise ValueError("the coordinates are in another order")
        self.order = np.arange(model.n)
        """Indices of our velocities among those of Pinocchio, and the other way around."""
        for joint, _ in joints:
            if joint.kind == "free":  # theirs have the linear part first
                self.order[joint.velocities] = np.roll(joint.velocities, 3)

    def calls(self, body: str, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> Calls:
        """Return a call for each algorithm; ``qdd`` are torques for forward dynamics."""
        m, d = self.model, self.data
        frame = m.getFrameId(body)
        state = (m, d, q, qd)
        made: dict[str, Callable[[], Any]] = {
            "inverse_dynamics": lambda: pin.rnea(m, d, q, qd, qdd),
            "gravity_torques": lambda: pin.computeGeneralizedGravity(m, d, q),
            "bias_torques": lambda: pin.nonLinearEffects(*state),
            "forward_dynamics": lambda: pin.aba(m, d, q, qd, qdd),
            "mass_matrix": lambda: pin.crba(m, d, q),
            "inverse_mass_matrix": lambda: pin.computeMinverse(m, d, q),
            "coriolis_matrix": lambda: pin.computeCoriolisMatrix(*state),
            "inverse_dynamics_derivatives": lambda: pin.computeRNEADerivatives(*state, qdd),
            "forward_dynamics_derivatives": lambda: pin.computeABADerivatives(*state, qdd),
            "forward_kinematics": lambda: pin.forwardKinematics(m, d, q),
            "twists": lambda: pin.forwardKinematics(*state),
            "accelerations": lambda: pin.forwardKinematics(*state, qdd),
            "kinetic_energy": lambda: pin.computeKineticEnergy(*state),
            "potential_energy": lambda: pin.computePotentialEnergy(m, d, q),
            "center_of_mass": lambda: pin.centerOfMass(m, d, q),
            "centroidal_momentum": lambda: pin.computeCentroidalMomentum(*state),
            "centroidal_momentum_matrix": lambda: pin.computeCentroidalMap(m, d, q),
            "centroidal_momentum_matrix_rate": lambda: pin.dccrba(*state),
            "center_of_mass_jacobian": lambda: pin.jacobianCenterOfMass(m, d, q),
        }

        def operational_space_inertia() -> Any:
            inverse = pin.computeMinverse(m, d, q)
            J = pin.computeFrameJacobian(m, d, q, frame, pin.LOCAL)
            return np.linalg.inv(J @ inverse @ J.T)

        def regressor() -> Any:
            return pin.computeJointTorqueRegressor(*state, qdd)

        def rate() -> Any:
            pin.computeJointJacobiansTimeVariation(*state)
            return pin.getFrameJacobianTimeVariation(m, d, frame, pin.LOCAL)

        def hessian() -> Any:
            pin.computeJointJacobians(m, d, q)
            pin.computeJointKinematicHessians(m, d)
            return pin.getJointKinematicHessian(m, d, m.frames[frame].parentJoint, pin.LOCAL)

        for name, reference in FRAMES.items():
            made[f"jacobian, {name}"] = lambda r=reference: pin.computeFrameJacobian(
                m, d, q, frame, r
            )
        return {
            **made,
            "inverse_dynamics_regressor": regressor,
            "operational_space_inertia": operational_space_inertia,
            "jacobian_rate": rate,
            "kinematic_hessian": hessian,
        }

    def storing(
        self, label: str, call: Callable[[], Any], results: Sequence[FloatArray]
    ) -> Callable[[int], None]:
        """Return what makes a call and stores its results in row k, the quickest way that is known.

        They are stored as they come, with another order of axes, columns or parameters than ours.
        """
        (result, *_), data = results, self.data
        if label == "forward_kinematics":
            poses = [*data.oMi][1:]  # these and what follows stay where they are

            def store_poses(k: int) -> None:
                call()
                result[k] = [X.homogeneous for X in poses]

            return store_poses
        if label in ("twists", "accelerations"):
            vectors = [v.vector for v in (data.v if label == "twists" else data.a)][1:]

            def store_vectors(k: int) -> None:
                call()
                result[k] = vectors

            return store_vectors
        if label == "centroidal_momentum":
            momentum = data.hg.vector

            def store_momentum(k: int) -> None:
                call()
                result[k] = momentum

            return store_momentum

        def store(k: int) -> None:
            result[k] = call()

        def store_all(k: int) -> None:
            for into, part in zip(results, call(), strict=True):
                into[k] = part

        return store if len(results) == 1 else store_all


def _pin_joint(joint: Joint) -> Any:
    if joint.kind == "free":
        return pin.JointModelFreeFlyer()
    screw = joint.screw
    revolute = bool(screw[:3].any())
    axis = screw[:3] if revolute else screw[3:]
    aligned = np.flatnonzero(axis == 1.0)
    if len(aligned):  # as Pinocchio's own parser of URDFs does
        kind = f"JointModel{'R' if revolute else 'P'}{'XYZ'[aligned[0]]}"
        return getattr(pin, kind)()
    unaligned = pin.JointModelRevoluteUnaligned if revolute else pin.JointModelPrismaticUnaligned
    return unaligned(np.array(axis))


class MuJoCo:
    """MuJoCo's calls."""

    name = "MuJoCo"

    def __init__(self, model: mbs.Model) -> None:
        self.model = mujoco.MjModel.from_xml_string(mjcf(model))
        self.data = mujoco.MjData(self.model)

    def calls(self, body: str, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> Calls:
        """Return a call for each algorithm."""
        m, d = self.model, self.data
        n = m.nv
        result, M, J = np.empty(n), np.empty((n, n)), np.empty((6, n))
        rest, link = np.zeros(n), mujoco.mj_name2id(m, mujoco.mjtObj.mjOBJ_BODY, body)
        qpos, qvel, qacc, force = d.qpos, d.qvel, d.qacc, d.qfrc_applied

        def positions() -> None:
            qpos[:] = q
            mujoco.mj_kinematics(m, d)
            mujoco.mj_comPos(m, d)

        def newton_euler(v: FloatArray, accelerated: int) -> Any:
            positions()
            qvel[:] = v
            mujoco.mj_comVel(m, d)
            mujoco.mj_rne(m, d, accelerated, result)
            return result

        def inverse_dynamics() -> Any:
            qacc[:] = qdd
            return newton_euler(qd, 1)

        def mass_matrix() -> Any:
            positions()
            mujoco.mj_makeM(m, d)
            mujoco.mj_fullM(m, d, M)
            return M

        def forward_dynamics() -> Any:
            qpos[:], qvel[:], force[:] = q, qd, qdd
            mujoco.mj_forward(m, d)
            return qacc

        def jacobian() -> Any:
            positions()
            mujoco.mj_jacBody(m, d, J[:3], J[3:], link)
            return J

        return {
            "inverse_dynamics": inverse_dynamics,
            "gravity_torques": lambda: newton_euler(rest, 0),
            "bias_torques": lambda: newton_euler(qd, 0),
            "forward_dynamics": forward_dynamics,
            "mass_matrix": mass_matrix,
            "forward_kinematics": positions,
            "jacobian, hybrid": jacobian,
        }


def mjcf(model: mbs.Model) -> str:
    """Return a model whose joints are plain as MuJoCo's XML: torques applied to the joints."""
    children: dict[int, list[int]] = {}
    for i, p in enumerate(model.parents):
        children.setdefault(p, []).append(i)

    def numbers(values: Any) -> str:
        return quoteattr(" ".join(repr(float(x)) for x in np.ravel(values)))

    def body(i: int) -> str:
        part = model.bodies[i]
        B, M, screw = part.home_rel, part.inertia, part.joint.screw
        kind, axis = ("hinge", screw[:3]) if screw[:3].any() else ("slide", screw[3:])
        about = M.tensor_at_com[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        quaternion = pin.Quaternion(B[:3, :3]).coeffs()[[3, 0, 1, 2]]
        return "".join(
            [
                f"<body name={quoteattr(part.name)} pos={numbers(B[:3, 3])} "
                f"quat={numbers(quaternion)}>",
                f"<inertial pos={numbers(M.com)} mass={numbers(M.mass)} "
                f"fullinertia={numbers(about)}/>"
                if M.mass
                else "",
                f'<joint name={quoteattr(part.joint.name)} type="{kind}" axis={numbers(axis)}/>',
                *(body(k) for k in children.get(i, [])),
                "</body>",
            ]
        )

    bodies = "".join(body(i) for i in children.get(GROUND, []))
    return f"""<mujoco><compiler angle="radian" balanceinertia="false"/>
      <option gravity={numbers(model.gravity)}><flag contact="disable" constraint="disable"/>
      </option><worldbody>{bodies}</worldbody></mujoco>"""


class Drake:
    """Drake's calls, where its wheel is installed."""

    name = "Drake"

    def __init__(self, model: mbs.Model) -> None:
        from pydrake.math import RigidTransform, RotationMatrix
        from pydrake.multibody import tree
        from pydrake.multibody.plant import MultibodyPlant

        plant = MultibodyPlant(0.0)
        plant.mutable_gravity_field().set_gravity_vector(np.array(model.gravity))
        made: list[Any] = []
        for part in model.bodies:
            B, M, screw = part.home_rel, part.inertia, part.joint.screw
            about = M.tensor_at_com
            central = tree.RotationalInertia(*np.diag(about), *about[[0, 0, 1], [1, 2, 2]])
            inertia = tree.SpatialInertia.MakeFromCentralInertia(M.mass, M.com, central)
            parent = plant.world_body() if part.parent == GROUND else made[part.parent]
            made.append(plant.AddRigidBody(part.name, inertia))
            revolute = bool(screw[:3].any())
            kind = tree.RevoluteJoint if revolute else tree.PrismaticJoint
            placement = RigidTransform(RotationMatrix(B[:3, :3]), B[:3, 3])
            joint = plant.AddFrame(
                tree.FixedOffsetFrame(f"before {part.name}", parent.body_frame(), placement)
            )
            axis = screw[:3] if revolute else screw[3:]
            plant.AddJoint(kind(part.joint.name, joint, made[-1].body_frame(), np.array(axis)))
        plant.Finalize()
        self.plant, self.context = plant, plant.CreateDefaultContext()
        names = [plant.get_joint(i).name() for i in plant.GetJointIndices()]
        starts = [
            plant.get_joint(i).velocity_start()
            for i in plant.GetJointIndices()
            if plant.get_joint(i).num_velocities()
        ]
        if starts != sorted(starts) or [x for x in names if x in model.joint_names] != [
            *model.joint_names
        ]:
            raise ValueError("the coordinates are in another order")

    def calls(self, body: str, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> Calls:
        """Return a call for each algorithm."""
        from pydrake.multibody.tree import JacobianWrtVariable, MultibodyForces

        plant, context = self.plant, self.context
        forces, world = MultibodyForces(plant), plant.world_frame()
        link = plant.GetBodyByName(body).body_frame()
        state, origin = np.concatenate([q, qd]), np.zeros(3)

        def positions() -> None:
            plant.SetPositions(context, q)

        def motion() -> None:
            plant.SetPositionsAndVelocities(context, state)

        def inverse_dynamics() -> Any:
            motion()
            plant.CalcForceElementsContribution(context, forces)
            return plant.CalcInverseDynamics(context, qdd, forces)

        def bias() -> Any:
            motion()
            return plant.CalcBiasTerm(context) - plant.CalcGravityGeneralizedForces(context)

        def gravity() -> Any:
            positions()
            return -plant.CalcGravityGeneralizedForces(context)

        def mass_matrix() -> Any:
            positions()
            return plant.CalcMassMatrix(context)

        def jacobian() -> Any:
            positions()
            return plant.CalcJacobianSpatialVelocity(
                context, JacobianWrtVariable.kV, link, origin, world, world
            )

        return {
            "inverse_dynamics": inverse_dynamics,
            "gravity_torques": gravity,
            "bias_torques": bias,
            "mass_matrix": mass_matrix,
            "jacobian, hybrid": jacobian,
        }


LIBRARIES: tuple[Any, ...] = (
    Pinocchio,
    MuJoCo,
    *((Drake,) if importlib.util.find_spec("pydrake") else ()),
)
