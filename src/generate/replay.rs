//! The check of a transcript: every launch again, by the model in one prefill and by the interpreter.

use serde::Serialize;

use super::perform::{LastBlock, Performer};
use super::request::Request;
use super::transcript::{Author, LaunchRecord, Piece, Transcript};
use crate::engine::EngineKind;
use crate::error::{Error, MachineError};
use crate::gpu::{Gpu, GpuOptions};
use crate::language::ComputeOptions;
use qwengpu_isa::{Record, RecordTable};

/// What a replay found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Replay {
    /// Launches in the transcript.
    pub launches: usize,
    /// Those of which every record is the model's and the interpreter's, and the text is what memory holds.
    pub exact: usize,
    /// Records that were compared.
    pub records: usize,
    /// What is wrong with the others.
    pub differences: Vec<Difference>,
}

/// A launch of a transcript that is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Number of the launch, from 1.
    pub launch: usize,
    /// What was asked for.
    pub request: String,
    /// What differs.
    pub reason: String,
}

impl Replay {
    /// Whether nothing differs.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.differences.is_empty()
    }
}

/// Verifies every launch of a transcript on a GPU whose engine is a model, and on the interpreter.
///
/// The model hears what the transcript says was heard and spoken, in one prefill for each launch, and each record must
/// be its arg-max behind those before it. The interpreter performs the request anew; records and text must be the same.
///
/// # Errors
/// If a machine breaks down.
pub fn replay(transcript: &Transcript, gpu: &mut Gpu) -> Result<Replay, Error> {
    let mut interpreter = Gpu::with_options(&GpuOptions { spec: *gpu.spec(), ..GpuOptions::new(EngineKind::Interp) })?;
    let table =
        RecordTable::new(gpu.spec()).map_err(|error| MachineError::from(qwengpu_machine::MachineError::from(error)))?;
    let table = Replayer { table, transcript };
    let mut last = None;
    // What the last block has left in the model's machine, for those that go on from it.
    let mut kept = None;
    let some_continue = transcript.launches().any(|launch| launch.continues);
    let mut replay = Replay { launches: 0, exact: 0, records: 0, differences: Vec::new() };
    for (index, piece) in transcript.pieces.iter().enumerate() {
        let (request, reason) = if let Some(launch) = &piece.launch {
            replay.records += launch.records.len();
            let before = index.checked_sub(1).and_then(|before| transcript.pieces.get(before));
            let mut reason = table.asked(before, launch);
            if reason.is_none() {
                reason = table.again(launch, piece, &mut interpreter, &mut last)?;
            }
            if reason.is_none() {
                if let (true, Some(kept)) = (launch.continues, &kept) {
                    gpu.restore(kept)?;
                }
                reason = table.prefill(launch, gpu)?;
            }
            if matches!(launch.request, Request::Block(_)) {
                kept = some_continue.then(|| gpu.save());
            }
            (launch.request.to_string(), reason)
        } else if piece.author == Author::Gpu && index > 0 && !piece.text.contains("error: ") {
            (piece.text.clone(), Some("the text is marked as the GPU's, but there is no launch".to_owned()))
        } else {
            continue;
        };
        replay.launches += 1;
        match reason {
            None => replay.exact += 1,
            Some(reason) => replay.differences.push(Difference { launch: replay.launches, request, reason }),
        }
    }
    Ok(replay)
}

struct Replayer<'a> {
    table: RecordTable,
    transcript: &'a Transcript,
}

impl Replayer<'_> {
    /// Whether the model asked for this launch.
    fn asked(&self, before: Option<&Piece>, launch: &LaunchRecord) -> Option<String> {
        let marked = launch.request.marked();
        let asked = before.is_some_and(|before| before.author == Author::Model && before.text.ends_with(&marked));
        (!asked).then(|| "the text in front of the result does not ask for it".to_owned())
    }

    /// Performs the request on the interpreter.
    fn again(
        &self,
        launch: &LaunchRecord,
        piece: &Piece,
        interpreter: &mut Gpu,
        last: &mut Option<LastBlock>,
    ) -> Result<Option<String>, Error> {
        let options = ComputeOptions { max_tokens: self.transcript.max_launch_tokens, check: false };
        let mut performer = Performer { gpu: interpreter, last, options, on_record: &mut |_| () };
        let performed = performer.perform(&launch.request, launch.ptx.as_deref())?;
        let Some(result) = performed.launch else {
            return Ok(Some("the request comes to no launch".to_owned()));
        };
        let same = LaunchRecord::new(launch.request.clone(), launch.ptx.clone(), &result, &self.table);
        Ok(if same.prompt != launch.prompt || same.continues != launch.continues {
            Some("the launch is not the request's: its prompt differs".to_owned())
        } else if let Some(place) = first_difference(&same.records, &launch.records) {
            Some(format!("record {place} is not the interpreter's"))
        } else if performed.text != piece.text {
            Some(format!("the text is {:?}, memory holds {:?}", piece.text.trim(), performed.text.trim()))
        } else {
            None
        })
    }

    /// Lets the model hear everything at once, and compares its arg-max with each record.
    fn prefill(&self, launch: &LaunchRecord, gpu: &mut Gpu) -> Result<Option<String>, Error> {
        let records = |numbers: &[u32]| -> Option<Vec<Record>> {
            numbers.iter().map(|&number| self.table.record(number)).collect()
        };
        let (Some(prompt), Some(spoken)) = (records(&launch.prompt), records(&launch.records)) else {
            return Ok(Some("a record is none of this machine's".to_owned()));
        };
        let difference = gpu.verify(&prompt, &spoken, launch.continues)?;
        Ok(difference.map(|(place, got)| match got {
            Some(got) => format!("record {place} is {}, the model's arg-max is {got}", spoken[place]),
            None => format!("record {place} is {}, the model's arg-max is no record", spoken[place]),
        }))
    }
}

fn first_difference(a: &[u32], b: &[u32]) -> Option<usize> {
    let shared = a.len().min(b.len());
    (0..shared).find(|&place| a[place] != b[place]).or((a.len() != b.len()).then_some(shared))
}
