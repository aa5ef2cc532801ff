// The CUDA vocabulary of the kernels, for clang without a CUDA SDK:
//   clang -x cuda --cuda-device-only -nocudainc -nocudalib --cuda-gpu-arch=sm_75 -Xclang -target-feature -Xclang +ptx64
// Everything is integer, and every function is inlined, also at -O0. A warp of this machine has four lanes.
// NVRTC brings the vocabulary itself, but for the names of the integer types.
#pragma once

#ifdef __CUDACC_RTC__
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#else

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ __attribute__((always_inline)) inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __align__(n) __attribute__((aligned(n)))
#define QG_DEVICE static __device__ __forceinline__

// ---- Types.

typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __SIZE_TYPE__ size_t;

struct __align__(8) int2 { int x, y; };
struct __align__(16) int4 { int x, y, z, w; };
struct __align__(8) uint2 { unsigned x, y; };
struct __align__(16) uint4 { unsigned x, y, z, w; };
QG_DEVICE int2 make_int2(int x, int y) { return {x, y}; }
QG_DEVICE int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
QG_DEVICE uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
QG_DEVICE uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

// ---- Where a thread is. A property's getter is static, so no code reads the variables themselves.

#define QG_INDEX(type, register_name)                                                                          \
  struct type {                                                                                                \
    static __device__ __forceinline__ unsigned qg_x() { return __nvvm_read_ptx_sreg_##register_name##_x(); }   \
    static __device__ __forceinline__ unsigned qg_y() { return __nvvm_read_ptx_sreg_##register_name##_y(); }   \
    static __device__ __forceinline__ unsigned qg_z() { return __nvvm_read_ptx_sreg_##register_name##_z(); }   \
    __declspec(property(get = qg_x)) unsigned x;                                                               \
    __declspec(property(get = qg_y)) unsigned y;                                                               \
    __declspec(property(get = qg_z)) unsigned z;                                                               \
  }
QG_INDEX(qg_tid, tid);
QG_INDEX(qg_ntid, ntid);
QG_INDEX(qg_ctaid, ctaid);
QG_INDEX(qg_nctaid, nctaid);
#undef QG_INDEX
extern const __device__ qg_tid threadIdx;
extern const __device__ qg_ntid blockDim;
extern const __device__ qg_ctaid blockIdx;
extern const __device__ qg_nctaid gridDim;
static constexpr int warpSize = 4;  // CUDA's own headers fix it at 32

// ---- Barriers and fences. __syncthreads() itself is a builtin of clang for CUDA.

QG_DEVICE int __syncthreads_count(int p) { return __nvvm_bar0_popc(p); }
QG_DEVICE int __syncthreads_and(int p) { return __nvvm_bar0_and(p); }
QG_DEVICE int __syncthreads_or(int p) { return __nvvm_bar0_or(p); }
QG_DEVICE void __syncwarp(unsigned mask = 0xffffffffu) { __nvvm_bar_warp_sync(mask); }
QG_DEVICE void __threadfence() { __nvvm_membar_gl(); }
QG_DEVICE void __threadfence_block() { __nvvm_membar_cta(); }

// ---- Votes. Mask bits of lanes that do not exist are ignored.

QG_DEVICE unsigned __ballot_sync(unsigned mask, int p) { return __nvvm_vote_ballot_sync(mask, p != 0); }
QG_DEVICE int __any_sync(unsigned mask, int p) { return __nvvm_vote_any_sync(mask, p != 0); }
QG_DEVICE int __all_sync(unsigned mask, int p) { return __nvvm_vote_all_sync(mask, p != 0); }
QG_DEVICE unsigned __match_any_sync(unsigned mask, unsigned v) { return __nvvm_match_any_sync_i32(mask, v); }
QG_DEVICE unsigned __activemask() {
  unsigned mask;
  asm volatile("activemask.b32 %0;" : "=r"(mask));
  return mask;
}

// ---- Shuffles. `width` is a power of two; anything from the warp's four lanes up means the whole warp.
// PTX packs the segment mask (32 - width) above the clamp, which is 0 for `up` and 31 otherwise.

QG_DEVICE int __shfl_sync(unsigned mask, int v, int lane, int width = 32) {
  return __nvvm_shfl_sync_idx_i32(mask, v, lane, ((32 - width) << 8) | 0x1f);
}
QG_DEVICE int __shfl_up_sync(unsigned mask, int v, unsigned delta, int width = 32) {
  return __nvvm_shfl_sync_up_i32(mask, v, (int)delta, (32 - width) << 8);
}
QG_DEVICE int __shfl_down_sync(unsigned mask, int v, unsigned delta, int width = 32) {
  return __nvvm_shfl_sync_down_i32(mask, v, (int)delta, ((32 - width) << 8) | 0x1f);
}
QG_DEVICE int __shfl_xor_sync(unsigned mask, int v, int lanes, int width = 32) {
  return __nvvm_shfl_sync_bfly_i32(mask, v, lanes, ((32 - width) << 8) | 0x1f);
}
QG_DEVICE unsigned __shfl_sync(unsigned mask, unsigned v, int lane, int width = 32) {
  return (unsigned)__shfl_sync(mask, (int)v, lane, width);
}
QG_DEVICE unsigned __shfl_up_sync(unsigned mask, unsigned v, unsigned delta, int width = 32) {
  return (unsigned)__shfl_up_sync(mask, (int)v, delta, width);
}
QG_DEVICE unsigned __shfl_down_sync(unsigned mask, unsigned v, unsigned delta, int width = 32) {
  return (unsigned)__shfl_down_sync(mask, (int)v, delta, width);
}
QG_DEVICE unsigned __shfl_xor_sync(unsigned mask, unsigned v, int lanes, int width = 32) {
  return (unsigned)__shfl_xor_sync(mask, (int)v, lanes, width);
}

// ---- Atomics. Each returns the old value.

QG_DEVICE int atomicAdd(int *p, int v) { return __nvvm_atom_add_gen_i(p, v); }
QG_DEVICE unsigned atomicAdd(unsigned *p, unsigned v) { return (unsigned)__nvvm_atom_add_gen_i((int *)p, (int)v); }
QG_DEVICE int atomicSub(int *p, int v) { return __nvvm_atom_sub_gen_i(p, v); }
QG_DEVICE unsigned atomicSub(unsigned *p, unsigned v) { return (unsigned)__nvvm_atom_sub_gen_i((int *)p, (int)v); }
QG_DEVICE int atomicMin(int *p, int v) { return __nvvm_atom_min_gen_i(p, v); }
QG_DEVICE unsigned atomicMin(unsigned *p, unsigned v) { return __nvvm_atom_min_gen_ui(p, v); }
QG_DEVICE int atomicMax(int *p, int v) { return __nvvm_atom_max_gen_i(p, v); }
QG_DEVICE unsigned atomicMax(unsigned *p, unsigned v) { return __nvvm_atom_max_gen_ui(p, v); }
QG_DEVICE int atomicAnd(int *p, int v) { return __nvvm_atom_and_gen_i(p, v); }
QG_DEVICE unsigned atomicAnd(unsigned *p, unsigned v) { return (unsigned)__nvvm_atom_and_gen_i((int *)p, (int)v); }
QG_DEVICE int atomicOr(int *p, int v) { return __nvvm_atom_or_gen_i(p, v); }
QG_DEVICE unsigned atomicOr(unsigned *p, unsigned v) { return (unsigned)__nvvm_atom_or_gen_i((int *)p, (int)v); }
QG_DEVICE int atomicXor(int *p, int v) { return __nvvm_atom_xor_gen_i(p, v); }
QG_DEVICE unsigned atomicXor(unsigned *p, unsigned v) { return (unsigned)__nvvm_atom_xor_gen_i((int *)p, (int)v); }
QG_DEVICE int atomicExch(int *p, int v) { return __nvvm_atom_xchg_gen_i(p, v); }
QG_DEVICE unsigned atomicExch(unsigned *p, unsigned v) { return (unsigned)__nvvm_atom_xchg_gen_i((int *)p, (int)v); }
QG_DEVICE int atomicCAS(int *p, int c, int v) { return __nvvm_atom_cas_gen_i(p, c, v); }
QG_DEVICE unsigned atomicCAS(unsigned *p, unsigned c, unsigned v) {
  return (unsigned)__nvvm_atom_cas_gen_i((int *)p, (int)c, (int)v);
}
QG_DEVICE unsigned atomicInc(unsigned *p, unsigned bound) { return __nvvm_atom_inc_gen_ui(p, bound); }
QG_DEVICE unsigned atomicDec(unsigned *p, unsigned bound) { return __nvvm_atom_dec_gen_ui(p, bound); }
QG_DEVICE unsigned long long atomicAdd(unsigned long long *p, unsigned long long v) {
  return (unsigned long long)__nvvm_atom_add_gen_ll((long long *)p, (long long)v);
}
QG_DEVICE unsigned long long atomicExch(unsigned long long *p, unsigned long long v) {
  return (unsigned long long)__nvvm_atom_xchg_gen_ll((long long *)p, (long long)v);
}
QG_DEVICE unsigned long long atomicCAS(unsigned long long *p, unsigned long long c, unsigned long long v) {
  return (unsigned long long)__nvvm_atom_cas_gen_ll((long long *)p, (long long)c, (long long)v);
}

// ---- Integer functions.

QG_DEVICE int __popc(unsigned v) { return __builtin_popcount(v); }
QG_DEVICE int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
QG_DEVICE int __clz(int v) { return v ? __builtin_clz((unsigned)v) : 32; }
QG_DEVICE int __clzll(long long v) { return v ? __builtin_clzll((unsigned long long)v) : 64; }
QG_DEVICE int __ffs(int v) { return v ? __builtin_ctz((unsigned)v) + 1 : 0; }
QG_DEVICE unsigned __brev(unsigned v) { return __builtin_bitreverse32(v); }
QG_DEVICE unsigned __byte_perm(unsigned a, unsigned b, unsigned s) { return (unsigned)__nvvm_prmt((int)a, (int)b, (int)(s & 0x7777u)); }
QG_DEVICE int __mulhi(int a, int b) { return (int)(((long long)a * b) >> 32); }
QG_DEVICE unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a * b) >> 32); }
QG_DEVICE unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned n) {
  return (unsigned)((((unsigned long long)hi << 32 | lo) << (n & 31)) >> 32);
}
QG_DEVICE unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned n) {
  return (unsigned)(((unsigned long long)hi << 32 | lo) >> (n & 31));
}
QG_DEVICE unsigned __sad(int a, int b, unsigned c) { return c + (a > b ? (unsigned)a - (unsigned)b : (unsigned)b - (unsigned)a); }
QG_DEVICE unsigned __usad(unsigned a, unsigned b, unsigned c) { return c + (a > b ? a - b : b - a); }

QG_DEVICE int min(int a, int b) { return a < b ? a : b; }
QG_DEVICE int max(int a, int b) { return a > b ? a : b; }
QG_DEVICE unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
QG_DEVICE unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
QG_DEVICE unsigned min(int a, unsigned b) { return min((unsigned)a, b); }
QG_DEVICE unsigned max(int a, unsigned b) { return max((unsigned)a, b); }
QG_DEVICE unsigned min(unsigned a, int b) { return min(a, (unsigned)b); }
QG_DEVICE unsigned max(unsigned a, int b) { return max(a, (unsigned)b); }
QG_DEVICE long long min(long long a, long long b) { return a < b ? a : b; }
QG_DEVICE long long max(long long a, long long b) { return a > b ? a : b; }
QG_DEVICE unsigned long long min(unsigned long long a, unsigned long long b) { return a < b ? a : b; }
QG_DEVICE unsigned long long max(unsigned long long a, unsigned long long b) { return a > b ? a : b; }
QG_DEVICE int abs(int v) { return v < 0 ? -v : v; }

#undef QG_DEVICE
#endif  // __CUDACC_RTC__
