"""9.7.7 Comparison and selection, 9.7.14 control flow."""

from bits import ODD, cut, of, ones, pairs, signed, triples
from table import Block

COMPARISONS = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lo": lambda a, b: a < b,
    "ls": lambda a, b: a <= b,
    "hi": lambda a, b: a > b,
    "hs": lambda a, b: a >= b,
}
BOOLEANS = {"and": lambda p, q: p & q, "or": lambda p, q: p | q, "xor": lambda p, q: p ^ q}


def names(kind):
    return list(COMPARISONS)[: {"s": 6, "u": 10, "b": 2}[kind]]


def holds(name, kind, bits):
    return lambda a, b: int(COMPARISONS[name](of(kind, bits, a), of(kind, bits, b)))


def comparisons():
    blocks = []
    for bits in (16, 32, 64):
        rows = [(a, b, n % 2) for n, (a, b) in enumerate(pairs(bits)[:16])]
        block = Block(f"a:b{bits} b:b{bits} q:pred", rows)
        for kind in "usb":
            for name in names(kind):
                f = holds(name, kind, bits)
                block.case("9.7.7.2", f"setp.{name}.{kind}{bits} %p, %a, %b;", "p:pred", lambda a, b, q, f=f: f(a, b))
        for word, g in BOOLEANS.items():
            for kind, name in (("u", "hi"), ("s", "le"), ("b", "ne")):
                f = holds(name, kind, bits)
                ty = f"{kind}{bits}"
                block.case("9.7.7.2", f"setp.{name}.{word}.{ty} %p|%r, %a, %b, %q;", "p:pred r:pred", lambda a, b, q, f=f, g=g: (g(f(a, b), q), g(1 - f(a, b), q)))
                block.case("9.7.7.2", f"setp.{name}.{word}.{ty} %p, %a, %b, !%q;", "p:pred", lambda a, b, q, f=f, g=g: g(f(a, b), 1 - q))
                for to in "us":
                    block.case("9.7.7.1", f"set.{name}.{word}.{to}32.{ty} %d, %a, %b, %q;", "d:b32", lambda a, b, q, f=f, g=g: ones(32) * g(f(a, b), q))
        for kind in "usb":
            for name in names(kind)[:: 1 if bits == 32 else 3]:
                f = holds(name, kind, bits)
                block.case("9.7.7.1", f"set.{name}.u32.{kind}{bits} %d, %a, %b;", "d:b32", lambda a, b, q, f=f: ones(32) * f(a, b))
        # The guard is a destination too.
        f = holds("lt", "u", bits)
        block.case("9.7.7.2", f"mov.pred %p, %q; setp.eq.u32 %r, 0, 1; @%p setp.lt.u{bits} %p|%r, %a, %b;", "p:pred r:pred", lambda a, b, q, f=f: (f(a, b), 1 - f(a, b)) if q else (0, 0))
        blocks.append(block)
    return blocks


def selections():
    blocks = []
    for bits, kinds in ((16, ("u16", "s16", "b16")), (32, ("u32", "s32", "b32", "f32")), (64, ("u64", "s64", "b64", "f64"))):
        rows = [(a, b, [0, 1, -1, 0x7FFFFFFF, -0x80000000, 5][n % 6], n // 2 % 2) for n, (a, b) in enumerate(pairs(bits)[10:22])]
        block = Block(f"a:b{bits} b:b{bits} c:b32 q:pred", rows)
        for ty in kinds:
            block.case("9.7.7.3", f"selp.{ty} %d, %a, %b, %q;", f"d:b{bits}", lambda a, b, c, q: a if q else b)
            block.case("9.7.7.4", f"slct.{ty}.s32 %d, %a, %b, %c;", f"d:b{bits}", lambda a, b, c, q: a if signed(c, 32) >= 0 else b)
        block.case("9.7.7.3", f"selp.b{bits} %d, %a, 5, !%q;", f"d:b{bits}", lambda a, b, c, q: 5 if q else a)
        blocks.append(block)
    return blocks


def control():
    block = Block("a:b32 b:b32", [(n, ODD[32][n % 2]) for n in range(12)])
    for length in range(1, 10):
        labels = ", ".join(f"L{n}" for n in range(length))
        arms = " ".join(f"L{n}: add.u32 %d, %b, {100 + 7 * n}; bra END;" for n in range(length))
        text = f"rem.u32 %t0, %a, {length}; T: .branchtargets {labels}; brx.idx %t0, T; {arms} END:"
        block.case("9.7.14", text, "d:b32", lambda a, b, n=length: b + 100 + 7 * (a % n))
    block.case("9.7.14", "setp.lt.u32 %q0, %a, 6; mov.u32 %d, 3; @!%q0 bra L; add.u32 %d, %d, %b; L: add.u32 %d, %d, 1;", "d:b32", lambda a, b: (3 + b if a < 6 else 3) + 1)
    block.case("9.7.14", "mov.u32 %d, 0; L: add.u32 %d, %d, %b; setp.lt.u32 %q0, %d, 0x80000000; @%q0 bra L;", "d:b32", lambda a, b: next(t for n in range(1, 99) if (t := cut(n * b, 32)) >= 1 << 31))
    guarded = Block("a:b32 b:b32 c:b32", triples(32)[:12])
    text = "setp.lt.u32 %q0, %b, %c; setp.gt.u32 %q1, %a, %b; or.pred %q2, %q0, %q1; not.pred %q3, %q2; xor.pred %p, %q3, %q0;"
    guarded.case("9.7.14", text, "p:pred", lambda a, b, c: (1 - (int(b < c) | int(a > b))) ^ int(b < c))
    return [block, guarded]


FILES = {
    "comparison": lambda: comparisons() + selections(),
    "control_flow": lambda: control(),
}
