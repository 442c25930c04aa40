# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""The LLVM emitter: a program as machine code for one state.

The body of a program is one basic block, after a prologue that computes all sines and cosines whose
angles are at hand. Those come from a branch-free reduction and the fdlibm polynomials, and from the
C library beyond :data:`TRIG_RANGE`, where the reduction would lose digits.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from mbs_dynamics.errors import BackendError
from mbs_dynamics.tracing import graph as g
from mbs_dynamics.tracing.graph import Condition, Symbol
from mbs_dynamics.tracing.program import Program

FLAGS = "contract nsz arcp"
"""Fused multiply-add is allowed. Infinities and NaN keep their meaning: no nnan, no ninf."""

TRIG_RANGE = 1e8
"""Up to this absolute angle (rad) the package's own sine and cosine are used."""

ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer in the lowest bits

SIN_POLYNOMIAL = (  # fdlibm k_sin.c, S1 to S6
    -1.66666666666666324348e-01,
    8.33333333332248946124e-03,
    -1.98412698298579493134e-04,
    2.75573137070700676789e-06,
    -2.50507602534068634195e-08,
    1.58969099521155010221e-10,
)
COS_POLYNOMIAL = (  # fdlibm k_cos.c, C1 to C6
    4.16666666666666019037e-02,
    -1.38888888888741095749e-03,
    2.48015872894767294178e-05,
    -2.75573143513906633035e-07,
    2.08757232129817482790e-09,
    -1.13596475577881948265e-11,
)


def _split_half_pi() -> tuple[float, ...]:
    """Return pi/2 as a sum of floats of which the first three have 26 bits.

    A multiple of such a part by an integer below 2^27 is exact.
    """
    rest = Fraction("1.57079632679489661923132169163975144209858469968755291048747")
    parts = []
    for _ in range(3):
        mantissa, exponent = 0.0, 0
        mantissa = float(rest)
        while abs(mantissa) < 0.5:
            mantissa, exponent = mantissa * 2.0, exponent - 1
        part = Fraction(int(mantissa * 2**25), 2**25) * Fraction(2) ** exponent
        parts.append(float(part))
        rest -= part
    return (*parts, float(rest))


HALF_PI = _split_half_pi()

DECLARATIONS = """\
declare double @sin(double)
declare double @cos(double)
declare double @atan2(double, double)
declare double @llvm.sqrt.f64(double)
declare double @llvm.fabs.f64(double)
"""

ARITHMETIC = {g.ADD: "fadd", g.SUB: "fsub", g.MUL: "fmul", g.DIV: "fdiv"}
COMPARISON = {g.LESS: "olt", g.LESS_EQUAL: "ole"}


def constant(x: float) -> str:
    """Return a double as LLVM writes it, to the bit."""
    bits = struct.unpack("<Q", struct.pack("<d", x))[0]
    return f"0x{bits:016X}"


class _Body:
    """Lines of IR and the text of every value that they define."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.text: dict[int, str] = {}

    def ref(self, x: Any) -> str:
        return self.text[x.id] if isinstance(x, (Symbol, Condition)) else constant(float(x))

    def set(self, name: str, expression: str) -> str:
        self.lines.append(f"  {name} = {expression}")
        return name

    def node(self, node: Symbol | Condition) -> None:
        """Emit one operation."""
        name = f"%t{node.id}"
        if node.op == g.INPUT:
            port, k = node.args
            at = self.set(f"{name}.at", f'getelementptr double, ptr %"in.{port}", i64 {k}')
            expression = f"load double, ptr {at}"
        else:
            args = [self.ref(x) for x in node.args]
            if node.op in ARITHMETIC:
                expression = f"{ARITHMETIC[node.op]} {FLAGS} double {args[0]}, {args[1]}"
            elif node.op == g.NEG:
                expression = f"fneg {FLAGS} double {args[0]}"
            elif node.op in COMPARISON:
                expression = f"fcmp {COMPARISON[node.op]} double {args[0]}, {args[1]}"
            elif node.op == g.SELECT:
                expression = f"select i1 {args[0]}, double {args[1]}, double {args[2]}"
            elif node.op == g.SQRT:
                expression = f"call double @llvm.sqrt.f64(double {args[0]})"
            elif node.op == g.ATAN2:
                expression = f"call double @atan2(double {args[0]}, double {args[1]})"
            else:
                expression = f"call double @{node.op}(double {args[0]})"
        self.text[node.id] = self.set(name, expression)

    def polynomial(self, name: str, z: str, coefficients: Iterable[float]) -> str:
        """Emit Horner's scheme in z and return the value."""
        *lower, highest = coefficients
        value = constant(highest)
        for k, c in reversed(list(enumerate(lower))):
            product = self.set(f"{name}.m{k}", f"fmul contract double {value}, {z}")
            value = self.set(f"{name}.a{k}", f"fadd contract double {product}, {constant(c)}")
        return value

    def sine_and_cosine(self, name: str, x: str) -> tuple[str, str]:
        """Emit both for |x| <= TRIG_RANGE, without a branch: Cody-Waite reduction, fdlibm."""
        turns = self.set(f"{name}.u", f"fmul double {x}, {constant(0.6366197723675814)}")
        shifted = self.set(f"{name}.v", f"fadd double {turns}, {constant(ROUND)}")
        n = self.set(f"{name}.n", f"fsub double {shifted}, {constant(ROUND)}")
        r = x
        for k, part in enumerate(HALF_PI):
            product = self.set(f"{name}.p{k}", f"fmul double {n}, {constant(part)}")
            r = self.set(f"{name}.r{k}", f"fsub double {r}, {product}")
        z = self.set(f"{name}.z", f"fmul double {r}, {r}")
        s = self.polynomial(f"{name}.s", z, SIN_POLYNOMIAL)
        rz = self.set(f"{name}.rz", f"fmul double {r}, {z}")
        rzs = self.set(f"{name}.rzs", f"fmul contract double {rz}, {s}")
        sine = self.set(f"{name}.sin0", f"fadd contract double {r}, {rzs}")
        c = self.polynomial(f"{name}.c", z, COS_POLYNOMIAL)
        half = self.set(f"{name}.h", f"fmul double {z}, {constant(0.5)}")
        w = self.set(f"{name}.w", f"fsub double {constant(1.0)}, {half}")
        lost = self.set(f"{name}.l0", f"fsub double {constant(1.0)}, {w}")
        lost = self.set(f"{name}.l1", f"fsub double {lost}, {half}")
        zz = self.set(f"{name}.zz", f"fmul double {z}, {z}")
        zzc = self.set(f"{name}.zzc", f"fmul contract double {zz}, {c}")
        tail = self.set(f"{name}.t", f"fadd contract double {lost}, {zzc}")
        cosine = self.set(f"{name}.cos0", f"fadd double {w}, {tail}")
        bits = self.set(f"{name}.b", f"bitcast double {shifted} to i64")
        odd = self.set(f"{name}.odd", f"trunc i64 {bits} to i1")
        s1 = self.set(f"{name}.sin1", f"select i1 {odd}, double {cosine}, double {sine}")
        c1 = self.set(f"{name}.cos1", f"select i1 {odd}, double {sine}, double {cosine}")
        next_bits = self.set(f"{name}.nb", f"add i64 {bits}, 1")
        for value, quadrant, key in ((s1, bits, "sin"), (c1, next_bits, "cos")):
            sign = self.set(f"{name}.{key}.sl", f"shl i64 {quadrant}, 62")
            sign = self.set(f"{name}.{key}.sg", f"and i64 {sign}, -9223372036854775808")
            raw = self.set(f"{name}.{key}.raw", f"bitcast double {value} to i64")
            raw = self.set(f"{name}.{key}.x", f"xor i64 {raw}, {sign}")
            self.set(f"{name}.{key}.fast", f"bitcast i64 {raw} to double")
        return f"{name}.sin.fast", f"{name}.cos.fast"


def emit_llvm(program: Program) -> str:
    """Return LLVM IR of ``i32 @<name>(inputs..., outputs...)``, all pointers to doubles.

    It returns 0, or k if the k-th guard, counted from one, is not positive.
    """
    body = _Body()
    early, trig = _prologue(program)
    for node in early:
        body.node(node)
    if trig:
        _emit_prologue_trig(body, trig)
    done = {node.id for node in early} | {node.id for node in trig}
    for node in program.nodes:
        if node.id not in done:
            body.node(node)
    for port, values in zip(program.outputs, program.values, strict=True):
        for k, x in enumerate(values):
            at = body.set(
                f"%out.{port.name}.{k}", f"getelementptr double, ptr {_out(port)}, i64 {k}"
            )
            body.lines.append(f"  store double {body.ref(x)}, ptr {at}")
    status = "0"
    for k, (x, _) in reversed(list(enumerate(program.guards, 1))):  # the first one is said
        good = body.set(f"%good{k}", f"fcmp ogt double {body.ref(x)}, {constant(0.0)}")
        status = body.set(f"%status{k}", f"select i1 {good}, i32 {status}, i32 {k}")
    arguments = [f'ptr noalias nocapture readonly %"in.{port.name}"' for port in program.inputs]
    arguments += [f"ptr noalias nocapture writeonly {_out(port)}" for port in program.outputs]
    return (
        f"define i32 @{program.name}({', '.join(arguments)}) nounwind {{\nentry:\n"
        + "\n".join(body.lines)
        + f"\n  ret i32 {status}\n}}\n"
    )


def emit_loop(program: Program) -> str:
    """Return LLVM IR of ``i64 @<name>.loop(i64 states, ptr pointers, ptr strides)``.

    ``pointers`` holds one pointer per input and output, ``strides`` the bytes from one state to the
    next in each (0 to use the same one for all states). It returns 0, or for the first state i at
    which the guard k fails, i times the number of guards, plus k.
    """
    count = len(program.inputs) + len(program.outputs)
    lines = []
    for k in range(count):
        lines += [
            f"  %pp{k} = getelementptr ptr, ptr %pointers, i64 {k}",
            f"  %p{k} = load ptr, ptr %pp{k}",
            f"  %ss{k} = getelementptr i64, ptr %strides, i64 {k}",
            f"  %s{k} = load i64, ptr %ss{k}",
        ]
    steps = []
    for k in range(count):
        steps += [
            f"  %o{k} = mul i64 %i, %s{k}",
            f"  %a{k} = getelementptr i8, ptr %p{k}, i64 %o{k}",
        ]
    arguments = ", ".join(f"ptr %a{k}" for k in range(count))
    return "\n".join(
        [
            f'define i64 @"{program.name}.loop"(i64 %states, ptr %pointers, ptr %strides) {{',
            "entry:",
            *lines,
            "  %any = icmp sgt i64 %states, 0",
            "  br i1 %any, label %step, label %end",
            "step:",
            "  %i = phi i64 [ 0, %entry ], [ %next, %stepped ]",
            *steps,
            f"  %status = call i32 @{program.name}({arguments})",
            "  %good = icmp eq i32 %status, 0",
            "  br i1 %good, label %stepped, label %failed",
            "stepped:",
            "  %next = add i64 %i, 1",
            "  %more = icmp slt i64 %next, %states",
            "  br i1 %more, label %step, label %end",
            "failed:",
            f"  %before = mul i64 %i, {len(program.guards)}",
            "  %guard = zext i32 %status to i64",
            "  %where = add i64 %before, %guard",
            "  ret i64 %where",
            "end:",
            "  ret i64 0",
            "}",
            "",
        ]
    )


def _out(port: Any) -> str:
    return f'%"out.{port.name}"'


def _prologue(
    program: Program,
) -> tuple[list[Symbol | Condition], list[Symbol | Condition]]:
    """Return the nodes that angles need and the sines and cosines of these angles.

    Angles that themselves depend on a sine, a cosine or an arctangent stay in the body.
    """
    late: set[int] = set()
    trig: list[Symbol | Condition] = []
    for node in program.nodes:
        depends = node.op != g.INPUT and any(getattr(x, "id", -1) in late for x in node.args)
        if node.op in (g.SIN, g.COS, g.ATAN2) or depends:
            late.add(node.id)
        if node.op in (g.SIN, g.COS) and not depends:
            trig.append(node)
    wanted = {node.args[0].id for node in trig}
    for node in reversed(program.nodes):
        if node.id in wanted and node.op != g.INPUT:
            wanted.update(x.id for x in node.args if isinstance(x, (Symbol, Condition)))
    return [node for node in program.nodes if node.id in wanted], trig


def _emit_prologue_trig(body: _Body, trig: list[Symbol | Condition]) -> None:
    angles = {node.args[0].id: body.ref(node.args[0]) for node in trig}
    inside = ""
    for key, x in angles.items():
        size = body.set(f"%abs{key}", f"call double @llvm.fabs.f64(double {x})")
        small = body.set(f"%in{key}", f"fcmp ole double {size}, {constant(TRIG_RANGE)}")
        inside = body.set(f"%all{key}", f"and i1 {inside}, {small}") if inside else small
    body.lines.append(f"  br i1 {inside}, label %fast, label %slow\nfast:")
    for key, x in angles.items():
        body.sine_and_cosine(f"%a{key}", x)
    body.lines.append("  br label %body\nslow:")
    for node in trig:
        x = body.ref(node.args[0])
        body.set(f"%t{node.id}.slow", f"call double @{node.op}(double {x})")
    body.lines.append("  br label %body\nbody:")
    for node in trig:
        fast = f"%a{node.args[0].id}.{node.op}.fast"
        expression = f"phi double [ {fast}, %fast ], [ %t{node.id}.slow, %slow ]"
        body.text[node.id] = body.set(f"%t{node.id}", expression)


# -- compilation ---------------------------------------------------------------------------------

_lock = threading.Lock()
_llvm: Any = None


def _binding() -> Any:
    """Return llvmlite's binding with this machine's target set up once, under the lock."""
    global _llvm
    if _llvm is None:
        try:
            import llvmlite.binding as llvm
        except ImportError as error:
            raise BackendError(
                f"the llvm backend needs llvmlite, which is not installed ({error}); install it, "
                "or use backend='python' or MBS_BACKEND=python"
            ) from error
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        _llvm = llvm
    return _llvm


def _machine(llvm: Any) -> Any:
    """Return a new target machine for this CPU: an engine owns its own and deletes it."""
    return llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=1,  # level 1 is as fast as 3 on straight-line code and compiles far sooner
        codemodel="jitdefault",
        jit=True,
    )


class MachineCode:
    """Compiled IR. It owns the memory of the code: keep it alive as long as an address is used."""

    def __init__(self, ir: str) -> None:
        with _lock:  # LLVM's context is shared by the process
            llvm = _binding()
            module = llvm.parse_assembly(DECLARATIONS + ir)
            self._engine = llvm.create_mcjit_compiler(module, _machine(llvm))
            self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Return the address of a function."""
        return int(self._engine.get_function_address(name))


LOOP = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
"""C type of the function that :func:`emit_loop` writes. ctypes releases the interpreter lock."""
