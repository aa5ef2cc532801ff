// Ballot, any and all of a threshold test over each warp.
#include "prelude.h"
extern "C" __global__ void warp_vote(const int *in, int threshold, unsigned *ballot, int *any_all) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool above = in[i] > threshold;
  unsigned bits = __ballot_sync(0xffffffffu, above);
  int any = __any_sync(0xffffffffu, above), all = __all_sync(0xffffffffu, above);
  if (threadIdx.x % warpSize == 0) ballot[i / warpSize] = bits;
  any_all[i] = (any ? 1 : 0) | (all ? 2 : 0);
}
