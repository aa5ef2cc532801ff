//! How the command line fails: what it prints, and its exit status.

use std::fmt;
use std::path::Path;

use miette::{Diagnostic, LabeledSpan, NamedSource, Report, SourceSpan};
use qwengpu::{CudaError, Error, KernelError, MachineError};
use qwengpu_ptx::PtxError;

/// Exit status of a kernel's fault, a result that differs, or a machine that breaks down.
const STATUS_WRONG: u8 = 1;
/// Exit status of input that cannot be used.
const STATUS_INPUT: u8 = 2;

/// Why a command ends without success.
#[derive(Debug)]
pub(crate) struct Failure {
    status: u8,
    report: Option<Report>,
}

impl Failure {
    /// Bad input.
    pub(crate) fn input(message: impl fmt::Display) -> Self {
        Self { status: STATUS_INPUT, report: Some(Report::msg(message.to_string())) }
    }

    /// Something ran, and its result is wrong.
    pub(crate) fn wrong(message: impl fmt::Display) -> Self {
        Self { status: STATUS_WRONG, report: Some(Report::msg(message.to_string())) }
    }

    /// A file that cannot be read or written.
    pub(crate) fn file(doing: &str, path: &Path, error: &std::io::Error) -> Self {
        Self::input(format!("{doing} {}: {error}", path.display()))
    }

    /// An error of the library; `file` is what the kernel came from.
    pub(crate) fn from_library(error: Error, file: &Path) -> Self {
        match error {
            Error::Kernel(error) => Self::from_kernel(error, file),
            Error::Machine(error) => error.into(),
            Error::Launch(error) => Self::input(error),
            Error::Run(error) => Self::wrong(error),
            other => Self::input(other),
        }
    }

    /// An error of a kernel's source.
    pub(crate) fn from_kernel(error: KernelError, file: &Path) -> Self {
        let report = match error {
            KernelError::Ptx { source, text } => Report::new(PtxDiagnostic::new(&source, text, file)),
            KernelError::Cuda(CudaError::Source { messages }) => {
                Report::msg(format!("{} does not compile:\n{}", file.display(), messages.trim_end()))
            }
            KernelError::Assembly { errors, text } => Report::new(AssemblyDiagnostic::new(&errors, text, file)),
            other => Report::msg(format!("{}: {other}", file.display())),
        };
        Self { status: STATUS_INPUT, report: Some(report) }
    }

    /// Prints what went wrong and gives the exit status.
    pub(crate) fn show(self) -> u8 {
        if let Some(report) = self.report {
            eprintln!("{report:?}");
        }
        self.status
    }
}

impl From<MachineError> for Failure {
    fn from(error: MachineError) -> Self {
        Self::input(error)
    }
}

/// An error in PTX text with its place.
#[derive(Debug)]
struct PtxDiagnostic {
    message: String,
    source: NamedSource<String>,
    label: Option<(SourceSpan, String)>,
}

impl PtxDiagnostic {
    fn new(error: &PtxError, text: String, file: &Path) -> Self {
        let place = error.span().map(|span| {
            let (start, end) = (span.start as usize, span.end as usize);
            let start = start.min(text.len());
            let span = SourceSpan::from((start, end.min(text.len()).saturating_sub(start)));
            (span, "here".to_owned())
        });
        let mut name = file.display().to_string();
        if file.extension().is_some_and(|extension| extension != "ptx") {
            name += " (PTX made by clang)";
        }
        Self { message: error.to_string(), source: NamedSource::new(name, text), label: place }
    }
}

impl fmt::Display for PtxDiagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for PtxDiagnostic {}

impl Diagnostic for PtxDiagnostic {
    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        self.label.as_ref().map(|_| &self.source as &dyn miette::SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let (span, text) = self.label.as_ref()?;
        Some(Box::new(std::iter::once(LabeledSpan::new_with_span(Some(text.clone()), *span))))
    }
}

/// Errors in assembly text with their places.
#[derive(Debug)]
struct AssemblyDiagnostic {
    source: NamedSource<String>,
    labels: Vec<(SourceSpan, String)>,
}

impl AssemblyDiagnostic {
    fn new(errors: &qwengpu_isa::AsmErrors, text: String, file: &Path) -> Self {
        let labels = errors.errors.iter().map(|error| (error.span.range().into(), error.kind.to_string())).collect();
        Self { source: NamedSource::new(file.display().to_string(), text), labels }
    }
}

impl fmt::Display for AssemblyDiagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.labels.len() {
            1 => f.write_str("1 error in assembly text"),
            count => write!(f, "{count} errors in assembly text"),
        }
    }
}

impl std::error::Error for AssemblyDiagnostic {}

impl Diagnostic for AssemblyDiagnostic {
    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        Some(&self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = |(span, text): &(SourceSpan, String)| LabeledSpan::new_with_span(Some(text.clone()), *span);
        Some(Box::new(self.labels.iter().map(label)))
    }
}
