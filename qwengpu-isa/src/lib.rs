//! The instruction set of qwenGPU: what every other part of the project means by a program, a launch and a record.
//!
//! qwenGPU is a SIMT machine of 32-bit integers. A warp has a few lanes, each with 15 registers, 7 predicates, and a
//! program counter of its own; the lanes with the smallest program counter execute together. The machine is driven by
//! tokens, here called records: a [`prompt()`] writes a [`Program`] and its data and starts it, and the machine speaks
//! what it does.
//!
//! ```
//! use qwengpu_isa::{Dim3, LaunchConfig, MachineSpec, RecordTable, assemble, prompt, verify};
//!
//! let spec = MachineSpec::seed();
//! let program = assemble("s2r r1, tid\n st.b32 [r1*4 + c[0]], r1\n exit")?;
//! verify(&spec, &program)?;
//! assert_eq!(program.instructions[1].to_string(), "st.b32 [r1*4 + c[0]], r1");
//!
//! let launch = LaunchConfig::new(Dim3::linear(1), Dim3::linear(4)).with_parameters(&[16]);
//! let records = prompt(&spec, &program, &launch)?;
//! let table = RecordTable::new(&spec)?;
//! assert_eq!(table.text(records[0]), "<|rom:000|>");
//! # Ok::<(), qwengpu_isa::Error>(())
//! ```
//!
//! # Map
//!
//! - [`MachineSpec`]: every size of a machine. [`Opcode`]: what an opcode is and uses.
//! - [`Instruction`] with its constructors, [`Instruction::encode`], [`Instruction::decode`]: typed values and words.
//! - [`assemble`], `Display` of [`Program`], [`disassemble`]: text and words.
//! - [`verify`]: whether a machine can run a program.
//! - [`LaunchConfig`], [`prompt()`], [`Record`], [`RecordTable`]: launches and tokens.
//!
//! # Invariants
//!
//! - Every [`Instruction`] has one word, and a word that decodes has one instruction: decoding refuses unused fields
//!   that are not zero.
//! - The text of a verified program assembles to the same program.
//! - A program that [`verify`] accepts makes no later stage panic.
//!
//! # Features
//!
//! - `strategies`: generators of random programs for property tests with proptest, in the module
//!   `strategies`.
#![forbid(unsafe_code)]

mod asm;
mod construct;
mod decode;
mod disasm;
mod encode;
mod error;
mod inst;
mod launch;
mod modifier;
mod op;
mod operand;
mod preset;
mod program;
mod prompt;
mod record;
mod reg;
mod span;
mod spec;
#[cfg(feature = "strategies")]
pub mod strategies;
mod table;
mod verify;

pub use asm::{AsmError, AsmErrorKind, AsmErrors, assemble, is_identifier};
pub use decode::DecodeError;
pub use disasm::{DisassembleError, disassemble};
pub use encode::{B_CONSTANT, B_IMMEDIATE, B_REGISTER, Fields, TARGET_SHIFT};
pub use error::Error;
pub use inst::{BinaryOp, Dividend, Instruction, Operation, TernaryOp, UnaryOp};
pub use launch::{Axis, Dim3, LaunchConfig, LaunchError};
pub use modifier::{
    Comparison, DivisionPart, Extremum, LoadWidth, Relation, ScaleShift, ShuffleMode, Signedness, SpecialReg,
    StoreWidth, Table2, Table3, TrapReason,
};
pub use op::{Destination, FieldUse, Opcode, OperandUse};
pub use operand::{Address, Offset, Operand, ShortOperand};
pub use preset::MachinePreset;
pub use program::{KernelSignature, Label, Param, ParamKind, Program};
pub use prompt::{History, launch_records, program_records, prompt};
pub use record::{Distance, FaultKind, Parity, Place, Record};
pub use reg::{ConstIdx, Guard, LaneMask, Pc, PredReg, PredSource, Reg};
pub use span::{LineColumn, Span};
pub use spec::{
    CONSTANT_WORDS, GLOBAL_BASE, LOCAL_BASE, MAX_CTA_THREADS, MachineSpec, Memory, MemoryWindow, SHARED_BASE, SpecError,
};
pub use table::{RecordError, RecordKind, RecordTable};
pub use verify::{VerifyError, VerifyErrorKind, VerifyErrors, verify};
