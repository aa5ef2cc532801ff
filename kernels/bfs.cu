// Breadth-first distances from vertex 0, level by level; edges in compressed rows, one thread a vertex.
#include "prelude.h"
extern "C" __global__ void bfs(const unsigned char *row, const unsigned char *edge, int vertices, int *distance) {
  __shared__ int level_of[32];
  __shared__ int changed;
  int t = threadIdx.x;
  level_of[t] = t == 0 ? 0 : -1;
  if (t == 0) changed = 1;
  __syncthreads();
#pragma unroll 1
  for (int level = 0; changed; ++level) {
    bool frontier = t < vertices && level_of[t] == level;
    __syncthreads();
    if (t == 0) changed = 0;
    __syncthreads();
    if (frontier) {
#pragma unroll 1
      for (int e = row[t]; e < row[t + 1]; ++e)
        if (atomicCAS(&level_of[edge[e]], -1, level + 1) == -1) atomicExch(&changed, 1);
    }
    __syncthreads();
  }
  if (t < vertices) distance[t] = level_of[t];
}
