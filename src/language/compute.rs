//! From the text of a question to the text of its answer, by a launch.

use qwengpu_isa::{Dim3, Record};
use thiserror::Error;

use crate::argument::{Argument, Buffer};
use crate::error::Error;
use crate::gpu::Gpu;
use crate::kernel::Kernel;
use crate::language::expression::{Expression, ExpressionError, Status};
use crate::language::preset::{self, Call, CallError, called_name};
use crate::launch::{Check, Launch, LaunchResult, Outcome};

/// What the GPU has computed.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The result, as it stands in a text.
    pub text: String,
    /// The launch that gave it.
    pub launch: LaunchResult,
}

/// A question without an answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ComputeError {
    /// The text is no expression.
    #[error("{0}")]
    Expression(#[from] ExpressionError),
    /// The text is no call of a preset.
    #[error("{0}")]
    Call(#[from] CallError),
    /// The GPU says that there is no result.
    #[error("{}", status.text())]
    Status {
        /// Why.
        status: Status,
        /// The launch that says so.
        launch: Box<LaunchResult>,
    },
    /// The launch did not finish.
    #[error("the kernel has not ended after {0} records: the numbers are too large for this machine")]
    Limit(usize),
    /// A record differs from the interpreter's.
    #[error("{0}")]
    Check(Check),
    /// The kernel faulted, which these kernels never do.
    #[error("{0}")]
    Outcome(String),
    /// The machine could not run.
    #[error(transparent)]
    Gpu(#[from] Error),
}

/// Bounds and checks of a computation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComputeOptions {
    /// Records after which the launch is cut off.
    pub max_tokens: usize,
    /// Whether every record is compared with the interpreter's.
    pub check: bool,
}

/// Computes an expression such as `12 * (3 + 4)`, or a call such as `gcd(48, 36)`, on the GPU; `on_record` sees each
/// record when it is spoken.
///
/// ```
/// use qwengpu::{EngineKind, Gpu, language::{ComputeOptions, compute}};
///
/// # fn main() -> Result<(), qwengpu::language::ComputeError> {
/// let mut gpu = Gpu::new(EngineKind::Interp)?;
/// let options = ComputeOptions { max_tokens: 100_000, check: false };
/// assert_eq!(compute(&mut gpu, "12 * (3 + 4)", options, &mut |_| ())?.text, "84");
/// assert_eq!(compute(&mut gpu, "sort(9, 3, 5)", options, &mut |_| ())?.text, "[3, 5, 9]");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the text is neither, there is no result, or the machine breaks down.
pub fn compute(
    gpu: &mut Gpu,
    text: &str,
    options: ComputeOptions,
    on_record: &mut dyn FnMut(Record),
) -> Result<Answer, ComputeError> {
    let ComputeOptions { max_tokens, check } = options;
    if let Some(name) = called_name(text) {
        let call = Call::parse(text)?;
        let kernel = Kernel::from_ptx(gpu.spec(), preset::PTX, Some(name)).map_err(Error::from)?;
        let launch = run(gpu, &kernel, &Launch { max_tokens, check, ..call.launch.clone() }, on_record)?;
        let mut buffers = launch.buffers.iter().rev().skip(1);
        let counted = if call.is_counted() { buffers.next().and_then(first_word) } else { None };
        let results = buffers.next().and_then(Buffer::to_vec::<i64>).unwrap_or_default();
        let counted = counted.and_then(|count| usize::try_from(count).ok()).unwrap_or(results.len());
        return Ok(Answer { text: call.shown(&results, counted), launch });
    }
    let expression = Expression::parse(text)?;
    let kernel = Kernel::from_ptx(gpu.spec(), &expression.to_ptx(), None).map_err(Error::from)?;
    let mut launch = Launch::new(Dim3::linear(1), Dim3::linear(1))
        .argument(Argument::zeros::<i64>(1))
        .argument(Argument::zeros::<u32>(1));
    launch.arguments.extend(expression.numbers().iter().map(|number| Argument::from(*number)));
    let launch = run(gpu, &kernel, &Launch { max_tokens, check, ..launch }, on_record)?;
    let result = launch.buffers.first().and_then(Buffer::to_vec::<i64>).unwrap_or_default();
    let text = result.first().map(ToString::to_string).unwrap_or_default();
    Ok(Answer { text, launch })
}

fn first_word(buffer: &Buffer) -> Option<u32> {
    buffer.to_vec::<u32>()?.first().copied()
}

/// Runs a launch whose last buffer is the status.
fn run(
    gpu: &mut Gpu,
    kernel: &Kernel,
    launch: &Launch,
    on_record: &mut dyn FnMut(Record),
) -> Result<LaunchResult, ComputeError> {
    let result = gpu.launch_with(kernel, launch, on_record)?;
    if let Some(check) = result.check.as_ref().filter(|check| **check != Check::Equal) {
        return Err(ComputeError::Check(check.clone()));
    }
    match &result.outcome {
        Outcome::Finished => {}
        Outcome::TokenLimit(limit) => return Err(ComputeError::Limit(*limit)),
        Outcome::Fault(fault) => return Err(ComputeError::Outcome(fault.to_string())),
        Outcome::Mismatch => return Err(ComputeError::Outcome("the result differs from the interpreter's".to_owned())),
    }
    match result.buffers.last().and_then(first_word).map(Status::of) {
        None | Some(Status::Good) => Ok(result),
        Some(status) => Err(ComputeError::Status { status, launch: Box::new(result) }),
    }
}
