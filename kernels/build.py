#!/usr/bin/env python3
"""Compiles kernels/*.cu to PTX with clang; needs no CUDA SDK.

The .ptx files beside the sources come from the defaults. Another compiler or level gives another dialect of PTX:
    build.py --clang clang-14 --opt 0 --out FOLDER
"""

import argparse
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def compile_kernel(source, options):
    command = [options.clang, "-x", "cuda", "--cuda-device-only", "-S", "-nocudainc", "-nocudalib", "-Wall", "-Werror",
               "-Wno-unknown-cuda-version", f"--cuda-gpu-arch={options.arch}", "-Xclang", "-target-feature", "-Xclang",
               f"+{options.ptx}", f"-O{options.opt}", source.name, "-o", "-"]
    done = subprocess.run(command, cwd=source.parent, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{source.name}:\n{done.stderr}", file=sys.stderr)
        return None
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="kernels to compile (default: all)")
    parser.add_argument("--clang", default="clang-19")
    parser.add_argument("--opt", default="2", choices="0123")
    parser.add_argument("--arch", default="sm_75")
    parser.add_argument("--ptx", default="ptx64", help="PTX version as clang's target feature")
    parser.add_argument("--out", type=pathlib.Path, default=HERE, help="folder for the .ptx files")
    parser.add_argument("--check", action="store_true", help="compare with the files in the folder instead of writing")
    options = parser.parse_args()
    sources = [HERE / (name + ".cu") for name in options.names] or sorted(HERE.glob("*.cu"))
    options.out.mkdir(parents=True, exist_ok=True)
    failed = 0
    for source in sources:
        target = options.out / (source.stem + ".ptx")
        text = compile_kernel(source, options)
        if text is None:
            failed += 1
        elif not options.check:
            target.write_text(text)
        elif not target.exists() or target.read_text() != text:
            failed += 1
            print(f"{target.name} is not what {options.clang} -O{options.opt} makes of {source.name}", file=sys.stderr)
    print(f"{len(sources) - failed} of {len(sources)} kernels {'match' if options.check else 'compiled'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
