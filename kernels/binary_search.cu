// The first place in a sorted list whose value is not below each key.
#include "prelude.h"
extern "C" __global__ void binary_search(const int *sorted, int n, const int *key, int *place, int keys) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= keys) return;
  int low = 0, high = n;
  while (low < high) {
    int middle = (low + high) / 2;
    if (sorted[middle] < key[i])
      low = middle + 1;
    else
      high = middle;
  }
  place[i] = low;
}
