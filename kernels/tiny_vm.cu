// A stack machine in a switch: every thread runs the same bytecode on its own input.
// Codes: 0 halt, 1 push next, 2 dup, 3 add, 4 sub, 5 mul, 6 swap, 7 jump to next if the popped value is not zero.
#include "prelude.h"
extern "C" __global__ void tiny_vm(const signed char *code, const int *input, int *result) {
  __shared__ int stacks[8][6];
  int i = blockIdx.x * blockDim.x + threadIdx.x, pc = 0, top = 0;
  int *stack = stacks[threadIdx.x];
  stack[0] = input[i];
  bool running = true;
#pragma unroll 1
  while (running) {
    switch (code[pc++]) {
      case 1: stack[++top] = code[pc++]; break;
      case 2: stack[top + 1] = stack[top]; ++top; break;
      case 3: --top; stack[top] += stack[top + 1]; break;
      case 4: --top; stack[top] -= stack[top + 1]; break;
      case 5: --top; stack[top] *= stack[top + 1]; break;
      case 6: {
        int upper = stack[top];
        stack[top] = stack[top - 1];
        stack[top - 1] = upper;
        break;
      }
      case 7: pc = stack[top--] != 0 ? code[pc] : pc + 1; break;
      default: running = false; break;
    }
  }
  result[i] = stack[top];
}
