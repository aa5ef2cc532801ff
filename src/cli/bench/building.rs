//! What is made before a launch: programs from PTX, weights from netlists, checkpoints from weights.

use std::ops::ControlFlow;

use qwengpu::weights;
use qwengpu_circuit::{Dtype, prove};
use qwengpu_ptx::ast::{Body, Statement};
use qwengpu_ptx::{Options, lower, parse};
use qwengpu_weights::{EmitOptions, emit};

use super::checkpoint::temporary;
use super::clock::{Reading, take_turns, time};
use super::figure::Figure;
use super::{Failure, Setting};

/// Lowers every kernel of the folder, each for its least time.
#[expect(clippy::cast_precision_loss, reason = "counts of instructions are far below 2^52")]
pub(crate) fn lowering(setting: &Setting<'_>) -> Result<Vec<Figure>, Failure> {
    let options = Options::new(setting.spec);
    let (mut read, mut made, mut parsing, mut lowering) = (0, 0, Reading::ZERO, Reading::ZERO);
    for case in setting.cases {
        setting.say(&format!("lowering: {}", case.name));
        let text = std::fs::read_to_string(&case.ptx).map_err(|error| Failure::file("reading", &case.ptx, &error))?;
        let ptx_error = |error| Failure::wrong(format!("{}: {error}", case.ptx.display()));
        let module = parse(&text).map_err(ptx_error)?;
        let kernel = Some(case.kernel.as_str());
        let mut instructions = 0;
        let best = take_turns(
            if setting.quick { 1 } else { 5 },
            &mut [&mut || parse(&text).map(|_| ()), &mut || {
                instructions = lower(&module, kernel, &options)?.program.instructions.len();
                Ok(())
            }],
        )
        .map_err(ptx_error)?;
        let functions = module.items.iter().filter_map(|item| match item {
            qwengpu_ptx::ast::Item::Function(function) => function.body.as_ref(),
            _ => None,
        });
        read += functions.map(count).sum::<usize>();
        made += instructions;
        (parsing, lowering) = (parsing.plus(best[0]), lowering.plus(best[1]));
    }
    let over = format!("{} kernels of clang, {read} PTX instructions to {made}", setting.cases.len());
    Ok(vec![
        Figure::rate("lowering.parse", read as f64, "instructions/s", parsing, &over),
        Figure::rate("lowering.lower", read as f64, "instructions/s", lowering, &over),
        Figure::rate("lowering.whole", read as f64, "instructions/s", parsing.plus(lowering), &over),
    ])
}

fn count(body: &Body) -> usize {
    let each = body.iter().map(|statement| match statement {
        Statement::Instruction(_) => 1,
        Statement::Block(body, _) => count(body),
        _ => 0,
    });
    each.sum()
}

/// Netlist, weights, proof.
pub(crate) fn compilation(setting: &Setting<'_>) -> Result<Vec<Figure>, Failure> {
    setting.say("compiling and proving the machine");
    let machine = weights::build(&setting.spec)?;
    let compiled = weights::compile(&machine)?;
    let proof = || prove(&machine.netlist, &compiled, &[Dtype::F32, Dtype::Bf16]);
    let best = take_turns(
        setting.rounds(),
        &mut [
            &mut || weights::build(&setting.spec).map(|_| ()).map_err(Failure::from),
            &mut || weights::compile(&machine).map(|_| ()).map_err(Failure::from),
            &mut || proof().map(|_| ()).map_err(|error| Failure::wrong(format!("not proven: {error}"))),
        ],
    )?;
    let over = super::super::info::summary(&compiled.report);
    Ok(vec![
        Figure::seconds("compile.netlist", best[0], "the machine as a netlist"),
        Figure::seconds("compile.weights", best[1], &over),
        Figure::seconds("compile.proof", best[2], "the margins in f32 and bf16"),
    ])
}

/// A checkpoint on disk.
#[expect(clippy::cast_precision_loss, reason = "bytes of a checkpoint are far below 2^52")]
pub(crate) fn emission(setting: &Setting<'_>) -> Result<Vec<Figure>, Failure> {
    let machine = weights::build(&setting.spec)?;
    let compiled = weights::compile(&machine)?;
    let source = weights::source(&machine, &compiled, std::collections::BTreeMap::new());
    let parent = temporary()?;
    let mut best: Option<Reading> = None;
    let mut bytes = 0;
    for round in 0..setting.rounds() {
        setting.say(&format!("writing a checkpoint, round {}", round + 1));
        let folder = parent.path().join(round.to_string());
        let (result, taken) = time(|| {
            emit(&source, &folder, &EmitOptions::default(), &mut |progress| {
                bytes = progress.total;
                ControlFlow::Continue(())
            })
        });
        result.map_err(|error| Failure::input(format!("emission failed: {error}")))?;
        std::fs::remove_dir_all(&folder).map_err(|error| Failure::file("removing", &folder, &error))?;
        best = Some(best.map_or(taken, |best| best.least(taken)));
    }
    let over = format!("bf16, {:.2} GB with its holes, to the folder for temporary files", bytes as f64 / 1e9);
    Ok(vec![Figure::seconds("emit.checkpoint", best.unwrap_or_default(), &over)])
}
