//! qwenGPU
