//! What a language model writes to use its GPU: a span with an expression or a call, or a fenced block with a kernel.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Opens a span.
pub const SPAN_BEGIN: &str = "<gpu>";
/// Closes a span.
pub const SPAN_END: &str = "</gpu>";
/// Opens a block, at the beginning of a line.
pub const BLOCK_BEGIN: &str = "```cuda\n";
/// Closes a block, at the beginning of a line.
pub const BLOCK_END: &str = "```";

/// Something that the GPU is asked to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Request {
    /// An expression or a call, as in `<gpu>12 * 34</gpu>`.
    Span(String),
    /// CUDA source with a launch, in a fenced block.
    Block(String),
}

/// Which requests are heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modes {
    /// Spans.
    pub spans: bool,
    /// Blocks.
    pub blocks: bool,
}

impl Modes {
    /// Both.
    pub const ALL: Self = Self { spans: true, blocks: true };
    /// None: plain text.
    pub const NONE: Self = Self { spans: false, blocks: false };
}

impl Request {
    /// The text of the request, without its marks.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Span(text) | Self::Block(text) => text,
        }
    }

    /// The request with its marks, as it stands in a reply.
    #[must_use]
    pub fn marked(&self) -> String {
        match self {
            Self::Span(text) => format!("{SPAN_BEGIN}{text}{SPAN_END}"),
            Self::Block(text) => format!("{BLOCK_BEGIN}{text}{BLOCK_END}"),
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Span(text) => f.write_str(text),
            Self::Block(text) => write!(f, "a kernel of {} lines", text.lines().count()),
        }
    }
}

/// Finds the first request that is complete, and where in the text it ends. `text` is what follows the last request.
#[must_use]
pub fn find(text: &str, modes: Modes) -> Option<(Request, usize)> {
    let span = if modes.spans { text.find(SPAN_BEGIN) } else { None };
    let block = if modes.blocks { find_at_line(text, BLOCK_BEGIN, 0) } else { None };
    let first_span = span.is_some_and(|span| block.is_none_or(|block| span < block));
    if let (true, Some(start)) = (first_span, span) {
        let inner = start + SPAN_BEGIN.len();
        let end = inner + text.get(inner..)?.find(SPAN_END)?;
        return Some((Request::Span(text.get(inner..end)?.to_owned()), end + SPAN_END.len()));
    }
    let inner = block? + BLOCK_BEGIN.len();
    let end = find_at_line(text, BLOCK_END, inner)?;
    Some((Request::Block(text.get(inner..end)?.to_owned()), end + BLOCK_END.len()))
}

/// The first place from `from` on where a line begins with `mark`.
fn find_at_line(text: &str, mark: &str, from: usize) -> Option<usize> {
    let places = text.get(from..)?.match_indices(mark).map(|(place, _)| from + place);
    places.into_iter().find(|&place| place == 0 || text.as_bytes().get(place - 1) == Some(&b'\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_found_when_they_are_complete() {
        let span = |text: &str| Some(Request::Span(text.to_owned()));
        let block = |text: &str| Some(Request::Block(text.to_owned()));
        let cases = [
            ("12 * 34", None),
            ("It is <gpu>12 * 34</gp", None),
            ("It is <gpu>12 * 34</gpu>", span("12 * 34")),
            ("<gpu></gpu> and", span("")),
            ("a\n```cuda\nk\nf<<<1, 1>>>();\n```", block("k\nf<<<1, 1>>>();\n")),
            ("```cuda\nint a; // ``` in a line\n", None),
            ("see ```cuda\nk\n```", None),
            ("```cuda\n<gpu>1</gpu>\n```", block("<gpu>1</gpu>\n")),
            ("<gpu>1\n```cuda\nx\n```", None),
            ("</gpu><gpu>é</gpu>", span("é")),
        ];
        for (text, expected) in cases {
            let found = find(text, Modes::ALL);
            assert_eq!(found.as_ref().map(|(request, _)| request), expected.as_ref(), "{text:?}");
            if let Some((request, end)) = found {
                assert!(text[..end].ends_with(&request.marked()), "{text:?}");
            }
        }
        assert_eq!(find("<gpu>1</gpu>", Modes { spans: false, blocks: true }), None);
        assert_eq!(find("```cuda\nx\n```", Modes { spans: true, blocks: false }), None);
    }
}
