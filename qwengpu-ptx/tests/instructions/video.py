"""9.7.20 Video instructions."""

from bits import clamp, cut, field, of, ones, parts, signed, triples
from comparison import COMPARISONS
from table import Block

PART = {"": (0, 32), "b0": (0, 8), "b1": (8, 8), "b2": (16, 8), "b3": (24, 8), "h0": (0, 16), "h1": (16, 16)}

ROWS = triples(32)[2:18] + [(0x807F01FF, 0x7F80FF01, 0x12345678), (0x80007FFF, 0x7FFF8000, ones(32)), (0x01020304, 0xFFFEFDFC, 0x80000000), (0x00FF00FF, 0xFF00FF00, 5)]

SCALAR = {
    "vadd": lambda x, y: x + y,
    "vsub": lambda x, y: x - y,
    "vabsdiff": lambda x, y: abs(x - y),
    "vmin": min,
    "vmax": max,
}
SECONDS = {"add": lambda t, c: t + c, "min": min, "max": max}


def select(word, part, kind):
    at, bits = PART[part]
    return of(kind, bits, field(word, at, bits))


def finish(value, to, c, saturate, second="", place=""):
    at, bits = PART[place]
    if saturate:
        value = clamp(value, to, bits)
    value = cut(value, 32)
    if second:
        value = SECONDS[second](of(to, 32, value), of(to, 32, c))
    if place:
        mask = ones(bits) << at
        return c & ~mask | cut(value, bits) << at
    return value


def suffix(register, part):
    return f"%{register}.{part}" if part else f"%{register}"


def scalar():
    block = Block("a:b32 b:b32 c:b32", ROWS)
    for name, f in SCALAR.items():
        for n, types in enumerate(("uuu", "sss", "sus", "usu", "uus", "ssu", "suu", "uss")):
            to, x, y = types
            dotted = f"{to}32.{x}32.{y}32"
            for sat in ("", ".sat"):
                for p, q in (("", ""),) if n > 3 else (("", ""), (["b0", "b1", "h0", "h1"][n], ["h1", "h0", "b3", "b2"][n])):
                    block.case("9.7.20.1.1", f"{name}.{dotted}{sat} %d, {suffix('a', p)}, {suffix('b', q)};", "d:b32",
                        lambda a, b, c, f=f, x=x, y=y, p=p, q=q, to=to, s=sat: finish(f(select(a, p, x), select(b, q, y)), to, c, s))
            if n < 2:
                for second in SECONDS:
                    block.case("9.7.20.1.1", f"{name}.{dotted}.sat.{second} %d, %a.b1, %b, %c;", "d:b32",
                        lambda a, b, c, f=f, x=x, y=y, to=to, g=second: finish(f(select(a, "b1", x), select(b, "", y)), to, c, True, g))
                for place in ("b0", "b3", "h1"):
                    for sat in ("", ".sat"):
                        block.case("9.7.20.1.1", f"{name}.{dotted}{sat} %d.{place}, %a, %b.h0, %c;", "d:b32",
                            lambda a, b, c, f=f, x=x, y=y, to=to, s=sat, w=place: finish(f(select(a, "", x), select(b, "h0", y)), to, c, s, "", w))
    for name, f in COMPARISONS.items():
        if name in ("lo", "ls", "hi", "hs"):
            continue
        for x, y in ("uu", "ss", "us", "su"):
            test = lambda a, b, f=f, x=x, y=y: int(f(of(x, 32, a), of(y, 32, b)))
            block.case("9.7.20.1.4", f"vset.{x}32.{y}32.{name} %d, %a, %b;", "d:b32", lambda a, b, c, t=test: t(a, b))
        block.case("9.7.20.1.4", f"vset.u32.s32.{name}.add %d, %a.b0, %b.b0, %c;", "d:b32", lambda a, b, c, f=f: int(f(select(a, "b0", "u"), select(b, "b0", "s"))) + c)
        block.case("9.7.20.1.4", f"vset.s32.s32.{name} %d.b2, %a.h1, %b.h0, %c;", "d:b32", lambda a, b, c, f=f: finish(int(f(select(a, "h1", "s"), select(b, "h0", "s"))), "u", c, False, "", "b2"))
    return [block]


def scalar_shifts():
    amounts = [0, 1, 4, 31, 32, 33, 255, 0xFFFFFFFF]
    block = Block("a:b32 b:b32 c:b32", [(a, n, 0x12345678) for a in (0x9ABCDEF0, 0x7FFF0081, 1) for n in amounts])
    for name in ("vshl", "vshr"):
        for mode in ("clamp", "wrap"):
            for to in "us":
                for x in "us":
                    def shifted(a, b, part="", q="", name=name, mode=mode, x=x):
                        n = select(b, q, "u")
                        n = min(n, 32) if mode == "clamp" else n & 31
                        value = select(a, part, x)
                        return value << n if name == "vshl" else value >> n

                    for sat in ("", ".sat"):
                        block.case("9.7.20.1.2", f"{name}.{to}32.{x}32.u32{sat}.{mode} %d, %a, %b;", "d:b32", lambda a, b, c, f=shifted, to=to, s=sat: finish(f(a, b), to, c, s))
                    block.case("9.7.20.1.2", f"{name}.{to}32.{x}32.u32.sat.{mode} %d.h0, %a.b0, %b.b0, %c;", "d:b32", lambda a, b, c, f=shifted, to=to: finish(f(a, b, "b0", "b0"), to, c, True, "", "h0"))
                    block.case("9.7.20.1.2", f"{name}.{to}32.{x}32.u32.{mode}.add %d, %a.h1, %b, %c;", "d:b32", lambda a, b, c, f=shifted, to=to: finish(f(a, b, "h1"), to, c, False, "add"))
    return [block]


def multiply(a, b, c, x, y, p, q, sign, saturate, scale):
    """`sign` is '', 'po', 'a', 'b' or 'c': what is negated."""
    product = select(a, p, x) * select(b, q, y)
    is_signed = x == "s" or y == "s" or sign in ("a", "b", "c")
    if sign in ("a", "b"):
        product = -product
    addend = signed(c, 32) if is_signed else c
    if sign == "c":
        addend = signed(~c, 32) + 1
    total = product + addend + (sign == "po")
    total >>= scale
    return clamp(total, "s" if is_signed else "u", 32) if saturate else total


def scalar_products():
    block = Block("a:b32 b:b32 c:b32", ROWS)
    for x, y in ("uu", "ss", "us", "su"):
        for sign in ("", "po", "a", "b", "c"):
            for n, scale in enumerate((0, 7, 15)):
                p, q = (("", ""), ("h0", "h1"), ("b1", ""))[(n + len(sign)) % 3] if sign == "po" else ("", "")
                for sat in ("", ".sat"):
                    words = (".po" if sign == "po" else "") + sat + (f".shr{scale}" if scale else "")
                    minus = {name: "-" if sign == name else "" for name in "abc"}
                    text = f"vmad.{x if x == y else 's'}32.{x}32.{y}32{words} %d, {minus['a']}{suffix('a', p)}, {minus['b']}{suffix('b', q)}, {minus['c']}%c;"
                    block.case("9.7.20.1.3", text, "d:b32", lambda a, b, c, x=x, y=y, p=p, q=q, g=sign, s=sat, k=scale: multiply(a, b, c, x, y, p, q, g, s, k))
    return [block]


def average(x, y):
    return x + y + 1 >> 1 if x + y >= 0 else x + y >> 1


LANEWISE = {**SCALAR, "vavrg": average}


def lanewise(a, b, c, f, bits, to, x, y, saturate, sums, chosen_a, chosen_b, mask):
    count = 32 // bits
    xs, ys = parts(a, bits, x) + parts(b, bits, x), parts(a, bits, y) + parts(b, bits, y)
    values = [f(xs[i], ys[j]) for i, j in zip(chosen_a, chosen_b)]
    if saturate:
        values = [clamp(v, to, bits) for v in values]
    if sums:
        return c + sum(v for n, v in enumerate(values) if n in mask)
    kept = parts(c, bits, "u")
    return sum(cut(values[n] if n in mask else kept[n], bits) << (bits * n) for n in range(count))


def simd():
    blocks = []
    for bits in (16, 8):
        count, letter, number = 32 // bits, "h" if bits == 16 else "b", 32 // bits
        section = 1 if bits == 16 else 3
        block = Block("a:b32 b:b32 c:b32", ROWS)
        low, high, full = list(range(count)), list(range(count, 2 * count)), set(range(count))
        for name, f in LANEWISE.items():
            for n, types in enumerate(("uuu", "sss", "sus", "usu")):
                to, x, y = types
                head = f"{name}{number}.{to}32.{x}32.{y}32"
                for word in ("", ".sat", ".add"):
                    block.case(f"9.7.20.2.{section}", f"{head}{word} %d, %a, %b, %c;", "d:b32",
                        lambda a, b, c, f=f, to=to, x=x, y=y, w=word, z=bits, l=low, h=high, m=full: lanewise(a, b, c, f, z, to, x, y, w == ".sat", w == ".add", l, h, m))
                chosen = ([3, 0], [1, 2]) if bits == 16 else ([7, 0, 5, 2], [4, 4, 1, 3])
                masks = ("h0", "h1", "h10") if bits == 16 else ("b0", "b31", "b210")
                text = lambda numbers, l=letter: l + "".join(str(k) for k in reversed(numbers))
                mask = masks[n % 3]
                for word in ("", ".sat", ".add"):
                    block.case(f"9.7.20.2.{section}", f"{head}{word} %d.{mask}, %a.{text(chosen[0])}, %b.{text(chosen[1])}, %c;", "d:b32",
                        lambda a, b, c, f=f, to=to, x=x, y=y, w=word, z=bits, ch=chosen, m=mask: lanewise(a, b, c, f, z, to, x, y, w == ".sat", w == ".add", ch[0], ch[1], {int(k) for k in m[1:]}))
        for name, f in COMPARISONS.items():
            if name in ("lo", "ls", "hi", "hs"):
                continue
            test = lambda p, q, f=f: int(f(p, q))
            for x, y in ("uu", "ss", "su"):
                for word in ("", ".add"):
                    block.case(f"9.7.20.2.{section + 1}", f"vset{number}.{x}32.{y}32.{name}{word} %d, %a, %b, %c;", "d:b32",
                        lambda a, b, c, f=test, x=x, y=y, w=word, z=bits, l=low, h=high, m=full: lanewise(a, b, c, f, z, "u", x, y, False, w == ".add", l, h, m))
        blocks.append(block)
    return blocks


FILES = {
    "video_scalar": lambda: scalar() + scalar_shifts() + scalar_products(),
    "video_simd": lambda: simd(),
}
