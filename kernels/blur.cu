// A 3 x 3 binomial blur of a grey image of bytes; the edge repeats outwards.
#include "prelude.h"
extern "C" __global__ void blur(const unsigned char *in, unsigned char *out, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  int left = max(x - 1, 0), right = min(x + 1, width - 1), sum = 8;
#pragma unroll 1
  for (int dy = -1; dy <= 1; ++dy) {
    const unsigned char *row = in + min(max(y + dy, 0), height - 1) * width;
    int line = row[left] + 2 * row[x] + row[right];
    sum += dy == 0 ? 2 * line : line;
  }
  out[y * width + x] = sum >> 4;
}
