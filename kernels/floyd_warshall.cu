// All shortest paths of a small dense graph in shared memory, one thread a pair of vertices.
#include "prelude.h"
extern "C" __global__ void floyd_warshall(int *distance) {
  __shared__ int d[5][5];
  int x = threadIdx.x, y = threadIdx.y, n = blockDim.x;
  d[y][x] = distance[y * n + x];
  __syncthreads();
#pragma unroll 1
  for (int k = 0; k < n; ++k) {
    int through = d[y][k] + d[k][x];
    __syncthreads();
    if (through < d[y][x]) d[y][x] = through;
    __syncthreads();
  }
  distance[y * n + x] = d[y][x];
}
