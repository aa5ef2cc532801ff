#!/usr/bin/env python3
"""Compiles kernels/*.cu to PTX with clang or NVRTC; needs no CUDA SDK.

The .ptx files beside the sources come from the defaults. Another compiler or level gives another dialect of PTX:
    build.py --clang clang-14 --opt 0 --out FOLDER
    build.py --nvrtc libnvrtc.so.12 --opt 0 --out FOLDER
NVRTC is in the PyPI packages nvidia-cuda-nvrtc and nvidia-cuda-nvrtc-cu12; it knows two levels: 0 and everything above.
"""

import argparse
import ctypes
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


class Nvrtc:
    """A loaded NVRTC library."""

    def __init__(self, path):
        self.library = ctypes.CDLL(str(path))
        self.library.nvrtcGetErrorString.restype = ctypes.c_char_p

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        return None if status == 0 else self.library.nvrtcGetErrorString(status).decode()

    def text(self, program, what):
        size = ctypes.c_size_t()
        self.call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self.call(f"nvrtcGet{what}", program, buffer)
        return buffer.value.decode()

    def compile(self, source, options):
        """The PTX, or `None` and the compiler's messages."""
        arch = options.arch.replace("sm_", "compute_")
        arguments = [f"--gpu-architecture={arch}", f"--include-path={HERE}", "--std=c++17"]
        if options.opt == "0":
            arguments.append("--device-debug")
        arguments = (ctypes.c_char_p * len(arguments))(*(argument.encode() for argument in arguments))
        program = ctypes.c_void_p()
        error = self.call("nvrtcCreateProgram", ctypes.byref(program), source.read_bytes(), source.name.encode(), 0,
                          None, None)
        if error is None:
            error = self.call("nvrtcCompileProgram", program, len(arguments), arguments)
            error = error and f"{error}\n{self.text(program, 'ProgramLog')}"
        result = (self.text(program, "PTX"), None) if error is None else (None, error)
        self.call("nvrtcDestroyProgram", ctypes.byref(program))
        return result


def compile_kernel(source, options):
    if options.nvrtc:
        text, error = options.nvrtc.compile(source, options)
        if error:
            print(f"{source.name}:\n{error}", file=sys.stderr)
        return text
    command = [options.clang, "-x", "cuda", "--cuda-device-only", "-S", "-nocudainc", "-nocudalib", "-Wall", "-Werror",
               "-Wno-unknown-cuda-version", f"--cuda-gpu-arch={options.arch}", "-Xclang", "-target-feature", "-Xclang",
               f"+{options.ptx}", f"-O{options.opt}", f"-I{HERE}", source.name, "-o", "-"]
    done = subprocess.run(command, cwd=source.parent, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{source.name}:\n{done.stderr}", file=sys.stderr)
        return None
    return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="kernels to compile (default: all)")
    parser.add_argument("--clang", default="clang-19")
    parser.add_argument("--nvrtc", metavar="LIBRARY", type=Nvrtc, help="an NVRTC library to use in place of clang")
    parser.add_argument("--opt", default="2", choices="0123")
    parser.add_argument("--arch", default="sm_75")
    parser.add_argument("--ptx", default="ptx64", help="PTX version as clang's target feature")
    parser.add_argument("--sources", type=pathlib.Path, default=HERE, help="folder with the .cu files")
    parser.add_argument("--out", type=pathlib.Path, help="folder for the .ptx files (default: beside the sources)")
    parser.add_argument("--check", action="store_true", help="compare with the files in the folder instead of writing")
    options = parser.parse_args()
    options.out = options.out or options.sources
    sources = [options.sources / (name + ".cu") for name in options.names] or sorted(options.sources.glob("*.cu"))
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
            print(f"{target.name} is not what {'NVRTC' if options.nvrtc else options.clang} -O{options.opt} makes of {source.name}", file=sys.stderr)
    print(f"{len(sources) - failed} of {len(sources)} kernels {'match' if options.check else 'compiled'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
