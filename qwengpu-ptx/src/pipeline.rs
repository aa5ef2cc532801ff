//! The passes in order, from a kernel's syntax to its program.

use std::fmt::{self, Display};

use qwengpu_isa::{KernelSignature, MachineSpec, Program};

use crate::analysis::estimate_tokens;
use crate::ast::{Function as Kernel, Module};
use crate::build::{self, BuiltKernel};
use crate::emit::{Code, emit};
use crate::error::PtxError;
use crate::ir::{Function, Strictness, verify};
use crate::pass::{self, Routine, StaticData};
use crate::regalloc;
use crate::span::Span;
use crate::stats::{PassStats, Stats, TokenEstimates};

/// Most rounds of the optimising passes; they stop earlier when a round changes nothing.
const MAX_ROUNDS: u32 = 12;

/// How to lower a kernel.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// The machine to lower for.
    pub spec: MachineSpec,
    /// Called with the IR after every pass.
    pub observer: Option<&'a dyn Fn(&Stage<'_>)>,
    /// Whether the tokens are estimated before and after every pass, not only at the end.
    pub estimates: bool,
}

impl Options<'_> {
    /// Options for a machine, without an observer and without estimates behind each pass.
    #[must_use]
    pub fn new(spec: MachineSpec) -> Self {
        Options { spec, observer: None, estimates: false }
    }
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options::new(MachineSpec::seed())
    }
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("spec", &self.spec)
            .field("observer", &self.observer.is_some())
            .field("estimates", &self.estimates)
            .finish()
    }
}

/// The state behind a pass.
pub struct Stage<'a> {
    /// Name of the pass.
    pub pass: &'static str,
    /// Round of the optimising passes; 0 outside them.
    pub round: u32,
    /// Instructions of the IR, terminators included.
    pub instructions: usize,
    /// The IR, or the program at the end; prints as text.
    pub ir: &'a dyn Display,
}

impl fmt::Debug for Stage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage").field("pass", &self.pass).field("round", &self.round).finish_non_exhaustive()
    }
}

/// A kernel ready to launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoweredKernel {
    /// Instructions and signature.
    pub program: Program,
    /// Global memory the kernel needs besides its buffers.
    pub static_data: StaticData,
    /// The PTX line of each instruction; 0 for none.
    pub source_map: Vec<u32>,
    /// Figures.
    pub stats: Stats,
}

/// Lowers a kernel of a module to a program.
///
/// `kernel` names it; `None` takes the only one there is.
///
/// # Errors
///
/// Any [`PtxError`] but [`PtxError::Syntax`], at the first construct that cannot be lowered.
pub fn lower(module: &Module, kernel: Option<&str>, options: &Options<'_>) -> Result<LoweredKernel, PtxError> {
    let kernel = find_kernel(module, kernel)?;
    let (wanted, avoided) = (Sharing::Wanted, Sharing::Avoided);
    let error = match lower_kernel(module, kernel, options, wanted, Expansion::InPlace) {
        Err(error @ PtxError::ImplLimit { .. }) => error,
        result => return result,
    };
    // Too many instructions: routines are shorter. Too many values at a time: without shared ones there are fewer.
    let too_long = matches!(error, PtxError::ImplLimit { what: TOO_LONG, .. });
    let plans: &[(Sharing, Expansion)] = if too_long {
        &[(wanted, Expansion::Outlined), (avoided, Expansion::Outlined)]
    } else {
        &[(avoided, Expansion::InPlace), (avoided, Expansion::Outlined)]
    };
    let attempt =
        |(sharing, expansion): &(Sharing, Expansion)| lower_kernel(module, kernel, options, *sharing, *expansion).ok();
    plans.iter().find_map(attempt).ok_or(error)
}

/// What a kernel has too many of that routines may help.
const TOO_LONG: &str = "instructions of one kernel";

/// Whether a value that is computed twice is kept from the first time to the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sharing {
    Wanted,
    Avoided,
}

/// Where the instructions of an operation that the machine does not have stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expansion {
    InPlace,
    /// In routines, if there are several of a kind.
    Outlined,
}

fn lower_kernel(
    module: &Module,
    kernel: &Kernel,
    options: &Options<'_>,
    sharing: Sharing,
    expansion: Expansion,
) -> Result<LoweredKernel, PtxError> {
    let BuiltKernel { function, mut routines, params, statics, static_names, function_addresses } =
        build::build(module, kernel)?;
    let mut run =
        Run { func: function, options, sharing, stats: Stats::default(), round: 0, strictness: Strictness::Any };
    let at = kernel.name.span;
    run.each_function(&mut routines, prepare)?;
    if expansion == Expansion::Outlined {
        run.pass("outline_macros", |func| pass::outline_macros(func, &mut routines))?;
    }
    run.each_function(&mut routines, expand)?;
    if !routines.is_empty() {
        run.each_function(&mut routines, |run| run.pass("place_blocks", pass::place_blocks))?;
        run.pass("link_routines", |func| pass::link_routines(func, routines, &options.spec))?;
        run.pass("simplify_cfg", pass::simplify_cfg)?;
        optimise(&mut run)?;
    }
    let statics = pass::Statics { variables: statics, names: static_names, functions: function_addresses };
    let before = run.func.num_insts();
    run.pass("compute_tables", |func| pass::compute_tables(func, &statics, &options.spec))?;
    if run.func.num_insts() != before {
        optimise(&mut run)?;
    }
    run.pass("move_locals", |func| pass::move_locals(func, &options.spec))?;
    // A stack begins behind the spill slots, whose number is known at the end.
    let mut spill_bytes = 0;
    let (code, layout, allocation) = loop {
        let unplaced = run.func.clone();
        let finished = finish(&mut run, &statics, spill_bytes, at)?;
        let needed = 4 * u32::try_from(finished.2.spill_slots).unwrap_or(0);
        if !finished.1.has_stack || needed <= spill_bytes {
            break finished;
        }
        spill_bytes = needed;
        run.func = unplaced;
        run.strictness = Strictness::Any;
    };

    let (registers, predicates) = allocation.used();
    let local_bytes = if layout.has_stack { 4 * u32::from(options.spec.local_words) } else { allocation.local_bytes };
    let stats = Stats {
        estimated_tokens: estimate_tokens(&run.func),
        passes: run.stats.passes,
        instructions: code.instructions.len(),
        registers,
        predicates,
        spill_slots: allocation.spill_slots,
        local_bytes,
        shared_bytes: layout.shared_bytes,
        static_words: layout.statics.words.len(),
    };
    let signature =
        KernelSignature { name: kernel.name.text.clone(), params, shared_bytes: layout.shared_bytes, local_bytes };
    let mut program = Program::new(signature, code.instructions);
    for (pc, name) in code.labels {
        program.add_label(pc, name);
    }
    Ok(LoweredKernel { program, static_data: layout.statics, source_map: code.lines, stats })
}

/// What is known of the kernel or a routine before its operations are those of the machine.
fn prepare(run: &mut Run<'_>) -> Result<(), PtxError> {
    run.observe("build", run.func.num_insts())?;
    run.pass("simplify_cfg", pass::simplify_cfg)?;
    optimise(run)?;
    run.pass("promote_locals", pass::promote_locals)?;
    optimise(run)?;
    pass::refuse_parameter_addresses(&run.func)
}

/// From PTX's own operations to those of the machine.
fn expand(run: &mut Run<'_>) -> Result<(), PtxError> {
    run.pass("expand_macros", pass::expand_macros)?;
    optimise(run)
}

/// From symbols to machine code.
fn finish(
    run: &mut Run<'_>,
    statics: &pass::Statics<'_>,
    spill_bytes: u32,
    at: Span,
) -> Result<(Code, pass::Layout, regalloc::Allocation), PtxError> {
    let options = run.options;
    let before = run.size();
    let layout = pass::resolve_symbols(&mut run.func, statics, &options.spec, spill_bytes)?;
    run.record("resolve_symbols", before)?;
    run.pass("fold_constants", pass::fold_constants)?;
    run.pass("fold_addresses", pass::fold_addresses)?;
    run.pass("eliminate_dead", pass::eliminate_dead)?;
    run.pass("legalize_operands", pass::legalize_operands)?;
    run.strictness = Strictness::Legal;
    run.pass("fold_addresses", pass::fold_addresses)?;
    run.pass("eliminate_dead", pass::eliminate_dead)?;
    if run.sharing == Sharing::Wanted {
        run.pass("hoist_invariants", pass::hoist_invariants)?;
    }
    run.pass("guard_selections", pass::guard_selections)?;
    run.pass("if_convert", pass::if_convert)?;
    run.pass("eliminate_dead", pass::eliminate_dead)?;
    run.pass("order_blocks", pass::order_blocks)?;

    check_rom(run.func.num_insts() / 2, options, at)?;
    run.pass("place_ends", pass::place_ends)?;
    run.verify("place_ends")?;
    let before = run.size();
    let unallocated = run.func.clone();
    let mut allocated = regalloc::allocate(&mut run.func, &options.spec, layout.local_bytes, at);
    if !allocated.as_ref().is_ok_and(|allocation| allocation.spill_slots == 0) {
        let spilling = std::mem::replace(&mut run.func, unallocated.clone());
        pass::delay_definitions(&mut run.func);
        let delayed = run.func.clone();
        let second = regalloc::allocate(&mut run.func, &options.spec, layout.local_bytes, at);
        let slots = |result: &Result<regalloc::Allocation, PtxError>| {
            result.as_ref().map_or(usize::MAX, |allocation| allocation.spill_slots)
        };
        if slots(&second) < slots(&allocated) {
            let code = std::mem::replace(&mut run.func, unallocated);
            run.pass("delay_definitions", |func| *func = delayed)?;
            run.func = code;
            allocated = second;
        } else {
            run.func = spilling;
        }
    }
    let allocation = allocated?;
    run.record("allocate_registers", before)?;
    regalloc::check(&run.func, &allocation).map_err(|(check, detail)| run.internal(check, detail))?;
    run.pass("drop_redundant_moves", |func| regalloc::drop_redundant_moves(func, &allocation))?;
    run.verify("drop_redundant_moves")?;
    let code = emit(&run.func, &allocation).map_err(|detail| run.internal("I06", detail))?;
    check_rom(code.instructions.len(), options, at)?;
    Ok((code, layout, allocation))
}

/// The passes that make the IR smaller, until they no longer do.
fn optimise(run: &mut Run<'_>) -> Result<(), PtxError> {
    for round in 1..=MAX_ROUNDS {
        run.round = round;
        let before = run.func.clone();
        run.pass("fold_parameters", pass::fold_parameters)?;
        run.pass("propagate_copies", pass::propagate_copies)?;
        run.pass("fold_constants", pass::fold_constants)?;
        run.pass("combine_operations", pass::combine_operations)?;
        run.pass("drop_undemanded", pass::drop_undemanded)?;
        run.pass("fold_addresses", pass::fold_addresses)?;
        if run.sharing == Sharing::Wanted {
            run.pass("eliminate_common", pass::eliminate_common)?;
        }
        run.pass("sink_definitions", pass::sink_definitions)?;
        run.pass("eliminate_dead", pass::eliminate_dead)?;
        run.pass("simplify_cfg", pass::simplify_cfg)?;
        if run.func.has_code_of(&before) {
            break;
        }
    }
    run.round = 0;
    Ok(())
}

fn find_kernel<'m>(module: &'m Module, wanted: Option<&str>) -> Result<&'m Kernel, PtxError> {
    let mut found = module.kernels().filter(|kernel| wanted.is_none_or(|name| kernel.name.text == name));
    match (found.next(), found.next()) {
        (Some(kernel), None) => Ok(kernel),
        _ => Err(PtxError::KernelNotFound {
            wanted: wanted.map(str::to_owned),
            available: module.kernels().map(|kernel| kernel.name.text.clone()).collect(),
        }),
    }
}

fn check_rom(need: usize, options: &Options<'_>, at: Span) -> Result<(), PtxError> {
    let limit = usize::from(options.spec.rom_words);
    if need <= limit {
        return Ok(());
    }
    Err(PtxError::ImplLimit {
        at,
        what: TOO_LONG,
        need: need as u64,
        limit: limit as u64,
        hint: "split the kernel, or unroll and inline less",
    })
}

/// How large the code is: instructions, and tokens if they are asked for.
#[derive(Debug, Clone, Copy)]
struct Size {
    instructions: usize,
    tokens: Option<u64>,
}

struct Run<'a> {
    func: Function,
    options: &'a Options<'a>,
    sharing: Sharing,
    stats: Stats,
    round: u32,
    strictness: Strictness,
}

impl Run<'_> {
    /// Runs passes on the routines, then on the kernel.
    fn each_function(
        &mut self,
        routines: &mut [Routine],
        mut passes: impl FnMut(&mut Self) -> Result<(), PtxError>,
    ) -> Result<(), PtxError> {
        for routine in routines {
            std::mem::swap(&mut self.func, &mut routine.func);
            passes(self)?;
            std::mem::swap(&mut self.func, &mut routine.func);
        }
        passes(self)
    }

    fn pass(&mut self, name: &'static str, run: impl FnOnce(&mut Function)) -> Result<(), PtxError> {
        let before = self.size();
        run(&mut self.func);
        self.record(name, before)
    }

    fn size(&self) -> Size {
        let tokens = self.options.estimates.then(|| estimate_tokens(&self.func));
        Size { instructions: self.func.num_insts(), tokens }
    }

    fn record(&mut self, pass: &'static str, before: Size) -> Result<(), PtxError> {
        let after = self.size();
        let tokens = before.tokens.zip(after.tokens).map(|(before, after)| TokenEstimates { before, after });
        let (round, before, after) = (self.round, before.instructions, after.instructions);
        self.stats.passes.push(PassStats { pass, round, before, after, tokens });
        self.observe(pass, after)
    }

    /// Shows the IR to the observer, and checks it if there is one; without, only where a pass relies on it.
    fn observe(&self, pass: &'static str, instructions: usize) -> Result<(), PtxError> {
        if cfg!(debug_assertions) || self.options.observer.is_some() {
            self.verify(pass)?;
        }
        if let Some(observer) = self.options.observer {
            observer(&Stage { pass, round: self.round, instructions, ir: &self.func });
        }
        Ok(())
    }

    fn verify(&self, pass: &'static str) -> Result<(), PtxError> {
        verify(&self.func, self.strictness)
            .map_err(|(check, detail)| self.internal(check, format!("after {pass}: {detail}")))
    }

    fn internal(&self, check: &'static str, detail: String) -> PtxError {
        PtxError::Internal { check, kernel: self.func.name.clone(), detail }
    }
}
