// The sieve of Eratosthenes in shared bytes: thread t crosses out the t-th multiple, a barrier between primes.
#include "prelude.h"
extern "C" __global__ void sieve(unsigned char *is_prime, int *count) {
  __shared__ unsigned char flag[32];
  int t = threadIdx.x, n = blockDim.x;
  flag[t] = t >= 2;
  __syncthreads();
  for (int p = 2; p * p < n; ++p) {
    if (flag[p] && t >= p && t * p < n) flag[t * p] = 0;
    __syncthreads();
  }
  is_prime[t] = flag[t];
  if (flag[t]) atomicAdd(count, 1);
}
