// A dot product of 32-bit values in a 64-bit accumulator, and the blocks' sum by a 64-bit atomic.
#include "prelude.h"
extern "C" __global__ void dot64(const int *a, const int *b, long long *partial, unsigned long long *sum, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  long long acc = 0;
#pragma unroll 1
  for (int k = i; k < n; k += gridDim.x * blockDim.x) acc += (long long)a[k] * b[k];
  partial[i] = acc;
  atomicAdd(sum, (unsigned long long)acc);
}
