#!/usr/bin/env python3
"""The same tasks on qwenGPU and on programs that Tracr compiles into a transformer, one core each, in turns.

    python3 examples/compare/beside_tracr.py --program target/release/qwengpu

Tracr comes from PyPI (package tracr-pypi) into target/compare, which this script makes. Its compiler turns one RASP
program into the weights of one transformer; a forward pass then gives the results of all positions. qwenGPU's weights
hold no program: the kernel comes with the prompt, and every step is a spoken token. So a task is compared by the
seconds until its result is there, and by the tokens that go through each model in that time; they are not the same
kind of token. The exit status is 1 if a result is wrong.
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ["tracr-pypi==1.0.0", "jax==0.10.2", "dm-haiku==0.0.17"]
LENGTH = 16


def enter(folder):
    """Makes a virtual environment with Tracr, and goes on in it."""
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES], check=True)
        (folder / "ready").touch()
    # One core for both: the processes that this one starts inherit it.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    environment = dict(os.environ, JAX_PLATFORMS="cpu", XLA_FLAGS=flags, RAYON_NUM_THREADS="1")
    os.execve(python, [str(python), *sys.argv, "--inside"], environment)


class Tracr:
    """A RASP program as a transformer; its forward pass is compiled by XLA before anything is timed."""

    def __init__(self, name):
        import jax
        from tracr.compiler import compiling, lib
        from tracr.rasp import rasp

        programs = {
            "reverse": lambda: lib.make_reverse(rasp.tokens),
            "sort": lambda: lib.make_sort(rasp.tokens, rasp.tokens, max_seq_len=LENGTH + 1, min_key=0),
        }
        self.model = compiling.compile_rasp_to_model(
            programs[name](), vocab=set(range(10)), max_seq_len=LENGTH + 1, compiler_bos="bos")
        forward = jax.jit(lambda tokens: self.model.forward(self.model.params, tokens).unembedded_output)
        self.forward = lambda tokens: forward(tokens).block_until_ready()

    def run(self, values):
        """The result, the seconds of a forward pass, and its tokens."""
        import jax.numpy as jnp

        tokens = jnp.array([self.model.input_encoder.encode(["bos", *values])])
        self.forward(tokens)
        begun = time.perf_counter()
        output = self.forward(tokens)
        seconds = time.perf_counter() - begun
        decoded = self.model.output_encoder.decode(output[0].tolist()) if self.model.output_encoder else output[0].tolist()
        return [int(round(value)) for value in decoded[1:]], seconds, len(values) + 1


class QwenGpu:
    """A kernel of the suite on the sparse engine; what comes before the first spoken token does not count."""

    KERNELS = {"reverse": ("reverse.ptx", [f"i32:{LENGTH}"]), "sort": ("bitonic_sort.ptx", [])}

    def __init__(self, name, program):
        self.file, self.more = self.KERNELS[name]
        self.program = program

    def run(self, values):
        arguments = ["buf:i32:" + ",".join(map(str, values)), *self.more]
        command = [self.program, "run", ROOT / "kernels" / self.file, "--grid", "1", "--block", str(LENGTH), "--json"]
        done = subprocess.run([*command, *(f"--arg={argument}" for argument in arguments)], check=True,
                              capture_output=True, text=True)
        result = json.loads(done.stdout)
        return result["buffers"][0]["values"], result["seconds"], result["tokens"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, type=pathlib.Path, help="the qwengpu program, built for release")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "target" / "compare")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.inside:
        enter(options.folder)
    values = [random.Random(1).randrange(10) for _ in range(LENGTH)]
    wrong = False
    print(f"{LENGTH} digits, one core, least of {options.rounds} rounds in turns")
    print("task     engine    layers/width  tokens    seconds    tokens/s")
    for task, expected in [("reverse", values[::-1]), ("sort", sorted(values))]:
        tracr = Tracr(task)
        config, width = tracr.model.model_config, len(tracr.model.residual_labels)
        contestants = {"tracr": (tracr, f"{config.num_layers}/{width}"),
                       "qwenGPU": (QwenGpu(task, options.program), "16/2048")}
        least = {}
        for _ in range(options.rounds):
            for name, (engine, _) in contestants.items():
                got, seconds, tokens = engine.run(values)
                if got != expected:
                    print(f"{task} on {name}: {got}, expected {expected}", file=sys.stderr)
                    wrong = True
                least[name] = min(least.get(name, (seconds, tokens)), (seconds, tokens))
        for name, (_, size) in contestants.items():
            seconds, tokens = least[name]
            print(f"{task:8} {name:9} {size:>12}  {tokens:>6}  {seconds:>9.6f}  {tokens / seconds:>10.0f}")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
