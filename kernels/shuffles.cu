// Every shuffle, over the whole warp and over pairs of lanes; also with an amount that differs by lane.
#include "prelude.h"
extern "C" __global__ void shuffles(const int *in, int *out) {
  const unsigned all = 0xffffffffu;
  int t = threadIdx.x, lane = t % warpSize, v = in[t];
  int *o = out + 8 * t;
  o[0] = __shfl_sync(all, v, 2);
  o[1] = __shfl_sync(all, v, (lane + 1) % warpSize);
  o[2] = __shfl_sync(all, v, 1, 2);
  o[3] = __shfl_up_sync(all, v, 1);
  o[4] = __shfl_up_sync(all, v, 1, 2);
  o[5] = __shfl_down_sync(all, v, 2);
  o[6] = __shfl_down_sync(all, v, 1, 2);
  o[7] = __shfl_xor_sync(all, v, 3) - __shfl_xor_sync(all, v, 1, warpSize);
}
