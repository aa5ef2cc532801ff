// Escape times of the Mandelbrot set in fixed point with eight fraction bits.
#include "prelude.h"
extern "C" __global__ void mandelbrot(int left, int top, int step, int limit, unsigned char *escape) {
  int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
  int cx = left + px * step, cy = top + py * step, x = 0, y = 0, k = 0;
#pragma unroll 1
  while (k < limit) {
    int xx = x * x >> 8, yy = y * y >> 8;
    if (xx + yy > 4 << 8) break;
    y = (x * y >> 7) + cy;
    x = xx - yy + cx;
    ++k;
  }
  escape[py * gridDim.x * blockDim.x + px] = k;
}
