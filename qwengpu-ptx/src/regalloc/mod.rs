//! Virtual registers to architectural ones: graph colouring with coalescing and spilling.
//!
//! Words and predicates are two classes, coloured alike. Copies whose ends do not interfere are merged when
//! that cannot make the graph harder to colour (Briggs). A register that gets no colour is spilled: what one
//! instruction makes of numbers and launch dimensions is made again before each use, words go to a slot of local
//! memory, predicates to a word. Then everything starts over. [`check`] proves the result from the code alone.

mod checker;
mod colour;
mod interference;
mod merged;
mod redundant;
mod spill;

use qwengpu_isa::{MachineSpec, PredReg, Reg};

use crate::error::PtxError;
use crate::ir::{Function, VPred, VReg};
use crate::span::Span;

pub(crate) use checker::check;
pub(crate) use redundant::drop_redundant_moves;

use colour::{Outcome, colour};
use interference::{Class, Graph};
use spill::Spiller;

/// Most rounds of spilling; each one shortens a live range to single instructions.
const MAX_ROUNDS: usize = 60;

/// Rounds in which one register is spilled, which spills the fewest. Each later round may spill twice as many as the
/// one before, so that a long kernel takes few.
const SINGLE_ROUNDS: usize = 8;

/// Architectural registers by virtual register.
#[derive(Debug, Clone, Default)]
pub(crate) struct Allocation {
    words: Vec<Option<Reg>>,
    preds: Vec<Option<PredReg>>,
    /// Bytes of local memory, variables and spill slots together.
    pub(crate) local_bytes: u32,
    /// Words of local memory used for spilled registers.
    pub(crate) spill_slots: usize,
}

impl Allocation {
    pub(crate) fn reg(&self, reg: VReg) -> Option<Reg> {
        self.words.get(reg.idx()).copied().flatten()
    }

    pub(crate) fn pred(&self, pred: VPred) -> Option<PredReg> {
        self.preds.get(pred.idx()).copied().flatten()
    }

    /// How many different registers and predicates are used.
    pub(crate) fn used(&self) -> (usize, usize) {
        let mut words: Vec<Reg> = self.words.iter().copied().flatten().collect();
        words.sort_unstable();
        words.dedup();
        let mut preds: Vec<PredReg> = self.preds.iter().copied().flatten().collect();
        preds.sort_unstable();
        preds.dedup();
        (words.len(), preds.len())
    }
}

/// Allocates registers, inserting spill code where there are too few.
pub(crate) fn allocate(
    func: &mut Function,
    spec: &MachineSpec,
    local_bytes: u32,
    at: Span,
) -> Result<Allocation, PtxError> {
    let num_words = usize::from(spec.registers.saturating_sub(1));
    let num_preds = usize::from(spec.predicates);
    let mut spiller = Spiller::new(func, local_bytes);
    let mut most = 1_usize;
    for round in 0..MAX_ROUNDS {
        if round >= SINGLE_ROUNDS {
            most = most.saturating_mul(2);
        }
        let words = Graph::new(func, Class::Word);
        let word_colours = colour(&words, num_words, spiller.word_temps());
        let preds = Graph::new(func, Class::Pred);
        let pred_colours = colour(&preds, num_preds, spiller.pred_temps());
        match (word_colours, pred_colours) {
            (Outcome::Coloured(words), Outcome::Coloured(preds)) => {
                let local_bytes = spiller.local_bytes();
                let limit = 4 * u32::from(spec.local_words);
                if local_bytes > limit {
                    return Err(PtxError::ImplLimit {
                        at,
                        what: "bytes of local memory a thread, for variables and for registers beyond 15",
                        need: u64::from(local_bytes),
                        limit: u64::from(limit),
                        hint: "keep fewer values live at a time, or unroll less (`#pragma unroll 1`)",
                    });
                }
                let reg = |colour: &Option<usize>| colour.and_then(|c| u8::try_from(c + 1).ok()).and_then(Reg::new);
                let pred = |colour: &Option<usize>| colour.and_then(|c| u8::try_from(c).ok()).and_then(PredReg::new);
                return Ok(Allocation {
                    words: words.iter().map(reg).collect(),
                    preds: preds.iter().map(pred).collect(),
                    local_bytes,
                    spill_slots: spiller.slots(),
                });
            }
            (words, preds) => {
                if let Outcome::Spill(found) = preds {
                    found.into_iter().take(most).for_each(|idx| spiller.spill_pred(func, VPred::new(idx)));
                }
                if let Outcome::Spill(found) = words {
                    found.into_iter().take(most).for_each(|idx| spiller.spill_word(func, VReg::new(idx)));
                }
            }
        }
        if spiller.local_bytes() > 1 << 16 {
            break;
        }
    }
    Err(PtxError::ImplLimit {
        at,
        what: "registers of one thread",
        need: num_words as u64 + 1,
        limit: num_words as u64,
        hint: "keep fewer values live at a time",
    })
}
