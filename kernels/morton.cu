// Morton codes: interleaves the bits of x and y, then takes the code apart again.
#include "prelude.h"
static __device__ __forceinline__ unsigned spread(unsigned v) {
  v = (v | v << 8) & 0x00ff00ffu;
  v = (v | v << 4) & 0x0f0f0f0fu;
  v = (v | v << 2) & 0x33333333u;
  return (v | v << 1) & 0x55555555u;
}
static __device__ __forceinline__ unsigned gather(unsigned v) {
  v &= 0x55555555u;
  v = (v | v >> 1) & 0x33333333u;
  v = (v | v >> 2) & 0x0f0f0f0fu;
  v = (v | v >> 4) & 0x00ff00ffu;
  return (v | v >> 8) & 0x0000ffffu;
}
extern "C" __global__ void morton(const unsigned short *x, const unsigned short *y, unsigned *code, unsigned short *back) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned c = spread(x[i]) | spread(y[i]) << 1;
  code[i] = c;
  back[2 * i] = gather(c);
  back[2 * i + 1] = gather(c >> 1);
}
