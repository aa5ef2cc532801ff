//! Compiled circuits as Qwen3.5 checkpoints that an unmodified `transformers` loads, by themselves or in front of a base.
//!
//! [`emit`] writes a directory with the weights, the configuration, a tokenizer in which every token of the machine is
//! one id, and a [`Manifest`] that says what channels, states and ids mean. This crate knows circuits and their
//! tensors; what a machine is for is up to its caller, who may leave figures of it in the manifest.
//!
//! | file | content |
//! |---|---|
//! | `model.safetensors`, or shards and an index | every tensor, in bf16 or f32 |
//! | `config.json`, `generation_config.json` | the model's sizes; greedy decoding until the halt token |
//! | `tokenizer.json`, `tokenizer_config.json` | ids of bytes and of the machine's tokens |
//! | `qwengpu.json` | the [`Manifest`] |
//!
//! ```
//! # use std::{collections::BTreeMap, ops::ControlFlow};
//! use qwengpu_circuit::{Builder, CompileOptions, Geometry, Token, compile};
//! use qwengpu_weights::{EmitOptions, FIRST_MACHINE_TOKEN, Manifest, Source, emit};
//!
//! // A machine of one token, which always answers with itself.
//! let mut builder = Builder::new();
//! let one = builder.input("one", 0..=1);
//! let again = builder.relu_bit("again", one);
//! builder.token(Token { text: "<|tick|>".to_owned(), inputs: vec![(one, 1)], code: vec![(again, 1)] });
//! let netlist = builder.finish();
//! let compiled = compile(&netlist, &Geometry::new(1024, 64, 1, 4), &CompileOptions::default())?;
//!
//! let (machine, margins) = (BTreeMap::new(), BTreeMap::new());
//! let source = Source { netlist: &netlist, compiled: &compiled, halt_token: 0, machine, margins };
//! # let parent = tempfile::tempdir()?;
//! # let dir = parent.path().join("tick");
//! emit(&source, &dir, &EmitOptions::default(), &mut |_| ControlFlow::Continue(()))?;
//! assert_eq!(Manifest::read(&dir)?.token_id(0), Some(FIRST_MACHINE_TOKEN));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`merge`] writes the same for a machine in front of a [`Base`]: a Qwen3.5 language model that keeps its function.
//!
//! # The model
//!
//! The compiled layers come first, all of them `linear_attention`. One `full_attention` layer of zeros follows, which
//! does nothing: the cache of `transformers` counts tokens by such a layer. `lm_head` is not tied to the embedding.
//!
//! # Ids
//!
//! | id | token |
//! |---|---|
//! | 0 to 255 | the byte of that value, so that any text can be encoded |
//! | 256 | `<|endoftext|>`, used for padding |
//! | [`FIRST_MACHINE_TOKEN`] + n | token n of the netlist |
//! | up to a multiple of 64 | none |
//!
//! Only the machine's tokens have rows that are not zero, in the embedding as in `lm_head`.
//!
//! # Invariants
//!
//! - A value that the chosen dtype can't hold exactly is an error, never rounded.
//! - The same circuit and options give the same bytes.
//! - A directory is complete or absent: it is written under another name and then renamed.
//! - Memory stays far below the size of the model: tensors are streamed from their sparse form, and runs of zeros become
//!   holes in the file where the file system has them.
#![forbid(unsafe_code)]

mod config;
mod directory;
mod dtype;
mod emit;
mod error;
mod manifest;
mod merge;
mod names;
mod records;
mod shard;
mod sparse_file;
mod tensor;
mod tokenizer;

pub use dtype::{Dtype, DtypeError};
pub use emit::{EmitOptions, Progress, Source, emit};
pub use error::{EmitError, ManifestError, TensorError, TokenError};
pub use manifest::{MANIFEST_VERSION, Manifest};
pub use merge::{
    Base, BaseError, BaseRecord, ChannelRanges, Layout, MachineNeeds, MergeError, MergeOptions, MergePlan, MergeRecord,
    TensorAction, TensorRecord, merge,
};
pub use names::{CONFIG_FILE, MANIFEST_FILE};
pub use records::{ChannelRecord, GeometryRecord, LayerRecord, Occupancy, ReportRecord, StateRecord};
pub use tokenizer::FIRST_MACHINE_TOKEN;
