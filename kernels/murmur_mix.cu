// MurmurHash3's 32-bit body and finalizer over one word a thread, with a seed.
#include "prelude.h"
static __device__ __forceinline__ unsigned rotate_left(unsigned v, int n) { return v << n | v >> (32 - n); }
extern "C" __global__ void murmur_mix(unsigned seed, const unsigned *key, unsigned *hash) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned k = rotate_left(key[i] * 0xcc9e2d51u, 15) * 0x1b873593u;
  unsigned h = rotate_left(seed ^ k, 13) * 5 + 0xe6546b64u;
  h ^= 4;
  h ^= h >> 16;
  h *= 0x85ebca6bu;
  h ^= h >> 13;
  h *= 0xc2b2ae35u;
  hash[i] = h ^ h >> 16;
}
