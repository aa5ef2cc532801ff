//! Drafts: a model confirms in one forward what it would otherwise speak one record at a time.

use qwengpu_isa::Record;

use super::model::ModelEngine;
use super::{Listener, Speaker, decode_from, heard};
use crate::error::RunError;

/// Records of a draft that are heard at once. Enough for a product of matrices at full speed; more of them would be heard
/// in vain where a draft is wrong.
const CHUNK: usize = 256;

/// The greedy loop, where the model hears the draft's next records before it has spoken them, and speaks those that were
/// its own answers. Returns how many these were.
///
/// Where an answer is another record, the model goes back to what it had heard until then, and on by itself. So what is
/// spoken is the model's in any case, and what it holds in the end is what it would hold without a draft.
pub(super) fn confirm(
    engine: &mut ModelEngine<'_>,
    prompt: &[Record],
    draft: &[Record],
    listener: &mut Listener<'_>,
) -> Result<usize, RunError> {
    let heard = heard(engine, prompt);
    let mut record = engine.answer(&heard, 0)?;
    let mut position = 0;
    // The model has heard everything in front of `record`, which is its answer at `position`.
    while draft.get(position) == Some(&record) {
        if listener(record).is_break() {
            engine.source.unheard = Some(record);
            return Ok(position + 1);
        }
        // The last one of a draft has no other behind it to confirm.
        let end = (position + CHUNK).min(draft.len() - 1);
        let chunk = &draft[position..end];
        if chunk.is_empty() {
            position += 1;
            record = engine.answer(&[record], position)?;
            break;
        }
        let before = (chunk.len() > 1).then(|| engine.source.model.save());
        let tokens = engine.tokens(chunk)?;
        for (i, token) in engine.source.model.argmax_all(&tokens)?.into_iter().enumerate() {
            position += 1;
            record = engine.record(token).ok_or(RunError::ForeignToken { token, position })?;
            if i + 1 == tokens.len() {
                break;
            }
            let is_drafted = draft.get(position) == Some(&record);
            let ended = is_drafted && listener(record).is_break();
            if is_drafted && !ended {
                continue;
            }
            if let Some(before) = &before {
                engine.source.model.restore(before)?;
                engine.source.model.forward(&tokens[..=i])?;
            }
            if ended {
                engine.source.unheard = Some(record);
                return Ok(position + 1);
            }
            break;
        }
    }
    decode_from(engine, record, position, listener)?;
    Ok(position)
}
