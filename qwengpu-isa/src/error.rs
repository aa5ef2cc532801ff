//! The errors of the crate, for callers that take a program from its text to a launch.

use thiserror::Error;

use crate::asm::AsmErrors;
use crate::decode::DecodeError;
use crate::disasm::DisassembleError;
use crate::launch::LaunchError;
use crate::spec::SpecError;
use crate::table::RecordError;
use crate::verify::VerifyErrors;

/// Any error of the crate.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The sizes of a machine are invalid.
    #[error("invalid machine: {0}")]
    Spec(#[from] SpecError),
    /// An assembly text is malformed.
    #[error("assembly failed: {0}")]
    Assemble(#[from] AsmErrors),
    /// A word is no instruction.
    #[error("decoding failed: {0}")]
    Decode(#[from] DecodeError),
    /// A word of a program is no instruction.
    #[error("disassembly failed: {0}")]
    Disassemble(#[from] DisassembleError),
    /// The machine cannot run a program.
    #[error("program refused: {0}")]
    Verify(#[from] VerifyErrors),
    /// The machine cannot do a launch.
    #[error("launch refused: {0}")]
    Launch(#[from] LaunchError),
    /// A text is no record.
    #[error("{0}")]
    Record(#[from] RecordError),
}
