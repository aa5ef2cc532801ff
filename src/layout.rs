//! Where the arguments of a launch lie: buffers in global memory, parameters in the constant bank.

use qwengpu_isa::{ConstIdx, KernelSignature, MachineSpec, Param, ParamKind};

use crate::argument::{Argument, Buffer};
use crate::error::LaunchError;
use crate::kernel::Kernel;

/// Bytes of a word.
const WORD: usize = 4;
/// Bytes of a pointer.
const POINTER: u32 = 8;

/// The arguments of one launch, placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The constant words of the parameters.
    pub(crate) constants: Vec<(ConstIdx, u32)>,
    /// Global memory from word 0 on, with the kernel's own data.
    pub(crate) global: Vec<u32>,
    /// Byte addresses of the buffers, in order.
    pub(crate) addresses: Vec<usize>,
}

impl Layout {
    /// Checks the arguments against the kernel's signature and places them.
    pub(crate) fn new(spec: &MachineSpec, kernel: &Kernel, arguments: &[Argument]) -> Result<Self, LaunchError> {
        let signature = kernel.signature();
        check(signature, arguments)?;
        let mut bytes = Vec::new();
        let mut addresses = Vec::new();
        for buffer in buffers(arguments) {
            let align = WORD.max(buffer.element().bytes().into());
            bytes.resize(bytes.len().next_multiple_of(align), 0);
            addresses.push(bytes.len());
            bytes.extend(buffer.to_bytes());
        }
        bytes.resize(bytes.len().next_multiple_of(WORD), 0);
        let own = kernel.static_data();
        let limit = own.map_or(usize::from(spec.global_words), |own| own.first_word as usize);
        let need = bytes.len() / WORD;
        if need > limit {
            let reserved = usize::from(spec.global_words) - limit;
            return Err(LaunchError::GlobalMemory { need, limit, reserved });
        }
        let mut global: Vec<u32> = bytes.as_chunks::<WORD>().0.iter().map(|&word| u32::from_le_bytes(word)).collect();
        if let Some(own) = own {
            global.resize(limit, 0);
            global.extend(&own.words);
        }
        let mut places = addresses.iter();
        let packed: Vec<Vec<u8>> = arguments
            .iter()
            .map(|argument| match argument {
                Argument::Scalar(scalar) => scalar.to_bytes(),
                Argument::Buffer(_) => places.next().map_or(0, |&place| place as u64).to_le_bytes().to_vec(),
            })
            .collect();
        let packed: Vec<&[u8]> = packed.iter().map(Vec::as_slice).collect();
        Ok(Self { constants: signature.pack_arguments(&packed)?, global, addresses })
    }

    /// The buffers among the arguments, with what memory holds in their places.
    pub(crate) fn read(&self, memory: &[u32], arguments: &[Argument]) -> Vec<Buffer> {
        let bytes: Vec<u8> = memory.iter().flat_map(|word| word.to_le_bytes()).collect();
        buffers(arguments)
            .zip(&self.addresses)
            .map(|(buffer, &address)| {
                buffer.with_bytes(bytes.get(address..address + buffer.num_bytes()).unwrap_or_default())
            })
            .collect()
    }
}

fn buffers(arguments: &[Argument]) -> impl Iterator<Item = &Buffer> {
    arguments.iter().filter_map(|argument| match argument {
        Argument::Buffer(buffer) => Some(buffer),
        Argument::Scalar(_) => None,
    })
}

/// Number and kinds of the arguments.
fn check(signature: &KernelSignature, arguments: &[Argument]) -> Result<(), LaunchError> {
    if arguments.len() != signature.params.len() {
        return Err(LaunchError::ArgumentCount {
            kernel: signature.name.clone(),
            expected: signature.params.len(),
            got: arguments.len(),
            forms: signature.params.iter().map(expected_form).collect::<Vec<_>>().join(" "),
        });
    }
    for (number, (param, argument)) in signature.params.iter().zip(arguments).enumerate() {
        let fits = match argument {
            Argument::Buffer(_) => param.size == POINTER && param.kind != ParamKind::Bytes,
            Argument::Scalar(scalar) => {
                param.kind != ParamKind::Pointer && param.size == u32::from(scalar.element().bytes())
            }
        };
        if !fits {
            let got = match argument {
                Argument::Buffer(buffer) => format!("a buffer of {}", buffer.element()),
                Argument::Scalar(scalar) => format!("a scalar {}", scalar.element()),
            };
            let expected = expected_form(param);
            return Err(LaunchError::ArgumentKind { number: number + 1, name: param.name.clone(), expected, got });
        }
    }
    Ok(())
}

/// How an argument for a parameter is written.
fn expected_form(param: &Param) -> String {
    match (param.kind, param.size) {
        (ParamKind::Pointer, _) => "buf:TYPE:VALUES".to_owned(),
        // What is 64 bits wide and never an address of the kernel itself may still be one that it passes on.
        (ParamKind::Unsigned, 8) => "u64:VALUE (or buf:TYPE:VALUES)".to_owned(),
        (ParamKind::Signed, size @ (1 | 2 | 4 | 8)) => format!("i{}:VALUE", 8 * size),
        (ParamKind::Unsigned | ParamKind::Bytes, size @ (1 | 2 | 4 | 8)) => format!("u{}:VALUE", 8 * size),
        (_, size) => format!("(an aggregate of {size} bytes, which cannot be given as an argument)"),
    }
}
