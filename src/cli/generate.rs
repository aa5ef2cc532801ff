//! `qwengpu generate`: text from a merged model, with what its GPU computes.

use std::io::{self, BufRead, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueEnum};
use qwengpu::generate::{
    Author, Event, GenerateError, Limits, Message, Modes, Reply, ReplyOptions, Sampling, Session, SessionOptions,
    Transcript, replay,
};
use serde_json::{Value, json};

use super::arguments::{DtypeName, EngineName};
use super::failure::Failure;
use super::output::{outln, write};
use super::progress::{Paint, Spinner};
use super::replay::{figures, verdict};

/// What a model may ask its GPU for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GpuMode {
    /// Spans and blocks
    All,
    /// Spans only: expressions and calls
    Normal,
    /// Blocks only: CUDA kernels
    Advanced,
    /// Nothing: plain text
    Off,
}

/// How records are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckName {
    /// Behind the reply, each launch once more: the model in one prefill, and the interpreter
    Replay,
    /// Each record against the interpreter's while it is spoken
    Records,
}

/// What is shown beside the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShowName {
    /// The records of each launch as they come
    Records,
    /// Brackets around what came from the GPU
    Authors,
}

/// How the next token is chosen.
#[derive(Debug, Args)]
pub(crate) struct SamplingArgs {
    /// 0 takes the most likely token; the checkpoint's own unless given
    #[arg(long, value_name = "T")]
    temperature: Option<f32>,
    /// Only the K most likely tokens; 0 for all
    #[arg(long, value_name = "K")]
    top_k: Option<usize>,
    /// Only the most likely tokens that make up the probability P
    #[arg(long, value_name = "P")]
    top_p: Option<f32>,
    /// Only tokens with at least the share P of the most likely one's probability
    #[arg(long, value_name = "P")]
    min_p: Option<f32>,
    /// Divides logits of tokens that have occurred
    #[arg(long, value_name = "F")]
    repetition_penalty: Option<f32>,
    /// Taken from logits of tokens that were generated
    #[arg(long, value_name = "F", allow_negative_numbers = true)]
    presence_penalty: Option<f32>,
    /// Taken from logits of generated tokens for each time
    #[arg(long, value_name = "F", allow_negative_numbers = true)]
    frequency_penalty: Option<f32>,
    /// Where chance begins
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

impl SamplingArgs {
    fn over(&self, own: &Sampling) -> Sampling {
        Sampling {
            temperature: self.temperature.unwrap_or(own.temperature),
            top_k: self.top_k.unwrap_or(own.top_k),
            top_p: self.top_p.unwrap_or(own.top_p),
            min_p: self.min_p.unwrap_or(own.min_p),
            repetition_penalty: self.repetition_penalty.unwrap_or(own.repetition_penalty),
            presence_penalty: self.presence_penalty.unwrap_or(own.presence_penalty),
            frequency_penalty: self.frequency_penalty.unwrap_or(own.frequency_penalty),
            seed: self.seed,
        }
    }
}

/// A merged model and how its replies are made.
#[derive(Debug, Args)]
pub(crate) struct ReplyArgs {
    /// A merged checkpoint
    #[arg(long, value_name = "DIR")]
    pub(crate) model: PathBuf,
    /// A system message in front of the conversation
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// What the model may ask its GPU for
    #[arg(long, value_enum, default_value = "all")]
    gpu: GpuMode,
    /// What runs launches
    #[arg(long, value_enum, default_value = "sparse")]
    engine: EngineName,
    /// Where the model rounds
    #[arg(long, value_enum, default_value = "f32")]
    dtype: DtypeName,
    /// Threads of the language model; without it, as many as there are processors
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    #[command(flatten)]
    sampling: SamplingArgs,
    /// Tokens that the model may write in a reply
    #[arg(long, value_name = "N", default_value_t = Limits::default().tokens)]
    max_tokens: usize,
    /// Launches in a reply
    #[arg(long, value_name = "N", default_value_t = Limits::default().launches)]
    max_launches: usize,
    /// Records of a launch
    #[arg(long, value_name = "N", default_value_t = Limits::default().launch_tokens)]
    max_launch_tokens: usize,
    /// Kernels in a row that may fail before the reply ends
    #[arg(long, value_name = "N", default_value_t = Limits::default().failures)]
    max_tries: usize,
    /// End the reply in front of this text; may be given several times
    #[arg(long = "stop", value_name = "TEXT")]
    stops: Vec<String>,
}

impl ReplyArgs {
    pub(crate) fn open(&self) -> Result<Session, Failure> {
        let _spinner = Spinner::new("loading the checkpoint");
        let options =
            SessionOptions { engine: self.engine.kind(), precision: self.dtype.precision(), threads: self.threads };
        Session::open(&self.model, options).map_err(failure)
    }

    pub(crate) fn options(&self, session: &Session, check: bool) -> ReplyOptions {
        ReplyOptions {
            sampling: self.sampling.over(session.sampling()),
            modes: match self.gpu {
                GpuMode::All => Modes::ALL,
                GpuMode::Normal => Modes { spans: true, blocks: false },
                GpuMode::Advanced => Modes { spans: false, blocks: true },
                GpuMode::Off => Modes::NONE,
            },
            limits: Limits {
                tokens: self.max_tokens,
                launches: self.max_launches,
                launch_tokens: self.max_launch_tokens,
                failures: self.max_tries,
            },
            stops: self.stops.clone(),
            check,
        }
    }

    /// The beginning of a conversation.
    pub(crate) fn conversation(&self) -> Vec<Message> {
        self.system.iter().map(|text| Message::new("system", text)).collect()
    }
}

/// The arguments of `generate`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  qwengpu generate --model merged --prompt 'What is 1234 * 5678?' --check replay
  qwengpu generate --model merged --chat --temperature 0.7 --top-p 0.9 --seed 1
  qwengpu generate --model merged --prompt 'Write a kernel that squares 3, 4 and 5.' --show records
  qwengpu generate --model merged --raw --prompt 'The sum is <gpu>' --max-tokens 40 --transcript reply.json --json

The model asks its GPU with <gpu>EXPRESSION</gpu>, or with a block that begins with ```cuda and ends with a launch such
as f<<<1, 4>>>(int[]{1, 2}, int[2], 2); `qwengpu compute --list` shows what a span may call.
Exit status: 0 success, 1 a check that failed, 2 bad input.")]
pub(crate) struct GenerateArgs {
    #[command(flatten)]
    reply: ReplyArgs,
    /// What to answer
    #[arg(long, value_name = "TEXT", required_unless_present = "chat", conflicts_with = "chat")]
    prompt: Option<String>,
    /// Converse: each line of the input is a message
    #[arg(long)]
    chat: bool,
    /// Take the prompt as it stands, without the chat template
    #[arg(long, conflicts_with = "chat")]
    raw: bool,
    /// How records are checked
    #[arg(long, value_enum)]
    check: Option<CheckName>,
    /// What is shown beside the text
    #[arg(long, value_enum)]
    show: Option<ShowName>,
    /// Write who wrote what, with every launch, to a file for `qwengpu replay`
    #[arg(long, value_name = "FILE")]
    transcript: Option<PathBuf>,
    /// Print one JSON object for each reply instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &GenerateArgs) -> Result<(), Failure> {
    let mut session = args.reply.open()?;
    let mut messages = args.reply.conversation();
    let mut whole: Option<Transcript> = None;
    let mut wrong = false;
    let mut turn = |session: &mut Session, prompt: &str| -> Result<String, Failure> {
        let reply = answer(args, session, prompt)?;
        let exact = report(args, session, &reply)?;
        wrong |= !exact;
        let text = reply.transcript.reply();
        match &mut whole {
            Some(whole) => whole.pieces.extend(reply.transcript.pieces),
            None => whole = Some(reply.transcript),
        }
        if let (Some(file), Some(whole)) = (&args.transcript, &whole) {
            whole.write(file).map_err(failure)?;
        }
        Ok(text)
    };
    if let Some(prompt) = &args.prompt {
        let prompt = if args.raw {
            prompt.clone()
        } else {
            messages.push(Message::new("user", prompt));
            session.chat_prompt(&messages).map_err(failure)?
        };
        turn(&mut session, &prompt)?;
    } else {
        let terminal = io::stdin().is_terminal();
        if terminal {
            eprintln!("Each line is a message; an empty line or the end of the input ends the conversation.");
        }
        loop {
            if terminal {
                eprint!("> ");
            }
            let mut line = String::new();
            let read = io::stdin().lock().read_line(&mut line);
            read.map_err(|error| Failure::file("reading", Path::new("standard input"), &error))?;
            let line = line.trim();
            if line.is_empty() {
                break;
            }
            messages.push(Message::new("user", line));
            let prompt = session.chat_prompt(&messages).map_err(failure)?;
            let text = turn(&mut session, &prompt)?;
            messages.push(Message::new("assistant", &text));
        }
    }
    if wrong { Err(Failure::wrong("a launch is not what it should be")) } else { Ok(()) }
}

/// A reply, shown while it is written.
fn answer(args: &GenerateArgs, session: &mut Session, prompt: &str) -> Result<Reply, Failure> {
    let paint = Paint::stdout();
    let options = args.reply.options(session, args.check == Some(CheckName::Records));
    let (quiet, show) = (args.json, args.show);
    let reply = session.reply(prompt, &options, &mut |event| {
        match event {
            _ if quiet => return,
            Event::Text(text) => write(format_args!("{text}")),
            Event::Launch(_) if show == Some(ShowName::Records) => write(format_args!("\n")),
            Event::Record(record) if show == Some(ShowName::Records) => {
                write(format_args!("{} ", paint.dim(&record.to_string())));
            }
            Event::Launch(_) | Event::Record(_) => return,
            Event::Result(text) if show == Some(ShowName::Authors) => {
                write(format_args!("{}", paint.good(&format!("[GPU:{text}]"))));
            }
            Event::Result(text) => write(format_args!("{}", paint.good(text))),
        }
        // A reply is read while it is written.
        let _ = io::stdout().flush();
    });
    let reply = reply.map_err(failure)?;
    if !quiet {
        outln!("");
    }
    Ok(reply)
}

/// Checks a reply if that was asked for, and prints what is to be said of it; whether nothing differs.
fn report(args: &GenerateArgs, session: &mut Session, reply: &Reply) -> Result<bool, Failure> {
    let begun = Instant::now();
    let checked = match args.check {
        Some(CheckName::Replay) => {
            let _spinner = Spinner::new("checking the launches");
            // The machine goes on from the reply, not from the check.
            let saved = session.gpu().save();
            let checked = replay(&reply.transcript, session.gpu()).map_err(|error| failure(error.into()))?;
            session.gpu().restore(&saved).map_err(|error| failure(error.into()))?;
            Some(checked)
        }
        Some(CheckName::Records) | None => None,
    };
    let seconds = begun.elapsed().as_secs_f64();
    if args.json {
        let mut object = json(reply);
        object["replay"] = json!(checked);
        outln!("{object}");
    } else if let Some(checked) = &checked {
        outln!("{}", figures(checked, seconds));
    }
    Ok(checked.is_none_or(|checked| verdict(&checked).is_ok()))
}

/// A reply for programs.
fn json(reply: &Reply) -> Value {
    let pieces = reply.transcript.pieces.iter().filter(|piece| piece.author != Author::Prompt);
    let pieces: Vec<Value> = pieces
        .map(|piece| {
            json!({
                "author": piece.author, "text": piece.text,
                "records": piece.launch.as_ref().map(|launch| launch.records.len()),
            })
        })
        .collect();
    json!({
        "reply": reply.transcript.reply(), "ended": reply.ended.text(), "tokens": reply.tokens,
        "launches": reply.launches, "pieces": pieces,
    })
}

/// An error of a generation: the machine's breakdowns are wrong results, all others bad input.
pub(crate) fn failure(error: GenerateError) -> Failure {
    match error {
        GenerateError::Gpu(error) => Failure::from_library(error, Path::new("")),
        GenerateError::Model(error) => {
            let causes = std::iter::successors(std::error::Error::source(&error), |cause| cause.source());
            let causes: String = causes.map(|cause| format!(": {cause}")).collect();
            Failure::input(format!("{error}{causes}"))
        }
        other => Failure::input(other),
    }
}
