// Inclusive prefix sums: shuffles within a warp, shared memory between warps.
#include "prelude.h"
extern "C" __global__ void block_scan(int *data) {
  __shared__ int total[8];
  int t = threadIdx.x, lane = t % warpSize, warp = t / warpSize;
  int v = data[blockIdx.x * blockDim.x + t];
  for (int d = 1; d < warpSize; d *= 2) {
    int left = __shfl_up_sync(0xffffffffu, v, d);
    if (lane >= d) v += left;
  }
  if (lane == warpSize - 1) total[warp] = v;
  __syncthreads();
#pragma unroll 1
  for (int w = 0; w < warp; ++w) v += total[w];
  data[blockIdx.x * blockDim.x + t] = v;
}
