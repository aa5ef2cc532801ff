// Every place where a pattern occurs in a text, one place a thread, and the first one by atomicMin.
#include "prelude.h"
extern "C" __global__ void string_search(const char *text, int n, const char *pattern, int m, unsigned char *hit, int *first) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > n - m) return;
  int k = 0;
#pragma unroll 1
  while (k < m) {
    if (text[i + k] != pattern[k]) break;
    ++k;
  }
  hit[i] = k == m;
  if (k == m) atomicMin(first, i);
}
