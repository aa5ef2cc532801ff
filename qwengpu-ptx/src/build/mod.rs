//! PTX syntax to IR: names resolved, types checked, every instruction lowered to machine operations.
//!
//! One file a family of instructions; `emit` appends operations, `operand` reads and writes PTX operands,
//! `scope` resolves names, `decode` takes opcodes apart.

mod atomic;
mod barrier;
mod call;
mod call_graph;
mod carryless;
mod clock;
mod compare;
mod control;
mod convert;
mod data;
mod decode;
mod divide_wide;
mod emit;
mod integer;
mod logic;
mod memory;
mod nth_set;
mod operand;
mod packed;
mod permute;
mod pointers;
mod routine;
mod scope;
mod shift;
mod special;
mod variable;
mod video_parts;
mod video_scalar;
mod warp;
mod wide;

use std::collections::BTreeMap;

use qwengpu_isa::Param;

use crate::ast::{self, FunctionKind, Module, Statement, Variable};
use crate::error::{PtxError, Result};
use crate::ir::{BlockId, Cond, Function, SymbolId, VPred};
use crate::pass::Routine;
use crate::span::Span;
use crate::subset::{self, Family, Support};
use barrier::Barriers;
use call_graph::CallGraph;
use clock::Clock;
use decode::Mods;
use routine::RoutineParts;
use scope::Scope;

/// Most IR instructions of one kernel and its routines, before anything is removed.
pub(crate) const MAX_INSTS: usize = 100_000;

/// Fewest 64-bit divisions that share a routine. Two in place are longer than the routine and two calls, which
/// cost a few instructions beside the division's loop.
const MIN_SHARED_DIVISIONS: usize = 2;

/// A kernel in IR, and what the machine code needs besides.
pub(crate) struct BuiltKernel<'m> {
    pub(crate) function: Function,
    /// The functions it calls, by [`RoutineId`](crate::ir::RoutineId).
    pub(crate) routines: Vec<Routine>,
    pub(crate) params: Vec<Param>,
    /// The module variable behind each [`SymbolSpace::Static`] symbol.
    pub(crate) statics: BTreeMap<SymbolId, &'m Variable>,
    /// Symbols of the variables by name, for initialisers that name other variables.
    pub(crate) static_names: BTreeMap<String, SymbolId>,
    /// What stands for the address of a function, by its name.
    pub(crate) function_addresses: BTreeMap<String, u32>,
}

pub(crate) struct Builder<'m> {
    module: &'m Module,
    func: Function,
    scopes: Vec<Scope<'m>>,
    statics: BTreeMap<SymbolId, &'m Variable>,
    static_names: BTreeMap<String, SymbolId>,
    current: BlockId,
    /// Instructions appended so far, in all functions.
    num_pushed: usize,
    /// The guard of the PTX instruction being translated.
    guard: Cond,
    /// Whether operations without effect are guarded too: threads outside need not speak their results.
    guard_pure: bool,
    line: u32,
    /// The carry flag of `add.cc` and its family.
    carry: Option<VPred>,
    /// Names of the functions being inlined, the kernel first.
    calls: Vec<&'m str>,
    /// Where `ret` goes in an inlined function.
    returns: Vec<BlockId>,
    graph: CallGraph<'m>,
    barriers: Barriers,
    routines: Vec<RoutineParts<'m>>,
    /// 64-bit divisions so far.
    wide_divisions: usize,
    /// Whether 64-bit divisions are routines.
    shares_divisions: bool,
    /// The count of executed instructions; none if nothing reads it.
    clock: Option<Clock>,
}

/// Translates a kernel of the module.
pub(crate) fn build<'m>(module: &'m Module, kernel: &'m ast::Function) -> Result<BuiltKernel<'m>> {
    let (built, divisions) = translate(module, kernel, false)?;
    if divisions < MIN_SHARED_DIVISIONS { Ok(built) } else { Ok(translate(module, kernel, true)?.0) }
}

/// The kernel and the number of its 64-bit divisions.
fn translate<'m>(
    module: &'m Module,
    kernel: &'m ast::Function,
    shares_divisions: bool,
) -> Result<(BuiltKernel<'m>, usize)> {
    if module.address_size != 64 {
        return Err(PtxError::unsupported(
            kernel.name.span,
            ".address_size 32",
            "a 32-bit address module; compile for 64-bit addresses (`-m64`, the default)",
        ));
    }
    let mut func = Function::new(&kernel.name.text);
    let entry = func.new_block();
    func.layout.push(entry);
    let graph = CallGraph::new(module, kernel);
    let barriers = Barriers::new(&graph, kernel);
    func.orders_warps = barriers.of_warps;
    let (reads_clock, recursive) = clock::needs_clock(&graph, kernel);
    let mut builder = Builder {
        module,
        func,
        scopes: Vec::new(),
        statics: BTreeMap::new(),
        static_names: BTreeMap::new(),
        current: entry,
        num_pushed: 0,
        guard: Cond::TRUE,
        guard_pure: false,
        line: kernel.name.span.line,
        carry: None,
        calls: vec![&kernel.name.text],
        returns: Vec::new(),
        graph,
        barriers,
        routines: Vec::new(),
        wide_divisions: 0,
        shares_divisions,
        clock: None,
    };
    if reads_clock {
        builder.start_clock(recursive);
    }
    let mut scope = Scope::function();
    let params = builder.kernel_params(kernel, &mut scope)?;
    builder.scopes.push(scope);
    if let Some(body) = &kernel.body {
        builder.body(body)?;
    }
    builder.count_exits();
    builder.build_routines()?;
    let Builder { func, graph, statics, static_names, routines, wide_divisions, .. } = builder;
    let group = |idx: usize| {
        let Some(name) = routines[idx].body.function_name() else { return idx };
        let partner = |other: &RoutineParts<'_>| {
            let other = other.body.function_name();
            other.is_some_and(|other| graph.reaches(name, other) && graph.reaches(other, name))
        };
        routines.iter().position(partner).unwrap_or(idx)
    };
    let groups: Vec<usize> = (0..routines.len()).map(group).collect();
    let routines = routines.into_iter().zip(groups).filter_map(|(parts, group)| {
        let mut routine = Routine { func: parts.func?, group };
        routine.func.symbols.clone_from(&func.symbols);
        Some(routine)
    });
    let built = BuiltKernel {
        routines: routines.collect(),
        function: func,
        params,
        statics,
        static_names,
        function_addresses: graph.pointers().map(|(n, name)| (name.to_owned(), call::function_address(n))).collect(),
    };
    Ok((built, wide_divisions))
}

impl<'m> Builder<'m> {
    /// The statements of a scope already pushed; pops it.
    fn body(&mut self, body: &'m [Statement]) -> Result<()> {
        self.declare_labels(body)?;
        for statement in body {
            let num_insts = self.num_pushed + self.func.layout.len();
            if num_insts > MAX_INSTS && !matches!(statement, Statement::Variable(_)) {
                return Err(PtxError::ImplLimit {
                    at: self.here(),
                    what: "instructions of one kernel before optimisation",
                    need: num_insts as u64,
                    limit: MAX_INSTS as u64,
                    hint: "split the kernel, or inline fewer calls",
                });
            }
            match statement {
                Statement::Variable(variable) => self.declare(variable)?,
                Statement::Label(name) => self.label(name)?,
                Statement::BranchTargets(_) | Statement::CallPrototype(_) => {}
                Statement::Instruction(inst) => self.instruction(inst)?,
                Statement::Block(inner, _) => {
                    self.scopes.push(Scope::block());
                    self.body(inner)?;
                }
            }
        }
        self.scopes.pop();
        Ok(())
    }

    fn here(&self) -> Span {
        Span { line: self.line, column: 1, ..Span::default() }
    }

    fn instruction(&mut self, inst: &'m ast::Instruction) -> Result<()> {
        self.line = inst.span.line;
        self.tick();
        self.guard = match &inst.guard {
            None => Cond::TRUE,
            Some(guard) => {
                let pred = self.predicate_named(&guard.name)?;
                Cond::from(pred).negated_if(guard.negated)
            }
        };
        let mut mods = Mods::new(&inst.opcode);
        self.dispatch(inst, &mut mods)?;
        self.guard = Cond::TRUE;
        mods.finish()
    }

    fn dispatch(&mut self, inst: &'m ast::Instruction, mods: &mut Mods<'m>) -> Result<()> {
        let Some(row) = subset::instruction(&inst.opcode) else {
            let name = &inst.opcode.name;
            return Err(PtxError::invalid(name.span, &name.text, "no PTX instruction has this name"));
        };
        let family = match (row.support, row.family) {
            (Support::Refused(refusal), _) => return Err(mods.refused(refusal)),
            (Support::Translated(_), Some(family)) => family,
            (Support::Translated(_), None) => return Err(mods.invalid("no one translates it")),
        };
        match family {
            Family::Activemask => self.activemask(inst, mods),
            Family::AddSub => self.add_sub(inst, mods),
            Family::AddressSpace => self.cvta(inst, mods),
            Family::Atomic => self.atomic(inst, mods),
            Family::Barrier => self.barrier(inst, mods),
            Family::Bfind => self.bfind(inst, mods),
            Family::BitField => self.bit_field(inst, mods),
            Family::Bitwise => self.bitwise(inst, mods),
            Family::Branch => self.bra(inst, mods),
            Family::BranchIndexed => self.brx(inst, mods),
            Family::BulkStore => self.store_bulk(inst, mods),
            Family::CachePolicy => self.cache_policy(inst, mods),
            Family::Call => self.call(inst, mods),
            Family::CarrylessMultiply => self.carryless_multiply(inst, mods),
            Family::Convert => self.cvt(inst, mods),
            Family::CountBits => self.count_bits(inst, mods),
            Family::Divide => self.divide(inst, mods),
            Family::Dp2a => self.dp2a(inst, mods),
            Family::Dp4a => self.dp4a(inst, mods),
            Family::Elect => self.elect(inst, mods),
            Family::Exit => self.exit(),
            Family::FindNthSet => self.find_nth_set(inst, mods),
            Family::FunnelShift => self.funnel_shift(inst, mods),
            Family::IsSpace => self.isspacep(inst, mods),
            Family::Load => self.load(inst, mods),
            Family::Lop3 => self.lop3(inst, mods),
            Family::MaskExtend => self.mask_extend(inst, mods),
            Family::Match => self.match_sync(inst, mods),
            Family::MinMax => self.min_max(inst, mods),
            Family::Move => self.mov(inst, mods),
            Family::Multiply => self.multiply(inst, mods),
            Family::Multiply24 => self.multiply24(inst, mods),
            Family::Nothing => {
                mods.ignore_rest();
                Ok(())
            }
            Family::Permute => self.prmt(inst, mods),
            Family::Reduce => self.redux(inst, mods),
            Family::Return => self.ret(mods),
            Family::Sad => self.sad(inst, mods),
            Family::SelectBySign => self.slct(inst, mods),
            Family::SelectByPredicate => self.selp(inst, mods),
            Family::Set => self.set(inst, mods),
            Family::SetPredicate => self.setp(inst, mods),
            Family::Shift => self.shift(inst, mods),
            Family::Shuffle => self.shfl(inst, mods),
            Family::SignAbsolute => self.abs_neg(inst, mods),
            Family::Store => self.store(inst, mods),
            Family::Trap => self.trap(),
            Family::VideoScalar => self.video_scalar(inst, mods),
            Family::VideoMultiply => self.video_multiply(inst, mods),
            Family::VideoParts => self.video_parts(inst, mods),
            Family::Vote => self.vote(inst, mods),
        }
    }
}

impl FunctionKind {
    fn is_func(self) -> bool {
        self == FunctionKind::Func
    }
}
