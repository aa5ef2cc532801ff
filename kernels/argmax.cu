// The largest value of each block and the first place it is found, by a tree in shared memory.
#include "prelude.h"
extern "C" __global__ void argmax(const int *in, int *best, int *where) {
  __shared__ int value[16], place[16];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  value[t] = in[i];
  place[t] = i;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s /= 2) {
    if (t < s && (value[t + s] > value[t] || (value[t + s] == value[t] && place[t + s] < place[t]))) {
      value[t] = value[t + s];
      place[t] = place[t + s];
    }
    __syncthreads();
  }
  if (t == 0) {
    best[blockIdx.x] = value[0];
    where[blockIdx.x] = place[0];
  }
}
