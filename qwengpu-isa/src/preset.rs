//! The machines that have names.

use crate::spec::MachineSpec;

/// A machine with a name. This table is where its sizes are written; command line, documentation and tests derive
/// from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachinePreset {
    /// The name, as `--machine` takes it: a lower-case word.
    pub name: &'static str,
    /// What it is for.
    pub purpose: &'static str,
    /// Its sizes.
    pub spec: MachineSpec,
}

impl MachinePreset {
    /// Every machine with a name, the default first.
    pub const ALL: [Self; 4] = [
        Self { name: "seed", purpose: "the default: the smallest", spec: MachineSpec::seed() },
        Self { name: "program", purpose: "long kernels", spec: MachineSpec { rom_words: 2048, ..MachineSpec::seed() } },
        Self {
            name: "memory",
            purpose: "larger buffers, arrays and tables",
            spec: MachineSpec { global_words: 1024, shared_words: 512, local_words: 64, ..MachineSpec::seed() },
        },
        Self {
            name: "large",
            purpose: "all of it, and 16 KiB of global memory",
            spec: MachineSpec {
                rom_words: 2048,
                global_words: 4096,
                shared_words: 1024,
                local_words: 64,
                ..MachineSpec::seed()
            },
        },
    ];

    /// The machine of a name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        const ALL: &[MachinePreset] = &MachinePreset::ALL;
        ALL.iter().find(|preset| preset.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::RecordTable;

    #[test]
    fn names_are_different_and_machines_valid() {
        for preset in MachinePreset::ALL {
            assert_eq!(MachinePreset::find(preset.name), Some(&preset));
            assert_eq!(preset.spec.validate(), Ok(()), "{}", preset.name);
            assert!(RecordTable::new(&preset.spec).is_ok_and(|table| table.len() < 1 << 17), "{}", preset.name);
        }
        assert_eq!(MachinePreset::ALL[0].spec, MachineSpec::default());
        assert_eq!(MachinePreset::find("Seed"), None);
    }
}
