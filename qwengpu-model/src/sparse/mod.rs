//! The sparse engine: never multiplies a zero, and knows nothing of what a layer is for.
//!
//! Everything is exact for any weights; only the cost depends on zeros. The rows of a map fall apart into [`blocks`]
//! with no input in common; a block that meets inputs it has had lately is not computed again ([`blocked`], [`memo`]).
//! New inputs scatter by column to the rows they reach ([`activations`]), or find the few rows that get through by a
//! search ([`trie`]). Above the blocks, a map as a whole is looked up by all that it reads ([`whole`]); a mixer's result
//! is a [`plan`] of what is to be done with its states. The largest logit is found in an automaton of rows ([`lattice`]).
//! Maps of which few results are needed (the MLP's `up_proj`, the output gate, decay and write
//! strength) run by row, for those results alone. Recurrent states change in place, in the parts of rows that a key and
//! its values reach ([`state`]).

mod activations;
mod attention;
mod batch;
mod bits;
mod blocked;
mod blocks;
mod channels;
mod conv;
mod head;
mod lattice;
mod layer;
mod linear_attention;
mod memo;
mod mlp;
mod model;
mod norm;
mod packed;
mod plan;
mod projection;
mod state;
mod trie;
mod vector;
mod whole;

pub use batch::SparseBatch;
pub use model::SparseEngine;
