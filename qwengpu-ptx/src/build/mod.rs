//! PTX syntax to IR: names resolved, types checked, every instruction lowered to machine operations.
//!
//! One file a family of instructions; `emit` appends operations, `operand` reads and writes PTX operands,
//! `scope` resolves names, `decode` takes opcodes apart.

mod atomic;
mod barrier;
mod call;
mod call_graph;
mod carryless;
mod compare;
mod control;
mod convert;
mod data;
mod decode;
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
mod video_parts;
mod video_scalar;
mod warp;
mod wide;

use std::collections::BTreeMap;

use qwengpu_isa::{Param, ParamKind};

use crate::ast::{self, FunctionKind, Item, Linkage, Module, ScalarType, StateSpace, Statement, Variable};
use crate::error::{PtxError, Result};
use crate::ir::{BlockId, Cond, Function, Symbol, SymbolId, SymbolSpace, VPred};
use crate::pass::Routine;
use crate::span::Span;
use crate::subset::{self, Family, Support};
use barrier::Barriers;
use call_graph::CallGraph;
use decode::Mods;
use routine::RoutineParts;
use scope::{Entity, Scope};

/// Most IR instructions of one kernel, before anything is removed.
pub(crate) const MAX_INSTS: usize = 20_000;

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
}

/// Translates a kernel of the module.
pub(crate) fn build<'m>(module: &'m Module, kernel: &'m ast::Function) -> Result<BuiltKernel<'m>> {
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
    let mut builder = Builder {
        module,
        func,
        scopes: Vec::new(),
        statics: BTreeMap::new(),
        static_names: BTreeMap::new(),
        current: entry,
        guard: Cond::TRUE,
        guard_pure: false,
        line: kernel.name.span.line,
        carry: None,
        calls: vec![&kernel.name.text],
        returns: Vec::new(),
        graph,
        barriers,
        routines: Vec::new(),
    };
    let mut scope = Scope::function();
    let params = builder.kernel_params(kernel, &mut scope)?;
    builder.scopes.push(scope);
    if let Some(body) = &kernel.body {
        builder.body(body)?;
    }
    builder.count_exits();
    builder.build_routines()?;
    let Builder { func, graph, statics, static_names, routines, .. } = builder;
    let group = |name: &str| {
        let partner = |other: &&RoutineParts<'_>| {
            graph.reaches(name, &other.function.name.text) && graph.reaches(&other.function.name.text, name)
        };
        routines.iter().position(|other| partner(&other)).unwrap_or(0)
    };
    let groups: Vec<usize> = routines.iter().map(|routine| group(&routine.function.name.text)).collect();
    let routines = routines.into_iter().zip(groups).filter_map(|(parts, group)| {
        let mut routine = Routine { func: parts.func?, group };
        routine.func.symbols.clone_from(&func.symbols);
        Some(routine)
    });
    Ok(BuiltKernel {
        routines: routines.collect(),
        function: func,
        params,
        statics,
        static_names,
        function_addresses: graph.pointers().map(|(n, name)| (name.to_owned(), call::function_address(n))).collect(),
    })
}

/// The size of a variable in bytes; `None` for an open array.
pub(crate) fn variable_bytes(variable: &Variable) -> Result<Option<u64>> {
    let element = u64::from(variable.ty.bytes()) * u64::from(variable.vector.unwrap_or(1));
    let mut bytes = element;
    let mut open = false;
    for extent in &variable.extents {
        match extent {
            Some(extent) => {
                bytes = bytes.checked_mul(*extent).filter(|b| *b <= u64::from(u32::MAX)).ok_or_else(|| {
                    PtxError::invalid(variable.name.span, &variable.name.text, "the variable is larger than 4 GiB")
                })?;
            }
            None => open = true,
        }
    }
    if open && !variable.init.is_empty() {
        return Ok(Some(element * variable.init.len() as u64));
    }
    Ok((!open).then_some(bytes))
}

/// The alignment of a variable in bytes.
pub(crate) fn variable_align(variable: &Variable) -> Result<u32> {
    let natural = variable.ty.bytes() * variable.vector.unwrap_or(1);
    let align = variable.align.unwrap_or(u64::from(natural));
    match u32::try_from(align) {
        Ok(align) if align.is_power_of_two() && align <= 1 << 16 => Ok(align),
        _ => Err(PtxError::invalid(
            variable.name.span,
            format!(".align {align}"),
            "an alignment is a power of two, at most 65536",
        )),
    }
}

impl<'m> Builder<'m> {
    fn kernel_params(&mut self, kernel: &'m ast::Function, scope: &mut Scope<'m>) -> Result<Vec<Param>> {
        let dereferenced = pointers::dereferenced(kernel);
        let mut params = Vec::new();
        let mut end = 0u64;
        let mut offsets = Vec::new();
        for variable in &kernel.params {
            let align = variable_align(variable)?;
            let bytes = variable_bytes(variable)?.unwrap_or(0);
            let offset = end.next_multiple_of(u64::from(align));
            end = offset + bytes;
            let limit = 4 * u64::from(qwengpu_isa::ConstIdx::PARAMETER_WORDS);
            let (Ok(offset), Ok(size)) = (u32::try_from(offset), u32::try_from(bytes)) else {
                return Err(parameter_limit(kernel.name.span, end, limit));
            };
            if end > limit {
                return Err(parameter_limit(kernel.name.span, end, limit));
            }
            let name = variable.name.text.clone();
            let kind = param_kind(variable, dereferenced.contains(name.as_str()));
            params.push(Param { name, offset, size, align, kind });
            offsets.push((variable, offset));
        }
        let area = self.func.symbol(Symbol {
            name: format!("{} parameters", kernel.name.text),
            space: SymbolSpace::Param,
            bytes: end,
            align: 8,
            line: kernel.name.span.line,
        });
        for (variable, offset) in offsets {
            scope.define(&variable.name, Entity::Variable(area, offset))?;
        }
        Ok(params)
    }

    /// The statements of a scope already pushed; pops it.
    fn body(&mut self, body: &'m [Statement]) -> Result<()> {
        self.declare_labels(body)?;
        for statement in body {
            if self.func.num_insts() > MAX_INSTS && !matches!(statement, Statement::Variable(_)) {
                return Err(PtxError::ImplLimit {
                    at: self.here(),
                    what: "instructions of one kernel before optimisation",
                    need: self.func.num_insts() as u64,
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

    /// A variable or register declared in a body.
    fn declare(&mut self, variable: &'m Variable) -> Result<()> {
        if variable.space == StateSpace::Reg {
            return self.declare_registers(variable);
        }
        let space = match variable.space {
            StateSpace::Local | StateSpace::Param => SymbolSpace::Local,
            StateSpace::Shared if variable.linkage == Linkage::Extern => SymbolSpace::SharedExtern,
            StateSpace::Shared => SymbolSpace::Shared,
            StateSpace::Reg | StateSpace::Global | StateSpace::Const => {
                return Err(PtxError::invalid(
                    variable.name.span,
                    format!("{} {}", variable.space, variable.name.text),
                    "such a variable belongs at module level",
                ));
            }
        };
        let symbol = self.memory_symbol(variable, space)?;
        self.scope()?.define(&variable.name, Entity::Variable(symbol, 0))
    }

    fn memory_symbol(&mut self, variable: &Variable, space: SymbolSpace) -> Result<SymbolId> {
        let bytes = variable_bytes(variable)?;
        let open_allowed = matches!(space, SymbolSpace::SharedExtern | SymbolSpace::Extern);
        if bytes.is_none() && !open_allowed {
            return Err(PtxError::invalid(
                variable.name.span,
                format!("{}[]", variable.name.text),
                "only `.extern` arrays may leave their size open",
            ));
        }
        Ok(self.func.symbol(Symbol {
            name: variable.name.text.clone(),
            space,
            bytes: bytes.unwrap_or(0),
            align: variable_align(variable)?,
            line: variable.name.span.line,
        }))
    }

    /// The symbol of a module variable, made at its first use.
    pub(crate) fn module_variable(&mut self, name: &str) -> Result<Option<SymbolId>> {
        if let Some(symbol) = self.static_names.get(name) {
            return Ok(Some(*symbol));
        }
        let mut found: Option<&'m Variable> = None;
        for item in &self.module.items {
            if let Item::Variable(variable) = item
                && variable.name.text == name
                && found.is_none_or(|earlier| earlier.linkage == Linkage::Extern)
            {
                found = Some(variable);
            }
        }
        let Some(variable) = found else { return Ok(None) };
        let space = match (variable.space, variable.linkage) {
            (StateSpace::Shared, Linkage::Extern) => SymbolSpace::SharedExtern,
            (StateSpace::Shared, _) => SymbolSpace::Shared,
            (StateSpace::Global | StateSpace::Const, Linkage::Extern) => SymbolSpace::Extern,
            (StateSpace::Global | StateSpace::Const, _) => SymbolSpace::Static,
            (StateSpace::Reg | StateSpace::Local | StateSpace::Param, _) => {
                return Err(PtxError::unsupported(
                    variable.name.span,
                    format!("{} {}", variable.space, variable.name.text),
                    "not supported at module level; declare the variable in the kernel",
                ));
            }
        };
        let symbol = self.memory_symbol(variable, space)?;
        self.static_names.insert(name.to_owned(), symbol);
        if space == SymbolSpace::Static {
            self.statics.insert(symbol, variable);
            for value in &variable.init {
                if let ast::InitialValue::Address(other, _) = value
                    && self.graph.pointer(&other.text).is_none()
                    && self.module_variable(&other.text)?.is_none()
                {
                    return Err(PtxError::invalid(
                        other.span,
                        &other.text,
                        "no module variable or function has this name",
                    ));
                }
            }
        }
        Ok(Some(symbol))
    }

    fn instruction(&mut self, inst: &'m ast::Instruction) -> Result<()> {
        self.line = inst.span.line;
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

fn parameter_limit(at: Span, need: u64, limit: u64) -> PtxError {
    PtxError::ImplLimit {
        at,
        what: "bytes of kernel parameters",
        need,
        limit,
        hint: "pass large arguments through a buffer",
    }
}

fn param_kind(variable: &Variable, is_dereferenced: bool) -> ParamKind {
    let is_wide = matches!(variable.ty, ScalarType::U64 | ScalarType::S64 | ScalarType::B64);
    if variable.pointer.is_some() || is_wide && is_dereferenced {
        return ParamKind::Pointer;
    }
    if !variable.extents.is_empty() || variable.vector.is_some() {
        return ParamKind::Bytes;
    }
    match variable.ty {
        ty if ty.is_signed() => ParamKind::Signed,
        ty if is_wide || ty.class() == ast::TypeClass::Unsigned => ParamKind::Unsigned,
        _ => ParamKind::Bytes,
    }
}

impl FunctionKind {
    fn is_func(self) -> bool {
        self == FunctionKind::Func
    }
}
