// Odd-even transposition sort of n keys, one thread a pair, as many rounds as keys.
#include "prelude.h"
extern "C" __global__ void odd_even_sort(int *data, int n) {
  int t = threadIdx.x;
  for (int round = 0; round < n; ++round) {
    int i = 2 * t + (round & 1);
    if (i + 1 < n && data[i] > data[i + 1]) {
      int swapped = data[i];
      data[i] = data[i + 1];
      data[i + 1] = swapped;
    }
    __syncthreads();
  }
}
