//! The loop of a reply: the language model writes, and wherever it asks for the GPU, the result is put into its text.

use qwengpu_isa::Record;

use super::error::GenerateError;
use super::perform::{Performed, Performer};
use super::request::{self, Modes, Request};
use super::sampling::{Sampler, Sampling};
use super::session::Session;
use super::transcript::{Author, LaunchRecord, Piece, Transcript};
use crate::language::ComputeOptions;

/// Bounds of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Tokens of language that the model may write.
    pub tokens: usize,
    /// Launches.
    pub launches: usize,
    /// Records of a launch.
    pub launch_tokens: usize,
    /// Blocks one after the other that fail, by a compile error or a fault.
    pub failures: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { tokens: 512, launches: 32, launch_tokens: 200_000, failures: 3 }
    }
}

/// How a reply is made.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplyOptions {
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Which requests are heard.
    pub modes: Modes,
    /// Bounds.
    pub limits: Limits,
    /// Texts that end the reply; they are not part of it.
    pub stops: Vec<String>,
    /// Whether every record is compared with the interpreter's while it is spoken.
    pub check: bool,
}

impl Default for ReplyOptions {
    fn default() -> Self {
        Self {
            sampling: Sampling::default(),
            modes: Modes::ALL,
            limits: Limits::default(),
            stops: Vec::new(),
            check: false,
        }
    }
}

/// What happens during a reply, for who watches it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// The model has written something.
    Text(&'a str),
    /// A launch begins.
    Launch(&'a Request),
    /// The machine has spoken a record.
    Record(Record),
    /// The driver has put a result or an error into the text.
    Result(&'a str),
}

/// Why a reply has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The model ended it.
    Model,
    /// A stop text came.
    Stop,
    /// It has as many tokens as it may have.
    Tokens,
    /// It has as many launches as it may have.
    Launches,
    /// Too many blocks failed.
    Failures,
}

impl Ended {
    /// In words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Model => "the model has ended it",
            Self::Stop => "a stop text came",
            Self::Tokens => "it has as many tokens as it may have",
            Self::Launches => "it has as many launches as it may have",
            Self::Failures => "too many kernels in a row failed",
        }
    }
}

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Prompt and reply by author.
    pub transcript: Transcript,
    /// Why it ended.
    pub ended: Ended,
    /// Launches.
    pub launches: usize,
    /// Tokens that the model wrote.
    pub tokens: usize,
}

impl Session {
    /// Goes on from a prompt, whose special tokens count as such. What the session has heard of it is not heard again.
    ///
    /// # Errors
    /// If the prompt has no tokens, an option means nothing, or an engine breaks down.
    pub fn reply(
        &mut self,
        prompt: &str,
        options: &ReplyOptions,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<Reply, GenerateError> {
        if let Some(problem) = options.sampling.problem() {
            return Err(GenerateError::Options(problem));
        }
        let tokens = self.move_to(prompt)?;
        let start = self.context.len();
        let prompt = Piece { author: Author::Prompt, text: prompt.to_owned(), tokens, launch: None };
        let transcript = Transcript {
            pieces: vec![prompt],
            first_machine_token: self.first_machine_token,
            max_launch_tokens: options.limits.launch_tokens,
        };
        let mut writer = Writer {
            options,
            on_event,
            sampler: Sampler::new(options.sampling.clone()),
            start,
            own: Vec::new(),
            text: String::new(),
            shown: 0,
            failures: 0,
            reply: Reply { transcript, ended: Ended::Tokens, launches: 0, tokens: 0 },
            session: self,
        };
        let ended = writer.write()?;
        Ok(Reply { ended, ..writer.reply })
    }
}

/// A reply in the making.
struct Writer<'a> {
    session: &'a mut Session,
    options: &'a ReplyOptions,
    on_event: &'a mut dyn FnMut(Event<'_>),
    sampler: Sampler,
    /// Tokens in front of the reply.
    start: usize,
    /// The model's tokens since the last result, with their text and how much of it was shown.
    own: Vec<u32>,
    text: String,
    shown: usize,
    /// Blocks that have failed one after the other.
    failures: usize,
    reply: Reply,
}

impl Writer<'_> {
    fn write(&mut self) -> Result<Ended, GenerateError> {
        loop {
            if self.reply.tokens >= self.options.limits.tokens {
                self.end_piece();
                return Ok(Ended::Tokens);
            }
            let token = self.sampler.choose(&self.session.logits, &self.session.context, self.start);
            if self.session.end_ids.contains(&token) {
                // The end is heard, so that a conversation goes on behind it as its template writes it.
                let text = self.session.vocabulary.special(token);
                self.session.hear(&[token], &text)?;
                self.own.push(token);
                self.end_piece();
                return Ok(Ended::Model);
            }
            self.reply.tokens += 1;
            self.own.push(token);
            let text = self.session.vocabulary.decode(&self.own)?;
            if let Some((request, end)) = request::find(&text, self.options.modes) {
                if let Some(ended) = self.launch(&request, &text, end)? {
                    return Ok(ended);
                }
                continue;
            }
            if let Some(place) =
                self.options.stops.iter().filter(|stop| !stop.is_empty()).filter_map(|stop| text.find(stop)).min()
            {
                // The token of the stop is not heard.
                self.own.pop();
                self.text = text.get(..place).unwrap_or_default().to_owned();
                self.end_piece();
                return Ok(Ended::Stop);
            }
            let new = text.strip_prefix(&self.text).unwrap_or_default();
            self.session.hear(&[token], new)?;
            self.text = text;
            self.show(false);
        }
    }

    /// Shows what is new, but for what may be the beginning of a stop text or half a character.
    fn show(&mut self, whole: bool) {
        let held = if whole { 0 } else { held_back(&self.text, &self.options.stops) };
        let end = self.text.len() - held;
        if let Some(new) = self.text.get(self.shown..end).filter(|new| !new.is_empty()) {
            (self.on_event)(Event::Text(new));
            self.shown = end;
        }
    }

    /// Closes the model's piece.
    fn end_piece(&mut self) {
        self.show(true);
        if !self.own.is_empty() {
            let (text, tokens) = (std::mem::take(&mut self.text), std::mem::take(&mut self.own));
            self.reply.transcript.pieces.push(Piece { author: Author::Model, text, tokens, launch: None });
        }
        self.shown = 0;
    }

    /// Performs a request that ends at `end` of the text; the last token is not heard yet.
    fn launch(&mut self, request: &Request, text: &str, end: usize) -> Result<Option<Ended>, GenerateError> {
        if end < text.len() {
            // The last token says more than the request: it is replaced by the tokens of what belongs to it.
            self.own.pop();
            let before = self.session.vocabulary.decode(&self.own)?;
            let rest = text.get(before.len()..end).unwrap_or_default();
            self.own.extend(self.session.vocabulary.encode_plain(rest)?);
        }
        let unheard = self.own.len() - (self.session.context.len() - self.heard_before());
        let tokens = self.own.get(self.own.len() - unheard..).unwrap_or_default().to_vec();
        let asked = text.get(..end).unwrap_or_default();
        self.session.hear(&tokens, asked.strip_prefix(&self.text).unwrap_or_default())?;
        self.text = asked.to_owned();
        self.end_piece();
        if self.reply.launches == self.options.limits.launches {
            return Ok(Some(Ended::Launches));
        }
        self.reply.launches += 1;
        (self.on_event)(Event::Launch(request));
        let options = ComputeOptions { max_tokens: self.options.limits.launch_tokens, check: self.options.check };
        let on_event = &mut self.on_event;
        let mut performer = Performer {
            gpu: &mut self.session.gpu,
            last: &mut self.session.last,
            options,
            on_record: &mut |record| on_event(Event::Record(record)),
        };
        let Performed { text, succeeded, launch, ptx } = performer.perform(request, None)?;
        (self.on_event)(Event::Result(&text));
        let tokens = self.session.vocabulary.encode_plain(&text)?;
        self.session.hear(&tokens, &text)?;
        let launch = launch.map(|result| LaunchRecord::new(request.clone(), ptx, &result, &self.session.table));
        self.reply.transcript.pieces.push(Piece { author: Author::Gpu, text, tokens, launch });
        self.failures = if succeeded { 0 } else { self.failures + 1 };
        Ok((self.failures >= self.options.limits.failures).then_some(Ended::Failures))
    }

    /// Tokens that the session had heard when the model's current piece began.
    fn heard_before(&self) -> usize {
        let of_reply = self.reply.transcript.pieces.iter().skip(1);
        self.start + of_reply.map(|piece| piece.tokens.len()).sum::<usize>()
    }
}

/// Bytes at the end of a text that may be the beginning of a stop text, or a character whose other bytes are to come.
fn held_back(text: &str, stops: &[String]) -> usize {
    let of_stop = |stop: &String| {
        let beginnings = (1..stop.len()).rev().filter_map(|length| stop.get(..length));
        beginnings.filter(|beginning| text.ends_with(beginning)).map(str::len).next().unwrap_or(0)
    };
    let of_stops = stops.iter().map(of_stop).max().unwrap_or(0);
    let partial = text.len() - text.trim_end_matches(char::REPLACEMENT_CHARACTER).len();
    of_stops.max(partial)
}

#[cfg(test)]
mod tests {
    use super::held_back;

    #[test]
    fn beginnings_of_stops_are_held_back() {
        let stops = ["\nUser:".to_owned(), "END".to_owned()];
        for (text, expected) in [("abc", 0), ("abc\nUs", 3), ("E", 1), ("EN", 2), ("EA", 0), ("a\u{fffd}", 3)] {
            assert_eq!(held_back(text, &stops), expected, "{text:?}");
        }
    }
}
