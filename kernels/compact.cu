// Keeps the positive values, in order within a warp: a vote gives each its place, one atomic a warp the base.
// Warps may land in any order, so each warp's values go to its own row and the atomic counts the total.
#include "prelude.h"
extern "C" __global__ void compact(const int *in, int *rows, int *count, int *total, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % warpSize, warp = i / warpSize;
  int v = i < n ? in[i] : 0;
  unsigned kept = __ballot_sync(0xffffffffu, v > 0);
  if (v > 0) rows[warp * warpSize + __popc(kept & ((1u << lane) - 1))] = v;
  if (lane == 0) {
    count[warp] = __popc(kept);
    atomicAdd(total, __popc(kept));
  }
}
