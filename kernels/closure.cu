// The transitive closure of a graph with up to 32 nodes, a row of bits a thread, by Warshall's algorithm.
#include "prelude.h"
extern "C" __global__ void closure(unsigned *reach, int nodes) {
  __shared__ unsigned rows[32];
  int i = threadIdx.x;
  rows[i] = reach[i];
  __syncthreads();
  for (int via = 0; via < nodes; via++) {
    unsigned mine = rows[i], theirs = rows[via];
    __syncthreads();
    if (mine >> via & 1) rows[i] = mine | theirs;
    __syncthreads();
  }
  reach[i] = rows[i];
}
