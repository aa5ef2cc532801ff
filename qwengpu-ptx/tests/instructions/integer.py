"""9.7.1 Integer arithmetic and 9.7.2 extended precision."""

from bits import ODD, bit, clamp, cut, field, join, of, ones, pairs, parts, signed, singles, triples
from table import Block

TYPES = [(kind, bits) for bits in (16, 32, 64) for kind in "us"]


def quotient(a, b, kind, bits):
    """Towards zero. By zero, which the manual leaves open, all ones; the least integer by -1 wraps."""
    a, b = of(kind, bits, a), of(kind, bits, b)
    if b == 0:
        return ones(bits)
    q = abs(a) // abs(b)
    return -q if (a < 0) != (b < 0) else q


def remainder(a, b, kind, bits):
    """What the quotient leaves, with the sign of the dividend; of a division by zero, the dividend."""
    if cut(b, bits) == 0:
        return a
    return of(kind, bits, a) - of(kind, bits, b) * quotient(a, b, kind, bits)


def sums():
    blocks = []
    for bits in (16, 32, 64):
        block = Block(f"a:b{bits} b:b{bits} c:b{bits}", triples(bits))
        for kind in "us":
            ty, d = f"{kind}{bits}", f"d:b{bits}"

            def n(x, kind=kind, bits=bits):
                return of(kind, bits, x)

            block.case("9.7.1.1", f"add.{ty} %d, %a, %b;", d, lambda a, b, c: a + b)
            block.case("9.7.1.2", f"sub.{ty} %d, %a, %b;", d, lambda a, b, c: a - b)
            block.case("9.7.1.3", f"mul.lo.{ty} %d, %a, %b;", d, lambda a, b, c: a * b)
            block.case("9.7.1.3", f"mul.hi.{ty} %d, %a, %b;", d, lambda a, b, c, n=n, bits=bits: n(a) * n(b) >> bits)
            block.case("9.7.1.4", f"mad.lo.{ty} %d, %a, %b, %c;", d, lambda a, b, c: a * b + c)
            block.case("9.7.1.4", f"mad.hi.{ty} %d, %a, %b, %c;", d, lambda a, b, c, n=n, bits=bits: (n(a) * n(b) >> bits) + c)
            block.case("9.7.1.8", f"sad.{ty} %d, %a, %b, %c;", d, lambda a, b, c, n=n: c + abs(n(a) - n(b)))
            block.case("9.7.1.13", f"min.{ty} %d, %a, %b;", d, lambda a, b, c, n=n: min(n(a), n(b)))
            block.case("9.7.1.14", f"max.{ty} %d, %a, %b;", d, lambda a, b, c, n=n: max(n(a), n(b)))
            if bits < 64:
                block.case("9.7.1.3", f"mul.wide.{ty} %d, %a, %b;", f"d:b{2 * bits}", lambda a, b, c, n=n: n(a) * n(b))
            if kind == "s":
                block.case("9.7.1.11", f"abs.{ty} %d, %a;", d, lambda a, b, c, n=n: abs(n(a)))
                block.case("9.7.1.12", f"neg.{ty} %d, %a;", d, lambda a, b, c: -a)
        blocks.append(block)
        if bits == 32:
            block.case("9.7.1.1", "add.sat.s32 %d, %a, %b;", "d:b32", lambda a, b, c: clamp(signed(a, 32) + signed(b, 32), "s", 32))
            block.case("9.7.1.1", "add.sat.u32 %d, %a, %b;", "d:b32", lambda a, b, c: min(a + b, ones(32)))
            block.case("9.7.1.2", "sub.sat.s32 %d, %a, %b;", "d:b32", lambda a, b, c: clamp(signed(a, 32) - signed(b, 32), "s", 32))
            block.case("9.7.1.13", "min.relu.s32 %d, %a, %b;", "d:b32", lambda a, b, c: max(0, min(signed(a, 32), signed(b, 32))))
            block.case("9.7.1.14", "max.relu.s32 %d, %a, %b;", "d:b32", lambda a, b, c: max(0, signed(a, 32), signed(b, 32)))
            high = lambda a, b: signed(a, 32) * signed(b, 32) >> 32
            block.case("9.7.1.4", "mad.hi.sat.s32 %d, %a, %b, %c;", "d:b32", lambda a, b, c: clamp(high(a, b) + signed(c, 32), "s", 32))
            # Registers that are source and destination at once.
            block.case("9.7.1.1", "mov.u32 %d, %a; add.u32 %d, %d, %d;", "d:b32", lambda a, b, c: 2 * a)
            block.case("9.7.1.4", "mov.u32 %d, %a; mad.lo.u32 %d, %d, %d, %d;", "d:b32", lambda a, b, c: a * a + a)
    for bits in (16, 32):
        block = Block(f"a:b{bits} b:b{bits} c:b{2 * bits}", [(a, b, ODD[2 * bits][n % 2] * (n % 3)) for n, (a, b) in enumerate(pairs(bits))])
        for kind in "us":
            block.case("9.7.1.4", f"mad.wide.{kind}{bits} %d, %a, %b, %c;", f"d:b{2 * bits}", lambda a, b, c, k=kind, w=bits: of(k, w, a) * of(k, w, b) + c)
        blocks.append(block)
    return blocks


def divisions():
    blocks = []
    for bits in (16, 32, 64):
        rows = pairs(bits)
        if bits == 64:
            rows = [rows[n] for n in (3, 10, 11, 12, 17, 18, 22, 5)]
        block = Block(f"a:b{bits} b:b{bits}", rows)
        for kind in "us":
            block.case("9.7.1.9", f"div.{kind}{bits} %d, %a, %b;", f"d:b{bits}", lambda a, b, k=kind, w=bits: quotient(a, b, k, w))
            block.case("9.7.1.10", f"rem.{kind}{bits} %d, %a, %b;", f"d:b{bits}", lambda a, b, k=kind, w=bits: remainder(a, b, k, w))
        blocks.append(block)
    block = Block("a:b32", [0, 1, 99, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFF9D, 0x12345678])
    divisors = [1, 2, 3, 5, 6, 7, 10, 11, 64, 100, 641, 1000, 65535, 65537, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF, 0]
    for divisor in divisors:
        for kind in "us":
            text = of(kind, 32, divisor)
            block.case("9.7.1.9", f"div.{kind}32 %d, %a, {text};", "d:b32", lambda a, k=kind, x=divisor: quotient(a, x, k, 32))
            block.case("9.7.1.10", f"rem.{kind}32 %d, %a, {text};", "d:b32", lambda a, k=kind, x=divisor: remainder(a, x, k, 32))
    # A dividend that is known to be small takes the machine's short division.
    for mask, divisor in [(31, 5), (31, 7), (1023, 10)]:
        block.case("9.7.1.9", f"and.b32 %t0, %a, {mask}; div.u32 %d, %t0, {divisor};", "d:b32", lambda a, m=mask, x=divisor: (a & m) // x)
        block.case("9.7.1.10", f"and.b32 %t0, %a, {mask}; rem.u32 %d, %t0, {divisor};", "d:b32", lambda a, m=mask, x=divisor: (a & m) % x)
    block.case("9.7.1.9", "setp.gt.u32 %q0, %a, 99; mov.u32 %d, 77; @%q0 div.u32 %d, %a, 3;", "d:b32", lambda a: a // 3 if a > 99 else 77)
    blocks.append(block)
    return blocks


def products24():
    """The low 24 bits of both operands, extended; bits 31..0 or 47..16 of their product."""
    rows = triples(32)[:20] + [(0x800000, 0x800000, 1), (0x7FFFFF, 0x800000, 2), (0xFFFFFF, 0xFFFFFF, 0x80000000), (0x1FFFFFF, 0xFF000001, 0x7FFFFFFF)]
    block = Block("a:b32 b:b32 c:b32", rows)
    for kind in "us":
        product = lambda a, b, k=kind: of(k, 24, a) * of(k, 24, b)
        for part, at in (("lo", 0), ("hi", 16)):
            block.case("9.7.1.6", f"mul24.{part}.{kind}32 %d, %a, %b;", "d:b32", lambda a, b, c, p=product, s=at: p(a, b) >> s)
            block.case("9.7.1.7", f"mad24.{part}.{kind}32 %d, %a, %b, %c;", "d:b32", lambda a, b, c, p=product, s=at: (p(a, b) >> s) + c)
    block.case("9.7.1.7", "mad24.hi.sat.s32 %d, %a, %b, %c;", "d:b32", lambda a, b, c: clamp(signed(signed(a, 24) * signed(b, 24) >> 16, 32) + signed(c, 32), "s", 32))
    return [block]


def packed():
    rows = [(0, 0), (0x80808080, 0x80808080), (0x7F7F7F7F, 0x01010101), (0xFFFFFFFF, 0x01010101), (0x80008000, 0xFFFFFFFF), (0x7FFF7FFF, 0x00010001), (0x12345678, 0x9ABCDEF0), (0x01FF7F80, 0xFF01807F), (0x00000000, 0x01010101), (0xFFFFFFFF, 0xFFFFFFFF), (0x80FF007F, 0x7F00FF80), (0x8000FFFF, 0x00017FFF)]
    block = Block("a:b32 b:b32", rows)
    for kind, bits in (("u", 8), ("s", 8), ("u", 16), ("s", 16)):
        ty = f"{kind}{bits}x{32 // bits}"

        def each(operation, kind=kind, bits=bits):
            return lambda a, b: join([operation(x, y) for x, y in zip(parts(a, bits, kind), parts(b, bits, kind))], bits)

        block.case("9.7.1.1", f"add.{ty} %d, %a, %b;", "d:b32", each(lambda x, y: x + y))
        block.case("9.7.1.1", f"add.sat.{ty} %d, %a, %b;", "d:b32", each(lambda x, y, k=kind, w=bits: clamp(x + y, k, w)))
        block.case("9.7.1.2", f"sub.{ty} %d, %a, %b;", "d:b32", each(lambda x, y: x - y))
        if bits == 8:
            block.case("9.7.1.2", f"sub.sat.{ty} %d, %a, %b;", "d:b32", each(lambda x, y, k=kind, w=bits: clamp(x - y, k, w)))
        block.case("9.7.1.13", f"min.{ty} %d, %a, %b;", "d:b32", each(min))
        block.case("9.7.1.14", f"max.{ty} %d, %a, %b;", "d:b32", each(max))
        if kind == "s":
            block.case("9.7.1.13", f"min.relu.{ty} %d, %a, %b;", "d:b32", each(lambda x, y: max(0, min(x, y))))
            block.case("9.7.1.14", f"max.relu.{ty} %d, %a, %b;", "d:b32", each(lambda x, y: max(0, x, y)))
    block.case("9.7.1.12", "neg.s8x4 %d, %a;", "d:b32", lambda a, b: join([-x for x in parts(a, 8, "s")], 8))
    return [block]


def carryless(a, b):
    product = 0
    for n in range(64):
        if bit(b, n):
            product ^= a << n
    return product


def find_nth_set(mask, base, offset):
    """The nth set bit from the base on, upwards or downwards; the base itself for 0."""
    offset = signed(offset, 32)
    at, step = base, 1
    if offset == 0:
        left = 0
        step = 0
        return base if bit(mask, base) else ones(32)
    left, step = (offset - 1, 1) if offset > 0 else (-offset - 1, -1)
    while 0 <= at < 32:
        if bit(mask, at):
            if left == 0:
                return at
            left -= 1
        at += step
    return ones(32)


def most_significant(a, kind, bits, amount):
    """The highest bit that is not a sign; ones if there is none."""
    if kind == "s" and bit(a, bits - 1):
        a = cut(~a, bits)
    at = a.bit_length() - 1
    if at < 0:
        return ones(32)
    return bits - 1 - at if amount else at


def extract(a, pos, length, kind, bits):
    pos, length, top = pos & 0xFF, length & 0xFF, bits - 1
    sign = 0 if kind == "u" or length == 0 else bit(a, min(pos + length - 1, top))
    return sum((bit(a, pos + n) if n < length and pos + n <= top else sign) << n for n in range(bits))


def insert(a, b, pos, length, bits):
    pos, length = pos & 0xFF, length & 0xFF
    for n in range(length):
        if pos + n < bits:
            b = b & ~(1 << (pos + n)) | bit(a, n) << (pos + n)
    return b


def sign_extend_from(a, b, mode, kind):
    low = b & 31
    too_large = b >= 32 and mode == "clamp"
    mask = 0 if too_large else cut(ones(32) << low, 32)
    sign = 0 if low == 0 or too_large or kind == "u" else bit(a, (low - 1) & 31)
    return a & ~mask | (mask if sign else 0)


def bit_mask(a, b, mode):
    if mode == "clamp":
        return cut(ones(min(b, 32)) << min(a, 32), 32)
    return cut(ones(b & 31) << (a & 31), 32)


def counting():
    blocks = []
    for bits in (32, 64):
        block = Block(f"a:b{bits}", singles(bits))
        ty = f"b{bits}"
        block.case("9.7.1.15", f"popc.{ty} %d, %a;", "d:b32", lambda a: bin(a).count("1"))
        block.case("9.7.1.16", f"clz.{ty} %d, %a;", "d:b32", lambda a, w=bits: w - a.bit_length())
        block.case("9.7.1.19", f"brev.{ty} %d, %a;", f"d:{ty}", lambda a, w=bits: int(f"{a:0{w}b}"[::-1], 2))
        for kind in "us":
            for word in ("", ".shiftamt"):
                block.case("9.7.1.17", f"bfind{word}.{kind}{bits} %d, %a;", "d:b32", lambda a, k=kind, w=bits, s=word: most_significant(a, k, w, bool(s)))
        blocks.append(block)
    block = Block("a:b32 b:b32 c:b32", [(m, b, c) for m, b, c in zip([0xF0F0F0F1, 0x80000001, 0, 0xFFFFFFFF] * 6, [0, 31, 5, 16, 4, 0, 31, 7] * 3, [1, -1, 1, 5, 0, 2, -2, -20, 3, 1, -1, 16, 17, -17, 0, 0, 31, 32, -32, 33, 1, 2, 3, 4])])
    block.case("9.7.1.18", "fns.b32 %d, %a, %b, %c;", "d:b32", find_nth_set)
    for offset in (-5, -2, -1, 0, 1, 2, 3, 17):
        block.case("9.7.1.18", f"fns.b32 %d, %a, %b, {offset};", "d:b32", lambda a, b, c, o=offset: find_nth_set(a, b, o))
    blocks.append(block)
    return blocks


PLACES = [0, 1, 8, 31, 32, 33, 63, 64, 255, 256, 0x120]


def fields():
    blocks = []
    for bits in (32, 64):
        x, y = ODD[bits]
        rows = []
        for n, pos in enumerate(PLACES):
            for m, length in enumerate((0, 1, 8, 31, 32, 33, 64, 255)):
                if (n + m) % 4 == 0 or pos in (0, 31) and length in (1, 31, 32):
                    rows.append(([y, x, 1 << (bits - 1), ones(bits)][(n * 3 + m) % 4], [x, 0, ones(bits), y][(n + m) % 4], pos, length))
        rows = rows[: len(rows) // 4 * 4]
        block = Block(f"a:b{bits} b:b{bits} c:b32 e:b32", rows)
        for kind in "us":
            block.case("9.7.1.20", f"bfe.{kind}{bits} %d, %a, %c, %e;", f"d:b{bits}", lambda a, b, c, e, k=kind, w=bits: extract(a, c, e, k, w))
        block.case("9.7.1.21", f"bfi.b{bits} %d, %a, %b, %c, %e;", f"d:b{bits}", lambda a, b, c, e, w=bits: insert(a, b, c, e, w))
        blocks.append(block)
        block = Block(f"a:b{bits} b:b{bits}", [(x, y), (y, x), (1 << (bits - 1), ones(bits)), (ones(bits), 0)])
        for pos, length in ((0, 8), (8, 8), (24, 8), (28, 8), (0, 32), (5, 0), (40, 3), (31, 1), (0, 255), (255, 1), (20, 24)):
            for kind in "us":
                block.case("9.7.1.20", f"bfe.{kind}{bits} %d, %a, {pos}, {length};", f"d:b{bits}", lambda a, b, k=kind, w=bits, p=pos, l=length: extract(a, p, l, k, w))
            block.case("9.7.1.21", f"bfi.b{bits} %d, %a, %b, {pos}, {length};", f"d:b{bits}", lambda a, b, w=bits, p=pos, l=length: insert(a, b, p, l, w))
        blocks.append(block)
    rows = [(a, b) for n, a in enumerate((0, 5, 31, 32, 0x9ABCDEF0, 0xFFFFFFFF)) for b in (0, 1, 8 + n, 31, 32, 33, 64, 0xFFFFFFFF)]
    block = Block("a:b32 b:b32", rows)
    for mode in ("clamp", "wrap"):
        for kind in "us":
            block.case("9.7.1.22", f"szext.{mode}.{kind}32 %d, %a, %b;", "d:b32", lambda a, b, m=mode, k=kind: sign_extend_from(a, b, m, k))
        block.case("9.7.1.23", f"bmsk.{mode}.b32 %d, %a, %b;", "d:b32", lambda a, b, m=mode: bit_mask(a, b, m))
    blocks.append(block)
    return blocks


def dot(a, b, c, a_kind, b_kind, a_bits, b_at):
    count = 32 // a_bits
    return c + sum(of(a_kind, a_bits, field(a, a_bits * n, a_bits)) * of(b_kind, 8, field(b, b_at + 8 * n, 8)) for n in range(count))


def dots():
    block = Block("a:b32 b:b32 c:b32", triples(32)[:20] + [(0x80808080, 0x80808080, 0), (0x7F80FF01, 0x807F01FF, 1), (0x80008000, 0x80FF7F01, ones(32)), (0x7FFF8001, 0x01020304, 7)])
    for x in "us":
        for y in "us":
            block.case("9.7.1.24", f"dp4a.{x}32.{y}32 %d, %a, %b, %c;", "d:b32", lambda a, b, c, x=x, y=y: dot(a, b, c, x, y, 8, 0))
            for part, at in (("lo", 0), ("hi", 16)):
                block.case("9.7.1.25", f"dp2a.{part}.{x}32.{y}32 %d, %a, %b, %c;", "d:b32", lambda a, b, c, x=x, y=y, at=at: dot(a, b, c, x, y, 16, at))
    return [block]


def carries():
    """Chains: what leaves an instruction with .cc enters the next addc, subc or madc."""
    blocks = []
    for bits in (32, 64):
        block = Block(f"a:b{bits} b:b{bits} c:b{bits}", triples(bits))
        d = f"d:b{bits} e:b{bits}"
        w, t = bits, "%t0" if bits == 32 else "%w0"
        pair = lambda total, w=w: (cut(total, w), cut(total >> w, w))
        two = ones(2 * w)
        block.case("9.7.2.2", f"add.cc.u{w} %d, %a, %b; addc.u{w} %e, %c, %a;", d, lambda a, b, c, p=pair, w=w: p(a + b + ((c + a) << w)))
        block.case("9.7.2.2", f"add.cc.s{w} %d, %a, %b; addc.cc.s{w} %e, %c, %b; addc.s{w} %f, 0, 0;", f"{d} f:b{w}",
            lambda a, b, c, w=w: (cut(a + b, w), cut((a + b >> w) + c + b, w), (a + b >> w) + c + b >> w))
        block.case("9.7.2.4", f"sub.cc.u{w} %d, %a, %b; subc.u{w} %e, %c, %a;", d, lambda a, b, c, p=pair, w=w: p(a - b + ((c - a) << w)))
        block.case("9.7.2.4", f"sub.cc.s{w} %d, %a, %b; subc.cc.s{w} %e, %c, %b; subc.s{w} %f, 0, 0;", f"{d} f:b{w}",
            lambda a, b, c, w=w: (cut(a - b, w), cut(c - b - (a < b), w), 0 - (c - b - (a < b) < 0)))
        for kind in "us":
            n = lambda x, k=kind, w=w: of(k, w, x)
            low = lambda a, b, w=w: cut(a * b, w)
            high = lambda a, b, n=n, w=w: cut(n(a) * n(b) >> w, w)
            block.case("9.7.2.6", f"mad.lo.cc.{kind}{w} %d, %a, %b, %c; madc.hi.{kind}{w} %e, %a, %b, 0;", d,
                lambda a, b, c, lo=low, hi=high, w=w: (cut(lo(a, b) + c, w), cut(hi(a, b) + (lo(a, b) + c >> w), w)))
            block.case("9.7.2.6", f"mad.hi.cc.{kind}{w} %d, %a, %b, %c; madc.lo.cc.{kind}{w} %e, %a, %c, %b; addc.u{w} %f, 0, 0;", f"{d} f:b{w}",
                lambda a, b, c, lo=low, hi=high, w=w: (cut(hi(a, b) + c, w), cut(lo(a, c) + b + (hi(a, b) + c >> w), w), lo(a, c) + b + (hi(a, b) + c >> w) >> w))
        # The flag outlives other instructions.
        block.case("9.7.2.1", f"add.cc.u{w} {t}, %a, %b; mul.lo.u{w} {t}, {t}, %c; addc.u{w} %d, {t}, 0;", f"d:b{w}", lambda a, b, c, w=w: cut(a + b, w) * c + (a + b >> w))
        blocks.append(block)
    return blocks


def carryless_products():
    block = Block("a:b64 b:b64 c:b64", [(0, ones(64), 5), (ones(64), ones(64), 0), (0x8000000000000001, 3, ones(64)), (0x123456789ABCDEF0, 0x87, 0xFEDCBA9876543210)])
    block.case("9.7.1.5", "clmad.lo.u64 %d, %a, %b, %c;", "d:b64", lambda a, b, c: cut(carryless(a, b), 64) ^ c)
    block.case("9.7.1.5", "clmad.hi.u64 %d, %a, %b, %c;", "d:b64", lambda a, b, c: carryless(a, b) >> 64 ^ c)
    return [block]


FILES = {
    "integer_arithmetic": lambda: sums() + products24() + packed() + dots(),
    "division": lambda: divisions(),
    "integer_bits": lambda: counting() + fields(),
    "extended_precision": lambda: carries() + carryless_products(),
}
