//! Variables get their addresses: shared and local ones from the start of their windows, static ones at the
//! end of global memory.

use std::collections::BTreeMap;

use qwengpu_isa::{LOCAL_BASE, MachineSpec, SHARED_BASE};

use crate::ast::{InitialValue, Variable};
use crate::error::PtxError;
use crate::ir::{Function, SymbolId, SymbolSpace, Value};
use crate::span::Span;

/// The address of a variable that another module would define: outside every window, so that any use faults.
const UNDEFINED_ADDRESS: u32 = 0x7f00_0000;

/// Global memory the program needs besides the caller's buffers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StaticData {
    /// Global word where it starts; the number of global words when there is none.
    pub first_word: u32,
    /// Its initial words.
    pub words: Vec<u32>,
    /// The variables in it.
    pub symbols: Vec<StaticSymbol>,
}

/// A module variable in global memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticSymbol {
    /// Its name.
    pub name: String,
    /// Its byte address.
    pub address: u32,
    /// Its size in bytes.
    pub size: u32,
}

/// What the variables of a kernel take.
pub(crate) struct Layout {
    pub(crate) statics: StaticData,
    pub(crate) shared_bytes: u32,
    pub(crate) local_bytes: u32,
    /// Whether frames of routines take the rest of local memory.
    pub(crate) has_stack: bool,
}

/// The static variables of the module the kernel may use.
#[derive(Debug)]
pub(crate) struct Statics<'m> {
    pub(crate) variables: BTreeMap<SymbolId, &'m Variable>,
    pub(crate) names: BTreeMap<String, SymbolId>,
    /// What stands for the address of a function in initial values.
    pub(crate) functions: BTreeMap<String, u32>,
}

/// Gives every symbol its address; a stack begins behind the variables and `spill_bytes`.
pub(crate) fn resolve_symbols(
    func: &mut Function,
    statics: &Statics<'_>,
    spec: &MachineSpec,
    spill_bytes: u32,
) -> Result<Layout, PtxError> {
    let used = used_symbols(func, statics);
    let mut addresses: BTreeMap<SymbolId, u32> = BTreeMap::new();
    let mut ends = BTreeMap::new();
    for (name, wanted, base, words) in [
        ("shared", SymbolSpace::Shared, SHARED_BASE, spec.shared_words),
        ("local", SymbolSpace::Local, LOCAL_BASE, spec.local_words),
    ] {
        let mut end = 0u64;
        for symbol in used.iter().filter(|s| func.symbols[s.idx()].space == wanted) {
            let variable = &func.symbols[symbol.idx()];
            let start = end.next_multiple_of(u64::from(variable.align));
            end = start + variable.bytes;
            check_limit(func, *symbol, name, end, 4 * u64::from(words))?;
            addresses.insert(*symbol, base + small(start));
        }
        ends.insert(name, small(end));
    }
    let mut shared_bytes = ends.get("shared").copied().unwrap_or(0);
    for symbol in used.iter().filter(|s| func.symbols[s.idx()].space == SymbolSpace::PerThread) {
        // Behind everything of a fixed size; the copies of the other threads follow.
        let variable = &func.symbols[symbol.idx()];
        let start = u64::from(shared_bytes.next_multiple_of(variable.align));
        let end = start + variable.bytes;
        check_limit(func, *symbol, "shared", end, 4 * u64::from(spec.shared_words))?;
        addresses.insert(*symbol, SHARED_BASE + small(start));
        shared_bytes = small(end);
    }
    let mut has_stack = false;
    for symbol in &used {
        match func.symbols[symbol.idx()].space {
            SymbolSpace::SharedExtern => {
                let align = func.symbols[symbol.idx()].align.max(4);
                addresses.insert(*symbol, SHARED_BASE + shared_bytes.next_multiple_of(align));
            }
            SymbolSpace::Extern => {
                addresses.insert(*symbol, UNDEFINED_ADDRESS);
            }
            SymbolSpace::Stack => {
                let variables = ends.get("local").copied().unwrap_or(0).next_multiple_of(4);
                let start = variables.saturating_add(spill_bytes);
                addresses.insert(*symbol, LOCAL_BASE + start.next_multiple_of(func.symbols[symbol.idx()].align));
                has_stack = true;
            }
            SymbolSpace::Static
            | SymbolSpace::Shared
            | SymbolSpace::Local
            | SymbolSpace::PerThread
            | SymbolSpace::Param
            | SymbolSpace::Transfer => {}
        }
    }
    let statics = place_statics(func, statics, spec, &used, &mut addresses)?;
    func.each_inst(&mut |inst| {
        inst.each_value(&mut |value| {
            if let Value::Symbol(symbol, offset) = value {
                let base = addresses.get(symbol).copied().unwrap_or(UNDEFINED_ADDRESS);
                *value = Value::Imm(base.wrapping_add(*offset));
            }
        });
        if let Some(address) = inst.address_mut()
            && let Some(symbol) = address.symbol.take()
        {
            let base = addresses.get(&symbol).copied().unwrap_or(UNDEFINED_ADDRESS);
            *address = address.plus(base);
        }
    });
    Ok(Layout { statics, shared_bytes, local_bytes: ends.get("local").copied().unwrap_or(0), has_stack })
}

fn small(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// The symbols the code uses, and those their initial values name.
fn used_symbols(func: &Function, statics: &Statics<'_>) -> Vec<SymbolId> {
    let mut used: Vec<bool> = vec![false; func.symbols.len()];
    let mut work: Vec<SymbolId> = func.insts().flat_map(|inst| inst.symbols()).collect();
    while let Some(symbol) = work.pop() {
        if std::mem::replace(&mut used[symbol.idx()], true) {
            continue;
        }
        for value in statics.variables.get(&symbol).map_or(&[][..], |v| &v.init[..]) {
            if let InitialValue::Address(name, _) = value {
                work.extend(statics.names.get(&name.text));
            }
        }
    }
    let ids = used.into_iter().enumerate().filter(|(_, used)| *used);
    ids.map(|(idx, _)| SymbolId::new(idx)).collect()
}

fn check_limit(func: &Function, symbol: SymbolId, space: &str, need: u64, limit: u64) -> Result<(), PtxError> {
    if need <= limit {
        return Ok(());
    }
    let (what, hint) = match space {
        "shared" => ("bytes of shared memory", "use smaller shared arrays"),
        "local" => ("bytes of local memory a thread", "compile with -O2, or use smaller local arrays"),
        _ => ("bytes of static global memory", "use smaller module variables, or pass a buffer"),
    };
    Err(PtxError::ImplLimit {
        at: Span { line: func.symbols[symbol.idx()].line, column: 1, ..Span::default() },
        what,
        need,
        limit,
        hint,
    })
}

fn place_statics(
    func: &Function,
    statics: &Statics<'_>,
    spec: &MachineSpec,
    used: &[SymbolId],
    addresses: &mut BTreeMap<SymbolId, u32>,
) -> Result<StaticData, PtxError> {
    let limit = 4 * u64::from(spec.global_words);
    let placed: Vec<SymbolId> =
        used.iter().copied().filter(|s| func.symbols[s.idx()].space == SymbolSpace::Static).collect();
    // Offsets from a start that is aligned for all of them.
    let mut end = 0u64;
    let mut widest = 4u64;
    let mut starts = Vec::new();
    for symbol in &placed {
        let variable = &func.symbols[symbol.idx()];
        let align = u64::from(variable.align);
        widest = widest.max(align);
        let start = end.next_multiple_of(align);
        end = start + variable.bytes;
        check_limit(func, *symbol, "static", end, limit)?;
        starts.push(start);
    }
    let words = end.div_ceil(4);
    let base = (limit - 4 * words) / widest * widest;
    if let Some(last) = placed.last() {
        check_limit(func, *last, "static", base + end, limit)?;
    }
    let mut bytes = vec![0u8; usize::try_from(limit - base).unwrap_or(0)];
    let mut data = StaticData { first_word: small(base / 4), ..StaticData::default() };
    for (symbol, start) in placed.iter().zip(&starts) {
        addresses.insert(*symbol, small(base + start));
        let variable = &func.symbols[symbol.idx()];
        data.symbols.push(StaticSymbol {
            name: variable.name.clone(),
            address: small(base + start),
            size: small(variable.bytes),
        });
    }
    for (symbol, start) in placed.iter().zip(&starts) {
        let Some(variable) = statics.variables.get(symbol) else { continue };
        let width = usize::try_from(variable.ty.bytes()).unwrap_or(1);
        let mut at = usize::try_from(*start).unwrap_or(0);
        for value in &variable.init {
            let bits = match value {
                InitialValue::Bits(bits) => *bits,
                InitialValue::Address(name, offset) => {
                    let address = statics.names.get(&name.text).and_then(|s| addresses.get(s));
                    let address = address.or_else(|| statics.functions.get(&name.text));
                    u64::from(address.copied().unwrap_or(UNDEFINED_ADDRESS)).wrapping_add_signed(*offset)
                }
            };
            for (byte, slot) in bits.to_le_bytes().iter().take(width).zip(bytes.iter_mut().skip(at)) {
                *slot = *byte;
            }
            at += width;
        }
    }
    data.words =
        bytes.chunks(4).map(|chunk| chunk.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte))).collect();
    Ok(data)
}
