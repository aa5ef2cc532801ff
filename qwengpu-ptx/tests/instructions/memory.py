"""9.7.10.8 to 9.7.10.23 loads, stores, addresses; 9.7.15.5 and 9.7.15.6 atomics."""

from bits import cut, of, ones, pairs
from table import Block

SPACES = ("global", "shared", "local")
WORDS = [(0x03020100, 0x07060504, 0x0B0A0908, 0x0F0E0D0C), (0xFFFFFFFF, 0x80000000, 0x7FFF8000, 0x80FF7F01), (0x8180FF7F, 0xFEDCBA98, 0x76543210, 0xCAFEBABE), (0, 1, 0xFFFF0000, 0x0000FFFF)]


def at(words, offset, bits):
    memory = sum(word << (32 * n) for n, word in enumerate(words))
    return cut(memory >> (8 * offset), bits)


def put(words, offset, bits, value):
    memory = sum(word << (32 * n) for n, word in enumerate(words))
    mask = ones(bits) << (8 * offset)
    memory = memory & ~mask | cut(value, bits) << (8 * offset)
    return tuple(cut(memory >> (32 * n), 32) for n in range(len(words)))


M4 = "m0:b32 m1:b32 m2:b32 m3:b32"


def loads():
    blocks = []
    for space in SPACES:
        block = Block(M4, WORDS, space)
        for bits in (8, 16, 32, 64):
            for kind in "usb":
                for wider in (16, 32, 64):
                    if wider < bits:
                        continue
                    offset = {8: 5, 16: 6, 32: 4, 64: 8}[bits]
                    block.case("9.7.10.8", f"ld.{space}.{kind}{bits} %d, [%m+{offset}];", f"d:b{wider}", lambda *m, k=kind, w=bits, o=offset: of(k, w, at(m, o, w)))
            name = f"{'d e f g'.split()[0]}"
            block.case("9.7.10.8", f"cvta.{space}.u64 %w0, %m; ld.u{bits} %{name}, [%w0];", f"d:b{max(bits, 16)}", lambda *m, w=bits: at(m, 0, w))
            for count in (2, 4):
                if count * bits > 128:
                    continue
                names = "d e f g".split()[:count]
                listed = ", ".join(f"%{name}" for name in names)
                results = " ".join(f"{name}:b{max(bits, 16)}" for name in names)
                block.case("9.7.10.8", f"ld.{space}.v{count}.u{bits} {{{listed}}}, [%m];", results, lambda *m, w=bits, c=count: tuple(at(m, n * w // 8, w) for n in range(c)))
        for offset in range(4):
            block.case("9.7.10.8", f"ld.{space}.s8 %d, [%m+{8 + offset}];", "d:b32", lambda *m, o=offset: of("s", 8, at(m, 8 + o, 8)))
        blocks.append(block)
    block = blocks[0]
    for section, name in (("9.7.10.9", "ld.global.nc"), ("9.7.10.9", "ld.global.nc.L1::evict_last"), ("9.7.10.10", "ldu.global"), ("9.7.10.1", "ld.global.ca"), ("9.7.10.8", "ld.volatile.global"), ("9.7.10.8", "ld.relaxed.gpu.global"), ("9.7.10.8", "ld.acquire.sys.global"), ("9.7.10.2", "ld.global.L1::no_allocate.L2::128B")):
        block.case(section, f"{name}.u32 %d, [%m+12];", "d:b32", lambda *m: m[3])
    block.case("9.7.10.9", "ld.global.nc.v4.s32 {%d, %e, %f, %g}, [%m];", "d:b32 e:b32 f:b32 g:b32", lambda *m: m)
    block.case("9.7.10.21", "createpolicy.fractional.L2::evict_last.b64 %w0, 1.0; ld.global.L2::cache_hint.u32 %d, [%m], %w0;", "d:b32", lambda *m: m[0])
    wide = Block(" ".join(f"m{n}:b32" for n in range(8)), [tuple(0x11111111 * (n + k) for n in range(8)) for k in range(4)], "global")
    names = "d e f g h i j k".split()
    wide.case("9.7.10.8", f"ld.global.v8.b32 {{{', '.join('%' + n for n in names)}}}, [%m];", " ".join(f"{n}:b32" for n in names), lambda *m: m)
    wide.case("9.7.10.8", "ld.global.v4.b64 {%d, %e, %f, %g}, [%m];", "d:b64 e:b64 f:b64 g:b64", lambda *m: tuple(at(m, 8 * n, 64) for n in range(4)))
    return blocks + [wide]


def stores():
    blocks = []
    for space in SPACES:
        block = Block(f"{M4} a:b64 b:b64", [w + v for w, v in zip(WORDS, [(0x123456789ABCDEF0, 0xFEDCBA9876543210), (0, ones(64)), (ones(64), 0), (0x8000000000000080, 0x7F)])], space)
        results = M4
        for bits in (8, 16, 32, 64):
            offset = {8: 5, 16: 6, 32: 4, 64: 8}[bits]
            for kind in "us" if bits == 8 else "b":
                block.case("9.7.10.11", f"st.{space}.{kind}{bits} [%m+{offset}], %a;", results, lambda *m, w=bits, o=offset: put(m[:4], o, w, m[4]))
            block.case("9.7.10.11", f"cvta.{space}.u64 %w0, %m; st.b{bits} [%w0], %b;", results, lambda *m, w=bits: put(m[:4], 0, w, m[5]))
            block.case("9.7.10.11", f"st.{space}.v2.b{bits} [%m], {{%a, %b}};", results, lambda *m, w=bits: put(put(m[:4], 0, w, m[4]), w // 8, w, m[5]))
            if bits < 64:
                block.case("9.7.10.11", f"st.{space}.v4.b{bits} [%m], {{%a, %b, %b, %a}};", results,
                    lambda *m, w=bits: put(m[:4], 0, 4 * w, cut(m[4], w) | cut(m[5], w) << w | cut(m[5], w) << 2 * w | cut(m[4], w) << 3 * w))
        # A load behind a store of a part sees it.
        block.case("9.7.10.11", f"st.{space}.u8 [%m+2], %a; fence.acq_rel.cta; ld.{space}.u32 %d, [%m];", f"d:b32 {results}", lambda *m: (at(put(m[:4], 2, 8, m[4]), 0, 32),) + put(m[:4], 2, 8, m[4]))
        blocks.append(block)
    for space, block in zip(SPACES[:2], blocks):
        suffix = ".shared::cta" if space == "shared" else ""
        block.case("9.7.10.14", f"st.bulk.weak{suffix} [%m], 8, 0;", M4, lambda *m: (0, 0) + m[2:4])
        block.case("9.7.10.14", f"and.b64 %w0, %a, 16; st.bulk{suffix} [%m], %w0, 0;", M4, lambda *m: (0,) * 4 if m[4] & 16 else m[:4])
    blocks[0].case("9.7.10.16", "prefetch.global.L2 [%m]; discard.global.L2 [%m], 128; st.global.u32 [%m], 7;", "m0:b32", lambda *m: 7)
    return blocks


def addresses():
    blocks = []
    for space in SPACES:
        block = Block("m0:b32 a:b32", [(n, 3 * n) for n in range(4)], space)
        for other in SPACES + ("const", "shared::cta", "param"):
            block.case("9.7.10.22", f"cvta.{space}.u64 %w0, %m; isspacep.{other} %p, %w0;", "p:pred", lambda m, a, s=space, o=other: int(s == o.split("::")[0]))
        block.case("9.7.10.23", f"cvta.{space}.u64 %w0, %m; cvta.to.{space}.u64 %w1, %w0; st.{space}.u32 [%w1], %a;", "m0:b32", lambda m, a: a)
        blocks.append(block)
    return blocks


UPDATES = {
    "add": lambda old, b: old + b,
    "min": min,
    "max": max,
    "and": lambda old, b: old & b,
    "or": lambda old, b: old | b,
    "xor": lambda old, b: old ^ b,
    "exch": lambda old, b: b,
    "inc": lambda old, b: 0 if old >= b else old + 1,
    "dec": lambda old, b: b if old == 0 or old > b else old - 1,
}
FORMS = [("add", "u32 s32 u64"), ("min", "u32 s32 u64 s64"), ("max", "u32 s32 u64 s64"), ("and", "b32 b64"), ("or", "b32 b64"), ("xor", "b32 b64"), ("exch", "b32 b64"), ("inc", "u32"), ("dec", "u32")]


def atomics():
    blocks = []
    for space in ("global", "shared"):
        for bits in (32, 64):
            memory = "m0:b32" if bits == 32 else "m0:b32 m1:b32"
            split = lambda value, w=bits: tuple(cut(value >> (32 * n), 32) for n in range(w // 32))
            old_of = lambda m: sum(word << (32 * n) for n, word in enumerate(m))
            chosen = [pairs(bits)[n] for n in (0, 2, 3, 5, 8, 9, 13, 18)] + [(5, 5), (6, 5), (4, 5), (ones(bits), 0)]
            block = Block(f"{memory} a:b{bits}", [split(x) + (cut(y, bits),) for x, y in chosen], space)
            for name, types in FORMS:
                for ty in types.split():
                    if not ty.endswith(str(bits)):
                        continue
                    new = lambda *m, f=UPDATES[name], k=ty[0], w=bits, o=old_of: f(of(k, w, o(m[:-1])), of(k, w, m[-1]))
                    block.case("9.7.15.5", f"atom.{space}.{name}.{ty} %d, [%m], %a;", f"d:b{bits} {memory}", lambda *m, f=new, o=old_of, s=split: (o(m[:-1]),) + s(f(*m)))
                    if name != "exch":
                        block.case("9.7.15.6", f"red.{space}.{name}.{ty} [%m], %a;", memory, lambda *m, f=new, s=split: s(f(*m)))
            generic = "u32" if bits == 32 else "u64"
            block.case("9.7.15.5", f"atom.add.{generic} %d, [%m], %a;", f"d:b{bits} {memory}", lambda *m, o=old_of, s=split: (o(m[:-1]),) + s(o(m[:-1]) + m[-1]))
            swaps = [(5, 5, 9), (5, 6, 9), (ones(bits), ones(bits), 0), (1 << (bits - 1), 0, 1), (0, 0, ones(bits)), (1, 1 << (bits // 2), 3), (1 << (bits // 2), 1 << (bits // 2), 3), (7, 7, 7)]
            swap = Block(f"{memory} a:b{bits} b:b{bits}", [split(x) + (y, z) for x, y, z in swaps], space)
            swap.case("9.7.15.5", f"atom.{space}.cas.b{bits} %d, [%m], %a, %b;", f"d:b{bits} {memory}", lambda *m, o=old_of, s=split: (o(m[:-2]),) + s(m[-1] if o(m[:-2]) == m[-2] else o(m[:-2])))
            blocks += [block, swap]
    halves = Block("m0:b32 a:b16 b:b16", [(0x80011234, 0x1234, 7), (0x80011234, 0x8001, 7), (0x80011234, 0x8001, 0xFFFF), (0xFFFF0000, 0xFFFF, 1)], "global")
    halves.case("9.7.15.5", "atom.global.cas.b16 %d, [%m], %a, %b;", "d:b16 m0:b32", lambda m, a, b: (m, put((m,), 0, 16, b)[0] if at((m,), 0, 16) == a else m))
    halves.case("9.7.15.5", "atom.global.cas.b16 %d, [%m+2], %a, %b;", "d:b16 m0:b32", lambda m, a, b: (m >> 16, put((m,), 2, 16, b)[0] if at((m,), 2, 16) == a else m))
    blocks.append(halves)
    # All threads of a warp on the word of the first: an order does not show in what is left.
    for space in ("global", "shared"):
        same = Block("m0:b32 a:b32", [(1, 10), (2, 20), (3, ones(32)), (4, 0x7FFFFFFF), (0, 1), (0, 2), (0, 4), (0, 8), (ones(32), 0xF0), (5, 0x30), (5, 0xF1), (5, 0x90)], f"warp {space}")
        lane = "mov.u32 %t0, %laneid; mul.wide.u32 %w0, %t0, 4; sub.s64 %w0, %m, %w0;"
        for name, ty in (("add", "u32"), ("min", "s32"), ("max", "u32"), ("and", "b32"), ("or", "b32"), ("xor", "b32")):
            def total(rows, f=UPDATES[name], k=ty[0]):
                value = of(k, 32, rows[0][0])
                for _, b in rows:
                    value = of(k, 32, f(value, of(k, 32, b)))
                return [value] + [row[0] for row in rows[1:]]

            same.warp_case("9.7.15.6", f"{lane} red.{space}.{name}.{ty} [%w0], %a; bar.warp.sync -1;", "m0:b32", total)
        same.warp_case("9.7.15.5", f"{lane} atom.{space}.inc.u32 %t1, [%w0], 2; bar.warp.sync -1;", "m0:b32", lambda rows: [counted(rows[0][0])] + [row[0] for row in rows[1:]])
        blocks.append(same)
    return blocks


def counted(value):
    for _ in range(4):
        value = UPDATES["inc"](value, 2)
    return value


FILES = {
    "loads": lambda: loads(),
    "stores": lambda: stores() + addresses(),
    "atomics": lambda: atomics(),
}
