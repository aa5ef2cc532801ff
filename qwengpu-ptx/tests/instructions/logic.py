"""9.7.9 Logic and shifts, and 9.7.10.7 prmt."""

from bits import ODD, bit, cut, field, ones, pairs, signed, triples
from table import Block


def bitwise():
    blocks = []
    for bits in (16, 32, 64):
        block = Block(f"a:b{bits} b:b{bits}", pairs(bits)[:20])
        d = f"d:b{bits}"
        block.case("9.7.9.1", f"and.b{bits} %d, %a, %b;", d, lambda a, b: a & b)
        block.case("9.7.9.2", f"or.b{bits} %d, %a, %b;", d, lambda a, b: a | b)
        block.case("9.7.9.3", f"xor.b{bits} %d, %a, %b;", d, lambda a, b: a ^ b)
        block.case("9.7.9.4", f"not.b{bits} %d, %a;", d, lambda a, b: ~a)
        block.case("9.7.9.5", f"cnot.b{bits} %d, %a;", d, lambda a, b: int(a == 0))
        blocks.append(block)
    block = Block("a:pred b:pred", [(0, 0), (0, 1), (1, 0), (1, 1)])
    block.case("9.7.9.1", "and.pred %p, %a, %b;", "p:pred", lambda a, b: a & b)
    block.case("9.7.9.2", "or.pred %p, %a, !%b;", "p:pred", lambda a, b: a | 1 - b)
    block.case("9.7.9.3", "xor.pred %p, %a, %b;", "p:pred", lambda a, b: a ^ b)
    block.case("9.7.9.4", "not.pred %p, %a;", "p:pred", lambda a, b: 1 - a)
    blocks.append(block)
    return blocks


def table_of(table, a, b, c):
    return sum(bit(table, bit(a, n) << 2 | bit(b, n) << 1 | bit(c, n)) << n for n in range(32))


def tables():
    block = Block("a:b32 b:b32 c:b32", [(0xF0F0F0F0, 0xCCCCCCCC, 0xAAAAAAAA), (0x12345678, 0x9ABCDEF0, 0x0F1E2D3C), (0, ones(32), 0x80000001), (0, 0, 0)])
    for table in range(256):
        block.case("9.7.9.6", f"lop3.b32 %d, %a, %b, %c, {table};", "d:b32", lambda a, b, c, t=table: table_of(t, a, b, c))
    pred = Block("a:b32 b:b32 c:b32 q:pred", [row + (n // 4 % 2,) for n, row in enumerate(triples(32))])
    for word, combine in (("or", lambda p, q: p | q), ("and", lambda p, q: p & q)):
        result = lambda a, b, c: table_of(0x6A, a, b, c)
        pred.case("9.7.9.6", f"lop3.{word}.b32 %d|%p, %a, %b, %c, 0x6a, %q;", "d:b32 p:pred", lambda a, b, c, q, f=result, g=combine: (f(a, b, c), g(int(f(a, b, c) != 0), q)))
        pred.case("9.7.9.6", f"lop3.{word}.b32 _|%p, %a, %b, %c, 0x6a, !%q;", "p:pred", lambda a, b, c, q, f=result, g=combine: g(int(f(a, b, c) != 0), 1 - q))
    return [block, pred]


AMOUNTS = [0, 1, 15, 16, 31, 32, 33, 63, 64, 255, 256, 0xFFFFFFFF]


def shifts():
    blocks = []
    for bits in (16, 32, 64):
        y = ODD[bits][1]
        block = Block(f"a:b{bits} b:b32", [(a, n) for a in (y, ones(bits - 1)) for n in AMOUNTS])
        still = Block(f"a:b{bits}", [y, ones(bits - 1), 1 << (bits - 1), 1])
        for of_block, amounts in ((block, [None]), (still, [0, 1, 31, 32, 33, 63, 64, 255])):
            for n in amounts:
                text = "%b" if n is None else n
                left = lambda a, b=n, w=bits: a << b if b < w else 0
                right = lambda a, b=n: a >> b
                sign = lambda a, b=n, w=bits: signed(a, w) >> b
                of_block.case("9.7.9.8", f"shl.b{bits} %d, %a, {text};", f"d:b{bits}", left)
                of_block.case("9.7.9.9", f"shr.u{bits} %d, %a, {text};", f"d:b{bits}", right)
                of_block.case("9.7.9.9", f"shr.b{bits} %d, %a, {text};", f"d:b{bits}", right)
                of_block.case("9.7.9.9", f"shr.s{bits} %d, %a, {text};", f"d:b{bits}", sign)
        blocks += [block, still]
    return blocks


def funnel(a, b, c, left, wrap):
    """The high word of b:a << n, or the low word of b:a >> n."""
    n = c & 31 if wrap else min(c, 32)
    both = b << 32 | a
    return both << n >> 32 if left else both >> n


def funnels():
    x, y = ODD[32]
    block = Block("a:b32 b:b32 c:b32", [(a, b, n) for a, b in ((x, y), (ones(32), 0x80000000)) for n in AMOUNTS])
    still = Block("a:b32 b:b32", [(x, y), (y, x), (ones(32), 0), (0x80000000, 1)])
    for left in (True, False):
        for wrap in (True, False):
            name = f"shf.{'l' if left else 'r'}.{'wrap' if wrap else 'clamp'}.b32"
            block.case("9.7.9.7", f"{name} %d, %a, %b, %c;", "d:b32", lambda a, b, c, l=left, w=wrap: funnel(a, b, c, l, w))
            for n in (0, 1, 9, 31, 32, 33, 63, 64, 255):
                still.case("9.7.9.7", f"{name} %d, %a, %b, {n};", "d:b32", lambda a, b, c=n, l=left, w=wrap: funnel(a, b, c, l, w))
    return [block, still]


def permute(a, b, selectors):
    source = b << 32 | a
    result = 0
    for n, selector in enumerate(selectors):
        byte = field(source, 8 * (selector & 7), 8)
        if selector & 8:
            byte = 0xFF if byte & 0x80 else 0
        result |= byte << (8 * n)
    return result


# Which bytes each mode takes, lowest first, by the two lowest bits of the selector.
MODES = {
    "f4e": lambda n: [n, n + 1, n + 2, n + 3],
    "b4e": lambda n: [n, (n + 7) % 8, (n + 6) % 8, (n + 5) % 8],
    "rc8": lambda n: [n] * 4,
    "ecl": lambda n: [n, max(n, 1), max(n, 2), max(n, 3)],
    "ecr": lambda n: [0, min(n, 1), min(n, 2), min(n, 3)],
    "rc16": lambda n: [2 * (n & 1), 2 * (n & 1) + 1] * 2,
}


def permutations():
    nibbles = lambda c: [field(c, 4 * n, 4) for n in range(4)]
    selectors = [0x3210, 0x0123, 0x7654, 0x5410, 0x9876, 0x4444, 0x8F0C, 0x1032, 0, 0xFFFF, 0xBA98FEDC, 0x8888]
    block = Block("a:b32 b:b32 c:b32", [(a, b, c) for a, b in ((0x12345678, 0x9ABCDEF0), (0x80FF7F01, 0x00818283)) for c in selectors])
    still = Block("a:b32 b:b32", [(0x12345678, 0x9ABCDEF0), (0x80FF7F01, 0x00818283), (0, ones(32)), (0x807F807F, 0x7F807F80)])
    block.case("9.7.10.7", "prmt.b32 %d, %a, %b, %c;", "d:b32", lambda a, b, c: permute(a, b, nibbles(c)))
    for selector in selectors:
        still.case("9.7.10.7", f"prmt.b32 %d, %a, %b, {selector};", "d:b32", lambda a, b, c=selector: permute(a, b, nibbles(c)))
    for name, bytes_of in MODES.items():
        block.case("9.7.10.7", f"prmt.b32.{name} %d, %a, %b, %c;", "d:b32", lambda a, b, c, f=bytes_of: permute(a, b, f(c & 3)))
        for n in range(4):
            still.case("9.7.10.7", f"prmt.b32.{name} %d, %a, %b, {n};", "d:b32", lambda a, b, n=n, f=bytes_of: permute(a, b, f(n)))
    return [block, still]


FILES = {
    "logic": lambda: bitwise() + tables(),
    "shifts": lambda: shifts() + funnels(),
    "permutations": lambda: permutations(),
}
