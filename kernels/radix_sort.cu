// Least-significant-digit radix sort of one block's keys, a bit a round: votes give the places within a warp.
#include "prelude.h"
extern "C" __global__ void radix_sort(unsigned *data, int bits) {
  __shared__ unsigned key[32];
  __shared__ int zeros_of[8];
  int t = threadIdx.x, lane = t % warpSize, warp = t / warpSize, warps = blockDim.x / warpSize;
  unsigned v = data[t];
#pragma unroll 1
  for (int bit = 0; bit < bits; ++bit) {
    bool one = v >> bit & 1;
    unsigned zero_lanes = __ballot_sync(0xffffffffu, !one);
    if (lane == 0) zeros_of[warp] = __popc(zero_lanes);
    __syncthreads();
    int before = __popc(zero_lanes & ((1u << lane) - 1)), zeros = 0;
#pragma unroll 1
    for (int w = 0; w < warps; ++w) {
      if (w < warp) before += zeros_of[w];
      zeros += zeros_of[w];
    }
    key[one ? zeros + t - before : before] = v;
    __syncthreads();
    v = key[t];
  }
  data[t] = v;
}
