// Run-length encoding: a thread a symbol marks the heads of runs, scans the marks, and writes its run.
#include "prelude.h"
extern "C" __global__ void run_length(const unsigned char *in, int n, unsigned char *symbol, unsigned char *length, int *runs) {
  __shared__ int rank[32];
  int t = threadIdx.x;
  bool head = t < n && (t == 0 || in[t] != in[t - 1]);
  rank[t] = head;
  __syncthreads();
#pragma unroll 1
  for (int d = 1; d < (int)blockDim.x; d <<= 1) {
    int left = t >= d ? rank[t - d] : 0;
    __syncthreads();
    rank[t] += left;
    __syncthreads();
  }
  if (head) {
    int end = t + 1;
#pragma unroll 1
    while (end < n && in[end] == in[t]) ++end;
    symbol[rank[t] - 1] = in[t];
    length[rank[t] - 1] = end - t;
  }
  if (t == (int)blockDim.x - 1) *runs = rank[t];
}
