//! PTX text to programs of the qwenGPU machine.
//!
//! PTX is what CUDA compilers emit: a virtual instruction set with endless registers, 64-bit addresses and
//! a warp of 32 lanes. The machine has 15 registers of 32 bits a lane, 7 predicates, 4 lanes a warp and a few
//! hundred words of memory. This crate reads the text, and makes a program of as few instructions as it can,
//! since every instruction of a warp is a token the model has to speak.
//!
//! ```
//! use qwengpu_ptx::{Options, lower, parse};
//!
//! let module = parse(
//!     ".version 7.0
//!      .target sm_75
//!      .address_size 64
//!      .visible .entry twice(.param .u64 data) {
//!          .reg .b32 %r<4>;
//!          .reg .b64 %rd<4>;
//!          ld.param.u64 %rd1, [data];
//!          mov.u32 %r1, %tid.x;
//!          mul.wide.u32 %rd2, %r1, 4;
//!          add.s64 %rd3, %rd1, %rd2;
//!          ld.global.u32 %r2, [%rd3];
//!          shl.b32 %r3, %r2, 1;
//!          st.global.u32 [%rd3], %r3;
//!          ret;
//!      }",
//! )?;
//! let kernel = lower(&module, Some("twice"), &Options::default())?;
//! // tid.x, load, shift, store, exit: all address arithmetic is in the load and the store.
//! assert_eq!(kernel.program.instructions.len(), 5);
//! # Ok::<(), qwengpu_ptx::PtxError>(())
//! ```
//!
//! # Map
//!
//! - `lexer`, `parser`, [`ast`]: text to syntax, which prints as PTX again.
//! - [`subset`]: the table of PTX, by which the builder translates or refuses.
//! - `build`: syntax to IR; names, types, every instruction; calls are inlined, but for recursive functions.
//! - `ir`, `analysis`, `fold`, `pass`: the IR with its invariants, facts about it, and the passes over it.
//! - `regalloc`, `emit`: architectural registers, proved by an independent checker, and machine instructions.
//! - `pipeline`: the order of all this, [`lower`], and the observer that sees the IR after every pass.
//!
//! # What PTX leaves open
//!
//! - `x / 0` is all ones, `x % 0` is `x`; the least integer divided by -1 is itself, with remainder 0.
//! - A warp has 4 lanes and `WARP_SZ` is 4. Member masks name lanes of 32, those beyond the warp are ignored.
//!   `shfl.idx` takes its lane modulo 4; the other modes keep a lane's own value when the source is outside.
//! - Addresses are the low 32 bits of 64-bit ones. All of memory lies below 2^32, so programs within bounds see
//!   no difference, and those outside fault.
//! - `.const` and `.global` variables with storage lie at the end of global memory; see [`StaticData`].
//! - An `.extern .global` variable has an address that faults when used.
//! - The address of a function is a number at which no memory lies.
//!
//! [`subset`] lists what is translated and refused, instruction by instruction; `docs/ptx.md` of the workspace says
//! what barriers and calls cost.
//!
//! # Invariants
//!
//! - No text makes this crate panic: it lowers, or it is refused with a [`PtxError`].
//! - The IR is verified after every pass and every register allocation is checked, in release builds too.
//! - The same text gives the same program.
#![forbid(unsafe_code)]

mod analysis;
pub mod ast;
mod build;
mod emit;
mod error;
mod fold;
mod ir;
mod lexer;
mod parser;
mod pass;
mod pipeline;
mod regalloc;
mod span;
mod stats;
pub mod subset;

pub use error::PtxError;
pub use parser::parse;
pub use pass::{StaticData, StaticSymbol};
pub use pipeline::{LoweredKernel, Options, Stage, lower};
pub use span::Span;
pub use stats::{PassStats, Stats, TokenEstimates};
