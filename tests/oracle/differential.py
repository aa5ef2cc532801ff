#!/usr/bin/env python3
"""Random CUDA kernels from a host compiler, on the machine: every result must be the host's.

For each seed, random_kernels.py makes a kernel and two launches. The host compiler gives the expected buffers, as for
the kernels of the suite; each device compiler gives PTX, which `qwengpu suite` translates and runs.

    differential.py --count 1000 --program target/release/qwengpu
    differential.py --first 4711 --count 1 --keep FOLDER --dialect clang-19:3

A kernel that is too large for the machine is counted, and is no failure unless many are.
Exit status: 0 all agree, 1 a result differs, or too few kernels fit.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import run
from random_kernels import PREAMBLE, SIGNATURE, Kernel

sys.path.insert(0, str(run.KERNELS))
import build  # noqa: E402

# What is said of a kernel that the machine has no room for, by the translator or by a fault.
TOO_LARGE = ("needed, the limit is", "stack overflow")
# At least this share of the kernels must fit; unoptimised code keeps much on the stack.
FITTING = {"0": 0.5, "1": 0.9, "2": 0.9, "3": 0.9}


class Dialect:
    """A device compiler and a level, as clang-19:2 or /path/libnvrtc.so.12:1."""

    def __init__(self, text):
        compiler, _, self.opt = text.rpartition(":")
        if self.opt not in ("0", "1", "2", "3") or not compiler:
            raise argparse.ArgumentTypeError(f"{text!r}: expected COMPILER:LEVEL, such as clang-19:2")
        self.clang = compiler
        self.nvrtc = build.Nvrtc(compiler) if "nvrtc" in compiler else None
        self.arch, self.ptx = "sm_75", "ptx64"
        self.name = f"{pathlib.Path(compiler).name}-O{self.opt}"


def host_source(text, names):
    text = text.replace('#include "prelude.h"', "").replace('extern "C"', "")
    table = ", ".join(names)
    return "\n".join([
        '#include "host_main.h"', text,
        f"typedef void (*Function)({SIGNATURE});", f"static const Function table[] = {{{table}}};",
        "int main(int, char **arguments) {", "  Function one[] = {table[atoi(arguments[1])]};",
        "  return oracle::host_main(std::move(one));", "}"]) + "\n"


def write_batch(number, seeds, options, folder):
    """Source, host binary, cases with expected buffers, and PTX of every dialect for some kernels."""
    kernels = [Kernel(seed) for seed in seeds]
    source = folder / f"batch{number:03}.cu"
    source.write_text(PREAMBLE + "".join(kernel.source() for kernel in kernels))
    unit, binary = source.with_suffix(".cpp"), source.with_suffix("")
    unit.write_text(host_source(source.read_text(), [kernel.name for kernel in kernels]))
    subprocess.run([options.cxx, "-std=c++17", "-pthread", "-fwrapv", "-fno-strict-aliasing", "-O1", "-DORACLE_SHARED_SECTION",
                    f"-I{run.HERE}", str(unit), "-o", str(binary)], check=True)
    cases = []
    for index, kernel in enumerate(kernels):
        launches = kernel.launches()
        parsed = [(launch, [run.parse_argument(text) for text in launch["args"]]) for launch in launches]
        for launch, args in parsed:
            run.check_limits(launch, args)
        results = [run.run_kernel([str(binary), str(index)], parsed, junk) for junk in (0x00, 0xA5)]
        if results[0] != results[1]:
            raise run.Failure(f"{kernel.name}: the result depends on what shared memory held before")
        for (launch, args), buffers in zip(parsed, results[0]):
            launch["expect"] = run.expectations(args, buffers)
        cases.append((kernel.name, run.render({"file": source.name, "kernel": kernel.name, "launches": launches})))
    for dialect in options.dialects:
        target = folder / dialect.name
        text = build.compile_kernel(source, dialect)
        if text is None:
            raise run.Failure(f"{source.name}: {dialect.name} refuses it")
        (target / source.name).with_suffix(".ptx").write_text(text)
        for name, case in cases:
            (target / f"{name}.json").write_text(case)


def run_suite(dialect, engine, options, folder):
    """Prints a line, and gives whether all is well."""
    command = [options.program, "suite", "--json", "--engine", engine, "--kernels", str(folder / dialect.name)]
    done = subprocess.run(command + (["--check"] if engine != "interp" else []), capture_output=True, text=True)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        print(f"{dialect.name}, {engine}: {done.stderr}", file=sys.stderr)
        return False
    failures = [row for row in report["kernels"] if not row["pass"]]
    large = [row for row in failures if any(text in row["reason"] for text in TOO_LARGE)]
    wrong = [row for row in failures if row not in large]
    print(f"{dialect.name}, {engine}: {report['passed']} right, {len(wrong)} wrong, {len(large)} too large, "
          f"{report['launches']} launches, {report['tokens']} tokens", flush=True)
    for row in wrong:
        print(f"  {row['kernel']}: {row['reason']}", file=sys.stderr)
    few = report["passed"] < FITTING[dialect.opt] * len(report["kernels"])
    if few:
        reasons = collections.Counter(row["reason"].split(":")[-1] for row in large)
        print(f"  too few kernels fit: {reasons.most_common(5)}", file=sys.stderr)
    return not wrong and not few


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=100, help="how many seeds")
    parser.add_argument("--dialect", dest="dialects", type=Dialect, action="append", help="repeatable")
    parser.add_argument("--engine", action="append", help="for the first dialect; the others run on interp")
    parser.add_argument("--program", default="target/debug/qwengpu")
    parser.add_argument("--cxx", default="clang++-19")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for everything that is made")
    options = parser.parse_args()
    options.dialects = options.dialects or [Dialect(f"clang-19:{level}") for level in (2, 0, 1, 3)]
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or pathlib.Path(scratch)
        for dialect in options.dialects:
            (folder / dialect.name).mkdir(parents=True, exist_ok=True)
        (folder / "prelude.h").write_text((run.KERNELS / "prelude.h").read_text())
        seeds = list(range(options.first, options.first + options.count))
        batches = [seeds[at:at + 25] for at in range(0, len(seeds), 25)]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            jobs = [pool.submit(write_batch, number, batch, options, folder) for number, batch in enumerate(batches)]
            for job in jobs:
                job.result()
        print(f"{len(seeds)} kernels written", flush=True)
        runs = [(options.dialects[0], engine) for engine in options.engine or ["interp", "sparse"]]
        runs += [(dialect, "interp") for dialect in options.dialects[1:]]
        results = [run_suite(dialect, engine, options, folder) for dialect, engine in runs]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
