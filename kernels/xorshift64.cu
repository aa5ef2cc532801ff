// Marsaglia's 64-bit xorshift generator with a multiplied output, a few steps a thread.
#include "prelude.h"
extern "C" __global__ void xorshift64(const unsigned long long *seed, unsigned long long *out, int steps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long x = seed[i];
#pragma unroll 1
  for (int k = 0; k < steps; ++k) {
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
  }
  out[i] = x * 2685821657736338717ull;
}
