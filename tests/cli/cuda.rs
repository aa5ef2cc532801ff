//! CUDA source through clang, where there is one.

use std::path::Path;
use std::process::Command;

use crate::tool::{command, file, kernel, run_interp};

/// Whether some clang is on the path; without one the tests say so and pass, unless everything is required.
fn has_clang() -> bool {
    let names = ["clang", "clang-19", "clang-18", "clang-17", "clang-16", "clang-15", "clang-14"];
    let found = names.iter().any(|name| Command::new(name).arg("--version").output().is_ok());
    if !found {
        let required = std::env::var_os("QWENGPU_REQUIRE_ALL").is_some_and(|value| value == "1");
        assert!(!required, "QWENGPU_REQUIRE_ALL=1, and there is no clang");
        eprintln!("SKIPPED: there is no clang, CUDA source is not tested");
    }
    found
}

#[test]
fn kernels_of_the_suite_compile() {
    if !has_clang() {
        return;
    }
    let rest = "--grid 1 --block 4 --arg buf:i32:1,2,3 --arg buf:i32:10,20,30 --arg zeros:i32:3 --arg i32:3";
    let text = run_interp(&kernel("vector_add.cu"), rest).success();
    assert!(text.contains("buffer 2 (i32): 11 22 33"), "{text}");
}

/// What a program for an ordinary GPU looks like: the usual headers, host code, a launch.
const PROGRAM: &str = r#"#include <cuda_runtime.h>
#include <stdio.h>
#include <cstdint>
#include <cassert>
#include "limits.h"

__device__ std::uint32_t square(std::uint32_t x) { return x * x; }

__global__ void squares(uint32_t *data, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  assert(n <= 64);
  if (i < n) data[i] = square(data[i]);
}

int main() {
  uint32_t host[4] = {1, 2, 3, 4};
  uint32_t *device;
  cudaMalloc(&device, sizeof(host));
  cudaMemcpy(device, host, sizeof(host), cudaMemcpyHostToDevice);
  dim3 grid(1), block(4);
  squares<<<grid, block>>>(device, 4);
  if (cudaDeviceSynchronize() != cudaSuccess) return EXIT_FAILURE;
  cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost);
  for (int i = 0; i < 4; ++i) printf("%u\n", host[i]);
  cudaFree(device);
  return 0;
}
"#;

#[test]
fn host_code_and_usual_headers_are_accepted() {
    if !has_clang() {
        return;
    }
    let (_folder, path) = file("squares.cu", PROGRAM);
    let rest = "--grid 1 --block 4 --arg buf:u32:1,2,3,4 --arg i32:4";
    let text = run_interp(&path.to_string_lossy(), rest).success();
    assert!(text.contains("buffer 0 (u32): 1 4 9 16"), "{text}");
    let rest = rest.replace("i32:4", "i32:65");
    run_interp(&path.to_string_lossy(), &rest).failure(1, &["executed a trap"]);
}

#[test]
fn compile_errors_are_shown_with_the_users_file() {
    if !has_clang() {
        return;
    }
    let (_folder, path) = file("wrong.cu", "__global__ void k(int *p) {\n  *p = nonsense;\n}\n");
    let shown = path.to_string_lossy().into_owned();
    run_interp(&shown, "--grid 1 --block 1 --arg zeros:i32:1").failure(2, &["wrong.cu:2:8", "nonsense"]);
}

#[test]
fn own_headers_are_found_beside_the_source() {
    if !has_clang() {
        return;
    }
    let source = "#include \"mine.h\"\n__global__ void k(int *p) { *p = ANSWER; }\n";
    let (_folder, path) = file("uses.cu", source);
    std::fs::write(path.with_file_name("mine.h"), "#define ANSWER 42\n").expect("written");
    let text = run_interp(&path.to_string_lossy(), "--grid 1 --block 1 --arg zeros:i32:1").success();
    assert!(text.contains("buffer 0 (i32): 42"), "{text}");
}

#[test]
fn without_clang_the_message_says_how_to_get_it() {
    let rest = "--grid 1 --block 1 --arg zeros:i32:1 --engine interp";
    let mut arguments = vec!["run".to_owned(), kernel("vector_add.cu")];
    arguments.extend(rest.split_whitespace().map(str::to_owned));
    let run = |variable: Option<&Path>| {
        let mut command = command(&arguments);
        command.env("PATH", "/nonexistent");
        if let Some(value) = variable {
            command.env("QWENGPU_CLANG", value);
        }
        crate::tool::Finished::from(command.output().expect("the program starts"))
    };
    run(None).failure(2, &["apt install clang", "QWENGPU_CLANG", ".ptx file runs without clang"]);
    run(Some("/nonexistent/clang".as_ref())).failure(2, &["/nonexistent/clang could not be started"]);
}
