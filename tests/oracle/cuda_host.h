// The CUDA vocabulary of kernels/prelude.h for a host compiler, so that a kernel can run without any GPU, real or not.
//
// Every CUDA thread is a POSIX thread; warps have four lanes. A collective (vote, shuffle, __syncwarp) waits until every
// live lane named in its mask has called it with the same mask; lanes that do not exist or have returned are ignored.
// What CUDA leaves undefined is an error here: a shuffle from a lane that takes no part, a collective whose mask leaves
// out the caller. __activemask() names the caller alone, which CUDA allows, so no result may depend on it.
#pragma once

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __constant__ static
// One block at a time uses the shared variables. In their own section the runner can fill them with junk before a block;
// `used` tells the compiler that they may change behind its back.
#ifdef ORACLE_SHARED_SECTION
#define __shared__ static __attribute__((section("oracle_shared"), used))
#else
#define __shared__ static
#endif

static constexpr int warpSize = 4;

struct __align__(8) int2 { int x, y; };
struct __align__(16) int4 { int x, y, z, w; };
struct __align__(8) uint2 { unsigned x, y; };
struct __align__(16) uint4 { unsigned x, y, z, w; };
static inline int2 make_int2(int x, int y) { return {x, y}; }
static inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
static inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

namespace oracle {

struct Index {
  unsigned x, y, z;
};

enum class Collective { vote, match, shuffle, sync_warp };

// What a lane hands to a collective, and what it gets back: every lane's value, and who took part.
struct Slot {
  bool waiting = false;
  Collective kind = Collective::vote;
  unsigned mask = 0, value = 0;
  unsigned members = 0, values[warpSize] = {};
};

struct Block {
  Index index = {}, dim = {}, grid = {};
  unsigned threads = 0;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
  unsigned live = 0, arrived = 0, generation = 0;
  unsigned count = 0, count_result = 0, live_result = 0;  // of threads whose barrier predicate holds
  unsigned warp_live[8] = {};
  Slot slots[32];
};

struct Thread {
  Block *block;
  Index index;
  unsigned linear;
};

inline thread_local Thread *self = nullptr;

[[noreturn]] inline void fail(const char *what) {
  fprintf(stderr, "block (%u,%u,%u), thread (%u,%u,%u): %s\n", self->block->index.x, self->block->index.y,
          self->block->index.z, self->index.x, self->index.y, self->index.z, what);
  abort();
}

// ---- Block barrier. The mutex is held in every function named *_locked.

inline void release_barrier_locked(Block &b) {
  if (b.arrived == 0 || b.arrived != b.live) return;
  b.count_result = b.count;
  b.live_result = b.live;
  b.arrived = b.count = 0;
  ++b.generation;
  pthread_cond_broadcast(&b.changed);
}

struct Tally {
  unsigned count, of;
};

inline Tally barrier(bool p) {
  Block &b = *self->block;
  pthread_mutex_lock(&b.mutex);
  unsigned generation = b.generation;
  ++b.arrived;
  b.count += p;
  release_barrier_locked(b);
  while (b.generation == generation) pthread_cond_wait(&b.changed, &b.mutex);
  Tally tally = {b.count_result, b.live_result};
  pthread_mutex_unlock(&b.mutex);
  return tally;
}

// ---- Warp collectives.

inline void complete_collectives_locked(Block &b, unsigned warp) {
  Slot *lane = b.slots + warp * warpSize;
  for (int first = 0; first < warpSize; ++first) {
    if (!lane[first].waiting) continue;
    unsigned members = lane[first].mask & b.warp_live[warp];
    bool complete = true;
    for (int l = 0; l < warpSize; ++l)
      if (members >> l & 1)
        complete = complete && lane[l].waiting && lane[l].mask == lane[first].mask && lane[l].kind == lane[first].kind;
    if (!complete) continue;
    for (int l = 0; l < warpSize; ++l) {
      if (!(members >> l & 1)) continue;
      lane[l].members = members;
      for (int k = 0; k < warpSize; ++k) lane[l].values[k] = members >> k & 1 ? lane[k].value : 0;
      lane[l].waiting = false;
    }
    pthread_cond_broadcast(&b.changed);
  }
}

inline Slot collective(Collective kind, unsigned mask, unsigned value) {
  Block &b = *self->block;
  unsigned lane = self->linear % warpSize;
  mask &= (1u << warpSize) - 1;
  if (!(mask >> lane & 1)) fail("the mask of a warp collective leaves out its caller");
  pthread_mutex_lock(&b.mutex);
  Slot &slot = b.slots[self->linear];
  slot.waiting = true;
  slot.kind = kind;
  slot.mask = mask;
  slot.value = value;
  complete_collectives_locked(b, self->linear / warpSize);
  while (slot.waiting) pthread_cond_wait(&b.changed, &b.mutex);
  Slot result = slot;
  pthread_mutex_unlock(&b.mutex);
  return result;
}

inline unsigned ballot(unsigned mask, bool p) {
  Slot s = collective(Collective::vote, mask, p);
  unsigned bits = 0;
  for (int l = 0; l < warpSize; ++l) bits |= s.values[l] << l;
  return bits;
}

// `source` gives the wanted lane, relative to a segment of `width` lanes; out of the segment a lane keeps its own value.
enum class Shuffle { idx, up, down, xor_ };

inline unsigned shuffle(Shuffle kind, unsigned mask, unsigned v, int amount, int width) {
  if (width <= 0 || (width & (width - 1)) != 0 || width > 32) fail("a shuffle's width is not a power of two up to 32");
  if (width > warpSize) width = warpSize;
  int lane = (int)(self->linear % warpSize), base = lane & ~(width - 1), source = lane;
  switch (kind) {
    case Shuffle::idx: source = base + (amount & (width - 1)); break;
    case Shuffle::up: source = lane - amount >= base ? lane - amount : lane; break;
    case Shuffle::down: source = lane + amount < base + width ? lane + amount : lane; break;
    case Shuffle::xor_: source = (lane ^ amount) < base + width ? lane ^ amount : lane; break;
  }
  Slot s = collective(Collective::shuffle, mask, v);
  if (!(s.members >> source & 1)) fail("a shuffle reads a lane that takes no part");
  return s.values[source];
}

inline void thread_exits() {
  Block &b = *self->block;
  pthread_mutex_lock(&b.mutex);
  --b.live;
  b.warp_live[self->linear / warpSize] &= ~(1u << self->linear % warpSize);
  release_barrier_locked(b);
  complete_collectives_locked(b, self->linear / warpSize);
  pthread_mutex_unlock(&b.mutex);
}

// ---- Atomics.

template <class T, class F>
inline T atomic_update(T *p, F f) {
  T old = __atomic_load_n(p, __ATOMIC_SEQ_CST);
  while (!__atomic_compare_exchange_n(p, &old, f(old), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
  }
  return old;
}

}  // namespace oracle

#define threadIdx (oracle::self->index)
#define blockIdx (oracle::self->block->index)
#define blockDim (oracle::self->block->dim)
#define gridDim (oracle::self->block->grid)

static inline void __syncthreads() { oracle::barrier(false); }
static inline int __syncthreads_count(int p) { return (int)oracle::barrier(p != 0).count; }
static inline int __syncthreads_or(int p) { return oracle::barrier(p != 0).count != 0; }
static inline int __syncthreads_and(int p) {
  oracle::Tally tally = oracle::barrier(p != 0);
  return tally.count == tally.of;
}
static inline void __syncwarp(unsigned mask = 0xffffffffu) { oracle::collective(oracle::Collective::sync_warp, mask, 0); }
static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

static inline unsigned __ballot_sync(unsigned mask, int p) { return oracle::ballot(mask, p != 0); }
static inline int __any_sync(unsigned mask, int p) { return oracle::ballot(mask, p != 0) != 0; }
static inline int __all_sync(unsigned mask, int p) { return oracle::ballot(mask, p == 0) == 0; }
static inline unsigned __match_any_sync(unsigned mask, unsigned v) {
  oracle::Slot s = oracle::collective(oracle::Collective::match, mask, v);
  unsigned same = 0;
  for (int l = 0; l < warpSize; ++l) same |= (unsigned)((s.members >> l & 1) && s.values[l] == v) << l;
  return same;
}
static inline unsigned __activemask() { return 1u << oracle::self->linear % warpSize; }

#define ORACLE_SHUFFLES(T)                                                                       \
  static inline T __shfl_sync(unsigned mask, T v, int lane, int width = 32) {                    \
    return (T)oracle::shuffle(oracle::Shuffle::idx, mask, (unsigned)v, lane, width);             \
  }                                                                                              \
  static inline T __shfl_up_sync(unsigned mask, T v, unsigned delta, int width = 32) {           \
    return (T)oracle::shuffle(oracle::Shuffle::up, mask, (unsigned)v, (int)delta, width);        \
  }                                                                                              \
  static inline T __shfl_down_sync(unsigned mask, T v, unsigned delta, int width = 32) {         \
    return (T)oracle::shuffle(oracle::Shuffle::down, mask, (unsigned)v, (int)delta, width);      \
  }                                                                                              \
  static inline T __shfl_xor_sync(unsigned mask, T v, int lanes, int width = 32) {               \
    return (T)oracle::shuffle(oracle::Shuffle::xor_, mask, (unsigned)v, lanes, width);           \
  }
ORACLE_SHUFFLES(int)
ORACLE_SHUFFLES(unsigned)
#undef ORACLE_SHUFFLES

#define ORACLE_ATOMICS(T)                                                                                     \
  static inline T atomicAdd(T *p, T v) { return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST); }                 \
  static inline T atomicExch(T *p, T v) { return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST); }               \
  static inline T atomicCAS(T *p, T c, T v) {                                                                 \
    __atomic_compare_exchange_n(p, &c, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                         \
    return c;                                                                                                 \
  }
#define ORACLE_ATOMICS_32(T)                                                                                  \
  ORACLE_ATOMICS(T)                                                                                           \
  static inline T atomicSub(T *p, T v) { return __atomic_fetch_sub(p, v, __ATOMIC_SEQ_CST); }                 \
  static inline T atomicAnd(T *p, T v) { return __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST); }                 \
  static inline T atomicOr(T *p, T v) { return __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST); }                   \
  static inline T atomicXor(T *p, T v) { return __atomic_fetch_xor(p, v, __ATOMIC_SEQ_CST); }                 \
  static inline T atomicMin(T *p, T v) { return oracle::atomic_update(p, [v](T old) { return v < old ? v : old; }); } \
  static inline T atomicMax(T *p, T v) { return oracle::atomic_update(p, [v](T old) { return v > old ? v : old; }); }
ORACLE_ATOMICS_32(int)
ORACLE_ATOMICS_32(unsigned)
ORACLE_ATOMICS(unsigned long long)
#undef ORACLE_ATOMICS_32
#undef ORACLE_ATOMICS
static inline unsigned atomicInc(unsigned *p, unsigned bound) {
  return oracle::atomic_update(p, [bound](unsigned old) { return old >= bound ? 0u : old + 1; });
}
static inline unsigned atomicDec(unsigned *p, unsigned bound) {
  return oracle::atomic_update(p, [bound](unsigned old) { return old == 0 || old > bound ? bound : old - 1; });
}

static inline int __popc(unsigned v) {
  int n = 0;
  for (; v != 0; v &= v - 1) ++n;
  return n;
}
static inline int __popcll(unsigned long long v) { return __popc((unsigned)v) + __popc((unsigned)(v >> 32)); }
static inline int __clz(int v) {
  int n = 0;
  while (n < 32 && !((unsigned)v >> (31 - n) & 1)) ++n;
  return n;
}
static inline int __clzll(long long v) {
  int high = __clz((int)((unsigned long long)v >> 32));
  return high < 32 ? high : 32 + __clz((int)v);
}
static inline int __ffs(int v) {
  int n = 1;
  while (n <= 32 && !((unsigned)v >> (n - 1) & 1)) ++n;
  return n <= 32 ? n : 0;
}
static inline unsigned __brev(unsigned v) {
  unsigned r = 0;
  for (int k = 0; k < 32; ++k) r |= (v >> k & 1) << (31 - k);
  return r;
}
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned s) {
  unsigned long long bytes = (unsigned long long)b << 32 | a;
  unsigned r = 0;
  for (int k = 0; k < 4; ++k) r |= (unsigned)(bytes >> (s >> 4 * k & 7) * 8 & 255) << 8 * k;
  return r;
}
static inline int __mulhi(int a, int b) { return (int)(((long long)a * b) >> 32); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a * b) >> 32); }
static inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned n) {
  return (unsigned)((((unsigned long long)hi << 32 | lo) << (n & 31)) >> 32);
}
static inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned n) {
  return (unsigned)(((unsigned long long)hi << 32 | lo) >> (n & 31));
}
static inline unsigned __sad(int a, int b, unsigned c) {
  long long d = (long long)a - b;
  return c + (unsigned)(d < 0 ? -d : d);
}
static inline unsigned __usad(unsigned a, unsigned b, unsigned c) { return c + (a > b ? a - b : b - a); }

static inline int min(int a, int b) { return b < a ? b : a; }
static inline int max(int a, int b) { return a < b ? b : a; }
static inline unsigned min(unsigned a, unsigned b) { return b < a ? b : a; }
static inline unsigned max(unsigned a, unsigned b) { return a < b ? b : a; }
static inline unsigned min(int a, unsigned b) { return min((unsigned)a, b); }
static inline unsigned max(int a, unsigned b) { return max((unsigned)a, b); }
static inline unsigned min(unsigned a, int b) { return min(a, (unsigned)b); }
static inline unsigned max(unsigned a, int b) { return max(a, (unsigned)b); }
static inline long long min(long long a, long long b) { return b < a ? b : a; }
static inline long long max(long long a, long long b) { return a < b ? b : a; }
static inline unsigned long long min(unsigned long long a, unsigned long long b) { return b < a ? b : a; }
static inline unsigned long long max(unsigned long long a, unsigned long long b) { return a < b ? b : a; }
