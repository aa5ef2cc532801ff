// Levenshtein distance of a pattern to each of several words, one word a thread, one row of bytes in shared memory.
#include "prelude.h"
extern "C" __global__ void edit_distance(const char *pattern, int m, const char *words, int stride, int *distance) {
  __shared__ unsigned char rows[8][8];
  unsigned char *row = rows[threadIdx.x];
  const char *word = words + threadIdx.x * stride;
#pragma unroll 1
  for (int j = 0; j <= m; ++j) row[j] = j;
#pragma unroll 1
  for (int i = 0; i < stride && word[i] != 0; ++i) {
    int diagonal = row[0];
    row[0] = i + 1;
#pragma unroll 1
    for (int j = 1; j <= m; ++j) {
      int substitute = diagonal + (pattern[j - 1] != word[i]);
      diagonal = row[j];
      row[j] = min(substitute, min(diagonal, (int)row[j - 1]) + 1);
    }
  }
  distance[threadIdx.x] = row[m];
}
