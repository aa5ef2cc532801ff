// A convolution with weights in constant memory; a block keeps its part of the input and the halo in shared memory.
#include "prelude.h"
static constexpr int RADIUS = 2;
__constant__ int weights[2 * RADIUS + 1] = {1, -4, 6, -4, 1};
extern "C" __global__ void convolve(const int *in, int *out, int n) {
  __shared__ int tile[32 + 2 * RADIUS];
  int first = blockIdx.x * blockDim.x - RADIUS;
  for (int k = threadIdx.x; k < (int)blockDim.x + 2 * RADIUS; k += blockDim.x) {
    int at = first + k;
    tile[k] = at < 0 || at >= n ? 0 : in[at];
  }
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
  if (i >= n) return;
  for (int k = 0; k <= 2 * RADIUS; k++) sum += weights[k] * tile[threadIdx.x + k];
  out[i] = sum;
}
