// Population count, leading zeros, lowest set bit, reversal and Gray code of each word.
#include "prelude.h"
extern "C" __global__ void bit_tricks(const unsigned *in, unsigned *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned v = in[i], gray = v ^ (v >> 1), back = gray;
  for (int s = 1; s < 32; s <<= 1) back ^= back >> s;
  unsigned *o = out + 5 * i;
  o[0] = __popc(v) | __clz((int)v) << 8 | __ffs((int)v) << 16;
  o[1] = __brev(v);
  o[2] = gray;
  o[3] = back;
  o[4] = v & (0u - v);
}
