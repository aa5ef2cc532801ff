//! Passes over the IR, one verb-named file each. The order is in `pipeline`.

mod combine_operations;
mod eliminate_common;
mod eliminate_dead;
mod expand_divisions;
mod expand_macros;
mod fold_addresses;
mod fold_constants;
mod fold_parameters;
mod guard_selections;
mod hoist_invariants;
mod if_convert;
mod legalize_operands;
mod order_blocks;
mod promote_locals;
mod propagate_copies;
mod resolve_symbols;
mod simplify_cfg;
mod sink_definitions;

pub(crate) use combine_operations::combine_operations;
pub(crate) use eliminate_common::eliminate_common;
pub(crate) use eliminate_dead::eliminate_dead;
pub(crate) use expand_macros::expand_macros;
pub(crate) use fold_addresses::fold_addresses;
pub(crate) use fold_constants::fold_constants;
pub(crate) use fold_parameters::{fold_parameters, refuse_parameter_addresses};
pub(crate) use guard_selections::guard_selections;
pub(crate) use hoist_invariants::hoist_invariants;
pub(crate) use if_convert::if_convert;
pub(crate) use legalize_operands::legalize_operands;
pub(crate) use order_blocks::order_blocks;
pub(crate) use promote_locals::promote_locals;
pub(crate) use propagate_copies::propagate_copies;
pub(crate) use resolve_symbols::{Statics, resolve_symbols};
pub use resolve_symbols::{StaticData, StaticSymbol};
pub(crate) use simplify_cfg::simplify_cfg;
pub(crate) use sink_definitions::sink_definitions;
