// Barriers that count: how many values of a block are odd, whether all are positive, whether any is the wanted one.
#include "prelude.h"
extern "C" __global__ void quorum(const int *in, int wanted, int *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, v = in[i], sum = 0;
  for (int round = 0; round < 3; round++) sum = sum * 10 + __syncthreads_count((v >> round) & 1);
  int all = __syncthreads_and(v > 0), any = __syncthreads_or(v == wanted);
  out[i] = sum * 100 + (all ? 10 : 0) + (any ? 1 : 0);
}
