//! PTX text to programs of the qwenGPU machine.

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

pub use error::PtxError;
pub use parser::parse;
pub use pass::{StaticData, StaticSymbol};
pub use pipeline::{LoweredKernel, Options, PassStats, Stage, Stats, lower};
pub use span::Span;
