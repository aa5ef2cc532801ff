//! What the driver does for a request: a launch, and the text that its result becomes.

use super::launch_line::{self, LaunchLine};
use super::request::Request;
use crate::cuda::CudaCompiler;
use crate::error::{Error, KernelError};
use crate::gpu::Gpu;
use crate::kernel::Kernel;
use crate::language::{ComputeError, ComputeOptions, compute};
use crate::launch::{Check, Launch, LaunchResult, Outcome};
use qwengpu_isa::Record;

/// Bytes of an error message that go into a reply.
const MAX_MESSAGE: usize = 400;

/// What came of a request.
#[derive(Debug, Clone)]
pub(crate) struct Performed {
    /// What stands behind the request in the reply.
    pub(crate) text: String,
    /// Whether there is a result.
    pub(crate) succeeded: bool,
    /// The launch, if it came to one.
    pub(crate) launch: Option<LaunchResult>,
    /// The PTX of a block.
    pub(crate) ptx: Option<String>,
}

/// The kernel of the last block that was launched, for blocks that launch it again.
#[derive(Debug, Clone)]
pub(crate) struct LastBlock {
    ptx: String,
    launch: Launch,
}

/// Performs requests on a GPU.
pub(crate) struct Performer<'a> {
    pub(crate) gpu: &'a mut Gpu,
    pub(crate) last: &'a mut Option<LastBlock>,
    pub(crate) options: ComputeOptions,
    pub(crate) on_record: &'a mut dyn FnMut(Record),
}

impl Performer<'_> {
    /// Performs a request. `ptx` stands for the compilation of a block that was compiled before.
    ///
    /// # Errors
    /// If the machine breaks down; what is the request's own fault becomes text.
    pub(crate) fn perform(&mut self, request: &Request, ptx: Option<&str>) -> Result<Performed, Error> {
        match request {
            Request::Span(text) => self.span(text),
            Request::Block(text) => self.block(text, ptx),
        }
    }

    fn span(&mut self, text: &str) -> Result<Performed, Error> {
        // A block further on may want the memory of the last one.
        let kept = self.last.is_some().then(|| self.gpu.save());
        let performed = self.computed(text);
        if let Some(kept) = kept {
            self.gpu.restore(&kept)?;
        }
        performed
    }

    fn computed(&mut self, text: &str) -> Result<Performed, Error> {
        let (said, launch) = match compute(self.gpu, text, self.options, self.on_record) {
            Ok(answer) => (Ok(answer.text), Some(answer.launch)),
            Err(ComputeError::Gpu(error)) => (Err(self.own_fault(error)?), None),
            Err(ComputeError::Status { status, launch }) => (Err(status.text().to_owned()), Some(*launch)),
            Err(error) => (Err(error.to_string()), None),
        };
        let succeeded = said.is_ok();
        let text = match said {
            Ok(result) => format!(" = {result}"),
            Err(message) => format!(" = error: {}", one_line(&message)),
        };
        Ok(Performed { text, succeeded, launch, ptx: None })
    }

    fn block(&mut self, text: &str, ptx: Option<&str>) -> Result<Performed, Error> {
        let mut performed = Performed { text: String::new(), succeeded: false, launch: None, ptx: None };
        match self.launched(text, ptx, &mut performed)? {
            Ok(results) => {
                performed.succeeded = true;
                performed.text = format!("\n= {results}");
            }
            Err(message) => performed.text = format!("\nerror: {}", shortened(message.trim_end())),
        }
        Ok(performed)
    }

    /// The results of a block; the inner error is for the model.
    fn launched(
        &mut self,
        text: &str,
        ptx: Option<&str>,
        performed: &mut Performed,
    ) -> Result<Result<String, String>, Error> {
        let line = launch_line::split(text).and_then(|(source, line)| Ok((source, LaunchLine::parse(line)?)));
        let (source, line) = match line {
            Ok(found) => found,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let again = source.trim().is_empty().then(|| self.last.as_ref().map(|last| last.ptx.clone())).flatten();
        let ptx = match (ptx, again) {
            (Some(ptx), _) => ptx.to_owned(),
            (None, Some(again)) => again,
            (None, None) => match CudaCompiler::find().and_then(|compiler| compiler.compile_untrusted(source)) {
                Ok(ptx) => ptx,
                Err(error) => return Ok(Err(error.to_string())),
            },
        };
        let ptx = performed.ptx.insert(ptx);
        let kernel = match kernel_of(self.gpu, ptx, &line.kernel) {
            Ok(kernel) => kernel,
            Err(error) => return Ok(Err(self.own_fault(error)?)),
        };
        let before = self.last.as_ref().map(|last| &last.launch);
        let (launch, results) = match line.launch(kernel.signature(), before) {
            Ok(found) => found,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let ComputeOptions { max_tokens, check } = self.options;
        let launch = Launch { max_tokens, check, ..launch };
        let result = match self.gpu.launch_with(&kernel, &launch, self.on_record) {
            Ok(result) => performed.launch.insert(result),
            Err(error) => return Ok(Err(self.own_fault(error)?)),
        };
        if let Some(check) = result.check.as_ref().filter(|check| **check != Check::Equal) {
            return Ok(Err(check.to_string()));
        }
        match &result.outcome {
            Outcome::Finished => {
                *self.last = Some(LastBlock { ptx: ptx.clone(), launch });
                let shown = results.iter().filter_map(|&number| result.buffers.get(number)).map(|buffer| {
                    let values: Vec<String> = buffer.values().iter().map(ToString::to_string).collect();
                    format!("[{}]", values.join(", "))
                });
                Ok(Ok(shown.collect::<Vec<_>>().join(", ")))
            }
            Outcome::Fault(fault) => Ok(Err(format!("{fault}: {}", fault.explanation()))),
            Outcome::TokenLimit(limit) => Ok(Err(format!("the kernel has not ended after {limit} records"))),
            Outcome::Mismatch => Ok(Err("the result differs from the interpreter's".to_owned())),
        }
    }

    /// The message of an error that is the request's fault; others are the machine's and stay errors.
    fn own_fault(&self, error: Error) -> Result<String, Error> {
        match error {
            Error::Kernel(KernelError::Ptx { source, .. }) => Ok(source.to_string()),
            Error::Kernel(_) | Error::Launch(_) => Ok(error.to_string()),
            other => Err(other),
        }
    }
}

/// The kernel that the source calls `name`: C++ writes the types of its parameters behind it.
fn kernel_of(gpu: &Gpu, ptx: &str, name: &str) -> Result<Kernel, Error> {
    let mangled = format!("_Z{}{name}", name.len());
    let entries: Vec<String> = qwengpu_ptx::parse(ptx)
        .map(|module| module.kernels().map(|kernel| kernel.name.text.clone()).collect())
        .unwrap_or_default();
    let entry = entries.iter().find(|entry| *entry == name || entry.starts_with(&mangled));
    Ok(Kernel::from_ptx(gpu.spec(), ptx, Some(entry.map_or(name, String::as_str)))?)
}

fn one_line(message: &str) -> String {
    shortened(&message.split_whitespace().collect::<Vec<_>>().join(" ")).to_owned()
}

fn shortened(message: &str) -> &str {
    let end = message.char_indices().map(|(place, _)| place).find(|&place| place >= MAX_MESSAGE);
    message.get(..end.unwrap_or(message.len())).unwrap_or(message)
}
