//! `qwengpu evaluate`: questions with known answers, and how many a model's GPU gets right.

use std::path::{Path, PathBuf};

use clap::Args;
use qwengpu::generate::{Author, Message, Reply, replay};
use serde::Deserialize;
use serde_json::json;

use super::arguments::read_text;
use super::failure::Failure;
use super::generate::{ReplyArgs, failure};
use super::output::outln;
use super::progress::{Paint, Spinner};

/// The arguments of `evaluate`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  qwengpu evaluate --model merged examples/standin/normal.json
  qwengpu evaluate --model merged examples/standin/advanced.json --at-least 6 --json

A file is a list of objects with a question and an answer. An answer counts if it stands in the reply as the last result
of the GPU and its launch is exact in a replay. Each question begins a new conversation.
Exit status: 0 success, 1 fewer than --at-least are right, 2 bad input.")]
pub(crate) struct EvaluateArgs {
    /// Questions with answers
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    reply: ReplyArgs,
    /// Fail if fewer are right
    #[arg(long, value_name = "N", default_value_t = 0)]
    at_least: usize,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// A question with the answer that is right.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    question: String,
    answer: String,
}

pub(crate) fn run(args: &EvaluateArgs) -> Result<(), Failure> {
    let questions = read(&args.file)?;
    let mut session = args.reply.open()?;
    let options = args.reply.options(&session, false);
    let paint = Paint::stdout();
    let mut right = 0;
    let mut rows = Vec::new();
    for (number, Question { question, answer }) in (1..).zip(&questions) {
        let mut messages = args.reply.conversation();
        messages.push(Message::new("user", question));
        session.reset();
        let spinner = Spinner::new(question);
        let prompt = session.chat_prompt(&messages).map_err(failure)?;
        let reply = session.reply(&prompt, &options, &mut |_| ()).map_err(failure)?;
        let checked = replay(&reply.transcript, session.gpu()).map_err(|error| failure(error.into()))?;
        drop(spinner);
        let said = last_result(&reply);
        let is_right = said.as_deref() == Some(answer) && checked.is_exact() && checked.launches > 0;
        right += usize::from(is_right);
        if args.json {
            rows.push(json!({
                "question": question, "answer": answer, "gpu": said, "right": is_right, "launches": checked.launches,
                "exact": checked.exact, "reply": reply.transcript.reply(),
            }));
            continue;
        }
        let mark = if is_right { paint.good("right") } else { paint.bad("WRONG") };
        let asked: Vec<String> = reply.transcript.launches().map(|launch| launch.request.to_string()).collect();
        let said = said.unwrap_or_else(|| "nothing".to_owned());
        outln!("{number:>3} {mark}  {question}\n          {} = {said}", asked.join("; "));
        if !is_right {
            outln!("          expected {answer}; the reply: {:?}", reply.transcript.reply());
        }
    }
    let count = questions.len();
    if args.json {
        outln!("{}", json!({ "right": right, "questions": count, "rows": rows }));
    } else {
        outln!("{}", paint.bold(&format!("{right} of {count} right, computed by the GPU")));
    }
    if right >= args.at_least {
        Ok(())
    } else {
        Err(Failure::wrong(format!("{right} of {count} are right, fewer than {}", args.at_least)))
    }
}

fn read(file: &Path) -> Result<Vec<Question>, Failure> {
    let questions = serde_json::from_str(&read_text(file)?);
    questions.map_err(|error| {
        Failure::input(format!("{}: {error}; expected a list of {{\"question\": .., \"answer\": ..}}", file.display()))
    })
}

/// The last thing that the GPU has put into a reply.
fn last_result(reply: &Reply) -> Option<String> {
    let piece = reply.transcript.pieces.iter().rev().find(|piece| piece.author == Author::Gpu)?;
    Some(piece.text.trim().trim_start_matches('=').trim().to_owned())
}
