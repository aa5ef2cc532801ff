#!/usr/bin/env python3
"""Expected results of the kernels, from a host C++ compiler.

Each kernels/NAME.cu is compiled for the host with the vocabulary of cuda_host.h and run on the launches of
kernels/NAME.json. By default the results are compared with the file's "expect" lists; with --bless they are written there.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
KERNELS = HERE.parent.parent / "kernels"

# The machine's limits that a launch can exceed.
GLOBAL_WORDS = 126
SHARED_BYTES = 4 * 128
LOCAL_BYTES = 4 * 16
PARAMETER_BYTES = 4 * 96
BLOCK_THREADS = 32
MAX_GRID = 255

# With `thread`, this many blocks run at once, so that races between blocks show too.
CONCURRENT_BLOCKS = 8

TYPES = {kind + str(bits): (bits // 8, kind == "i") for kind in "iu" for bits in (8, 16, 32, 64)}

SANITIZERS = {
    "none": [],
    "address": ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "thread": ["-fsanitize=thread"],
    "memory": ["-fsanitize=memory"],
}


class Failure(Exception):
    pass


def parse_argument(text):
    """`buf:i32:1,2`, `zeros:i32:8` or `i32:7` as (is_buffer, type name, values)."""
    kind, _, rest = text.partition(":")
    is_buffer = kind in ("buf", "zeros")
    name, values = rest.split(":") if is_buffer else (kind, rest)
    if name not in TYPES:
        raise Failure(f"argument {text!r}: unknown type {name!r}")
    if kind == "zeros":
        numbers = [0] * int(values)
    else:
        numbers = [int(v, 0) for v in values.split(",")]
    size, signed = TYPES[name]
    low, high = (-(1 << 8 * size - 1), 1 << 8 * size - 1) if signed else (0, 1 << 8 * size)
    for v in numbers:
        if not low <= v < high:
            raise Failure(f"argument {text!r}: {v} is not a value of {name}")
    return is_buffer, name, numbers


def check_limits(launch, args):
    threads = launch["block"][0] * launch["block"][1] * launch["block"][2]
    if not 1 <= threads <= BLOCK_THREADS:
        raise Failure(f"{threads} threads a block, the limit is {BLOCK_THREADS}")
    if any(not 1 <= n <= MAX_GRID for n in launch["grid"]):
        raise Failure(f"grid {launch['grid']}: each dimension is 1 to {MAX_GRID}")
    words = sum((TYPES[name][0] * len(values) + 3) // 4 for is_buffer, name, values in args if is_buffer)
    if words > GLOBAL_WORDS:
        raise Failure(f"{words} words of buffers, the limit is {GLOBAL_WORDS}")
    offset = 0
    for is_buffer, name, _ in args:
        size = 8 if is_buffer else TYPES[name][0]
        offset = (offset + size - 1) // size * size + size
    if offset > PARAMETER_BYTES:
        raise Failure(f"{offset} bytes of parameters, the limit is {PARAMETER_BYTES}")


def check_ptx_limits(path):
    """Shared and local memory as declared by the compiled kernel."""
    for space, limit in (("shared", SHARED_BYTES), ("local", LOCAL_BYTES)):
        used = 0
        for align, bits, count in re.findall(
            rf"\.{space}\s+\.align\s+(\d+)\s+\.[bus](\d+)\s+[\w$]+(?:\[(\d+)\])?", path.read_text()
        ):
            used = (used + int(align) - 1) // int(align) * int(align) + int(bits) // 8 * int(count or 1)
        if used > limit:
            raise Failure(f"{path.name}: {used} bytes of {space} memory, the limit is {limit}")


def host_source(source, kernel, copies):
    """A translation unit: `copies` of the kernel, each in its own namespace, and a main."""
    text = source.read_text()
    text = re.sub(r'^[ \t]*#[ \t]*include[ \t]*"prelude\.h"[ \t]*$', "", text, flags=re.M)
    text = text.replace('extern "C"', "")
    parts = ['#include "host_main.h"']
    for k in range(copies):
        parts += [f"namespace copy{k} {{", f'#line 1 "{source.name}"', text, "}"]
    names = ", ".join(f"copy{k}::{kernel}" for k in range(copies))
    parts.append(f"int main() {{ return oracle::host_main({{{names}}}); }}")
    return "\n".join(parts) + "\n"


def compile_kernel(source, kernel, options, folder):
    flags = ["-std=c++17", "-g", "-pthread", "-fwrapv", "-fno-strict-aliasing", "-Wall", "-Werror", "-Wno-unused-function",
             "-Wno-unknown-pragmas", f"-O{options.opt}", f"-I{HERE}", *SANITIZERS[options.sanitize]]
    if options.signed_overflow:
        flags.remove("-fwrapv")
    # The address sanitizer does not guard variables in a section of their own; the thread sanitizer needs copies.
    if options.sanitize in ("none", "memory"):
        flags.append("-DORACLE_SHARED_SECTION")
    copies = CONCURRENT_BLOCKS if options.sanitize == "thread" else 1
    unit = folder / (source.stem + ".cpp")
    unit.write_text(host_source(source, kernel, copies))
    binary = folder / source.stem
    done = subprocess.run([options.cxx, *flags, str(unit), "-o", str(binary)], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure("the host compiler says:\n" + done.stderr)
    return binary


def run_kernel(command, launches, junk):
    """All buffers after each launch, as (is_output, values as unsigned)."""
    words = [len(launches)]
    for launch, args in launches:
        words += [*launch["grid"], *launch["block"], junk, len(args)]
        for is_buffer, name, values in args:
            size = TYPES[name][0]
            bits = [v % (1 << 64) for v in values]
            words += ["buf", size, len(bits), *bits] if is_buffer else ["val", *bits]
    done = subprocess.run(command, input=" ".join(map(str, words)), capture_output=True, text=True)
    if done.returncode != 0 or done.stderr:
        raise Failure(f"the run ended with status {done.returncode}:\n{done.stderr}")
    results = [[] for _ in launches]
    for line in done.stdout.splitlines():
        number, _, direction, *values = line.split()
        results[int(number)].append((direction == "out", [int(v) for v in values]))
    return results


def typed(values, name):
    size, signed = TYPES[name]
    bits = 8 * size
    return [v - (1 << bits) if signed and v >> (bits - 1) else v for v in values]


def expectations(args, buffers):
    """The "expect" list of one launch: every buffer the kernel may write."""
    names = [name for is_buffer, name, _ in args if is_buffer]
    given = [values for is_buffer, _, values in args if is_buffer]
    expect = []
    for index, (is_output, values) in enumerate(buffers):
        values = typed(values, names[index])
        if is_output:
            expect.append({"buffer": index, "type": names[index], "values": values})
        elif values != given[index]:
            raise Failure(f"buffer {index} is const and was changed")
    return expect


def render(case):
    """The JSON text of a case, a line a field of a launch."""
    lines = ["{", f'  "file": {json.dumps(case["file"])},', f'  "kernel": {json.dumps(case["kernel"])},', '  "launches": [']
    for index, launch in enumerate(case["launches"]):
        lines.append("    {" + f'"grid": {json.dumps(launch["grid"])}, "block": {json.dumps(launch["block"])},')
        lines.append(f'     "args": {json.dumps(launch["args"])},')
        rows = ",\n                ".join(json.dumps(e) for e in launch["expect"])
        lines.append(f'     "expect": [{rows}]}}' + ("," if index + 1 < len(case["launches"]) else ""))
    lines += ["  ]", "}"]
    return "\n".join(lines) + "\n"


def run_case(path, options, folder):
    case = json.loads(path.read_text())
    launches = []
    for launch in case["launches"]:
        args = [parse_argument(a) for a in launch["args"]]
        check_limits(launch, args)
        launches.append((launch, args))
    ptx = path.with_suffix(".ptx")
    if ptx.exists():
        check_ptx_limits(ptx)
    binary = compile_kernel(path.parent / case["file"], case["kernel"], options, folder)
    results = [run_kernel([str(binary)], launches, junk) for junk in (0x00, 0xA5, 0x7E)[: options.repeat]]
    if any(r != results[0] for r in results):
        raise Failure("the result depends on what shared memory held before, or on the order of threads")
    for number, ((launch, args), buffers) in enumerate(zip(launches, results[0])):
        expect = expectations(args, buffers)
        if options.bless:
            launch["expect"] = expect
        elif launch.get("expect") != expect:
            raise Failure(f"launch {number}: expected {launch.get('expect')}, the oracle gives {expect}")
    if options.bless:
        path.write_text(render(case))
    elif path.read_text() != render(case):
        raise Failure("the file is not formatted as --bless would")
    return len(launches)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="kernels to run (default: all)")
    parser.add_argument("--bless", action="store_true", help="write the expected values instead of checking them")
    parser.add_argument("--cxx", help="host compiler (default: clang++, clang++-19 or g++)")
    parser.add_argument("--opt", choices="0123", default="2", help="host optimisation level")
    parser.add_argument("--sanitize", choices=sorted(SANITIZERS), default="none", help="address implies undefined")
    parser.add_argument("--signed-overflow", action="store_true", help="do not define signed overflow as wrapping")
    parser.add_argument("--repeat", type=int, choices=(1, 2, 3), default=3, help="runs, with different junk in shared memory")
    options = parser.parse_args()
    options.cxx = options.cxx or next(filter(shutil.which, ("clang++", "clang++-19", "g++")), None)
    if options.cxx is None:
        parser.error("no host C++ compiler was found")
    paths = [KERNELS / (name + ".json") for name in options.names] or sorted(KERNELS.glob("*.json"))
    failed = launches = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            try:
                launches += run_case(path, options, pathlib.Path(folder))
            except Failure as failure:
                failed += 1
                print(f"{path.stem}: {failure}", file=sys.stderr)
    print(f"{len(paths) - failed} of {len(paths)} kernels pass ({launches} launches)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
