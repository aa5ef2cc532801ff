// SipHash-1-2 of one 64-bit word a thread: 64-bit additions, rotations and exclusive ors.
#include "prelude.h"
__device__ static uint64_t rotate(uint64_t x, int by) { return (x << by) | (x >> (64 - by)); }
struct State {
  uint64_t a, b, c, d;
};
__device__ static void mix(State &s) {
  s.a += s.b; s.b = rotate(s.b, 13) ^ s.a; s.a = rotate(s.a, 32);
  s.c += s.d; s.d = rotate(s.d, 16) ^ s.c;
  s.a += s.d; s.d = rotate(s.d, 21) ^ s.a;
  s.c += s.b; s.b = rotate(s.b, 17) ^ s.c; s.c = rotate(s.c, 32);
}
extern "C" __global__ void siphash(const uint64_t *in, uint64_t key0, uint64_t key1, uint64_t *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  State s = {key0 ^ 0x736f6d6570736575ull, key1 ^ 0x646f72616e646f6dull, key0 ^ 0x6c7967656e657261ull,
             key1 ^ 0x7465646279746573ull};
  uint64_t words[2] = {in[i], 8ull << 56};
  for (int word = 0; word < 2; word++) {
    s.d ^= words[word];
    mix(s);
    s.a ^= words[word];
  }
  s.c ^= 0xff;
  mix(s);
  mix(s);
  out[i] = s.a ^ s.b ^ s.c ^ s.d;
}
