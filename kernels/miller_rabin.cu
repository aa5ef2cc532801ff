// Primes below 65536 by the Miller-Rabin test; the bases 2 and 3 decide them all.
#include "prelude.h"
__device__ static unsigned multiply(unsigned a, unsigned b, unsigned m) { return a * b % m; }
__device__ static unsigned power(unsigned base, unsigned exponent, unsigned m) {
  unsigned result = 1;
  for (base %= m; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result = multiply(result, base, m);
    base = multiply(base, base, m);
  }
  return result;
}
__device__ static bool passes(unsigned n, unsigned base) {
  if (base % n == 0) return true;
  unsigned odd = n - 1;
  int twos = 0;
  while ((odd & 1) == 0) {
    odd >>= 1;
    twos++;
  }
  unsigned x = power(base, odd, n);
  if (x == 1 || x == n - 1) return true;
  for (int i = 1; i < twos; i++) {
    x = multiply(x, x, n);
    if (x == n - 1) return true;
  }
  return false;
}
extern "C" __global__ void miller_rabin(const unsigned *in, int *prime, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned v = in[i];
  bool is = v == 2;
  if (v > 2 && (v & 1)) {
    is = true;
#pragma unroll 1
    for (int round = 0; is && round < 2; round++) is = passes(v, 2 + round);
  }
  prime[i] = is;
}
