// The kernels that a language model can call by name; src/language/preset.rs has the table of their arguments.
//
// Numbers are 64 bits wide. `status` stays 0, or says why there is no result: 1 overflow, 2 division by zero, 3 an
// argument out of range. Lists come with their lengths, and results go to `out`.
#include "prelude.h"

typedef long long number;
enum Status { OVERFLOW = 1, ZERO_DIVISION = 2, RANGE = 3 };

static __device__ __forceinline__ bool add_to(number &sum, number x) {
  number result = (number)((uint64_t)sum + (uint64_t)x);
  bool overflow = ((sum ^ result) & (x ^ result)) < 0;
  sum = result;
  return overflow;
}

static __device__ __forceinline__ bool multiply_by(number &product, number x) {
  uint64_t a = product < 0 ? 0 - (uint64_t)product : product, b = x < 0 ? 0 - (uint64_t)x : x;
  uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
  bool negative = (product < 0) != (x < 0);
  uint64_t low = a0 * b0, cross = a1 * b0 + a0 * b1, high = cross + (low >> 32);
  uint64_t magnitude = (high << 32) | (uint32_t)low;
  bool overflow = (a1 != 0 && b1 != 0) || (high >> 32) != 0 || (magnitude >> 63) != 0;
  product = negative ? (number)(0 - magnitude) : (number)magnitude;
  return overflow;
}

extern "C" __global__ void sum(const number *a, int n, number *out, unsigned *status) {
  number total = 0;
#pragma unroll 1
  for (int i = 0; i < n; ++i)
    if (add_to(total, a[i])) *status = OVERFLOW;
  *out = total;
}

extern "C" __global__ void product(const number *a, int n, number *out, unsigned *status) {
  number total = 1;
#pragma unroll 1
  for (int i = 0; i < n; ++i)
    if (multiply_by(total, a[i])) *status = OVERFLOW;
  *out = total;
}

extern "C" __global__ void min(const number *a, int n, number *out, unsigned *status) {
  number best = a[0];
#pragma unroll 1
  for (int i = 1; i < n; ++i) best = a[i] < best ? a[i] : best;
  *out = best;
}

extern "C" __global__ void max(const number *a, int n, number *out, unsigned *status) {
  number best = a[0];
#pragma unroll 1
  for (int i = 1; i < n; ++i) best = a[i] > best ? a[i] : best;
  *out = best;
}

// Quotient, rounded down, and the remainder, which is not negative.
extern "C" __global__ void mean(const number *a, int n, number *out, unsigned *status) {
  number total = 0;
#pragma unroll 1
  for (int i = 0; i < n; ++i)
    if (add_to(total, a[i])) *status = OVERFLOW;
  number quotient = total / n, rest = total - quotient * n;
  out[0] = rest < 0 ? quotient - 1 : quotient;
  out[1] = rest < 0 ? rest + n : rest;
}

extern "C" __global__ void dot(const number *a, const number *b, int n, number *out, unsigned *status) {
  number total = 0;
#pragma unroll 1
  for (int i = 0; i < n; ++i) {
    number term = a[i];
    bool overflow = multiply_by(term, b[i]);
    if (add_to(total, term) || overflow) *status = OVERFLOW;
  }
  *out = total;
}

// A thread for each number: its place is the count of those that stand before it.
extern "C" __global__ void sort(const number *a, int n, number *out, unsigned *status) {
  int i = threadIdx.x, place = 0;
  number mine = a[i];
#pragma unroll 1
  for (int k = 0; k < n; ++k) place += a[k] < mine || (a[k] == mine && k < i);
  out[place] = mine;
}

extern "C" __global__ void count(const number *a, int n, number wanted, number *out, unsigned *status) {
  int found = 0;
#pragma unroll 1
  for (int i = 0; i < n; ++i) found += a[i] == wanted;
  *out = found;
}

// The greatest common divisor by halving and subtracting.
static __device__ __forceinline__ uint64_t common_divisor(uint64_t a, uint64_t b) {
  if (a == 0 || b == 0) return a | b;
  int twos = 0;
#pragma unroll 1
  while (((a | b) & 1) == 0) {
    a >>= 1;
    b >>= 1;
    ++twos;
  }
#pragma unroll 1
  while (b != 0) {
#pragma unroll 1
    while ((a & 1) == 0) a >>= 1;
#pragma unroll 1
    while ((b & 1) == 0) b >>= 1;
    uint64_t low = a < b ? a : b, high = a < b ? b : a;
    a = low;
    b = high - low;
  }
  return a << twos;
}

extern "C" __global__ void gcd(const number *a, int n, number *out, unsigned *status) {
  uint64_t common = 0;
#pragma unroll 1
  for (int i = 0; i < n; ++i) common = common_divisor(common, a[i] < 0 ? 0 - (uint64_t)a[i] : a[i]);
  *out = (number)common;
}

extern "C" __global__ void lcm(const number *a, int n, number *out, unsigned *status) {
  number multiple = 1;
#pragma unroll 1
  for (int i = 0; i < n; ++i) {
    uint64_t x = a[i] < 0 ? 0 - (uint64_t)a[i] : a[i];
    if (x == 0) {
      multiple = 0;
      break;
    }
    if (multiply_by(multiple, (number)(x / common_divisor((uint64_t)multiple, x)))) *status = OVERFLOW;
  }
  *out = multiple;
}

extern "C" __global__ void powmod(number base, number exponent, number modulus, number *out, unsigned *status) {
  if (modulus <= 0 || modulus > 65536 || exponent < 0) {
    *status = modulus == 0 ? ZERO_DIVISION : RANGE;
    return;
  }
  uint32_t m = (uint32_t)modulus;
  number rest = base % modulus;
  uint32_t square = (uint32_t)(rest < 0 ? rest + modulus : rest), power = 1 % m;
#pragma unroll 1
  for (uint64_t left = exponent; left != 0; left >>= 1) {
    if (left & 1) power = power * square % m;
    // With a modulus of 65536 the square wraps at a multiple of it.
    square = square * square % m;
  }
  *out = power;
}

extern "C" __global__ void factmod(number n, number modulus, number *out, unsigned *status) {
  if (modulus <= 0 || modulus > 65536 || n < 0 || n > 100000) {
    *status = modulus == 0 ? ZERO_DIVISION : RANGE;
    return;
  }
  uint32_t m = (uint32_t)modulus, value = 1 % m;
#pragma unroll 1
  for (uint32_t k = 2; k <= (uint32_t)n && value != 0; ++k) value = value * (k % m) % m;
  *out = value;
}

extern "C" __global__ void fib(number n, number *out, unsigned *status) {
  if (n < 0 || n > 92) {
    *status = n < 0 ? RANGE : OVERFLOW;
    return;
  }
  number a = 0, b = 1;
#pragma unroll 1
  for (int k = (int)n; k > 0; --k) {
    number next = (number)((uint64_t)a + (uint64_t)b);
    a = b;
    b = next;
  }
  *out = a;
}

extern "C" __global__ void isprime(number n, number *out, unsigned *status) {
  if (n > 0x7fffffff) {
    *status = RANGE;
    return;
  }
  uint32_t x = n < 0 ? 0 : (uint32_t)n;
  bool prime = x == 2 || (x > 2 && (x & 1) != 0);
#pragma unroll 1
  for (uint32_t d = 3; prime && d * d <= x && d < 46341; d += 2) prime = x % d != 0;
  *out = prime;
}

// The decimal digits, the first one first; `out` has room for 19, and `length` says how many there are.
extern "C" __global__ void digits(number n, number *out, unsigned *length, unsigned *status) {
  uint64_t left = n < 0 ? 0 - (uint64_t)n : n;
  uint64_t scale = 1;
  unsigned count = 1;
#pragma unroll 1
  while (count < 19 && left / 10 >= scale) {
    scale *= 10;
    ++count;
  }
  *length = count;
#pragma unroll 1
  for (unsigned k = 0; k < count; ++k) {
    int digit = 0;
#pragma unroll 1
    while (left >= scale && digit < 9) {
      left -= scale;
      ++digit;
    }
    out[k] = digit;
    scale /= 10;
  }
}

// A thread for each element of the product of an m by n and an n by p matrix.
extern "C" __global__ void matmul(const number *a, const number *b, int n, number *out, unsigned *status) {
  int row = threadIdx.y, column = threadIdx.x, width = blockDim.x;
  number total = 0;
#pragma unroll 1
  for (int k = 0; k < n; ++k) {
    number term = a[row * n + k];
    bool overflow = multiply_by(term, b[k * width + column]);
    if (add_to(total, term) || overflow) *status = OVERFLOW;
  }
  out[row * width + column] = total;
}
