// Where each thread of a three-dimensional grid of three-dimensional blocks is, and its place in a flat order.
#include "prelude.h"
extern "C" __global__ void grid_3d(unsigned *place) {
  unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned y = blockIdx.y * blockDim.y + threadIdx.y;
  unsigned z = blockIdx.z * blockDim.z + threadIdx.z;
  unsigned flat = (z * (gridDim.y * blockDim.y) + y) * (gridDim.x * blockDim.x) + x;
  unsigned in_block = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  place[flat] = x | y << 8 | z << 16 | in_block << 24;
}
