//! The prompt of a launch: the records that put a program and its data into the machine and start it.

use crate::launch::{Axis, LaunchConfig, LaunchError};
use crate::program::Program;
use crate::record::Record;
use crate::reg::{LaneMask, Pc};
use crate::spec::MachineSpec;

/// What the machine has done before the launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum History {
    /// Nothing: all memories are zero, so zero words of global memory need not be spoken.
    #[default]
    PowerOn,
    /// Earlier launches: every word of the launch's global memory is spoken.
    Used,
}

/// The prompt that launches a program on a machine that has just been switched on.
///
/// # Errors
///
/// Fails if the launch exceeds a limit of the machine.
pub fn prompt(spec: &MachineSpec, program: &Program, launch: &LaunchConfig) -> Result<Vec<Record>, LaunchError> {
    let mut records = program_records(&program.words());
    records.extend(launch_records(spec, launch, History::PowerOn)?);
    Ok(records)
}

/// The records that write instruction words to the program memory, from index 0 on.
///
/// Words beyond the 16-bit range of [`Pc`] are not written; no machine has room for them.
#[must_use]
pub fn program_records(words: &[u64]) -> Vec<Record> {
    let mut records = Vec::new();
    for (pc, word) in (0..=u16::MAX).map(Pc::new).zip(words) {
        let [l0, l1, l2, l3, h0, h1, h2, h3] = word.to_le_bytes();
        records.push(Record::Rom { pc });
        push_bytes(&mut records, LaneMask::new(1), [l0, l1, l2, l3]);
        push_bytes(&mut records, LaneMask::new(2), [h0, h1, h2, h3]);
    }
    records
}

/// The records of a launch without its program: constants, global memory, dimensions, `GO`.
///
/// # Errors
///
/// Fails if the launch exceeds a limit of the machine.
pub fn launch_records(spec: &MachineSpec, launch: &LaunchConfig, history: History) -> Result<Vec<Record>, LaunchError> {
    launch.validate(spec)?;
    let mut records = Vec::new();
    let mut constants = launch.constants.clone();
    constants.sort_unstable();
    for (index, word) in constants {
        records.push(Record::Const { index });
        push_bytes(&mut records, LaneMask::new(1), word.to_le_bytes());
    }
    for (word, value) in (0..=u16::MAX).zip(&launch.global) {
        if *value == 0 && history == History::PowerOn {
            continue;
        }
        records.push(Record::Gmem { word });
        push_bytes(&mut records, LaneMask::new(1), value.to_le_bytes());
    }
    records.extend(Axis::ALL.map(|axis| Record::Ntid { axis, value: launch.block.get(axis) }));
    records.extend(Axis::ALL.map(|axis| Record::Nctaid { axis, value: launch.grid.get(axis) }));
    let count = launch.block.x * launch.block.y * launch.block.z;
    records.push(Record::Threads { count });
    records.push(Record::Go);
    Ok(records)
}

/// Speaks the non-zero bytes of a word.
fn push_bytes(records: &mut Vec<Record>, mask: LaneMask, bytes: [u8; 4]) {
    for (position, byte) in (0..4).zip(bytes) {
        if byte != 0 {
            records.push(Record::Val { mask, position, byte });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inst::Instruction;
    use crate::launch::Dim3;
    use crate::program::KernelSignature;
    use crate::reg::Reg;

    #[test]
    fn order_and_bytes() {
        let program = Program::new(
            KernelSignature::new("k"),
            vec![Instruction::iadd(Reg::R1, Reg::R0, 0x0200_0100, Reg::R0), Instruction::exit()],
        );
        let launch = LaunchConfig::new(Dim3::linear(2), Dim3::new(4, 2, 1))
            .with_parameters(&[0, 0x1_0002])
            .with_global(vec![0, 0xff00_0001]);
        let records = prompt(&MachineSpec::seed(), &program, &launch).expect("launch is valid");
        let text: Vec<String> = records.iter().map(Record::to_string).collect();
        let expected = "
            <|rom:000|> <|val:1:0:c5|> <|val:1:1:05|> <|val:1:3:04|> <|val:2:1:01|> <|val:2:3:02|>
            <|rom:001|> <|val:1:0:c1|> <|val:1:1:01|>
            <|const:00|> <|const:01|> <|val:1:0:02|> <|val:1:2:01|>
            <|gmem:01|> <|val:1:0:01|> <|val:1:3:ff|>
            <|ntid:x:04|> <|ntid:y:02|> <|ntid:z:01|> <|nctaid:x:02|> <|nctaid:y:01|> <|nctaid:z:01|>
            <|threads:08|> <|go|>";
        assert_eq!(text, expected.split_whitespace().collect::<Vec<_>>());
        let again = launch_records(&MachineSpec::seed(), &launch, History::Used).expect("launch is valid");
        assert!(again.contains(&Record::Gmem { word: 0 }));
    }
}
