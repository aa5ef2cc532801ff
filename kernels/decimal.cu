// Signed numbers as decimal text, right-aligned in twelve characters.
#include "prelude.h"
extern "C" __global__ void decimal(const int *in, char *text) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = in[i] < 0 ? 0u - (unsigned)in[i] : (unsigned)in[i];
  char *field = text + 12 * i;
  int at = 12;
#pragma unroll 1
  do {
    field[--at] = '0' + v % 10;
    v /= 10;
  } while (v != 0);
  if (in[i] < 0) field[--at] = '-';
  while (at > 0) field[--at] = ' ';
}
