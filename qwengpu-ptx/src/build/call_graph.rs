//! Which functions a kernel may reach, which of them call themselves, and whose addresses are taken.

use std::collections::{BTreeMap, BTreeSet};

use crate::ast::{self, Function, InitialValue, Instruction, Item, Module, Operand, Statement};

/// A call as the graph sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallShape<'m> {
    /// What stands in the place of the function's name.
    pub(super) target: &'m ast::Name,
    pub(super) arguments: &'m [Operand],
    pub(super) returns: &'m [Operand],
}

/// The parts of a `call` instruction; `None` if it has another form.
pub(super) fn call_shape(inst: &Instruction) -> Option<CallShape<'_>> {
    let (returns, rest): (&[Operand], &[Operand]) = match inst.operands.split_first() {
        Some((Operand::List(returns, _), rest)) => (returns, rest),
        _ => (&[], &inst.operands),
    };
    match rest {
        [Operand::Name(target), Operand::List(arguments, _), ..] => Some(CallShape { target, arguments, returns }),
        [Operand::Name(target), ..] => Some(CallShape { target, arguments: &[], returns }),
        _ => None,
    }
}

/// Calls `visit` on every instruction of a body, nested scopes included.
pub(super) fn each_instruction<'m>(body: &'m [Statement], visit: &mut dyn FnMut(&'m Instruction)) {
    for statement in body {
        match statement {
            Statement::Instruction(inst) => visit(inst),
            Statement::Block(inner, _) => each_instruction(inner, visit),
            Statement::Variable(_)
            | Statement::Label(_)
            | Statement::BranchTargets(_)
            | Statement::CallPrototype(_) => {}
        }
    }
}

/// The functions of a module as one kernel sees them.
#[derive(Debug, Default)]
pub(super) struct CallGraph<'m> {
    functions: BTreeMap<&'m str, &'m Function>,
    /// The functions whose address is taken, in the order of their names.
    pointed: Vec<&'m str>,
    /// The functions that a function, or the kernel, may call at some depth.
    reach: BTreeMap<&'m str, BTreeSet<&'m str>>,
}

impl<'m> CallGraph<'m> {
    pub(super) fn new(module: &'m Module, kernel: &'m Function) -> Self {
        let mut graph = CallGraph::default();
        for item in &module.items {
            if let Item::Function(function) = item
                && function.kind.is_func()
                && graph.function(&function.name.text).is_none_or(|earlier| earlier.body.is_none())
            {
                graph.functions.insert(&function.name.text, function);
            }
        }
        graph.find_pointed(module);
        let edges: BTreeMap<&str, BTreeSet<&str>> = graph
            .functions
            .values()
            .chain([&kernel])
            .map(|function| (function.name.text.as_str(), graph.callees(function)))
            .collect();
        for start in edges.keys() {
            let mut seen: BTreeSet<&str> = BTreeSet::new();
            let mut work: Vec<&str> = vec![start];
            while let Some(name) = work.pop() {
                let next = edges.get(name).into_iter().flatten();
                work.extend(next.filter(|callee| seen.insert(callee)));
            }
            graph.reach.insert(start, seen);
        }
        graph
    }

    fn find_pointed(&mut self, module: &'m Module) {
        let mut pointed: BTreeSet<&'m str> = BTreeSet::new();
        for item in &module.items {
            match item {
                Item::Variable(variable) => {
                    for value in &variable.init {
                        if let InitialValue::Address(name, _) = value {
                            pointed.extend(self.functions.get_key_value(name.text.as_str()).map(|(name, _)| *name));
                        }
                    }
                }
                Item::Function(function) => {
                    let body = function.body.as_deref().unwrap_or_default();
                    each_instruction(body, &mut |inst| {
                        if inst.opcode.name.text == "call" {
                            return;
                        }
                        for operand in &inst.operands {
                            if let Operand::Name(name) = operand {
                                pointed.extend(self.functions.get_key_value(name.text.as_str()).map(|(name, _)| *name));
                            }
                        }
                    });
                }
            }
        }
        self.pointed = pointed.into_iter().collect();
    }

    fn callees(&self, function: &'m Function) -> BTreeSet<&'m str> {
        let mut callees = BTreeSet::new();
        each_instruction(function.body.as_deref().unwrap_or_default(), &mut |inst| {
            if inst.opcode.name.text != "call" {
                return;
            }
            let Some(shape) = call_shape(inst) else { return };
            match self.functions.get_key_value(shape.target.text.as_str()) {
                Some((name, _)) => {
                    callees.insert(*name);
                }
                None => callees.extend(self.candidates(&shape).map(|(_, function)| function.name.text.as_str())),
            }
        });
        callees
    }

    /// The function of that name; its definition if there is one.
    pub(super) fn function(&self, name: &str) -> Option<&'m Function> {
        self.functions.get(name).copied()
    }

    /// The number of a function whose address is taken.
    pub(super) fn pointer(&self, name: &str) -> Option<u32> {
        let position = self.pointed.iter().position(|pointed| *pointed == name)?;
        u32::try_from(position).ok()
    }

    /// The functions whose address is taken, with their numbers.
    pub(super) fn pointers(&self) -> impl Iterator<Item = (u32, &'m str)> {
        (0..).zip(self.pointed.iter().copied())
    }

    /// The functions that a call through a pointer may mean, with their numbers.
    pub(super) fn candidates(&self, shape: &CallShape<'_>) -> impl Iterator<Item = (u32, &'m Function)> {
        let counts = (shape.arguments.len(), shape.returns.len());
        (0..).zip(&self.pointed).filter_map(move |(number, name)| {
            let function = self.function(name)?;
            let fits = function.body.is_some() && (function.params.len(), function.returns.len()) == counts;
            fits.then_some((number, function))
        })
    }

    /// Whether `from` may call `to` at some depth.
    pub(super) fn reaches(&self, from: &str, to: &str) -> bool {
        self.reach.get(from).is_some_and(|reached| reached.contains(to))
    }

    /// Whether a function may call itself at some depth.
    pub(super) fn is_recursive(&self, name: &str) -> bool {
        self.reaches(name, name)
    }

    /// Whether a kernel may call a function that may call itself.
    pub(super) fn reaches_recursion(&self, kernel: &str) -> bool {
        self.reach.get(kernel).into_iter().flatten().any(|name| self.is_recursive(name))
    }

    /// Calls `visit` on every instruction that the kernel may reach.
    pub(super) fn each_reached(&self, kernel: &'m Function, visit: &mut dyn FnMut(&'m Instruction)) {
        each_instruction(kernel.body.as_deref().unwrap_or_default(), visit);
        for name in self.reach.get(kernel.name.text.as_str()).into_iter().flatten() {
            let body = self.function(name).and_then(|function| function.body.as_deref());
            each_instruction(body.unwrap_or_default(), visit);
        }
    }
}
