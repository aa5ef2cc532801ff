// Least and greatest value, signed and unsigned: butterflies in each warp, atomics across warps and blocks.
#include "prelude.h"
extern "C" __global__ void min_max(const int *in, int *range, unsigned *unsigned_range) {
  int v = in[blockIdx.x * blockDim.x + threadIdx.x];
  int low = v, high = v;
  unsigned ulow = v, uhigh = v;
  for (int d = 1; d < warpSize; d <<= 1) {
    low = min(low, __shfl_xor_sync(0xffffffffu, low, d));
    high = max(high, __shfl_xor_sync(0xffffffffu, high, d));
    ulow = min(ulow, __shfl_xor_sync(0xffffffffu, ulow, d));
    uhigh = max(uhigh, __shfl_xor_sync(0xffffffffu, uhigh, d));
  }
  if (threadIdx.x % warpSize == 0) {
    atomicMin(&range[0], low);
    atomicMax(&range[1], high);
    atomicMin(&unsigned_range[0], ulow);
    atomicMax(&unsigned_range[1], uhigh);
  }
}
