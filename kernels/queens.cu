// Counts the solutions of the n queens problem by bit masks; each thread fixes the first queen and keeps its own stack.
#include "prelude.h"
extern "C" __global__ void queens(int n, int *solutions) {
  unsigned char columns[8], left[8], right[8], open[8];
  int count = 0, row = 1;
  unsigned full = (1u << n) - 1, first = 1u << threadIdx.x;
  columns[1] = first;
  left[1] = first << 1 & full;
  right[1] = first >> 1;
  open[1] = full & ~(columns[1] | left[1] | right[1]);
#pragma unroll 1
  while (row > 0) {
    unsigned free = open[row];
    if (free == 0) {
      --row;
      continue;
    }
    unsigned queen = free & (0u - free);
    open[row] = free ^ queen;
    if (row == n - 1) {
      ++count;
      continue;
    }
    unsigned c = columns[row] | queen, l = (left[row] | queen) << 1 & full, r = (right[row] | queen) >> 1;
    ++row;
    columns[row] = c;
    left[row] = l;
    right[row] = r;
    open[row] = full & ~(c | l | r);
  }
  atomicAdd(solutions, count);
}
