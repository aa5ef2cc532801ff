// The n-th Fibonacci number modulo 2^32 by fast doubling, from the top bit of n down.
#include "prelude.h"
extern "C" __global__ void fibonacci(const unsigned *n, unsigned *f) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned k = n[i], a = 0, b = 1;
#pragma unroll 1
  for (int bit = 31 - __clz((int)k); bit >= 0; --bit) {
    unsigned even = a * (2 * b - a), odd = a * a + b * b;
    bool one = k >> bit & 1;
    a = one ? odd : even;
    b = one ? even + odd : odd;
  }
  f[i] = a;
}
