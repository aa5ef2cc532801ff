// A dot product: a grid-stride loop, a shuffle tree in each warp, one atomic a warp.
#include "prelude.h"
extern "C" __global__ void dot_product(const int *a, const int *b, int *sum, int n) {
  int acc = 0;
#pragma unroll 1
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) acc += a[i] * b[i];
  for (int d = warpSize / 2; d > 0; d >>= 1) acc += __shfl_xor_sync(0xffffffffu, acc, d);
  if (threadIdx.x % warpSize == 0) atomicAdd(sum, acc);
}
