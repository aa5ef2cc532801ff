// CRC-16/CCITT of fixed-size records by a table of half bytes in constant memory.
#include "prelude.h"
__constant__ const unsigned short table[16] = {0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6, 0x70e7,
                                               0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef};
extern "C" __global__ void lookup(const unsigned char *data, unsigned short *crc, int record) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned short c = 0xffff;
#pragma unroll 1
  for (int k = 0; k < record; ++k) {
    unsigned byte = data[i * record + k];
    c = c << 4 ^ table[c >> 12 ^ byte >> 4];
    c = c << 4 ^ table[c >> 12 ^ (byte & 15)];
  }
  crc[i] = c;
}
