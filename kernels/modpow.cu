// Powers modulo a small number by repeated squaring; the modulus is below 2^16, so products fit a word.
#include "prelude.h"
extern "C" __global__ void modpow(const unsigned *base, const unsigned *exponent, unsigned modulus, unsigned *power) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned b = base[i] % modulus, p = 1 % modulus;
#pragma unroll 1
  for (unsigned e = exponent[i]; e != 0; e >>= 1) {
    if (e & 1) p = p * b % modulus;
    b = b * b % modulus;
  }
  power[i] = p;
}
