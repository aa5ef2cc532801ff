//! The state of a machine between and during launches.

use qwengpu_isa::{
    Axis, ConstIdx, LaneMask, LaunchConfig, LaunchError, MachineSpec, Memory, PredReg, Program, Reg, SpecError,
    VerifyErrors, verify,
};
use thiserror::Error;

use crate::memory::Memories;
use crate::scheduler::Execution;
use crate::trace::Run;
use crate::warp::Warp;

/// A machine: all its memories, registers and predicates. They persist from one launch to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    pub(crate) spec: MachineSpec,
    pub(crate) rom: Vec<u64>,
    pub(crate) constants: Vec<u32>,
    pub(crate) memories: Memories,
    pub(crate) warps: Vec<Warp>,
}

/// A machine that cannot be made, or not with a program.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MachineError {
    /// Its sizes are invalid.
    #[error("invalid machine: {0}")]
    Spec(#[from] SpecError),
    /// It cannot run the program.
    #[error("program refused: {0}")]
    Verify(#[from] VerifyErrors),
    /// More words than the program memory has.
    #[error("{words} instruction words given, expected at most {max}")]
    TooLong {
        /// Words given.
        words: usize,
        /// Words of the program memory.
        max: u16,
    },
}

impl Machine {
    /// A machine that has just been switched on, with a program.
    ///
    /// # Errors
    ///
    /// Fails if the sizes are invalid or the program is not one for the machine.
    pub fn new(spec: MachineSpec, program: &Program) -> Result<Self, MachineError> {
        let mut machine = Self::power_on(spec)?;
        machine.load_program(program)?;
        Ok(machine)
    }

    /// A machine that has just been switched on: everything is zero.
    ///
    /// # Errors
    ///
    /// Fails if the sizes are invalid.
    pub fn power_on(spec: MachineSpec) -> Result<Self, SpecError> {
        spec.validate()?;
        Ok(Self {
            spec,
            rom: vec![0; usize::from(spec.rom_words)],
            constants: vec![0; usize::from(spec.constant_words)],
            memories: Memories::new(&spec),
            warps: vec![Warp::new(&spec); usize::from(spec.warps)],
        })
    }

    /// Writes a program to the program memory; words beyond its end keep their contents.
    ///
    /// # Errors
    ///
    /// Fails if the program is not one for the machine.
    pub fn load_program(&mut self, program: &Program) -> Result<(), MachineError> {
        verify(&self.spec, program)?;
        self.load_words(&program.words())
    }

    /// Writes words to the program memory, be they instructions or not.
    ///
    /// # Errors
    ///
    /// Fails if they do not fit.
    pub fn load_words(&mut self, words: &[u64]) -> Result<(), MachineError> {
        let max = self.spec.rom_words;
        let rom = self.rom.get_mut(..words.len()).ok_or(MachineError::TooLong { words: words.len(), max })?;
        rom.copy_from_slice(words);
        Ok(())
    }

    /// Runs a launch to its end, or until warps have executed `step_limit` instructions.
    ///
    /// # Errors
    ///
    /// Fails if the launch exceeds a limit of the machine. A fault of the program is an outcome.
    pub fn launch(&mut self, launch: &LaunchConfig, step_limit: u64) -> Result<Run, LaunchError> {
        self.begin(launch, step_limit).map(Execution::finish)
    }

    /// Prepares a launch; the execution yields what happens, event by event.
    ///
    /// # Errors
    ///
    /// Fails if the launch exceeds a limit of the machine.
    pub fn begin(&mut self, launch: &LaunchConfig, step_limit: u64) -> Result<Execution<'_>, LaunchError> {
        launch.validate(&self.spec)?;
        for &(index, value) in &launch.constants {
            self.constants[index.index()] = value;
        }
        self.memories.global[..launch.global.len()].copy_from_slice(&launch.global);
        for axis in Axis::ALL {
            self.constants[ConstIdx::ntid(axis).index()] = launch.block.get(axis).into();
            self.constants[ConstIdx::nctaid(axis).index()] = launch.grid.get(axis).into();
        }
        let threads = launch.block.x * launch.block.y * launch.block.z;
        Ok(Execution::new(self, launch.grid, threads, step_limit))
    }

    /// The sizes of the machine.
    #[must_use]
    pub const fn spec(&self) -> &MachineSpec {
        &self.spec
    }

    /// The words of the program memory.
    #[must_use]
    pub fn rom(&self) -> &[u64] {
        &self.rom
    }

    /// The words of the constant bank.
    #[must_use]
    pub fn constants(&self) -> &[u32] {
        &self.constants
    }

    /// The words of global memory.
    #[must_use]
    pub fn global(&self) -> &[u32] {
        self.memories.words(Memory::Global)
    }

    /// The words of global memory, to write.
    #[must_use]
    pub fn global_mut(&mut self) -> &mut [u32] {
        &mut self.memories.global
    }

    /// The words of a memory. Local memory is that of all threads in a row, by linear thread id.
    #[must_use]
    pub fn memory(&self, memory: Memory) -> &[u32] {
        self.memories.words(memory)
    }

    /// A register of a lane; `None` if the machine has no such warp or lane.
    #[must_use]
    pub fn register(&self, warp: u8, lane: u8, reg: Reg) -> Option<u32> {
        let warp = self.warps.get(usize::from(warp))?;
        (usize::from(lane) < warp.lanes.len()).then(|| warp.register(lane, reg))
    }

    /// The lanes of a warp in which a predicate is true; `None` if the machine has no such warp.
    #[must_use]
    pub fn predicate(&self, warp: u8, pred: PredReg) -> Option<LaneMask> {
        self.warps.get(usize::from(warp)).map(|warp| warp.predicate(pred))
    }
}
