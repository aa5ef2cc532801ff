// Counts random points of a square that fall in its quarter circle, each thread with its own linear congruential generator.
#include "prelude.h"
extern "C" __global__ void monte_carlo(unsigned seed, int points, unsigned *state, int *inside) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x, r = seed + i * 0x9e3779b9u;
  int hits = 0;
#pragma unroll 1
  for (int k = 0; k < points; ++k) {
    r = r * 1664525u + 1013904223u;
    unsigned x = r >> 24, y = r >> 16 & 255;
    if (x * x + y * y < 65536u) ++hits;
  }
  state[i] = r;
  atomicAdd(inside, hits);
}
