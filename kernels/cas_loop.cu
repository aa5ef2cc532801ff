// An atomic that CUDA does not have, a saturating add, from compare-and-swap.
#include "prelude.h"
extern "C" __global__ void cas_loop(const unsigned *in, unsigned *total, unsigned limit) {
  unsigned v = in[blockIdx.x * blockDim.x + threadIdx.x], seen = atomicAdd(total, 0u), expected;
  do {
    expected = seen;
    seen = atomicCAS(total, expected, min(expected + v, limit));
  } while (seen != expected);
}
