//! What can go wrong between PTX text and a program, each with its place in the text.

use crate::span::Span;

/// A refusal, with the place and the construct it is about.
///
/// Three kinds are kept apart: text that is not valid PTX ([`Syntax`](PtxError::Syntax),
/// [`Invalid`](PtxError::Invalid)), valid PTX that this compiler does not translate
/// ([`Unsupported`](PtxError::Unsupported)), and supported PTX that does not fit the machine
/// ([`ImplLimit`](PtxError::ImplLimit)).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PtxError {
    /// The text does not follow PTX's grammar.
    #[error("line {}, column {}: found {found}, expected {expected}", .at.line, .at.column)]
    Syntax {
        /// Where the unexpected text stands.
        at: Span,
        /// What was found there.
        found: String,
        /// What the grammar asks for.
        expected: String,
    },
    /// The text parses, but means nothing in PTX: an unknown name, a wrong operand, a wrong type.
    #[error("line {}, column {}: `{construct}` is not valid PTX: {reason}", .at.line, .at.column)]
    Invalid {
        /// Where the construct stands.
        at: Span,
        /// The construct, as written.
        construct: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Valid PTX that is outside what this compiler translates.
    #[error("line {}, column {}: `{construct}` is {reason}", .at.line, .at.column)]
    Unsupported {
        /// Where the construct stands.
        at: Span,
        /// The construct, as written.
        construct: String,
        /// What it is, and what to do instead.
        reason: String,
    },
    /// The kernel is supported, but is larger than the machine.
    #[error("line {}, column {}: {what}: {need} needed, the limit is {limit}; {hint}", .at.line, .at.column)]
    ImplLimit {
        /// Where the need arises; the kernel's name for needs of a whole kernel.
        at: Span,
        /// The resource, with its unit.
        what: &'static str,
        /// How much the input asks for.
        need: u64,
        /// How much there is.
        limit: u64,
        /// How to need less.
        hint: &'static str,
    },
    /// The module has no kernel of the name asked for, or several and no name was given.
    #[error("{}", no_kernel(.wanted.as_deref(), .available))]
    KernelNotFound {
        /// The name asked for.
        wanted: Option<String>,
        /// The kernels of the module, in order.
        available: Vec<String>,
    },
    /// The lowered program failed this compiler's own checks: a defect here, not in the input.
    #[error("internal check {check} failed in kernel `{kernel}`: {detail}")]
    Internal {
        /// The numbered invariant or the checker that failed.
        check: &'static str,
        /// The kernel being lowered.
        kernel: String,
        /// What was found.
        detail: String,
    },
}

impl PtxError {
    /// Where in the text the error stands, if it is about a place.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        match self {
            PtxError::Syntax { at, .. }
            | PtxError::Invalid { at, .. }
            | PtxError::Unsupported { at, .. }
            | PtxError::ImplLimit { at, .. } => Some(*at),
            PtxError::KernelNotFound { .. } | PtxError::Internal { .. } => None,
        }
    }

    pub(crate) fn invalid(at: Span, construct: impl Into<String>, reason: impl Into<String>) -> Self {
        PtxError::Invalid { at, construct: construct.into(), reason: reason.into() }
    }

    pub(crate) fn unsupported(at: Span, construct: impl Into<String>, reason: impl Into<String>) -> Self {
        PtxError::Unsupported { at, construct: construct.into(), reason: reason.into() }
    }
}

/// The result of a compiler stage.
pub(crate) type Result<T> = std::result::Result<T, PtxError>;

fn no_kernel(wanted: Option<&str>, available: &[String]) -> String {
    let list = available.join(", ");
    match (wanted, available.len()) {
        (_, 0) => "the module defines no kernel (`.entry` with a body)".to_owned(),
        (Some(name), _) => format!("the module defines no kernel `{name}`; it defines: {list}"),
        (None, _) => format!("the module defines several kernels, name one of: {list}"),
    }
}
