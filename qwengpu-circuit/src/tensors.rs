//! The emitted weights: what a checkpoint needs, in plain types.

use crate::geometry::Geometry;

/// A matrix of mostly zeros, in the orientation `[out, in]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SparseMatrix {
    /// Number of rows (outputs).
    pub rows: usize,
    /// Number of columns (inputs).
    pub cols: usize,
    /// `(row, column, value)`, sorted by row then column, without duplicates and without zeros.
    pub entries: Vec<(u32, u32, f32)>,
}

impl SparseMatrix {
    /// The zero matrix of a shape.
    #[must_use]
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self { rows, cols, entries: Vec::new() }
    }

    /// Sorts the entries, adds those of the same place, and drops zeros.
    #[must_use]
    pub(crate) fn normalised(mut self) -> Self {
        self.entries.sort_by_key(|&(row, col, _)| (row, col));
        self.entries.dedup_by(|next, kept| {
            let same = (next.0, next.1) == (kept.0, kept.1);
            if same {
                kept.2 += next.2;
            }
            same
        });
        self.entries.retain(|&(_, _, value)| value != 0.0);
        self
    }

    pub(crate) fn push(&mut self, row: usize, col: usize, value: f32) {
        self.entries.push((index(row), index(col), value));
    }

    /// Number of non-zeros.
    #[must_use]
    pub fn num_nonzeros(&self) -> usize {
        self.entries.len()
    }
}

/// Positions in tensors fit 32 bits for every geometry that [`Geometry::constant`] accepts.
pub(crate) fn index(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

/// The tensors of one compiled linear-attention layer; both layernorm weights stay at their neutral 0.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerTensors {
    /// `[2 * key_heads * key_dim + value_heads * value_dim, hidden]`: queries, keys, values, each head by head.
    pub in_proj_qkv: SparseMatrix,
    /// `[value_heads * value_dim, hidden]`: the output gate.
    pub in_proj_z: SparseMatrix,
    /// `[value_heads, hidden]`: write strength before its sigmoid.
    pub in_proj_b: SparseMatrix,
    /// `[value_heads, hidden]`: decay before its softplus.
    pub in_proj_a: SparseMatrix,
    /// Taps of each channel of `in_proj_qkv`, the newest token's last.
    pub conv1d: Vec<[f32; 4]>,
    /// `[value_heads]`.
    pub a_log: Vec<f32>,
    /// `[value_heads]`.
    pub dt_bias: Vec<f32>,
    /// `[value_dim]`: weight of the norm after a read.
    pub norm: Vec<f32>,
    /// `[hidden, value_heads * value_dim]`.
    pub out_proj: SparseMatrix,
    /// `[intermediate, hidden]`.
    pub gate_proj: SparseMatrix,
    /// `[intermediate, hidden]`.
    pub up_proj: SparseMatrix,
    /// `[hidden, intermediate]`.
    pub down_proj: SparseMatrix,
}

impl LayerTensors {
    /// The matrices with their names inside a checkpoint's layer.
    pub fn matrices(&self) -> impl Iterator<Item = (&'static str, &SparseMatrix)> {
        [
            ("linear_attn.in_proj_qkv", &self.in_proj_qkv),
            ("linear_attn.in_proj_z", &self.in_proj_z),
            ("linear_attn.in_proj_b", &self.in_proj_b),
            ("linear_attn.in_proj_a", &self.in_proj_a),
            ("linear_attn.out_proj", &self.out_proj),
            ("mlp.gate_proj", &self.gate_proj),
            ("mlp.up_proj", &self.up_proj),
            ("mlp.down_proj", &self.down_proj),
        ]
        .into_iter()
    }

    /// Non-zero entries of all matrices.
    #[must_use]
    pub fn num_nonzeros(&self) -> usize {
        self.matrices().map(|(_, matrix)| matrix.num_nonzeros()).sum()
    }
}

/// A compiled machine.
///
/// Every value is exactly representable in bf16. Rows of `embedding` and `lm_head` are the machine's tokens only, in
/// the netlist's order; a language token has zeros in all of these channels.
#[derive(Clone, Debug, PartialEq)]
pub struct CircuitTensors {
    /// The sizes that the tensors have.
    pub geometry: Geometry,
    /// Number of layers used.
    pub num_layers: usize,
    /// Channels of the residual stream, as in the geometry.
    pub hidden: usize,
    /// `[tokens, hidden]`: inputs, and the constant in its channels.
    pub embedding: SparseMatrix,
    /// `[tokens, hidden]`: the codes, scaled so that one unit of a code is [`CircuitTensors::logit_unit`] logits.
    pub lm_head: SparseMatrix,
    /// `[hidden]`: the final norm's stored weight `w` of `1 + w`; all 0.
    pub final_norm: Vec<f32>,
    /// How much one unit of a code adds to a logit.
    pub logit_unit: f32,
    /// The layers, first to last.
    pub layers: Vec<LayerTensors>,
}

/// `A_log` of a head that never decays, with `in_proj_a` and `dt_bias` of 0: `exp(-120) softplus(0)` is 0 beside 1 in f32.
pub const NO_DECAY: f32 = -120.0;

/// The value that a written bit has in the recurrent state: `2^7`.
pub const STORED_BIT: f32 = 128.0;

/// Where the rows of one copy of a state lie in the recurrent states, so that a host can read them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateLocation {
    /// The state's name.
    pub state: String,
    /// Number of the read port that this copy serves; 0 for a state that is never read.
    pub port: usize,
    /// The layer.
    pub layer: usize,
    /// `heads[bank][slice]`: head numbers; a bank holds [`StateLocation::rows_per_bank`] rows, a slice
    /// [`StateLocation::bits_per_slice`] bits of each.
    pub heads: Vec<Vec<usize>>,
    /// Rows of the state.
    pub rows: usize,
    /// Bits of a row.
    pub bits: usize,
    /// Rows in a bank: the key dim.
    pub rows_per_bank: usize,
    /// Bits in a slice: the value dim less the two dims of the level.
    pub bits_per_slice: usize,
}

impl StateLocation {
    /// `(head, row, value dim)` of a bit of a row: the element `[row, value dim]` of the recurrent state of `head` is
    /// [`STORED_BIT`] if the bit is set and 0 if it is not. `None` past the state's end.
    #[must_use]
    pub fn bit(&self, row: usize, bit: usize) -> Option<(usize, usize, usize)> {
        if row >= self.rows || bit >= self.bits {
            return None;
        }
        let head = *self.heads.get(row / self.rows_per_bank)?.get(bit / self.bits_per_slice)?;
        Some((head, row % self.rows_per_bank, bit % self.bits_per_slice))
    }
}
