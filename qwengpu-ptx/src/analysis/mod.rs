//! Facts about a function, computed afresh by the passes that need them.

mod bits;
mod cfg;
mod defs;
mod dominators;
mod ends;
mod liveness;
mod places;
mod tokens;
mod uniform;

pub(crate) use bits::{Demanded, KnownBits};
pub(crate) use cfg::{Cfg, natural_loops};
pub(crate) use defs::Defs;
pub(crate) use ends::WaysToEnd;
pub(crate) use liveness::{Liveness, RegSet};
pub(crate) use places::Places;
pub(crate) use tokens::{estimate_tokens, frequencies};
pub(crate) use uniform::{Divergence, reachable};
