//! What the driver does for a request: a launch, and the text that its result becomes.

use super::launch_line::{self, LaunchLine, LaunchLineError};
use super::request::Request;
use crate::cuda::{CudaCompiler, CudaError};
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
    pub(super) ptx: String,
    pub(super) launch: Launch,
    /// Which of its buffers are results.
    pub(super) results: Vec<usize>,
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
            Err(ComputeError::Gpu(error)) => (Err(Refusal::from(error).own_fault()?), None),
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
        match self.launched(text, ptx, &mut performed) {
            Ok(results) => {
                performed.succeeded = true;
                performed.text = format!("\n= {results}");
            }
            Err(refusal) => performed.text = format!("\nerror: {}", shortened(refusal.own_fault()?.trim_end())),
        }
        Ok(performed)
    }

    /// The results of a block.
    fn launched(&mut self, text: &str, ptx: Option<&str>, performed: &mut Performed) -> Result<String, Refusal> {
        let (source, line) = launch_line::split(text)?;
        let line = LaunchLine::parse(line)?;
        let again = source.trim().is_empty().then(|| self.last.as_ref().map(|last| last.ptx.clone())).flatten();
        let ptx = match (ptx, again) {
            (Some(ptx), _) => ptx.to_owned(),
            (None, Some(again)) => again,
            (None, None) => CudaCompiler::find()?.compile_untrusted(source)?,
        };
        let ptx = performed.ptx.insert(ptx);
        let kernel = kernel_of(self.gpu, ptx, &line.kernel)?;
        let (launch, results) = line.launch(kernel.signature(), self.last.as_ref())?;
        let ComputeOptions { max_tokens, check } = self.options;
        let launch = Launch { max_tokens, check, ..launch };
        let result = performed.launch.insert(self.gpu.launch_with(&kernel, &launch, self.on_record)?);
        if let Some(check) = result.check.as_ref().filter(|check| **check != Check::Equal) {
            return Err(Refusal::Own(check.to_string()));
        }
        match &result.outcome {
            Outcome::Finished => {
                let shown = results.iter().filter_map(|&number| result.buffers.get(number)).map(|buffer| {
                    let values: Vec<String> = buffer.values().iter().map(ToString::to_string).collect();
                    format!("[{}]", values.join(", "))
                });
                let shown = shown.collect::<Vec<_>>().join(", ");
                *self.last = Some(LastBlock { ptx: ptx.clone(), launch, results });
                Ok(shown)
            }
            Outcome::Fault(fault) => Err(Refusal::Own(format!("{fault}: {}", fault.explanation()))),
            Outcome::TokenLimit(limit) => Err(Refusal::Own(format!("the kernel has not ended after {limit} records"))),
            Outcome::Mismatch => Err(Refusal::Own("the result differs from the interpreter's".to_owned())),
        }
    }
}

/// Why a request has no result.
enum Refusal {
    /// By its own fault, in words for the model.
    Own(String),
    /// By the machine's.
    Machine(Error),
}

impl Refusal {
    /// The words for the model; the machine's breakdowns stay errors.
    fn own_fault(self) -> Result<String, Error> {
        match self {
            Self::Own(message) => Ok(message),
            Self::Machine(error) => Err(error),
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error {
            Error::Kernel(KernelError::Ptx { source, .. }) => Self::Own(source.to_string()),
            Error::Kernel(_) | Error::Launch(_) => Self::Own(error.to_string()),
            other => Self::Machine(other),
        }
    }
}

impl From<LaunchLineError> for Refusal {
    fn from(error: LaunchLineError) -> Self {
        Self::Own(error.to_string())
    }
}

impl From<CudaError> for Refusal {
    fn from(error: CudaError) -> Self {
        Self::Own(error.to_string())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::EngineKind;
    use crate::generate::transcript::LaunchRecord;
    use crate::generate::{Author, Difference, Modes, Piece, Transcript, replay, request};
    use qwengpu_isa::RecordTable;

    const HISTOGRAM: &str = include_str!("../../kernels/histogram.ptx");
    const LAUNCH: &str = "histogram<<<1, 8>>>(char[]{97, 98, 99, 97}, 4, int[8]);";

    fn gpu() -> Gpu {
        Gpu::new(EngineKind::Interp).expect("an interpreter")
    }

    /// What the driver puts behind each text; blocks launch the histogram.
    fn said(texts: &[&str]) -> (Vec<String>, Vec<Piece>) {
        let (mut gpu, mut last) = (gpu(), None);
        let table = RecordTable::new(gpu.spec()).expect("a machine");
        let mut pieces = Vec::new();
        let mut said = Vec::new();
        for text in texts {
            let (request, _) = request::find(text, Modes::ALL).expect("a request");
            let options = ComputeOptions { max_tokens: 20_000, check: true };
            let mut performer = Performer { gpu: &mut gpu, last: &mut last, options, on_record: &mut |_| () };
            let performed = performer.perform(&request, Some(HISTOGRAM)).expect("a machine that works");
            assert_eq!(performed.succeeded, !performed.text.contains("error: "), "{}", performed.text);
            let launch = performed.launch.map(|result| LaunchRecord::new(request, performed.ptx, &result, &table));
            said.push(performed.text.clone());
            pieces.push(Piece { author: Author::Model, text: (*text).to_owned(), tokens: vec![1], launch: None });
            pieces.push(Piece { author: Author::Gpu, text: performed.text, tokens: vec![2], launch });
        }
        (said, pieces)
    }

    fn block(line: &str) -> String {
        format!("```cuda\n__global__ void histogram();\n{line}\n```")
    }

    #[test]
    fn results_and_errors_become_text() {
        for (text, expected) in [
            ("<gpu>12 * 34</gpu>", " = 408"),
            ("<gpu>sort(9, 3, 5)</gpu>", " = [3, 5, 9]"),
            ("<gpu>1 / 0</gpu>", " = error: division by zero"),
            ("<gpu>nothing(1)</gpu>", " = error: there is no function nothing"),
            ("<gpu>1 +</gpu>", " = error: column 4: expected a number"),
            ("<gpu></gpu>", " = error: "),
            ("```cuda\nint a;\n```", "\nerror: the block has no launch"),
        ] {
            let said = said(&[text]).0.remove(0);
            assert!(said.starts_with(expected), "{text}: {said:?}");
        }
        // The bins begin so far up in memory that some lie beyond its end.
        let fault = format!("histogram<<<1, 8>>>(char[]{{{}}}, 8, int[4]);", ["6"; 480].join(", "));
        for (line, expected) in [
            (LAUNCH, "\n= [0, 2, 1, 1, 0, 0, 0, 0]"),
            ("histogram<<<1, 8>>>(int[8]);", "\nerror: kernel histogram takes 3 arguments"),
            ("other<<<1, 8>>>();", "\nerror: "),
            ("histogram<<<1, 800>>>(char[1], 1, int[8]);", "\nerror: "),
            (&fault, "\nerror: address out of bounds"),
        ] {
            let said = said(&[&block(line)]).0.remove(0);
            assert!(said.starts_with(expected), "{line}: {said:?}");
        }
    }

    #[test]
    fn a_block_goes_on_from_the_one_before_across_spans() {
        let again = block("histogram<<<1, 8>>>(same, 4, same);");
        let texts = [&block(LAUNCH), "<gpu>1 + 1</gpu>", &again, &again];
        let (said, pieces) = said(&texts);
        assert_eq!(said[1], " = 2");
        assert_eq!(said[2], "\n= [0, 4, 2, 2, 0, 0, 0, 0]");
        assert_eq!(said[3], "\n= [0, 6, 3, 3, 0, 0, 0, 0]");
        let transcript = Transcript { pieces, first_machine_token: 100, max_launch_tokens: 20_000 };
        let found = replay(&transcript, &mut gpu()).expect("a machine that works");
        assert_eq!((found.launches, found.exact, found.differences.len()), (4, 4, 0));
        assert!(found.records > 100, "{}", found.records);
    }

    #[test]
    fn a_transcript_that_was_changed_is_found_out() {
        let (_, pieces) = said(&["<gpu>12 * 34</gpu>", &block(LAUNCH)]);
        let check = |change: fn(&mut [Piece])| -> Vec<Difference> {
            let mut pieces = pieces.clone();
            change(&mut pieces);
            let transcript = Transcript { pieces, first_machine_token: 100, max_launch_tokens: 20_000 };
            replay(&transcript, &mut gpu()).expect("a machine that works").differences
        };
        assert_eq!(check(|_| ()), []);
        fn launch(pieces: &mut [Piece]) -> &mut LaunchRecord {
            pieces[1].launch.as_mut().expect("a launch")
        }
        type Change = fn(&mut [Piece]);
        let changes: [(Change, &str); 7] = [
            (|pieces| pieces[1].text = " = 409".to_owned(), "memory holds"),
            (|pieces| pieces[0].text = "<gpu>12 * 35</gpu>".to_owned(), "does not ask for it"),
            (|pieces| pieces[1].launch = None, "there is no launch"),
            (|pieces| launch(pieces).records[7] += 1, "record 7 is not the interpreter's"),
            (|pieces| launch(pieces).records.truncate(9), "record 9 is not the interpreter's"),
            (|pieces| launch(pieces).prompt[3] += 1, "its prompt differs"),
            (|pieces| launch(pieces).continues = true, "its prompt differs"),
        ];
        for (change, reason) in changes {
            let found = check(change);
            assert_eq!(found.len(), 1, "{reason}");
            assert!(found[0].launch == 1 && found[0].reason.contains(reason), "{reason}: {found:?}");
        }
    }
}
