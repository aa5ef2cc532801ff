// A function that calls itself twice: a sum over all ways up a staircase.
#include "prelude.h"
__device__ __noinline__ int ways(int stairs) {
  return stairs < 2 ? 1 : ways(stairs - 1) + stairs * ways(stairs - 2);
}
extern "C" __global__ void recursion(const int *in, int *out) {
  out[threadIdx.x] = ways(in[threadIdx.x]);
}
