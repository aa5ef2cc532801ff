// Every 32-bit atomic on one word each; the results do not depend on the order of the threads.
#include "prelude.h"
extern "C" __global__ void atomics(const unsigned *in, unsigned *u, int *s, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned v = in[i];
  atomicAdd(&u[0], v);
  atomicSub(&u[1], v);
  atomicMin(&u[2], v);
  atomicMax(&u[3], v);
  atomicAnd(&u[4], v);
  atomicOr(&u[5], v);
  atomicXor(&u[6], v);
  atomicInc(&u[7], 4);
  atomicDec(&u[8], 4);
  atomicExch(&u[9], 77u);
  atomicCAS(&u[10], 0u, 123u);
  atomicMin(&s[0], (int)v);
  atomicMax(&s[1], (int)v);
}
