"""9.7.10.24 cvt, 9.7.10.25 cvt.pack, 9.7.10.3 mov."""

from bits import ODD, clamp, cut, field, of, ones, singles
from table import Block

TYPES = [(kind, bits) for bits in (8, 16, 32, 64) for kind in "us"]


def register(bits):
    return f"b{max(bits, 16)}"


def conversions():
    blocks = []
    for from_bits in (16, 32, 64):
        rows = singles(from_bits)
        if from_bits == 64:
            rows += [1 << 31, -(1 << 31) - 1, (1 << 31) - 1, ones(32) + 1, -0x80, -0x81, -0x8000, 0x7FFF]
        if from_bits == 32:
            rows += [-0x80, -0x81, 0x8000, -0x8001]
        block = Block(f"a:b{from_bits}", rows)
        for kind, bits in TYPES:
            if bits != from_bits and not (bits == 8 and from_bits in (16, 32)):
                continue
            for to_kind, to_bits in TYPES:
                exact = lambda a, k=kind, w=bits: of(k, w, a)
                name = f"{to_kind}{to_bits}.{kind}{bits}"
                for wider in (16, 32, 64):
                    # A register wider than the type holds the value extended.
                    if wider < to_bits or wider != max(to_bits, 16) and (wider == 64 or to_bits > 16):
                        continue
                    d = f"d:b{wider}"
                    block.case("9.7.10.24", f"cvt.{name} %d, %a;", d, lambda a, f=exact, k=to_kind, w=to_bits: of(k, w, f(a)))
                    block.case("9.7.10.24", f"cvt.sat.{name} %d, %a;", d, lambda a, f=exact, k=to_kind, w=to_bits: clamp(f(a), k, w))
        blocks.append(block)
    return blocks


def packs():
    rows = [(a, b, c) for (a, b), c in zip([(0, 0), (127, -128), (128, -129), (255, 256), (0x7FFF, -0x8000), (0x8000, -0x8001), (0xFFFF, 0x10000), (1, -1), (2, -2), (3, 4), (7, -8), (8, -9), (15, 16), (0x7FFFFFFF, -0x80000000), (-0x80000000, 0x7FFFFFFF), (-3, 5)], [0, ones(32), 0x12345678, 0x9ABCDEF0] * 4)]
    block = Block("a:b32 b:b32 c:b32", rows)
    for kind in "us":
        for bits in (2, 4, 8, 16):
            def pack(a, b, c, k=kind, w=bits):
                low, high = clamp(of("s", 32, b), k, w), clamp(of("s", 32, a), k, w)
                packed = cut(high, w) << w | cut(low, w)
                return packed if w == 16 else packed | c << (2 * w)

            text = f"cvt.pack.sat.{kind}16.s32 %d, %a, %b;" if bits == 16 else f"cvt.pack.sat.{kind}{bits}.s32.b32 %d, %a, %b, %c;"
            block.case("9.7.10.25", text, "d:b32", pack)
    return [block]


def moves():
    halves = Block("a:b16 b:b16 c:b16 e:b16", [(1, 2, 3, 4), (0xFFFF, 0, 0x8000, 0x7FFF), (0x1234, 0x5678, 0x9ABC, 0xDEF0), (0, 0xFFFF, 0, 0xFFFF)])
    halves.case("9.7.10.4", "mov.b32 %d, {%a, %b};", "d:b32", lambda a, b, c, e: a | b << 16)
    halves.case("9.7.10.4", "mov.b64 %d, {%a, %b, %c, %e};", "d:b64", lambda a, b, c, e: a | b << 16 | c << 32 | e << 48)
    halves.case("9.7.10.3", "mov.u16 %d, %a;", "d:b16", lambda a, b, c, e: a)
    halves.case("9.7.10.3", "mov.b16 %d, %c;", "d:b16", lambda a, b, c, e: c)
    words = Block("a:b32 b:b32", [ODD[32], (0, ones(32)), (0x80000000, 1), (0xFFFF0000, 0x0000FFFF)])
    words.case("9.7.10.4", "mov.b64 %d, {%a, %b};", "d:b64", lambda a, b: a | b << 32)
    words.case("9.7.10.4", "mov.b32 {%d, %e}, %a;", "d:b16 e:b16", lambda a, b: (a, a >> 16))
    words.case("9.7.10.4", "mov.b64 %w0, {%a, %b}; mov.b64 {%d, %e}, %w0;", "d:b32 e:b32", lambda a, b: (a, b))
    words.case("9.7.10.4", "mov.b64 %w0, {%a, %b}; mov.u32 %d, %a; mov.u32 %e, %b; mov.b64 {%e, %d}, %w0;", "d:b32 e:b32", lambda a, b: (b, a))
    words.case("9.7.10.3", "mov.u32 %d, %a; mov.s32 %e, %b; mov.b32 %f, 0x87654321;", "d:b32 e:b32 f:b32", lambda a, b: (a, b, 0x87654321))
    words.case("9.7.10.3", "mov.f32 %d, 0f3f800000; mov.u32 %e, -1;", "d:b32 e:b32", lambda a, b: (0x3F800000, -1))
    longs = Block("a:b64", [ODD[64][0], ODD[64][1], 1 << 63, 0xFFFFFFFF])
    longs.case("9.7.10.4", "mov.b64 {%d, %e, %f, %g}, %a;", "d:b16 e:b16 f:b16 g:b16", lambda a: tuple(field(a, 16 * n, 16) for n in range(4)))
    longs.case("9.7.10.4", "mov.b64 {%d, %e}, %a;", "d:b32 e:b32", lambda a: (a, a >> 32))
    longs.case("9.7.10.4", "mov.b64 {_, %e}, %a;", "e:b32", lambda a: a >> 32)
    longs.case("9.7.10.3", "mov.u64 %d, %a; mov.b64 %e, 0xfedcba9876543210;", "d:b64 e:b64", lambda a: (a, 0xFEDCBA9876543210))
    longs.case("9.7.10.3", "mov.f64 %d, 0d3ff0000000000000;", "d:b64", lambda a: 0x3FF0000000000000)
    bits = Block("a:pred", [0, 1, 1, 0])
    bits.case("9.7.10.3", "mov.pred %p, %a;", "p:pred", lambda a: a)
    bits.case("9.7.10.3", "mov.pred %p, !%a;", "p:pred", lambda a: 1 - a)
    return [halves, words, longs, bits]


FILES = {"conversion": lambda: conversions() + packs() + moves()}
