//! Programs that a model has heard, so that it need not hear them again.

use qwengpu_isa::Record;
use qwengpu_model::Cache;

/// Programs that are kept.
const KEPT: usize = 8;

/// Programs with what a machine remembers that has heard nothing else, the last used last.
#[derive(Default)]
pub(crate) struct Programs(Vec<(Vec<Record>, Cache)>);

impl Programs {
    /// What a machine remembers that has heard a program, if it is known.
    pub(super) fn find(&mut self, program: &[Record]) -> Option<&Cache> {
        let place = self.0.iter().position(|(kept, _)| kept == program)?;
        self.0[place..].rotate_left(1);
        self.0.last().map(|(_, cache)| cache)
    }

    /// Keeps a program that is not known; the one that was not used for the longest time goes.
    pub(super) fn keep(&mut self, program: &[Record], cache: Cache) {
        if self.0.len() == KEPT {
            self.0.remove(0);
        }
        self.0.push((program.to_vec(), cache));
    }
}
