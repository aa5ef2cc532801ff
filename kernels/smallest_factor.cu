// The smallest prime factor of each number by trial division, and how many numbers are prime.
#include "prelude.h"
extern "C" __global__ void smallest_factor(const unsigned *in, unsigned *factor, int *primes) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = in[i], d = 2;
#pragma unroll 1
  while (d * d <= v) {
    if (v % d == 0) break;
    d += d == 2 ? 1 : 2;
  }
  if (d * d > v) d = v;
  factor[i] = d;
  if (d == v && v >= 2) atomicAdd(primes, 1);
}
