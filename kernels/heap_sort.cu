// Heap sort: every thread sorts its own segment in place.
#include "prelude.h"
__device__ static void sink(int *heap, int root, int end) {
  for (;;) {
    int child = 2 * root + 1;
    if (child >= end) return;
    if (child + 1 < end && heap[child] < heap[child + 1]) child++;
    if (heap[root] >= heap[child]) return;
    int v = heap[root];
    heap[root] = heap[child];
    heap[child] = v;
    root = child;
  }
}
extern "C" __global__ void heap_sort(int *data, int length) {
  int *heap = data + (blockIdx.x * blockDim.x + threadIdx.x) * length;
  for (int root = length / 2 - 1; root >= 0; root--) sink(heap, root, length);
  for (int end = length - 1; end > 0; end--) {
    int v = heap[0];
    heap[0] = heap[end];
    heap[end] = v;
    sink(heap, 0, end);
  }
}
