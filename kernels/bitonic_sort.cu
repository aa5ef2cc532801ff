// Sorts one block's keys by a bitonic network; the block has a power of two of threads.
#include "prelude.h"
extern "C" __global__ void bitonic_sort(int *data) {
  __shared__ int key[32];
  unsigned t = threadIdx.x;
  key[t] = data[blockIdx.x * blockDim.x + t];
  __syncthreads();
  for (unsigned size = 2; size <= blockDim.x; size <<= 1) {
    for (unsigned stride = size >> 1; stride > 0; stride >>= 1) {
      unsigned other = t ^ stride;
      if (other > t) {
        int a = key[t], b = key[other];
        bool ascending = (t & size) == 0;
        if ((a > b) == ascending) {
          key[t] = b;
          key[other] = a;
        }
      }
      __syncthreads();
    }
  }
  data[blockIdx.x * blockDim.x + t] = key[t];
}
