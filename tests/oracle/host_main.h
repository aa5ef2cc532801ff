// Runs a kernel on the host: reads launches from standard input, writes every buffer's contents afterwards.
//
// Input, in words separated by white space:
//   launches N, then for each: grid x y z, block x y z, junk byte, number of arguments, then for each argument
//   "buf" element-size count values...   or   "val" value          (values as unsigned 64-bit decimals)
// Output, a line a buffer: launch-number buffer-number "in" | "out" values...    ("in": a pointer to const)
#pragma once

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "cuda_host.h"

#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#include <sanitizer/msan_interface.h>
#define ORACLE_MEMORY_SANITIZER
#endif
#endif

namespace oracle {

struct Argument {
  bool is_buffer = false, is_const = false;
  size_t size = 0, count = 0;
  uint64_t value = 0;
  unsigned char *bytes = nullptr;  // exactly size * count bytes on the heap, so that a sanitizer sees the end
};

[[noreturn]] inline void bad_input(const char *what) {
  fprintf(stderr, "launch: %s\n", what);
  exit(2);
}

inline uint64_t read_number() {
  unsigned long long v;
  if (scanf("%llu", &v) != 1) bad_input("a number was expected");
  return v;
}

inline Index read_index() {
  Index i;
  i.x = (unsigned)read_number();
  i.y = (unsigned)read_number();
  i.z = (unsigned)read_number();
  return i;
}

inline Argument read_argument() {
  char kind[8] = {};
  if (scanf("%7s", kind) != 1) bad_input("an argument was expected");
  Argument a;
  a.is_buffer = strcmp(kind, "buf") == 0;
  if (!a.is_buffer) {
    a.value = read_number();
    return a;
  }
  a.size = read_number();
  a.count = read_number();
  a.bytes = (unsigned char *)malloc(a.size * a.count);
  for (size_t k = 0; k < a.count; ++k) {
    uint64_t v = read_number();
    for (size_t byte = 0; byte < a.size; ++byte) a.bytes[k * a.size + byte] = (unsigned char)(v >> 8 * byte);
  }
  return a;
}

// The kernel's own signature says how an argument is passed.
template <class P>
P pass(Argument &a) {
  if constexpr (std::is_pointer<P>::value) {
    typedef typename std::remove_pointer<P>::type Pointee;
    if (!a.is_buffer) bad_input("the kernel takes a pointer where the launch has a value");
    bool fits = std::is_class<Pointee>::value ? sizeof(Pointee) % a.size == 0 : sizeof(Pointee) == a.size;
    if (!fits) bad_input("a buffer's element size is not the kernel's");
    a.is_const = std::is_const<Pointee>::value;
    return (P)a.bytes;
  } else {
    static_assert(std::is_integral<P>::value, "kernel parameters are pointers or integers");
    if (a.is_buffer) bad_input("the kernel takes a value where the launch has a buffer");
    return (P)a.value;
  }
}

template <class... P>
struct Call {
  void (*kernel)(P...);
  std::tuple<P...> values;
  void operator()() const { std::apply(kernel, values); }
};

template <class... P, size_t... I>
Call<P...> bind(void (*kernel)(P...), std::vector<Argument> &args, std::index_sequence<I...>) {
  if (args.size() != sizeof...(P)) bad_input("the number of arguments is not the kernel's");
  return {kernel, std::tuple<P...>(pass<P>(args[I])...)};
}

template <class C>
struct Job {
  Thread thread;
  const C *call;
};

template <class C>
void *thread_main(void *raw) {
  Job<C> &job = *(Job<C> *)raw;
  self = &job.thread;
  (*job.call)();
  thread_exits();
  return nullptr;
}

template <class C>
void start_block(Block &block, std::vector<Job<C>> &jobs, std::vector<pthread_t> &threads, const C &call) {
  block.threads = block.live = block.dim.x * block.dim.y * block.dim.z;
  if (block.threads == 0 || block.threads > 32) bad_input("a block has 1 to 32 threads");
  for (unsigned t = 0; t < block.threads; ++t) block.warp_live[t / warpSize] |= 1u << t % warpSize;
  jobs.resize(block.threads);
  threads.resize(block.threads);
  for (unsigned t = 0; t < block.threads; ++t) {
    Index index = {t % block.dim.x, t / block.dim.x % block.dim.y, t / block.dim.x / block.dim.y};
    jobs[t] = {{&block, index, t}, &call};
    if (pthread_create(&threads[t], nullptr, thread_main<C>, &jobs[t]) != 0) bad_input("cannot start a thread");
  }
}

}  // namespace oracle

#ifdef ORACLE_SHARED_SECTION
extern "C" unsigned char __start_oracle_shared[] __attribute__((weak));
extern "C" unsigned char __stop_oracle_shared[] __attribute__((weak));
#endif

namespace oracle {

inline void spoil_shared_memory(unsigned char junk) {
#ifdef ORACLE_SHARED_SECTION
  unsigned char *begin = __start_oracle_shared, *end = __stop_oracle_shared;
  if (begin == nullptr) return;
  memset(begin, junk, (size_t)(end - begin));
#ifdef ORACLE_MEMORY_SANITIZER
  __msan_poison(begin, (size_t)(end - begin));
#endif
#else
  (void)junk;
#endif
}

// Several copies of the kernel, each with shared variables of its own, let that many blocks run at once.
template <class... P, size_t N>
void run_launch(void (*(&kernels)[N])(P...), unsigned number) {
  Index grid = read_index(), dim = read_index();
  unsigned char junk = (unsigned char)read_number();
  std::vector<Argument> args(read_number());
  for (Argument &a : args) a = read_argument();

  std::vector<Call<P...>> calls;
  for (size_t k = 0; k < N; ++k) calls.push_back(bind(kernels[k], args, std::index_sequence_for<P...>()));
  unsigned blocks = grid.x * grid.y * grid.z;
  for (unsigned first = 0; first < blocks; first += N) {
    std::vector<Block> group(blocks - first < N ? blocks - first : N);
    std::vector<std::vector<Job<Call<P...>>>> jobs(group.size());
    std::vector<std::vector<pthread_t>> threads(group.size());
    spoil_shared_memory(junk);
    for (size_t k = 0; k < group.size(); ++k) {
      unsigned b = first + (unsigned)k;
      group[k].index = {b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y};
      group[k].dim = dim;
      group[k].grid = grid;
      start_block(group[k], jobs[k], threads[k], calls[k]);
    }
    for (auto &of_block : threads)
      for (pthread_t t : of_block) pthread_join(t, nullptr);
  }

  unsigned buffer = 0;
  for (Argument &a : args) {
    if (!a.is_buffer) continue;
#ifdef ORACLE_MEMORY_SANITIZER
    __msan_check_mem_is_initialized(a.bytes, a.size * a.count);
#endif
    printf("%u %u %s", number, buffer++, a.is_const ? "in" : "out");
    for (size_t k = 0; k < a.count; ++k) {
      uint64_t v = 0;
      for (size_t byte = 0; byte < a.size; ++byte) v |= (uint64_t)a.bytes[k * a.size + byte] << 8 * byte;
      printf(" %llu", (unsigned long long)v);
    }
    printf("\n");
    free(a.bytes);
  }
}

template <class... P, size_t N>
int host_main(void (*(&&kernels)[N])(P...)) {
  alarm(120);  // a deadlocked kernel must not hang the caller
  unsigned launches = (unsigned)read_number();
  for (unsigned k = 0; k < launches; ++k) run_launch(kernels, k);
  return 0;
}

}  // namespace oracle
