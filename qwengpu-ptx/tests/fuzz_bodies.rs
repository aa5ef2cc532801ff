//! The bodies of the fuzz targets, on kernels and programs with damaged bytes and lines.

use std::path::Path;
use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::{Index, select};

#[expect(unreachable_pub, reason = "the fuzz targets include the same file")]
#[path = "../../fuzz/bodies.rs"]
mod bodies;

/// The PTX of the kernel suite.
static KERNELS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels"));
    let entries = std::fs::read_dir(folder).expect("the kernels");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "ptx"));
    paths.iter().map(|path| std::fs::read_to_string(path).expect("a kernel")).collect()
});

/// One damage of a text.
#[derive(Debug, Clone)]
enum Damage {
    /// A byte becomes another.
    Byte(Index, u8),
    /// A line is gone.
    Drop(Index),
    /// A line stands twice.
    Repeat(Index),
    /// Two lines change places.
    Swap(Index, Index),
    /// A word becomes another word of the text.
    Word(Index, Index),
    /// The text ends early.
    Cut(Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let index = any::<Index>;
    let bytes = prop_oneof![select(&b"0123456789,;.%@{}[]()-+ "[..]), any::<u8>()];
    prop_oneof![
        1 => (index(), bytes).prop_map(|(at, byte)| Damage::Byte(at, byte)),
        1 => index().prop_map(Damage::Drop),
        1 => index().prop_map(Damage::Repeat),
        1 => (index(), index()).prop_map(|(a, b)| Damage::Swap(a, b)),
        4 => (index(), index()).prop_map(|(to, from)| Damage::Word(to, from)),
        1 => index().prop_map(Damage::Cut),
    ]
}

fn apply(text: &str, damages: &[Damage]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for damage in damages {
        if bytes.is_empty() {
            break;
        }
        let mut lines: Vec<Vec<u8>> = bytes.split_inclusive(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
        match damage {
            Damage::Byte(at, byte) => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
                continue;
            }
            Damage::Cut(at) => {
                bytes.truncate(at.index(bytes.len()));
                continue;
            }
            Damage::Word(to, from) => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let words: Vec<&str> = text.split_inclusive([' ', '\t', '\n', ',', ';']).collect();
                let (to, from) = (to.index(words.len()), from.index(words.len()));
                let replaced: Vec<&str> = (0..words.len()).map(|i| words[if i == to { from } else { i }]).collect();
                bytes = replaced.concat().into_bytes();
                continue;
            }
            Damage::Drop(at) => drop(lines.remove(at.index(lines.len()))),
            Damage::Repeat(at) => {
                let at = at.index(lines.len());
                lines.insert(at, lines[at].clone());
            }
            Damage::Swap(a, b) => {
                let (a, b) = (a.index(lines.len()), b.index(lines.len()));
                lines.swap(a, b);
            }
        }
        bytes = lines.concat();
    }
    bytes
}

const PROGRAM: &str = include_str!("../../qwengpu-isa/tests/every_form.asm");

fn config() -> ProptestConfig {
    let cases = std::env::var("QWENGPU_CASES").ok().and_then(|text| text.parse().ok());
    ProptestConfig { cases: cases.unwrap_or(200), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn damaged_kernels(kernel in any::<Index>(), damages in prop::collection::vec(damage(), 1..6)) {
        let input = apply(&KERNELS[kernel.index(KERNELS.len())], &damages);
        bodies::ptx_parser(&input);
        bodies::pipeline(&input);
    }

    #[test]
    fn damaged_programs(damages in prop::collection::vec(damage(), 1..6)) {
        bodies::assembler(&apply(PROGRAM, &damages));
    }

    #[test]
    fn random_words(words in prop::collection::vec(any::<u64>(), 0..64), opcodes in prop::collection::vec(0..40_u64, 64)) {
        // Low bits of an opcode that exists, so that more than a few words are instructions.
        let words = words.iter().zip(&opcodes).map(|(word, opcode)| word & 0xffff_ffff_03ff_ffc0 | 7 << 6 | opcode);
        bodies::decoder(&words.flat_map(u64::to_le_bytes).collect::<Vec<u8>>());
    }

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        bodies::ptx_parser(&bytes);
        bodies::assembler(&bytes);
        bodies::decoder(&bytes);
        bodies::pipeline(&bytes);
    }
}
