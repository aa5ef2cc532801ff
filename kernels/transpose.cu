// Transposes a matrix by 4 x 4 tiles in shared memory; the tile's rows are padded to five words.
#include "prelude.h"
extern "C" __global__ void transpose(const int *in, int *out, int width, int height) {
  __shared__ int tile[4][5];
  int x = blockIdx.x * 4 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y;
  if (x < width && y < height) tile[threadIdx.y][threadIdx.x] = in[y * width + x];
  __syncthreads();
  x = blockIdx.y * 4 + threadIdx.x;
  y = blockIdx.x * 4 + threadIdx.y;
  if (x < height && y < width) out[y * height + x] = tile[threadIdx.x][threadIdx.y];
}
