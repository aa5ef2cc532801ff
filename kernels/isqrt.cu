// The integer square root, a bit at a time from the top.
#include "prelude.h"
extern "C" __global__ void isqrt(const unsigned *in, unsigned *root) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = in[i], r = 0, bit = 1u << 30;
  while (bit > v) bit >>= 2;
#pragma unroll 1
  for (; bit != 0; bit >>= 2) {
    if (v >= r + bit) {
      v -= r + bit;
      r = (r >> 1) + bit;
    } else {
      r >>= 1;
    }
  }
  root[i] = r;
}
