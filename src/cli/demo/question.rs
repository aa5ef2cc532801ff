//! A question to a language model with a GPU, from the merge to the check.

use std::path::Path;
use std::time::Instant;

use qwengpu::generate::{Event, Message, ReplyOptions, Session, SessionOptions, replay};
use tempfile::TempDir;

use crate::cli::failure::Failure;
use crate::cli::generate::failure;
use crate::cli::merge::{self, MergeArgs};
use crate::cli::output::outln;
use crate::cli::progress::{Paint, Spinner};
use crate::cli::replay::{figures, verdict};

/// Records of a launch that are shown.
const SHOWN_RECORDS: usize = 24;

pub(super) fn run(base: &Path, question: &str) -> Result<(), Failure> {
    let paint = Paint::stdout();
    let dim_seconds = |begun: Instant| paint.dim(&format!("{:.1} s", begun.elapsed().as_secs_f64()));

    outln!("{}", paint.bold("1. The machine, compiled and put in front of a language model"));
    let begun = Instant::now();
    let folder = TempDir::new().map_err(|error| Failure::file("making", &std::env::temp_dir(), &error))?;
    let merged = folder.path().join("merged");
    let manifest = merge::write(&MergeArgs::new(base.to_owned(), merged.clone()))?;
    if let Some(facts) = &manifest.merge {
        merge::show(&manifest, facts);
    }
    outln!("{}\n", dim_seconds(begun));

    outln!("{}", paint.bold("2. The question, and what the model answers"));
    let spinner = Spinner::new("loading the checkpoint");
    let mut session = Session::open(&merged, SessionOptions::default()).map_err(failure)?;
    drop(spinner);
    let begun = Instant::now();
    let prompt = session.chat_prompt(&[Message::new("user", question)]).map_err(failure)?;
    outln!("{question}\n");
    let mut written = String::new();
    let mut records = Vec::new();
    let mut launches = Vec::new();
    let reply = session.reply(&prompt, &ReplyOptions::default(), &mut |event| match event {
        Event::Text(text) => written.push_str(text),
        Event::Launch(_) => records.clear(),
        Event::Record(record) => records.push(record),
        Event::Result(text) => {
            written += &paint.good(text);
            launches.push(std::mem::take(&mut records));
        }
    });
    let reply = reply.map_err(failure)?;
    outln!("{written}");
    outln!("{}\n", dim_seconds(begun));

    outln!("{}", paint.bold("3. What the layers spoke in between: instructions, results, stores"));
    for (launch, records) in reply.transcript.launches().zip(&launches) {
        outln!("{}:", launch.request);
        let shown: Vec<String> = records.iter().take(SHOWN_RECORDS).map(ToString::to_string).collect();
        let more = records.len().saturating_sub(SHOWN_RECORDS);
        outln!("{}{}", paint.dim(&shown.join(" ")), if more > 0 { format!(" and {more} more") } else { String::new() });
    }

    outln!("\n{}", paint.bold("4. The check: every record against the model in one prefill, and the interpreter"));
    let begun = Instant::now();
    let checked = replay(&reply.transcript, session.gpu()).map_err(|error| failure(error.into()))?;
    outln!("{}", figures(&checked, begun.elapsed().as_secs_f64()));
    verdict(&checked)
}
