//! Many launches at once: each on a stream of its own of one model, as many as there are streams; where one ends, the
//! next begins.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use qwengpu_isa::{MachineSpec, Record};

use crate::driver::{Driver, Spoken};
use crate::engine::BatchEngine;
use crate::error::{Error, LaunchError, RunError};
use crate::kernel::Kernel;
use crate::launch::{Draft, Launch, LaunchResult, Start};
use crate::running::Running;

/// What happens while a batch runs.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum BatchEvent<'a> {
    /// A launch has spoken.
    Spoken {
        /// Its place among the launches.
        launch: usize,
        /// What it has spoken.
        record: Record,
    },
    /// A launch has ended, or was refused.
    Ended {
        /// Its place among the launches.
        launch: usize,
        /// What it gave.
        result: &'a Result<LaunchResult, Error>,
    },
}

/// Makes a launch of a batch ready: it begins on a machine of its own.
///
/// # Errors
/// If the launch is refused, or goes on from others, or has a draft.
pub(crate) fn driver<'a>(spec: &MachineSpec, kernel: &'a Kernel, launch: &'a Launch) -> Result<Driver<'a>, Error> {
    if launch.start != Start::Fresh {
        return Err(LaunchError::BatchStart.into());
    }
    if launch.draft != Draft::Nothing {
        return Err(LaunchError::BatchDraft.into());
    }
    Driver::new(spec, kernel, launch, None)
}

/// A launch on its stream.
struct Active<'a> {
    /// Its place among the launches.
    number: usize,
    running: Running<'a>,
    /// What it has spoken and not heard yet.
    unheard: Record,
}

/// The launches of a batch, those that wait and those that have ended.
struct Queue<'a, 'b> {
    spec: &'a MachineSpec,
    waiting: std::iter::Enumerate<std::slice::Iter<'a, (&'a Kernel, &'a Launch)>>,
    ended: BTreeMap<usize, Result<LaunchResult, Error>>,
    on_event: &'b mut dyn FnMut(BatchEvent<'_>),
}

/// Runs the launches on the engine's streams; gives their results in order.
pub(crate) fn run(
    engine: &mut BatchEngine<'_>,
    spec: &MachineSpec,
    launches: &[(&Kernel, &Launch)],
    on_event: &mut dyn FnMut(BatchEvent<'_>),
) -> Vec<Result<LaunchResult, Error>> {
    let mut queue = Queue { spec, waiting: launches.iter().enumerate(), ended: BTreeMap::new(), on_event };
    let mut streams: Vec<Option<Active<'_>>> = (0..engine.streams()).map(|_| None).collect();
    loop {
        for (stream, active) in streams.iter_mut().enumerate() {
            if active.is_none() {
                *active = queue.begin_next(engine, stream);
            }
        }
        let heard =
            |active: &Option<Active<'_>>| active.as_ref().map(|active| (active.unheard, active.running.position()));
        let heard: Vec<_> = streams.iter().map(heard).collect();
        if heard.iter().all(Option::is_none) {
            return queue.ended.into_values().collect();
        }
        let (answers, broken) = match engine.next(&heard) {
            Ok(answers) => (answers, None),
            Err(error) => (heard.iter().map(|_| None).collect(), Some(error.to_string())),
        };
        for (stream, (active, answer)) in streams.iter_mut().zip(answers).enumerate() {
            let Some(mut launch) = active.take() else { continue };
            // What breaks a step of the batch breaks every launch that took part in it.
            let broken = || RunError::Batch { reason: broken.clone().unwrap_or_else(|| "no answer".to_owned()) };
            match answer.unwrap_or_else(|| Err(broken())) {
                Ok(record) if queue.hear(&mut launch, record).is_continue() => *active = Some(launch),
                Ok(_) => queue.conclude(launch.number, launch.running, Ok(()), engine, stream),
                Err(error) => queue.conclude(launch.number, launch.running, Err(error), engine, stream),
            }
        }
    }
}

impl<'a> Queue<'a, '_> {
    /// Begins launches on a stream until one goes on.
    fn begin_next(&mut self, engine: &mut BatchEngine<'_>, stream: usize) -> Option<Active<'a>> {
        loop {
            let (number, &(kernel, launch)) = self.waiting.next()?;
            let (Spoken { program, prompt, .. }, running) = match driver(self.spec, kernel, launch) {
                Ok(driver) => driver.begin(false),
                Err(error) => {
                    self.end(number, Err(error));
                    continue;
                }
            };
            if let Err(error) = engine.power_on(stream, &program) {
                self.end(number, Err(error.into()));
            } else if launch.max_tokens == 0 {
                self.conclude(number, running, Ok(()), engine, stream);
            } else {
                match engine.prompt(stream, &prompt) {
                    Ok(record) => {
                        let mut active = Active { number, running, unheard: record };
                        if self.hear(&mut active, record).is_continue() {
                            return Some(active);
                        }
                        self.conclude(number, active.running, Ok(()), engine, stream);
                    }
                    Err(error) => self.conclude(number, running, Err(error), engine, stream),
                }
            }
        }
    }

    fn hear(&mut self, active: &mut Active<'_>, record: Record) -> ControlFlow<()> {
        (self.on_event)(BatchEvent::Spoken { launch: active.number, record });
        active.unheard = record;
        active.running.hear(record)
    }

    fn conclude(
        &mut self,
        number: usize,
        running: Running<'_>,
        ran: Result<(), RunError>,
        engine: &BatchEngine<'_>,
        stream: usize,
    ) {
        let result = running.conclude(ran.map(|()| 0), || engine.global_memory(stream));
        self.end(number, result);
    }

    fn end(&mut self, number: usize, result: Result<LaunchResult, Error>) {
        (self.on_event)(BatchEvent::Ended { launch: number, result: &result });
        self.ended.insert(number, result);
    }
}
