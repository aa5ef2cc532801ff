"""Words of a number of bits as Python integers, and the values at their edges."""


def ones(bits):
    return (1 << bits) - 1


def cut(value, bits):
    return value & ones(bits)


def signed(value, bits):
    value = cut(value, bits)
    return value - (1 << bits) if value >> (bits - 1) else value


def of(kind, bits, value):
    """The number that the low bits stand for; kind is 's', 'u' or 'b'."""
    return signed(value, bits) if kind == "s" else cut(value, bits)


def limits(kind, bits):
    if kind == "s":
        return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return 0, ones(bits)


def clamp(value, kind, bits):
    least, most = limits(kind, bits)
    return min(max(value, least), most)


def bit(value, at):
    return value >> at & 1


def field(value, at, bits):
    return value >> at & ones(bits)


def parts(word, bits, kind):
    """The parts of a word, lowest first."""
    return [of(kind, bits, field(word, at, bits)) for at in range(0, 32, bits)]


def join(values, bits):
    return cut(sum(cut(v, bits) << (n * bits) for n, v in enumerate(values)), 32)


ODD = {16: (0x1234, 0xFEDC), 32: (0x12345678, 0x9ABCDEF0), 64: (0x123456789ABCDEF0, 0xFEDCBA9876543210)}


def pairs(bits):
    """Two operands at the edges: zero, one, the ends of both ranges, and where products and carries begin."""
    low, high = 1 << (bits - 1), (1 << (bits - 1)) - 1
    all_ones, half = ones(bits), bits // 2
    x, y = ODD[bits]
    return [
        (0, 0), (1, 0), (0, 1), (low, all_ones),
        (low, low), (high, 1), (high, high), (all_ones, 1),
        (all_ones, all_ones), (1, all_ones), (7, -2), (-7, 2),
        (-7, -2), (7, 2), (low, 1), (low, 2),
        (high, all_ones), (x, 3), (x, y), (ones(half), ones(half)),
        (1 << half, 1 << half), (1 << (half - 1), 1 << half), (y, 0), (low, 0),
    ]


def triples(bits):
    """`pairs` and a third operand."""
    thirds = [0, 1, ones(bits), 1 << (bits - 1), (1 << (bits - 1)) - 1, ODD[bits][0], 2, 1 << (bits // 2)]
    return [(a, b, thirds[n * 5 % 8]) for n, (a, b) in enumerate(pairs(bits))]


def singles(bits):
    low, half = 1 << (bits - 1), bits // 2
    x, y = ODD[bits]
    return [0, 1, 2, 0x80, 0xFF, low - 1, low, low + 1, ones(bits), ones(bits) - 1, 1 << half, ones(half), x, y, 0x7F, low >> 1]
