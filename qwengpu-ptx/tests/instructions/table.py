"""The form of the data files: blocks of operands, instructions, and their results.

    operands [warp] [global|shared|local] a:b32 b:b32
      00000000 00000001
    9.7.1.1 add.u32 %d, %a, %b;
      d:b32 = 00000001

Each row below `operands` is a thread, four of them a warp. An instruction reads %a, %b ... and writes the
registers its results name. Operands m0, m1 ... are words of memory of the thread, which %m points to; results of
these names are what they are afterwards. `warp` says that results depend on the other three threads.
"""


WIDTHS = {"pred": 1, "b16": 16, "b32": 32, "b64": 64}


def number(kind, value):
    bits = WIDTHS[kind]
    return f"{value & ((1 << bits) - 1):0{(bits + 3) // 4}x}"


class Block:
    def __init__(self, operands, rows, words=""):
        rows = [row if isinstance(row, tuple) else (row,) for row in rows]
        assert len(rows) % 4 == 0, (operands, len(rows))
        self.names = [operand.split(":") for operand in operands.split()]
        self.rows = [[v & ((1 << WIDTHS[kind]) - 1) for (_, kind), v in zip(self.names, row)] for row in rows]
        assert all(len(row) == len(self.names) for row in self.rows)
        self.words = words
        self.cases = []

    def case(self, section, text, results, compute):
        """`compute` takes the operands of a thread and gives one result or a tuple of them."""
        results = [result.split(":") for result in results.split()]
        values = []
        for row in self.rows:
            got = compute(*row)
            values.append(got if isinstance(got, tuple) else (got,))
        self.add(section, text, results, values)

    def warp_case(self, section, text, results, compute):
        """`compute` takes a list of four threads' operands and gives a list of four results."""
        results = [result.split(":") for result in results.split()]
        values = []
        for start in range(0, len(self.rows), 4):
            for got in compute(self.rows[start : start + 4]):
                values.append(got if isinstance(got, tuple) else (got,))
        self.add(section, text, results, values)

    def add(self, section, text, results, values):
        assert all(len(value) == len(results) for value in values), text
        self.cases.append((section, text, results, values))

    def text(self):
        names = " ".join(":".join(name) for name in self.names)
        words = f" {self.words}" if self.words else ""
        lines = [f"operands{words} {names}"]
        for row in self.rows:
            lines.append("  " + " ".join(number(kind, v) for (_, kind), v in zip(self.names, row)))
        for section, text, results, values in self.cases:
            lines.append(f"{section} {text}")
            for n, (name, kind) in enumerate(results):
                lines.append(f"  {name}:{kind} = " + " ".join(number(kind, value[n]) for value in values))
        return "\n".join(lines) + "\n"
