// The product of two square matrices of any size, a block for each row and a thread for each column.
#include "prelude.h"
extern "C" __global__ void matmul(const int *a, const int *b, int *c, int n) {
  int row = blockIdx.x, col = threadIdx.x, sum = 0;
#pragma unroll 1
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + col];
  c[row * n + col] = sum;
}
