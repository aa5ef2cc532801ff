"""Random CUDA kernels with nothing undefined in them, for differential.py.

A seed gives a kernel and its launches, always the same. The kernel is structured code over integers of every width:
nested branches, loops, switches, early returns, local arrays, calls, barriers, shuffles, votes and atomics. What CUDA
leaves open does not occur: collectives stand where all threads come by, shifts and divisors are bounded, signed sums
are taken unsigned, and atomics of one place are of one kind and their results are not used.
"""

import random

SIGNATURE = ("const uint32_t *in, const uint8_t *bytes, const int16_t *halves, const uint64_t *wide, uint32_t *out, "
             "uint8_t *small, uint32_t *sums, int n, int64_t s")

PREAMBLE = """#pragma clang diagnostic ignored "-Weverything"
#include "prelude.h"
static __device__ __forceinline__ int32_t divide(int32_t a, int32_t b) { return b == 0 || b == -1 ? a : a / b; }
static __device__ __forceinline__ int32_t modulo(int32_t a, int32_t b) { return b == 0 || b == -1 ? b : a % b; }
static __device__ __forceinline__ uint32_t divide(uint32_t a, uint32_t b) { return b == 0 ? ~a : a / b; }
static __device__ __forceinline__ uint32_t modulo(uint32_t a, uint32_t b) { return b == 0 ? a : a % b; }
"""

NARROW = ["int8_t", "uint8_t", "int16_t", "uint16_t"]
WORD = ["int32_t", "uint32_t"]
DOUBLE = ["int64_t", "uint64_t"]
EDGES = [0, 1, 2, 3, 7, 8, 31, 32, 100, 127, 128, 255, 256, 1000, 32767, 32768, 65535, 65536, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
ATOMICS = ["atomicAdd", "atomicMin", "atomicMax", "atomicXor", "atomicOr", "atomicAnd"]
# Threads of a CTA: whole warps, for kernels with warp operations; and all sorts.
WHOLE = [(4, 1, 1), (4, 1, 1), (8, 1, 1), (2, 2, 1), (2, 2, 2)]
RAGGED = [(1, 1, 1), (3, 1, 1), (5, 1, 1), (2, 3, 1)]
THREADS = 16


def bits(type_name):
    return int(type_name.strip("uint_"))


class Kernel:
    """One kernel under construction."""

    def __init__(self, seed):
        self.dice = random.Random(f"kernel {seed}")
        self.name = f"k{seed:05}"
        self.lines = []
        self.depth = 1
        self.variables = []     # (name, type, may be assigned)
        self.count = 0
        self.room = self.dice.randint(2, 8)   # statements left
        self.collective = self.dice.random() < 0.5
        self.wide = self.dice.random() < 0.4
        self.array = self.dice.choice([None] * 6 + [("uint32_t", 4), ("int32_t", 8), ("uint8_t", 16), ("int16_t", 8)])
        self.loops = 0
        self.functions = []
        self.inside_function = False

    # ---- Text.

    def line(self, text):
        self.lines.append("  " * self.depth + text)

    def fresh(self, prefix="v"):
        self.count += 1
        return f"{prefix}{self.count}"

    def pick_type(self):
        kinds = [WORD, WORD, WORD, NARROW] + ([DOUBLE] if self.wide else [])
        return self.dice.choice(self.dice.choice(kinds))

    # ---- Expressions: C text of a value of the type.

    def constant(self, of):
        value = self.dice.choice(EDGES) if self.dice.random() < 0.6 else self.dice.randint(0, 1 << self.dice.randint(1, 32))
        value += self.dice.randint(-1, 1)
        return f"({of}){value & 0xFFFFFFFF}u"

    def leaf(self, of):
        roll = self.dice.random()
        if self.variables and roll < 0.65:
            return f"({of}){self.dice.choice(self.variables)[0]}"
        if roll < 0.8 or self.inside_function:
            return self.constant(of)
        index = f"{self.dice.choice(self.variables)[0]} & " if self.variables else "3 & "
        sources = [f"in[{index}15]", f"bytes[{index}15]", f"halves[{index}7]", "n", "t", "blockIdx.x", "gridDim.x", "blockDim.x"]
        if self.wide:
            sources += [f"wide[{index}3]", "s"]
        if self.array:
            sources += [f"array[{index}{self.array[1] - 1}]"] * 2
        return f"({of}){self.dice.choice(sources)}"

    def expression(self, of, depth=2):
        if depth == 0 or self.dice.random() < 0.15:
            return self.leaf(of)
        a, b = self.expression(of, depth - 1), self.expression(of, depth - 1)
        unsigned = "uint64_t" if bits(of) == 64 else "uint32_t"
        word = self.dice.choice(WORD)
        shift = f"({self.expression('uint32_t', 0)} & {min(bits(of), 32) - 1})"
        forms = [
            (8, lambda: f"({of})(({unsigned})({a}) {self.dice.choice('+-+-*&|^')} ({unsigned})({b}))"),
            (2, lambda: f"({of})(({unsigned})({a}) << {shift})"),
            (2, lambda: f"({of})(({a}) >> {shift})"),
            (1, lambda: f"({of})~({a})"),
            (2, lambda: f"(({self.condition(depth - 1)}) ? ({a}) : ({b}))"),
            (2, lambda: f"({of}){self.dice.choice(['min', 'max'])}(({word})({a}), ({word})({b}))"),
            (1, lambda: f"({of})({self.condition(depth - 1)})"),
            (1, lambda: f"({of}){self.dice.choice(['divide', 'modulo'])}(({word})({a}), ({word}){self.dice.randint(2, 1000)})"),
            (1, lambda: f"({of}){self.dice.choice(['__popc', '__brev', '__clz', '__ffs'])}({self.expression('uint32_t', depth - 1)})"),
            (1, lambda: f"({of}){self.dice.choice(['__umulhi', '__mulhi'])}(({a}), ({b}))"),
            (1, lambda: f"({of}){self.dice.choice(['__funnelshift_l', '__funnelshift_r', '__byte_perm', '__usad'])}"
                        f"((uint32_t)({a}), (uint32_t)({b}), {self.expression('uint32_t', 0)})"),
        ]
        if bits(of) == 32 and depth > 1 and self.dice.random() < 0.08:
            name = self.dice.choice(["divide", "modulo"])
            return f"({of}){name}(({word})({a}), ({word})({b}))"
        if self.functions and not self.inside_function and self.dice.random() < 0.2:
            return f"({of}){self.dice.choice(self.functions)}((uint32_t)({a}), (int32_t)({b}))"
        return self.dice.choices([form for _, form in forms], [weight for weight, _ in forms])[0]()

    def condition(self, depth=1):
        of = self.dice.choice(WORD + [self.pick_type()])
        a, b = self.expression(of, depth), self.expression(of, min(depth, 1) - 1 if depth else 0)
        text = f"({a}) {self.dice.choice(['<', '<=', '>', '>=', '==', '!='])} ({b})"
        roll = self.dice.random()
        if roll < 0.15:
            return f"(({a}) & {1 << self.dice.randint(0, 6)}) != 0"
        if roll < 0.3:
            other = f"({self.leaf(of)}) < ({self.leaf(of)})"
            return f"({text}) {self.dice.choice(['&&', '||'])} ({other})"
        return text

    # ---- Statements.

    def assignable(self):
        return [(name, of) for name, of, free in self.variables if free]

    def declare(self):
        name, of = self.fresh(), self.pick_type()
        self.line(f"{of} {name} = {self.expression(of)};")
        self.variables.append((name, of, True))

    def assign(self):
        choices = self.assignable()
        if not choices:
            return self.declare()
        name, of = self.dice.choice(choices)
        self.line(f"{name} = {self.expression(of)};")

    def block(self, level, uniform, in_loop):
        """Statements in braces; what they declare ends with them."""
        kept = len(self.variables)
        self.depth += 1
        for _ in range(self.dice.randint(1, 3)):
            self.statement(level + 1, uniform, in_loop)
        self.depth -= 1
        del self.variables[kept:]

    def branch(self, level, uniform, in_loop):
        even = uniform and self.dice.random() < 0.3
        condition = f"(n + (int)blockIdx.x) & {self.dice.randint(1, 3)}" if even else self.condition()
        self.line(f"if ({condition}) {{")
        self.block(level, even, in_loop)
        if self.dice.random() < 0.5:
            self.line("} else {")
            self.block(level, even, in_loop)
        self.line("}")

    def switch(self, level, in_loop):
        self.line(f"switch ({self.expression('uint32_t', 1)} & 7) {{")
        for case in sorted(self.dice.sample(range(8), self.dice.randint(2, 5))):
            self.line(f"  case {case}: {{")
            self.depth += 1
            self.block(level, False, False)
            self.line("}")
            if self.dice.random() < 0.8:
                self.line("break;")
            self.depth -= 1
        if self.dice.random() < 0.5:
            self.line("  default: {")
            self.depth += 1
            self.assign()
            self.depth -= 1
            self.line("  }")
        self.line("}")

    def loop(self, level, uniform):
        index = self.fresh("i")
        even = uniform and self.dice.random() < 0.5
        bound = f"{self.dice.randint(1, 4)}u" if even else f"({self.expression('uint32_t', 1)} & 3u)"
        self.loops += 1
        if self.dice.random() < 0.5:
            self.line("#pragma unroll 1")
        if self.dice.random() < 0.6:
            self.line(f"for (uint32_t {index} = 0; {index} < {bound}; ++{index}) {{")
        else:
            self.line(f"for (uint32_t {index} = {bound}; {index}-- > 0;) {{")
        self.variables.append((index, "uint32_t", False))
        self.block(level, even, not even)
        self.variables.pop()
        self.line("}")
        self.loops -= 1

    def leave(self):
        self.line(f"if ({self.condition()}) {self.dice.choice(['break', 'continue'])};")

    def exchange(self):
        """Shared memory between two barriers."""
        name = self.fresh()
        self.line("__syncthreads();")
        self.line(f"shared[t] = {self.expression('uint32_t')};")
        if self.dice.random() < 0.3:
            self.line(f"uint32_t {name} = (uint32_t)__syncthreads_{self.dice.choice(['count', 'or', 'and'])}({self.condition(0)});")
            self.line(f"{name} += shared[(t + {self.dice.randint(1, 9)}) % threads];")
        else:
            self.line("__syncthreads();")
            self.line(f"uint32_t {name} = shared[(t * {self.dice.randint(1, 5)} + {self.dice.randint(0, 9)}) % threads];")
        self.variables.append((name, "uint32_t", True))

    def warp_operation(self):
        name, value = self.fresh(), self.expression("uint32_t", 1)
        full, k = "0xffffffffu", self.dice.randint(1, 3)
        text = self.dice.choice([
            f"__shfl_xor_sync({full}, {value}, {k})",
            f"__shfl_up_sync({full}, {value}, {k}u)",
            f"__shfl_down_sync({full}, {value}, {k}u)",
            f"__shfl_sync({full}, {value}, (int)({self.expression('uint32_t', 0)} & 3))",
            f"__shfl_sync({full}, {value}, {self.dice.randint(0, 3)}, 2)",
            f"__ballot_sync({full}, {self.condition(0)})",
            f"(uint32_t)__any_sync({full}, {self.condition(0)})",
            f"(uint32_t)__all_sync({full}, {self.condition(0)})",
            f"__match_any_sync({full}, {value} & 3)",
        ])
        self.line(f"uint32_t {name} = {text};")
        self.variables.append((name, "uint32_t", True))

    def atomic(self):
        place = self.dice.randrange(len(ATOMICS))
        self.line(f"{ATOMICS[place]}(&sums[{place}], {self.expression('uint32_t', 1)});")

    def statement(self, level, uniform, in_loop):
        self.room -= 1
        simple = level >= 3 or self.room <= 0
        if in_loop and self.dice.random() < 0.15:
            return self.leave()
        forms = [(4, self.assign), (3 if self.variables[4:] else 6, self.declare)]
        if not self.inside_function:
            forms.append((1, self.atomic))
            if self.array:
                forms.append((2, lambda: self.line(
                    f"array[{self.expression('uint32_t', 1)} & {self.array[1] - 1}] = {self.expression(self.array[0], 1)};")))
            if uniform and self.collective:
                forms += [(2, self.exchange), (3, self.warp_operation)]
        if not simple:
            forms += [(3, lambda: self.branch(level, uniform, in_loop)), (1, lambda: self.switch(level, in_loop))]
            if self.loops < 2:
                forms.append((2, lambda: self.loop(level, uniform)))
        self.dice.choices([form for _, form in forms], [weight for weight, _ in forms])[0]()

    # ---- The whole.

    def function(self, number):
        name = f"{self.name}_f{number}"
        self.inside_function = True
        self.variables = [("a", "uint32_t", True), ("b", "int32_t", True)]
        kind = self.dice.choice(["__noinline__", "__forceinline__"])
        self.lines.append(f"static __device__ {kind} uint32_t {name}(uint32_t a, int32_t b) {{")
        room, self.room = self.room, 3
        if kind == "__noinline__" and self.dice.random() < 0.3:
            self.line(f"if ((a & {self.dice.choice([3, 7])}) == 0) return {self.expression('uint32_t', 1)};")
            self.line(f"return {name}((a & 7) - 1, {self.expression('int32_t', 1)}) {self.dice.choice('+^-')} {self.expression('uint32_t', 1)};")
        else:
            for _ in range(self.dice.randint(1, 3)):
                self.statement(2, False, False)
            self.line(f"return {self.expression('uint32_t')};")
        self.lines.append("}")
        self.room, self.inside_function, self.variables = room, False, []
        return name

    def source(self):
        for number in range(self.dice.choice([0, 0, 1, 2])):
            name = self.function(number)
            self.functions.append(name)
        self.lines.append(f'extern "C" __global__ void {self.name}({SIGNATURE}) {{')
        self.line("uint32_t threads = blockDim.x * blockDim.y * blockDim.z;")
        self.line("uint32_t t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);")
        self.line("uint32_t id = blockIdx.x * threads + t;")
        if self.collective:
            self.line(f"__shared__ uint32_t shared[{THREADS}];")
        if self.array:
            of, size = self.array
            self.line(f"{of} array[{size}];")
            self.line(f"for (int k = 0; k < {size}; ++k) array[k] = ({of})(k * {self.dice.randint(1, 999)} + n);")
        self.variables = [("id", "uint32_t", False)]
        self.declare()
        while self.room > 0:
            self.statement(0, True, False)
        self.line(f"out[2 * id] = {self.expression('uint32_t')};")
        if self.dice.random() < 0.4:
            self.line(f"if ({self.condition()}) return;")
            self.room = 3
            for _ in range(2):
                self.statement(1, False, False)
        mixed = "0u"
        for name, of, _ in self.variables:
            value = f"(uint32_t)({name} ^ {name} >> 32)" if bits(of) == 64 else f"(uint32_t){name}"
            mixed = f"({mixed} * 31u + {value})"
        if self.array:
            mixed = f"({mixed} ^ (uint32_t)array[id & {self.array[1] - 1}])"
        self.line(f"out[2 * id + 1] = {mixed};")
        self.line(f"small[id] = {self.expression('uint8_t', 1)};")
        self.lines.append("}")
        return "\n".join(self.lines) + "\n"

    def launches(self):
        """Two launches, as in kernels/*.json but for the results."""
        result = []
        for _ in range(2):
            block = self.dice.choice(WHOLE if self.collective else WHOLE + RAGGED)
            threads = block[0] * block[1] * block[2]
            grid = 2 if self.dice.random() < 0.2 else 1
            word = lambda: self.dice.choice(EDGES) if self.dice.random() < 0.4 else self.dice.randint(0, 1 << self.dice.randint(1, 31))
            numbers = lambda count, limit, low=0: ",".join(str(low + word() % limit) for _ in range(count))
            result.append({"grid": [grid, 1, 1], "block": list(block), "args": [
                "buf:u32:" + numbers(16, 1 << 32), "buf:u8:" + numbers(16, 256), "buf:i16:" + numbers(8, 1 << 16, -1 << 15),
                "buf:u64:" + ",".join(str(word() << 32 | word()) for _ in range(4)),
                f"zeros:u32:{2 * grid * threads}", f"zeros:u8:{grid * threads}", "buf:u32:0,4294967295,0,0,0,4294967295",
                f"i32:{self.dice.randint(-9, 99)}", f"i64:{self.dice.randint(-1 << 40, 1 << 40)}"]})
        return result
