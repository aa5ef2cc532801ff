//! part of qwenGPU
