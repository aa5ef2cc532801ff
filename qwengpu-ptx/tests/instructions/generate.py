"""Writes the data files beside it from what the PTX manual says of each instruction, and nothing else.

python3 generate.py           writes them
python3 generate.py --check   fails if they are not what it would write
"""

import pathlib
import sys

sys.dont_write_bytecode = True

import comparison
import conversion
import integer
import logic
import memory
import video
import warp

HERE = pathlib.Path(__file__).parent
HEADER = "# Written by generate.py; table.py says what the form is. Sections are those of PTX ISA 9.4.\n"


def main():
    stale = []
    for module in (integer, logic, comparison, conversion, memory, warp, video):
        for name, blocks in module.FILES.items():
            text = HEADER + "".join("\n" + block.text() for block in blocks())
            path = HERE / f"{name}.txt"
            if "--check" not in sys.argv:
                path.write_text(text)
            elif not path.exists() or path.read_text() != text:
                stale.append(path.name)
    if stale:
        sys.exit(f"not what generate.py writes: {', '.join(stale)}")


if __name__ == "__main__":
    main()
