// Nested loops whose bounds, continues and breaks differ in every lane.
#include "prelude.h"
extern "C" __global__ void divergence(const int *seed, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int s = seed[i], acc = 0;
#pragma unroll 1
  for (int a = 0; a < s; ++a) {
    if (a % 4 == 2) continue;
#pragma unroll 1
    for (int b = a; b >= 0; --b) {
      if ((a ^ b) == 5) break;
      if (b & 1)
        acc += a * b;
      else if (acc > 20)
        acc -= 7;
      else
        ++acc;
    }
    if (acc > 60) {
      acc = -acc;
      break;
    }
  }
  out[i] = acc;
}
