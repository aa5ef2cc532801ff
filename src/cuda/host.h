// What host code of a CUDA file refers to. It is parsed for its syntax alone: only device code is compiled.
#pragma once

#define NULL nullptr
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295u
#define INT64_MIN (-9223372036854775807ll - 1)
#define INT64_MAX 9223372036854775807ll
#define UINT64_MAX 18446744073709551615ull
#define CHAR_BIT 8
#define INT_MIN INT32_MIN
#define INT_MAX INT32_MAX
#define UINT_MAX UINT32_MAX
#define LLONG_MIN INT64_MIN
#define LLONG_MAX INT64_MAX
#define ULLONG_MAX UINT64_MAX

namespace std {
using ::int8_t;
using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::uint8_t;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::size_t;
}  // namespace std

struct uint3 { unsigned x, y, z; };
struct dim3 {
  unsigned x, y, z;
  __host__ __device__ constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

typedef enum { cudaSuccess = 0 } cudaError_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault
};

__host__ cudaError_t cudaMalloc(void **, size_t);
template <class T> __host__ cudaError_t cudaMalloc(T **, size_t);
__host__ cudaError_t cudaMallocManaged(void **, size_t, unsigned = 1);
template <class T> __host__ cudaError_t cudaMallocManaged(T **, size_t, unsigned = 1);
__host__ cudaError_t cudaFree(void *);
__host__ cudaError_t cudaMemcpy(void *, const void *, size_t, cudaMemcpyKind);
template <class T>
__host__ cudaError_t cudaMemcpyToSymbol(const T &, const void *, size_t, size_t = 0, cudaMemcpyKind = cudaMemcpyHostToDevice);
template <class T>
__host__ cudaError_t cudaMemcpyFromSymbol(void *, const T &, size_t, size_t = 0, cudaMemcpyKind = cudaMemcpyDeviceToHost);
__host__ cudaError_t cudaMemset(void *, int, size_t);
__host__ cudaError_t cudaDeviceSynchronize();
__host__ cudaError_t cudaDeviceReset();
__host__ cudaError_t cudaSetDevice(int);
__host__ cudaError_t cudaGetLastError();
__host__ cudaError_t cudaPeekAtLastError();
__host__ const char *cudaGetErrorString(cudaError_t);
__host__ cudaError_t cudaStreamCreate(cudaStream_t *);
__host__ cudaError_t cudaStreamSynchronize(cudaStream_t);
__host__ cudaError_t cudaStreamDestroy(cudaStream_t);
__host__ cudaError_t cudaEventCreate(cudaEvent_t *);
__host__ cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t = 0);
__host__ cudaError_t cudaEventSynchronize(cudaEvent_t);
__host__ cudaError_t cudaEventElapsedTime(float *, cudaEvent_t, cudaEvent_t);
__host__ cudaError_t cudaEventDestroy(cudaEvent_t);
extern "C" __host__ cudaError_t cudaConfigureCall(dim3, dim3, size_t = 0, cudaStream_t = 0);
extern "C" __host__ unsigned __cudaPushCallConfiguration(dim3, dim3, size_t = 0, cudaStream_t = 0);
extern "C" __host__ cudaError_t cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t);

struct FILE;
extern FILE *stderr, *stdout;
extern "C" {
__host__ int printf(const char *, ...);
__host__ int fprintf(FILE *, const char *, ...);
__host__ int puts(const char *);
__host__ int putchar(int);
__host__ void *malloc(size_t);
__host__ void *calloc(size_t, size_t);
__host__ void free(void *);
__host__ void exit(int);
__host__ void abort();
__host__ int atoi(const char *);
__host__ int rand();
__host__ void srand(unsigned);
__host__ void *memcpy(void *, const void *, size_t);
__host__ void *memset(void *, int, size_t);
__host__ int memcmp(const void *, const void *, size_t);
__host__ int strcmp(const char *, const char *);
__host__ size_t strlen(const char *);
}
#define assert(condition) ((condition) ? (void)0 : __builtin_trap())
