"""Operations across a warp, which has four lanes here: lane numbers and masks are those of the manual, modulo 4."""

from bits import of, ones
from table import Block

LANES = range(4)


def shuffle(rows, mode):
    results = []
    for lane, (_, b, c) in enumerate(rows):
        distance, last, segment = b & 31, c & 3, c >> 8 & 3
        first = lane & segment
        limit = first | last & ~segment
        if mode == "up":
            source = lane - distance
            inside = source >= limit
        elif mode == "down":
            source = lane + distance
            inside = source <= limit
        elif mode == "bfly":
            source = lane ^ distance
            inside = source <= limit
        else:
            source = first | distance & 3 & ~segment
            inside = source <= limit
        results.append((rows[source if inside else lane][0], int(inside)))
    return results


def shuffles():
    values = [0x11111111, 0x80000002, 0xFFFFFFFF, 0]
    distances = [(0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3), (31, 31, 31, 31), (3, 2, 1, 0), (33, 34, 4, 5), (1, 0, 3, 2)]
    controls = [0x1F, 0x00, 0x1E1F, 0x1E00, 0x0001, 0x0301, 0x1C03, 0x1F1F]
    blocks = [Block("a:b32 b:b32 c:b32", [(v, d[n], c) for d, c in zip(distances * 2, controls + controls[3:] + controls[:3]) for n, v in enumerate(values)], "warp")]
    for mode in ("idx", "up", "down", "bfly"):
        blocks[0].warp_case("9.7.10.6", f"shfl.sync.{mode}.b32 %d|%p, %a, %b, %c, 0xffffffff;", "d:b32 p:pred", lambda rows, m=mode: shuffle(rows, m))
        blocks[0].warp_case("9.7.10.5", f"shfl.{mode}.b32 %d, %a, %b, %c;", "d:b32", lambda rows, m=mode: [r[0] for r in shuffle(rows, m)])
    still = Block("a:b32", values, "warp")
    for mode in ("idx", "up", "down", "bfly"):
        for b in (0, 1, 2, 3, 4, 31):
            for c in (0x1E00, 0x00, 0x1C00) if mode == "up" else (0x1F, 0x1E1F, 0x0001, 3):
                still.warp_case("9.7.10.6", f"shfl.sync.{mode}.b32 %d|%p, %a, {b}, {c}, -1;", "d:b32 p:pred", lambda rows, m=mode, b=b, c=c: shuffle([(r[0], b, c) for r in rows], m))
    return blocks + [still]


def mask(bools):
    return sum(int(b) << n for n, b in enumerate(bools))


def votes():
    rows = [(p, e) for ps in ((0, 0, 0, 0), (1, 1, 1, 1), (1, 0, 0, 0), (0, 1, 1, 0), (1, 1, 1, 0)) for p, e in zip(ps, (1, 1, 0, 1))]
    rows += [(p, 1) for ps in ((0, 0, 0, 1), (1, 1, 1, 1), (0, 0, 0, 0)) for p in ps]
    block = Block("a:pred b:pred", rows, "warp")
    whole = {
        "all": lambda ps: [int(all(ps))] * len(ps),
        "any": lambda ps: [int(any(ps))] * len(ps),
        "uni": lambda ps: [int(len(set(ps)) <= 1)] * len(ps),
    }
    for name, f in whole.items():
        block.warp_case("9.7.15.10", f"vote.sync.{name}.pred %p, %a, -1;", "p:pred", lambda rows, f=f: f([r[0] for r in rows]))
        block.warp_case("9.7.15.10", f"vote.sync.{name}.pred %p, !%a, 0xf;", "p:pred", lambda rows, f=f: f([1 - r[0] for r in rows]))
        block.warp_case("9.7.15.9", f"vote.{name}.pred %p, %a;", "p:pred", lambda rows, f=f: f([r[0] for r in rows]))

        # Only the threads that execute it are asked.
        def some(rows, f=f):
            got = f([p for p, e in rows if e])
            return [got[0] if e else 0 for _, e in rows]

        text = f"setp.eq.u32 %p, 0, 1; @!%b bra L; activemask.b32 %t0; vote.sync.{name}.pred %p, %a, %t0; L:"
        block.warp_case("9.7.15.10", text, "p:pred", some)
    block.warp_case("9.7.15.10", "vote.sync.ballot.b32 %d, %a, -1;", "d:b32", lambda rows: [mask(p for p, _ in rows)] * 4)
    block.warp_case("9.7.15.10", "vote.sync.ballot.b32 %d, !%a, 0xf;", "d:b32", lambda rows: [mask(1 - p for p, _ in rows)] * 4)
    block.warp_case("9.7.15.9", "vote.ballot.b32 %d, %a;", "d:b32", lambda rows: [mask(p for p, _ in rows)] * 4)
    block.warp_case("9.7.15.12", "activemask.b32 %d;", "d:b32", lambda rows: [15] * 4)
    block.warp_case("9.7.15.12", "mov.u32 %d, 99; @%b activemask.b32 %d;", "d:b32", lambda rows: [mask(e for _, e in rows) if e else 99 for _, e in rows])
    elected = lambda rows: min(n for n, (_, e) in enumerate(rows) if e)
    block.warp_case("9.7.15.15", "elect.sync %d|%p, -1;", "d:b32 p:pred", lambda rows: [(0, int(n == 0)) for n in LANES])
    block.warp_case("9.7.15.15", "mov.u32 %d, 99; setp.eq.u32 %p, 0, 1; @!%b bra L; activemask.b32 %t0; elect.sync %d|%p, %t0; L:", "d:b32 p:pred",
        lambda rows: [(elected(rows), int(n == elected(rows))) if e else (99, 0) for n, (_, e) in enumerate(rows)])
    return [block]


def matches():
    blocks = []
    for bits in (32, 64):
        top = 1 << (bits - 1)
        groups = [(7, 7, 7, 7), (1, 2, 1, 2), (0, ones(bits), top, 0), (1, 2, 3, 4), (top, top + 1, top, top), (5, 5, 6, 6)]
        if bits == 64:
            groups[3] = (1, 1 << 32, (1 << 32) + 1, 1)
        block = Block(f"a:b{bits} b:pred", [(v, e) for g in groups for v, e in zip(g, (1, 0, 1, 1))], "warp")
        same = lambda rows, v, of_all=True: mask(int(w == v and (of_all or e)) for w, e in rows)
        block.warp_case("9.7.15.11", f"match.any.sync.b{bits} %d, %a, -1;", "d:b32", lambda rows: [same(rows, v) for v, _ in rows])
        block.warp_case("9.7.15.11", f"match.all.sync.b{bits} %d|%p, %a, 0xf;", "d:b32 p:pred", lambda rows: [(15, 1) if len({v for v, _ in rows}) == 1 else (0, 0)] * 4)
        block.warp_case("9.7.15.11", f"mov.u32 %d, 99; @!%b bra L; activemask.b32 %t0; match.any.sync.b{bits} %d, %a, %t0; L:", "d:b32", lambda rows: [same(rows, v, False) if e else 99 for v, e in rows])
        blocks.append(block)
    return blocks


def reductions():
    groups = [(1, 2, 3, 4), (0xFFFFFFFF, 1, 0x80000000, 0x7FFFFFFF), (0, 0, 0, 0), (0x12345678, 0x9ABCDEF0, 0xF0F0F0F0, 0x0FF00FF0)]
    block = Block("a:b32 b:pred", [(v, e) for g in groups for v, e in zip(g, (0, 1, 1, 0))], "warp")
    operations = {"add": lambda x, y: x + y, "min": min, "max": max, "and": lambda x, y: x & y, "or": lambda x, y: x | y, "xor": lambda x, y: x ^ y}
    for name, types in (("add", "us"), ("min", "us"), ("max", "us"), ("and", "b"), ("or", "b"), ("xor", "b")):
        for kind in types:
            def reduce(values, f=operations[name], k=kind):
                total = of(k, 32, values[0])
                for value in values[1:]:
                    total = f(total, of(k, 32, value))
                return total

            block.warp_case("9.7.15.13", f"redux.sync.{name}.{kind}32 %d, %a, -1;", "d:b32", lambda rows, f=reduce: [f([v for v, _ in rows])] * 4)
            text = f"mov.u32 %d, 99; @!%b bra L; activemask.b32 %t0; redux.sync.{name}.{kind}32 %d, %a, %t0; L:"
            block.warp_case("9.7.15.13", text, "d:b32", lambda rows, f=reduce: [f([v for v, e in rows if e]) if e else 99 for _, e in rows])
    return [block]


def registers():
    block = Block("a:b32", [0, 1, 2, 3], "warp")
    by_lane = {
        "10.3 %laneid": lambda n: n,
        "10.18 %lanemask_eq": lambda n: 1 << n,
        "10.19 %lanemask_le": lambda n: (2 << n) - 1,
        "10.20 %lanemask_lt": lambda n: (1 << n) - 1,
        "10.21 %lanemask_ge": lambda n: ones(32) << n,
        "10.22 %lanemask_gt": lambda n: ones(32) << n + 1,
        "10.8 %smid": lambda n: 0,
        "10.9 %nsmid": lambda n: 1,
    }
    for name, f in by_lane.items():
        section, register = name.split()
        block.warp_case(section, f"mov.u32 %d, {register};", "d:b32", lambda rows, f=f: [f(n) for n in LANES])
    block.warp_case("10.3", "mov.u32 %d, WARP_SZ;", "d:b32", lambda rows: [4] * 4)
    return [block]


FILES = {"warp": lambda: shuffles() + votes() + matches() + reductions() + registers()}
