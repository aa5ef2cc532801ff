//! PTX text to programs of the qwenGPU machine.

#![forbid(unsafe_code)]

pub mod ast;
mod error;
mod lexer;
mod parser;
mod span;

pub use error::PtxError;
pub use parser::parse;
pub use span::Span;
