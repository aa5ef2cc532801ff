// A polynomial over the integers modulo 251 by Horner's rule; division by a constant becomes a multiplication.
#include "prelude.h"
extern "C" __global__ void horner(const unsigned char *coefficient, int degree, const unsigned *x, unsigned *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned at = x[i] % 251, acc = 0;
#pragma unroll 1
  for (int k = degree; k >= 0; --k) acc = (acc * at + coefficient[k]) % 251;
  y[i] = acc;
}
