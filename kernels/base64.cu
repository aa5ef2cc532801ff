// Base64: a thread turns three bytes into four characters.
#include "prelude.h"
__device__ static char letter(unsigned v) {
  if (v < 26) return 'A' + v;
  if (v < 52) return 'a' + (v - 26);
  if (v < 62) return '0' + (v - 52);
  return v == 62 ? '+' : '/';
}
extern "C" __global__ void base64(const uint8_t *in, int n, uint8_t *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, left = n - 3 * i;
  if (left <= 0) return;
  unsigned bits = in[3 * i] << 16;
  if (left > 1) bits |= in[3 * i + 1] << 8;
  if (left > 2) bits |= in[3 * i + 2];
  out[4 * i] = letter(bits >> 18);
  out[4 * i + 1] = letter(bits >> 12 & 63);
  out[4 * i + 2] = left > 1 ? letter(bits >> 6 & 63) : '=';
  out[4 * i + 3] = left > 2 ? letter(bits & 63) : '=';
}
