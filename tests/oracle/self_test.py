#!/usr/bin/env python3
"""Shows that the oracle rejects wrong kernels and wrong expectations: python3 -m unittest tests/oracle/self_test.py"""

import argparse
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import run  # noqa: E402

SUM = "__global__ void k(const int *in, int *out) { out[threadIdx.x] = in[threadIdx.x] + 1; }"


class Rejections(unittest.TestCase):
    def check(self, source, args, expect=None, grid=1, block=4, **options):
        """Runs one launch; raises run.Failure as the command line would report it."""
        settings = dict(cxx=run.shutil.which("clang++-19") or "clang++", opt="1", sanitize="none", signed_overflow=False, bless=expect is None, repeat=3)
        settings.update(options)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "k.cu").write_text('#include "prelude.h"\nextern "C" ' + source + "\n")
            launch = {"grid": [grid, 1, 1], "block": [block, 1, 1], "args": args, "expect": expect or []}
            case = folder / "k.json"
            case.write_text(run.render({"file": "k.cu", "kernel": "k", "launches": [launch]}))
            run.run_case(case, argparse.Namespace(**settings), folder)

    def rejects(self, message, *args, **options):
        with self.assertRaisesRegex(run.Failure, message):
            self.check(*args, **options)

    def test_right_kernel_passes(self):
        args = ["buf:i32:1,2,3,-1", "zeros:i32:4"]
        expect = [{"buffer": 1, "type": "i32", "values": [2, 3, 4, 0]}]
        for sanitize in run.SANITIZERS:
            self.check(SUM, args, expect, sanitize=sanitize)

    def test_wrong_value(self):
        expect = [{"buffer": 1, "type": "i32", "values": [2, 3, 4, 1]}]
        self.rejects("the oracle gives", SUM, ["buf:i32:1,2,3,-1", "zeros:i32:4"], expect)

    def test_missing_buffer(self):
        self.rejects("the oracle gives", SUM, ["buf:i32:1,2,3,4", "zeros:i32:4"], [{"buffer": 0, "type": "i32", "values": []}])

    def test_element_size(self):
        self.rejects("element size", SUM, ["buf:i16:1,2,3,4", "zeros:i32:4"])

    def test_argument_count(self):
        self.rejects("number of arguments", SUM, ["buf:i32:1,2,3,4"])

    def test_limits(self):
        self.rejects("words of buffers", SUM, ["zeros:i32:64", "zeros:i32:63"])
        self.rejects("threads a block", SUM, ["zeros:i32:4", "zeros:i32:4"], block=33)
        self.rejects("is not a value of u8", SUM, ["buf:u8:256", "zeros:i32:4"])

    def test_race_in_block(self):
        source = "__global__ void k(int *out) { __shared__ int s[4]; int t = threadIdx.x; s[t] = t; out[t] = s[t ^ 1]; }"
        self.rejects("data race", source, ["zeros:i32:4"], sanitize="thread")

    def test_race_between_blocks(self):
        source = "__global__ void k(int *out) { out[0] = 1; }"
        self.rejects("data race", source, ["zeros:i32:1"], grid=2, block=1, sanitize="thread")

    def test_out_of_bounds_global(self):
        self.rejects("heap-buffer-overflow", SUM, ["buf:i32:1,2,3", "zeros:i32:4"], sanitize="address")

    def test_out_of_bounds_shared(self):
        source = "__global__ void k(int *out) { __shared__ int s[3]; s[threadIdx.x] = 1; out[threadIdx.x] = s[threadIdx.x]; }"
        self.rejects("out of bounds|buffer-overflow", source, ["zeros:i32:4"], sanitize="address")

    def test_uninitialised_shared(self):
        source = "__global__ void k(int *out) { __shared__ int s[4]; out[threadIdx.x] = s[threadIdx.x]; }"
        self.rejects("what shared memory held", source, ["zeros:i32:4"])
        self.rejects("uninitialized", source, ["zeros:i32:4"], sanitize="memory")

    def test_uninitialised_local(self):
        source = "__global__ void k(int *out, int n) { int s[4]; s[0] = 1; out[threadIdx.x] = s[n]; }"
        self.rejects("uninitialized", source, ["zeros:i32:4", "i32:2"], sanitize="memory")

    def test_shuffle_from_absent_lane(self):
        source = "__global__ void k(int *out) { out[threadIdx.x] = __shfl_down_sync(~0u, 1, 1); }"
        self.rejects("takes no part", source, ["zeros:i32:3"], block=3)

    def test_mask_without_caller(self):
        source = "__global__ void k(int *out) { out[threadIdx.x] = __ballot_sync(1, 1); }"
        self.rejects("leaves out its caller", source, ["zeros:i32:4"])


if __name__ == "__main__":
    unittest.main()
