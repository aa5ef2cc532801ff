//! The sizes of the layers that a machine is compiled into, and the constant that makes their norms exact.

use thiserror::Error;

/// Value dims of a head that hold the level instead of a bit.
pub(crate) const LEVEL_DIMS: usize = 2;

/// Sizes of a stack of linear-attention layers.
///
/// The fields are public so that a geometry can be read from a model's configuration; [`Geometry::constant`] is
/// where a combination that cannot be compiled to is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Channels of the residual stream.
    pub hidden: usize,
    /// Channels at the front that a machine leaves alone: zero for all its tokens, read and written by none of its
    /// weights.
    pub reserved: usize,
    /// Neurons of an MLP.
    pub intermediate: usize,
    /// Query and key heads of a layer.
    pub key_heads: usize,
    /// Value heads of a layer; must equal `key_heads`.
    pub value_heads: usize,
    /// Rows of a head's recurrent state.
    pub key_dim: usize,
    /// Columns of a head's recurrent state.
    pub value_dim: usize,
    /// Taps of the short convolution.
    pub conv_kernel: usize,
    /// The largest number of layers that may be used.
    pub layers: usize,
}

/// The constant channels: `channels` of them hold [`ConstantPlan::VALUE`], so that the norm's factor is `2^-exponent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConstantPlan {
    /// How many channels hold the constant.
    pub channels: usize,
    /// `m`: RMSNorm multiplies by `2^-m`, and projections that want integers multiply by `2^m`.
    pub exponent: u32,
}

impl ConstantPlan {
    /// `C = 2^24`, what each constant channel holds for a machine token.
    pub const VALUE: f32 = 16_777_216.0;
    /// `log2` of [`ConstantPlan::VALUE`].
    pub const LOG2_VALUE: u32 = 24;
    /// The sum of squares that all other channels must stay below: `C^2 / 2^24`.
    pub const SQUARES: i64 = 1 << 24;

    /// The weight that turns a channel holding 1 into 1 behind a norm: `2^m`.
    #[must_use]
    pub fn unit(self) -> f32 {
        power_of_two(self.exponent)
    }

    /// The weight that turns a constant channel into 1 behind a norm: `2^m / C`.
    #[must_use]
    pub fn bias(self) -> f32 {
        self.unit() / Self::VALUE
    }
}

/// A geometry that machines cannot be compiled to.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum GeometryError {
    /// No number of constant channels makes the norm a power of two.
    #[error(
        "hidden size {hidden}: no number of constant channels n that there is room for makes n * 2^48 / {hidden} a power of four"
    )]
    Constant {
        /// The hidden size.
        hidden: usize,
    },
    /// Grouped value heads are not supported.
    #[error("{key_heads} key heads and {value_heads} value heads: the numbers must be equal")]
    Heads {
        /// Key heads.
        key_heads: usize,
        /// Value heads.
        value_heads: usize,
    },
    /// A dim outside what the recipe was derived for.
    #[error("{what} is {got}, expected {expected}")]
    Dim {
        /// The name of the dim.
        what: &'static str,
        /// Its value.
        got: usize,
        /// What it must be.
        expected: &'static str,
    },
}

impl Default for Geometry {
    /// 2048 channels, 6144 neurons, 16 heads, as Qwen3.5-2B has them; up to 64 layers.
    fn default() -> Self {
        Self::new(2048, 6144, 16, 64)
    }
}

impl Geometry {
    /// The geometry with the usual head dims (128 by 128) and kernel (4).
    #[must_use]
    pub fn new(hidden: usize, intermediate: usize, heads: usize, layers: usize) -> Self {
        Self {
            hidden,
            reserved: 0,
            intermediate,
            key_heads: heads,
            value_heads: heads,
            key_dim: 128,
            value_dim: 128,
            conv_kernel: 4,
            layers,
        }
    }

    /// Bits of a row that one head can hold.
    #[must_use]
    pub fn bits_per_head(&self) -> usize {
        self.value_dim - LEVEL_DIMS
    }

    /// Width of the query, key and value projections together.
    #[must_use]
    pub fn qkv_rows(&self) -> usize {
        2 * self.key_heads * self.key_dim + self.value_heads * self.value_dim
    }

    /// Width of the value projection of all heads.
    #[must_use]
    pub fn value_rows(&self) -> usize {
        self.value_heads * self.value_dim
    }

    /// Checks the geometry and chooses the constant channels: the least `n` with `n * C^2 / hidden = 4^m`.
    ///
    /// ```
    /// # use qwengpu_circuit::Geometry;
    /// let plan = Geometry::new(2560, 9216, 16, 32).constant()?;
    /// assert_eq!((plan.channels, plan.exponent), (10, 20));
    /// # Ok::<(), qwengpu_circuit::GeometryError>(())
    /// ```
    ///
    /// # Errors
    /// [`GeometryError`] when a dim is not supported or no `n` exists that leaves the reserved channels free.
    pub fn constant(&self) -> Result<ConstantPlan, GeometryError> {
        if self.key_heads != self.value_heads {
            return Err(GeometryError::Heads { key_heads: self.key_heads, value_heads: self.value_heads });
        }
        for (what, got, legal, expected) in [
            ("hidden", self.hidden, self.hidden > 0 && self.hidden <= 1 << 20, "1..=2^20"),
            ("reserved", self.reserved, self.reserved < self.hidden, "less than the hidden size"),
            ("intermediate", self.intermediate, self.intermediate > 0, "at least 1"),
            ("layers", self.layers, self.layers > 0, "at least 1"),
            ("key_dim", self.key_dim, self.key_dim == 128, "128"),
            // The norm over the value dims must turn the level into a power of two: 2^22 * sqrt(2 / 128) does.
            ("value_dim", self.value_dim, self.value_dim == 128, "128"),
            ("conv_kernel", self.conv_kernel, self.conv_kernel == 4, "4"),
        ] {
            if !legal {
                return Err(GeometryError::Dim { what, got, expected });
            }
        }
        let squared = 1_u128 << (2 * ConstantPlan::LOG2_VALUE);
        let hidden = self.hidden as u128;
        (1..self.hidden - self.reserved)
            .find_map(|channels| {
                let sum = channels as u128 * squared;
                let mean = sum / hidden;
                let fits =
                    sum.is_multiple_of(hidden) && mean.is_power_of_two() && mean.trailing_zeros().is_multiple_of(2);
                fits.then(|| ConstantPlan { channels, exponent: mean.trailing_zeros() / 2 })
            })
            .ok_or(GeometryError::Constant { hidden: self.hidden })
    }
}

/// `2^exponent`.
pub(crate) fn power_of_two(exponent: u32) -> f32 {
    (0..exponent).fold(1.0, |value, _| value * 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_channels_of_the_known_sizes() {
        for (hidden, channels, exponent) in
            [(1024, 1, 19), (2048, 2, 19), (3072, 3, 19), (2560, 10, 20), (4096, 1, 18), (5120, 5, 19)]
        {
            let plan = Geometry::new(hidden, 64, 1, 1).constant().expect("a plan");
            assert_eq!((plan.channels, plan.exponent), (channels, exponent), "hidden {hidden}");
        }
    }

    #[test]
    fn refusals() {
        let heads = Geometry { value_heads: 32, ..Geometry::new(2560, 64, 16, 1) };
        assert_eq!(heads.constant(), Err(GeometryError::Heads { key_heads: 16, value_heads: 32 }));
        let dims = Geometry { key_dim: 64, ..Geometry::new(1024, 64, 16, 1) };
        assert!(matches!(dims.constant(), Err(GeometryError::Dim { what: "key_dim", got: 64, .. })));
        // n * 2^48 / 7 is a power of four only for multiples of 7.
        assert_eq!(Geometry::new(7, 64, 1, 1).constant(), Err(GeometryError::Constant { hidden: 7 }));
    }
}
