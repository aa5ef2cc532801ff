// Barriers that count: how many threads of a block, whether any and whether all, hold a value above a threshold.
#include "prelude.h"
extern "C" __global__ void block_vote(const int *in, int threshold, int *out) {
  int above = in[blockIdx.x * blockDim.x + threadIdx.x] > threshold;
  int count = __syncthreads_count(above), any = __syncthreads_or(above), all = __syncthreads_and(above);
  if (threadIdx.x == 0) {
    out[3 * blockIdx.x] = count;
    out[3 * blockIdx.x + 1] = any != 0;
    out[3 * blockIdx.x + 2] = all != 0;
  }
}
