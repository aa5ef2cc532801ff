//! Assembly text to programs.
//!
//! A line holds labels, then at most one instruction or directive; `//` starts a comment.
//!
//! ```text
//! .kernel scale
//! .param pointer offset 0 size 4 align 4 data
//!     s2r r1, tid                      // special register
//!     setp.ge.u p0, r1, c[1]           // operand B: register, immediate, or constant word
//!     @p0 bra done                     // guard
//!     ld.b32 r2, [r1*4 + c[0]]         // address: base + index*4 + c[k] + offset, every part optional
//!     shl r2, r2, 1
//!     st.b32 [r1*4 + c[0]], r2
//! done:
//!     exit
//! ```
//!
//! The third operand of `iadd`, `isub`, `imad`, `iscadd` may be left out and is `r0` then; that of `setp` is `pt`.
//! Numbers are decimal, `0x` hexadecimal or `0b` binary. A branch target is a label or an instruction index.

mod error;
mod lexer;
mod operation;
mod parser;

pub use error::{AsmError, AsmErrorKind, AsmErrors};

use crate::program::Program;

/// The program of an assembly text.
///
/// The text is only checked for its syntax and its labels: see [`crate::verify`] for the rest.
///
/// # Errors
///
/// Returns the first error of every line that has one.
pub fn assemble(source: &str) -> Result<Program, AsmErrors> {
    parser::parse(source)
}

/// Whether a name can stand for a label, a kernel or a parameter in assembly text.
#[must_use]
pub fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(lexer::starts_identifier) && chars.all(lexer::continues_identifier)
}
