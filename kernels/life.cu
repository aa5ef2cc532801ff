// One generation of the game of life on a torus of bytes; width and height are powers of two.
#include "prelude.h"
extern "C" __global__ void life(const unsigned char *now, unsigned char *next, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  int around = 0;
#pragma unroll 1
  for (int dy = -1; dy <= 1; ++dy) {
    const unsigned char *row = now + ((y + dy) & (height - 1)) * width;
    around += row[(x - 1) & (width - 1)] + row[x] + row[(x + 1) & (width - 1)];
  }
  int alive = now[y * width + x];
  around -= alive;
  next[y * width + x] = around == 3 || (alive && around == 2);
}
