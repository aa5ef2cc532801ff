// Saturating sum and wrapping product of 16-bit samples.
#include "prelude.h"
extern "C" __global__ void saturate(const short *a, const short *b, short *sum, short *product, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    int s = a[i] + b[i];
    sum[i] = min(max(s, -32768), 32767);
    product[i] = (short)(a[i] * b[i]);
  }
}
