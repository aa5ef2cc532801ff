// CRC-32 (reflected, polynomial 0xedb88320) of each fixed-size record, a bit at a time.
#include "prelude.h"
extern "C" __global__ void crc32(const unsigned char *data, unsigned *crc, int record, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned c = 0xffffffffu;
#pragma unroll 1
  for (int k = 0; k < record; ++k) {
    c ^= data[i * record + k];
#pragma unroll 1
    for (int bit = 0; bit < 8; ++bit) c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
  }
  crc[i] = ~c;
}
