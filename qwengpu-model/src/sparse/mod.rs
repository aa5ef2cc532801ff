//! The sparse engine: never multiplies a zero, and knows nothing of what a layer is for.
//!
//! Everything is exact for any weights; only the cost depends on zeros. Linear maps whose results are all needed run
//! by column ([`projection`]): each non-zero input scatters to the rows it reaches. Maps of which few results are
//! needed (the MLP's `up_proj`, the output gate, decay and write strength) run by row, for those results alone.
//! Recurrent states change in place, in the rows that a key reaches.

mod activations;
mod attention;
mod bits;
mod blocked;
mod blocks;
mod channels;
mod conv;
mod head;
mod layer;
mod linear_attention;
mod memo;
mod mlp;
mod model;
mod norm;
mod packed;
mod projection;
mod state;
mod trie;
mod vector;

pub use model::SparseEngine;
