// A row of Pascal's triangle by one warp: every round adds the left neighbour's value, without a block barrier.
#include "prelude.h"
extern "C" __global__ void pascal(int row, unsigned *binomial) {
  __shared__ unsigned value[4];
  int t = threadIdx.x;
  value[t] = t == 0;
  __syncwarp();
#pragma unroll 1
  for (int k = 0; k < row; ++k) {
    unsigned left = t > 0 ? value[t - 1] : 0;
    __syncwarp();
    value[t] += left;
    __syncwarp();
  }
  binomial[t] = value[t];
}
