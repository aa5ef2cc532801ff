// The 32-bit FNV-1a hash of each zero-terminated string of a packed text.
#include "prelude.h"
extern "C" __global__ void fnv1a(const char *text, const int *start, unsigned *hash, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned h = 2166136261u;
#pragma unroll 1
  for (int at = start[i]; text[at] != 0; ++at) h = (h ^ (unsigned char)text[at]) * 16777619u;
  hash[i] = h;
}
