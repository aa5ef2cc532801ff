//! Text from a merged model, with what its GPU computes in the middle.
//!
//! A [`Session`] holds the language model and the GPU of one checkpoint. In a reply the model may write
//!
//! - a span, `<gpu>12 * 34</gpu>`, behind which the driver puts ` = 408`: what [`compute`](crate::language::compute)
//!   makes of the text;
//! - a fenced block of CUDA, with a kernel and in its last line a launch, `f<<<1, 4>>>(int[]{1, 2}, int[2], 2);`, behind
//!   which the driver puts `= [..]`, or `error: ..` so that the model can try again.
//!
//! The result is read from the machine's memory and heard by the language model, which goes on from there. What a model
//! writes is data: expressions are parsed by this crate, blocks are compiled by clang without files and within bounds.
//!
//! The steps: [`request`] finds what is asked for, `perform` launches it, `reply` puts the result into the text,
//! [`Transcript`] says who wrote what, and [`replay`] verifies every launch of one.

mod error;
mod launch_line;
mod perform;
mod replay;
mod reply;
pub mod request;
mod sampling;
mod session;
mod template;
mod tokens;
mod transcript;

pub use error::GenerateError;
pub use launch_line::{LaunchLine, LaunchLineError};
pub use replay::{Difference, Replay, replay};
pub use reply::{Ended, Event, Limits, Reply, ReplyOptions};
pub use request::{Modes, Request};
pub use sampling::{Sampler, Sampling};
pub use session::{SavedSession, Session, SessionOptions};
pub use template::{ChatTemplate, Message};
pub use transcript::{Author, LaunchRecord, Piece, Transcript};
