//! A kernel as the machine holds it: instructions, names, parameters.

use crate::inst::Instruction;
use crate::launch::LaunchError;
use crate::reg::{ConstIdx, Pc};

/// A kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Program {
    /// Name, parameters and memory needs.
    pub signature: KernelSignature,
    /// The instructions, from index 0 on; every CTA starts at index 0.
    pub instructions: Vec<Instruction>,
    /// Names of instructions, sorted by index and then by name.
    pub labels: Vec<Label>,
}

/// The name of an instruction.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Label {
    /// The instruction named.
    pub pc: Pc,
    /// The name.
    pub name: String,
}

/// What a caller of a kernel must know.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KernelSignature {
    /// Name of the kernel; may be empty.
    pub name: String,
    /// The parameters, in order.
    pub params: Vec<Param>,
    /// Bytes of shared memory used.
    pub shared_bytes: u32,
    /// Bytes of local memory used by each thread.
    pub local_bytes: u32,
}

/// A kernel parameter: bytes `offset..offset + size` of the parameter area of the constant bank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// Name in the source; may be empty.
    pub name: String,
    /// Byte offset.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
    /// Alignment in bytes: a power of two.
    pub align: u32,
    /// How the bytes are meant.
    pub kind: ParamKind,
}

/// How the bytes of a parameter are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ParamKind {
    /// The address of a buffer.
    Pointer,
    /// An unsigned integer.
    Unsigned,
    /// A signed integer.
    Signed,
    /// Bits without an interpretation, or an aggregate.
    Bytes,
}

impl ParamKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Pointer, Self::Unsigned, Self::Signed, Self::Bytes];

    /// The name in assembly text.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Pointer => "pointer",
            Self::Unsigned => "unsigned",
            Self::Signed => "signed",
            Self::Bytes => "bytes",
        }
    }
}

impl Param {
    /// A parameter whose alignment is its size.
    #[must_use]
    pub fn scalar(name: impl Into<String>, kind: ParamKind, offset: u32, size: u32) -> Self {
        Self { name: name.into(), offset, size, align: size, kind }
    }
}

impl KernelSignature {
    /// A kernel without parameters.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// The parameter of a name.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&Param> {
        self.params.iter().find(|param| param.name == name)
    }

    /// The constant words that hold the arguments, each given as its bytes.
    ///
    /// Padding is zero. Every word from the first to the last parameter is listed.
    ///
    /// # Errors
    ///
    /// Fails if the number or a size of the arguments is not that of the parameters, or if they do not fit.
    pub fn pack_arguments(&self, arguments: &[&[u8]]) -> Result<Vec<(ConstIdx, u32)>, LaunchError> {
        if arguments.len() != self.params.len() {
            return Err(LaunchError::ArgumentCount { expected: self.params.len(), got: arguments.len() });
        }
        let max = 4 * u32::from(ConstIdx::PARAMETER_WORDS);
        let mut bytes: Vec<u8> = Vec::new();
        for (parameter, (param, argument)) in self.params.iter().zip(arguments).enumerate() {
            let end = u64::from(param.offset) + u64::from(param.size);
            let out_of_space = LaunchError::ParameterSpace { parameter, end, max };
            if end > u64::from(max) {
                return Err(out_of_space);
            }
            let (Ok(offset), Ok(size)) = (usize::try_from(param.offset), usize::try_from(param.size)) else {
                return Err(out_of_space);
            };
            if argument.len() != size {
                return Err(LaunchError::ArgumentSize { parameter, expected: param.size, got: argument.len() });
            }
            if bytes.len() < offset + size {
                bytes.resize(offset + size, 0);
            }
            bytes[offset..offset + size].copy_from_slice(argument);
        }
        let words = bytes.chunks(4).map(|chunk| {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            u32::from_le_bytes(word)
        });
        Ok((0..=u8::MAX).filter_map(ConstIdx::new).zip(words).collect())
    }
}

impl Program {
    /// A program without labels.
    #[must_use]
    pub fn new(signature: KernelSignature, instructions: Vec<Instruction>) -> Self {
        Self { signature, instructions, labels: Vec::new() }
    }

    /// Names an instruction.
    pub fn add_label(&mut self, pc: Pc, name: impl Into<String>) {
        let label = Label { pc, name: name.into() };
        let position = self.labels.partition_point(|other| *other < label);
        self.labels.insert(position, label);
    }

    /// The instruction of a name.
    #[must_use]
    pub fn label(&self, name: &str) -> Option<Pc> {
        self.labels.iter().find(|label| label.name == name).map(|label| label.pc)
    }

    /// The first name of an instruction.
    #[must_use]
    pub fn label_at(&self, pc: Pc) -> Option<&str> {
        self.labels.iter().find(|label| label.pc == pc).map(|label| label.name.as_str())
    }

    /// The instruction words.
    #[must_use]
    pub fn words(&self) -> Vec<u64> {
        self.instructions.iter().map(Instruction::encode).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_packed_with_padding() {
        let mut signature = KernelSignature::new("k");
        signature.params.push(Param::scalar("flag", ParamKind::Unsigned, 0, 1));
        signature.params.push(Param::scalar("n", ParamKind::Unsigned, 4, 4));
        signature.params.push(Param::scalar("data", ParamKind::Pointer, 8, 8));
        let words = signature.pack_arguments(&[&[7], &[1, 2, 0, 0], &64u64.to_le_bytes()]).expect("arguments match");
        let words: Vec<_> = words.into_iter().map(|(index, word)| (index.get(), word)).collect();
        assert_eq!(words, [(0, 7), (1, 0x201), (2, 64), (3, 0)]);
        assert_eq!(signature.pack_arguments(&[]), Err(LaunchError::ArgumentCount { expected: 3, got: 0 }));
        assert_eq!(
            signature.pack_arguments(&[&[7], &[1], &[0; 8]]),
            Err(LaunchError::ArgumentSize { parameter: 1, expected: 4, got: 1 })
        );
        signature.params[2].offset = 380;
        assert_eq!(
            signature.pack_arguments(&[&[7], &[0; 4], &[0; 8]]),
            Err(LaunchError::ParameterSpace { parameter: 2, end: 388, max: 384 })
        );
    }
}
