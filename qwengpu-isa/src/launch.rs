//! What a launch consists of: grid, block, constants and initial global memory.

use std::fmt;

use thiserror::Error;

use crate::reg::ConstIdx;
use crate::spec::MachineSpec;

/// A dimension of a grid or a CTA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Axis {
    /// The fastest dimension.
    X,
    /// The middle dimension.
    Y,
    /// The slowest dimension.
    Z,
}

impl Axis {
    /// Every axis, fastest first.
    pub const ALL: [Self; 3] = [Self::X, Self::Y, Self::Z];

    /// 0, 1 or 2.
    #[must_use]
    pub const fn index(self) -> u8 {
        match self {
            Self::X => 0,
            Self::Y => 1,
            Self::Z => 2,
        }
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::X => "x",
            Self::Y => "y",
            Self::Z => "z",
        })
    }
}

/// A position or an extent in three dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dim3 {
    /// Along the fastest dimension.
    pub x: u16,
    /// Along the middle dimension.
    pub y: u16,
    /// Along the slowest dimension.
    pub z: u16,
}

impl Dim3 {
    /// The position of the first CTA.
    pub const ORIGIN: Self = Self::new(0, 0, 0);

    /// Three components.
    #[must_use]
    pub const fn new(x: u16, y: u16, z: u16) -> Self {
        Self { x, y, z }
    }

    /// An extent along x only.
    #[must_use]
    pub const fn linear(x: u16) -> Self {
        Self::new(x, 1, 1)
    }

    /// The component along an axis.
    #[must_use]
    pub const fn get(self, axis: Axis) -> u16 {
        match axis {
            Axis::X => self.x,
            Axis::Y => self.y,
            Axis::Z => self.z,
        }
    }

    /// The product of the components.
    #[must_use]
    pub fn volume(self) -> u64 {
        u64::from(self.x) * u64::from(self.y) * u64::from(self.z)
    }
}

impl fmt::Display for Dim3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({}, {}, {})", self.x, self.y, self.z)
    }
}

/// One launch of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchConfig {
    /// CTAs in each dimension.
    pub grid: Dim3,
    /// Threads of a CTA in each dimension.
    pub block: Dim3,
    /// Constant words to write before the launch: parameters and literals. At most one value an index.
    pub constants: Vec<(ConstIdx, u32)>,
    /// Words to write to global memory before the launch, from word 0 on; may be shorter than the memory.
    pub global: Vec<u32>,
}

impl LaunchConfig {
    /// A launch that writes neither constants nor global memory.
    #[must_use]
    pub const fn new(grid: Dim3, block: Dim3) -> Self {
        Self { grid, block, constants: Vec::new(), global: Vec::new() }
    }

    /// Sets one constant word per parameter, from word 0 on: for kernels whose parameters are all one word.
    ///
    /// Words beyond the parameter area are reported by [`LaunchConfig::validate`].
    #[must_use]
    pub fn with_parameters(mut self, words: &[u32]) -> Self {
        self.constants.extend((0..=u8::MAX).filter_map(ConstIdx::new).zip(words.iter().copied()));
        self
    }

    /// Sets constant words.
    #[must_use]
    pub fn with_constants(mut self, constants: impl IntoIterator<Item = (ConstIdx, u32)>) -> Self {
        self.constants.extend(constants);
        self
    }

    /// Sets the words of global memory, from word 0 on.
    #[must_use]
    pub fn with_global(mut self, words: impl Into<Vec<u32>>) -> Self {
        self.global = words.into();
        self
    }

    /// Threads of a CTA.
    #[must_use]
    pub fn threads(&self) -> u64 {
        self.block.volume()
    }

    /// Checks the launch against the limits of a machine.
    ///
    /// # Errors
    ///
    /// Returns the first limit that is exceeded.
    pub fn validate(&self, spec: &MachineSpec) -> Result<(), LaunchError> {
        for axis in Axis::ALL {
            let size = self.grid.get(axis);
            if size == 0 || size > spec.max_grid {
                return Err(LaunchError::GridSize { axis, size, max: spec.max_grid });
            }
        }
        let max_threads = spec.max_threads();
        for axis in Axis::ALL {
            let size = self.block.get(axis);
            if size == 0 || size > max_threads {
                return Err(LaunchError::BlockSize { axis, size, max: max_threads });
            }
        }
        if self.threads() > u64::from(max_threads) {
            return Err(LaunchError::TooManyThreads { threads: self.threads(), max: max_threads });
        }
        for (position, &(index, _)) in self.constants.iter().enumerate() {
            if index.get() >= ConstIdx::LAUNCH_WORDS {
                return Err(LaunchError::ReservedConstant { index });
            }
            if self.constants[..position].iter().any(|&(earlier, _)| earlier == index) {
                return Err(LaunchError::DuplicateConstant { index });
            }
        }
        if self.global.len() > usize::from(spec.global_words) {
            return Err(LaunchError::GlobalSize { words: self.global.len(), max: spec.global_words });
        }
        Ok(())
    }
}

/// A launch the machine cannot do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// A dimension of the grid is zero or too large.
    #[error("grid has {size} CTAs along {axis}, expected 1..={max}")]
    GridSize {
        /// The dimension.
        axis: Axis,
        /// Its size.
        size: u16,
        /// Greatest size allowed.
        max: u16,
    },
    /// A dimension of the CTA is zero or too large.
    #[error("block has {size} threads along {axis}, expected 1..={max}")]
    BlockSize {
        /// The dimension.
        axis: Axis,
        /// Its size.
        size: u16,
        /// Greatest size allowed.
        max: u16,
    },
    /// A CTA has more threads than the machine has lanes for.
    #[error("block has {threads} threads, expected at most {max}")]
    TooManyThreads {
        /// Threads of a CTA.
        threads: u64,
        /// Most threads allowed.
        max: u16,
    },
    /// A constant word belongs to the machine.
    #[error("constant word {} is written by the machine, expected an index below {}", index.get(), ConstIdx::LAUNCH_WORDS)]
    ReservedConstant {
        /// The word.
        index: ConstIdx,
    },
    /// A constant word has two values.
    #[error("constant word {} is given twice", index.get())]
    DuplicateConstant {
        /// The word.
        index: ConstIdx,
    },
    /// More words than global memory has.
    #[error("{words} words of global memory given, expected at most {max}")]
    GlobalSize {
        /// Words given.
        words: usize,
        /// Words of global memory.
        max: u16,
    },
    /// The arguments do not match the parameters of the kernel.
    #[error("kernel has {expected} parameters, got {got} arguments")]
    ArgumentCount {
        /// Parameters of the kernel.
        expected: usize,
        /// Arguments given.
        got: usize,
    },
    /// An argument has another size than its parameter.
    #[error("parameter {parameter} has {expected} bytes, got {got}")]
    ArgumentSize {
        /// Position of the parameter.
        parameter: usize,
        /// Its size in bytes.
        expected: u32,
        /// Bytes given.
        got: usize,
    },
    /// A parameter lies outside the parameter area of the constant bank.
    #[error("parameter {parameter} ends at byte {end}, expected at most {max}")]
    ParameterSpace {
        /// Position of the parameter.
        parameter: usize,
        /// Its end, in bytes from the start of the parameter area.
        end: u64,
        /// Size of the parameter area in bytes.
        max: u32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_checked() {
        let spec = MachineSpec::seed();
        let good = LaunchConfig::new(Dim3::new(2, 2, 1), Dim3::new(4, 4, 2));
        assert_eq!(good.validate(&spec), Ok(()));
        let check = |change: fn(&mut LaunchConfig), expected: &str| {
            let mut launch = good.clone();
            change(&mut launch);
            assert_eq!(launch.validate(&spec).expect_err("is refused").to_string(), expected);
        };
        check(|l| l.grid.y = 0, "grid has 0 CTAs along y, expected 1..=255");
        check(|l| l.grid.z = 256, "grid has 256 CTAs along z, expected 1..=255");
        check(|l| l.block.x = 0, "block has 0 threads along x, expected 1..=32");
        check(|l| l.block.x = 8, "block has 64 threads, expected at most 32");
        check(
            |l| l.constants = vec![(ConstIdx::NTID_X, 1)],
            "constant word 120 is written by the machine, expected an index below 117",
        );
        check(|l| l.constants = vec![(ConstIdx::FIRST_LITERAL, 1); 2], "constant word 96 is given twice");
        check(|l| l.global = vec![0; 127], "127 words of global memory given, expected at most 126");
    }
}
