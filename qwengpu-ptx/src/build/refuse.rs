//! Instructions that are valid PTX and not for this machine, named with what to do instead.

use crate::ast::Instruction;
use crate::error::{PtxError, Result};

const FLOAT: &str = "floating point; this machine computes integers only";
const TEXTURE: &str = "a texture or surface access; pass the data in a buffer";
const MATRIX: &str = "a matrix unit operation; this machine has none, write the loop with `mad`";
const ASYNC: &str = "an asynchronous copy or barrier; use plain loads, stores and `bar.sync 0`";
const CLUSTER: &str = "for clusters of CTAs; this machine has none";
const VIDEO: &str = "a video instruction; use shifts, masks and integer arithmetic";
const STACK: &str = "stack manipulation; declare a `.local` array of fixed size";

const FAMILIES: &[(&str, &str)] = &[
    ("fma", FLOAT),
    ("rcp", FLOAT),
    ("sqrt", FLOAT),
    ("rsqrt", FLOAT),
    ("sin", FLOAT),
    ("cos", FLOAT),
    ("lg2", FLOAT),
    ("ex2", FLOAT),
    ("tanh", FLOAT),
    ("copysign", FLOAT),
    ("testp", FLOAT),
    ("tex", TEXTURE),
    ("tld4", TEXTURE),
    ("txq", TEXTURE),
    ("suld", TEXTURE),
    ("sust", TEXTURE),
    ("sured", TEXTURE),
    ("suq", TEXTURE),
    ("istypep", TEXTURE),
    ("wmma", MATRIX),
    ("mma", MATRIX),
    ("wgmma", MATRIX),
    ("ldmatrix", MATRIX),
    ("stmatrix", MATRIX),
    ("movmatrix", MATRIX),
    ("tcgen05", MATRIX),
    ("cp", ASYNC),
    ("mbarrier", ASYNC),
    ("setmaxnreg", CLUSTER),
    ("mapa", CLUSTER),
    ("getctarank", CLUSTER),
    ("griddepcontrol", CLUSTER),
    ("clusterlaunchcontrol", CLUSTER),
    ("multimem", CLUSTER),
    ("tensormap", CLUSTER),
    ("createpolicy", "a cache policy; drop it, memory here has one level"),
    ("vadd", VIDEO),
    ("vsub", VIDEO),
    ("vabsdiff", VIDEO),
    ("vmin", VIDEO),
    ("vmax", VIDEO),
    ("vshl", VIDEO),
    ("vshr", VIDEO),
    ("vmad", VIDEO),
    ("vset", VIDEO),
    ("vavrg2", VIDEO),
    ("vavrg4", VIDEO),
    ("alloca", STACK),
    ("stacksave", STACK),
    ("stackrestore", STACK),
    ("pmevent", "a performance event; drop it"),
    ("mad.fused", FLOAT),
];

/// Fails if the instruction is of a family this machine does not have.
pub(super) fn refuse_foreign(inst: &Instruction) -> Result<()> {
    let name = inst.opcode.name.text.as_str();
    match FAMILIES.iter().find(|(family, _)| *family == name) {
        Some((_, reason)) => Err(PtxError::unsupported(inst.opcode.name.span, inst.opcode.to_string(), *reason)),
        None => Ok(()),
    }
}
