// 0/1 knapsack: best value for each capacity, one capacity a thread, two shared rows in turn.
#include "prelude.h"
extern "C" __global__ void knapsack(const int *weight, const int *value, int items, int *best) {
  __shared__ int row[2][16];
  int c = threadIdx.x, now = 0;
  row[0][c] = 0;
  __syncthreads();
  for (int k = 0; k < items; ++k) {
    int skip = row[now][c], w = weight[k];
    row[now ^ 1][c] = c >= w ? max(skip, row[now][c - w] + value[k]) : skip;
    now ^= 1;
    __syncthreads();
  }
  best[c] = row[now][c];
}
