//! Launches leave the language as it was, and text leaves the machine as it was.

use qwengpu::generate::{Author, Message, Reply, ReplyOptions, Session};
use qwengpu::weights::language_part;
use qwengpu::{Argument, Dim3, Kernel, Launch, Start};
use qwengpu_model::{DenseEngine, Engine, LayerCache, Precision};
use qwengpu_weights::Manifest;

use crate::{merged, session, standin};

fn ask(session: &mut Session, question: &str) -> Reply {
    let prompt = session.chat_prompt(&[Message::new("user", question)]).expect("a template");
    session.reply(&prompt, &ReplyOptions::default(), &mut |_| ()).expect("a reply")
}

fn launches(reply: &Reply) -> usize {
    reply.transcript.launches().count()
}

#[test]
fn logits_behind_a_launch_are_those_without_it() {
    let mut session = session();
    let reply = ask(&mut session, "What is 1234 * 5678?");
    assert_eq!(launches(&reply), 1, "{reply:?}");

    // An engine that has no machine at all hears the same text, cut in the same way.
    let manifest = Manifest::read(merged()).expect("a manifest");
    let part = language_part(manifest.merge.as_ref().expect("a base"));
    let mut engine = DenseEngine::from_part(merged(), &part, Precision::F32).expect("an engine");
    let mut logits = Vec::new();
    for piece in &reply.transcript.pieces {
        let size = if piece.author == Author::Model { 1 } else { piece.tokens.len() };
        for tokens in piece.tokens.chunks(size) {
            logits = engine.forward(tokens).expect("a forward").to_vec();
        }
    }
    assert_eq!(session.logits(), logits, "bit by bit");
}

#[test]
fn the_part_is_the_whole_for_language() {
    let manifest = Manifest::read(merged()).expect("a manifest");
    let part = language_part(manifest.merge.as_ref().expect("a base"));
    let mut narrow = DenseEngine::from_part(merged(), &part, Precision::F32).expect("an engine");
    let base = std::path::PathBuf::from(standin("checkpoint"));
    let mut base = DenseEngine::from_dir(&base, Precision::F32).expect("the base");
    let tokens: Vec<u32> = (0..150).map(|n| (n * 37 + 11) % 700).collect();
    for tokens in [&tokens[..100], &tokens[100..101], &tokens[101..]] {
        let (narrow, base) = (narrow.forward(tokens).expect("logits"), base.forward(tokens).expect("logits"));
        let gap = narrow.iter().zip(base).fold(0.0_f32, |gap, (a, b)| gap.max((a - b).abs()));
        let largest = base.iter().fold(0.0_f32, |largest, logit| largest.max(logit.abs()));
        assert!(narrow.len() == base.len() && gap <= 2e-5 * largest, "off by {gap} of {largest}");
    }
    // The caches have the base's sizes: language pays nothing for the machine.
    let sizes = |cache: qwengpu_model::Cache| -> Vec<usize> {
        let layers = cache.layers.into_iter();
        let size = |layer| match layer {
            LayerCache::Linear { conv, recurrent } => conv.len() + recurrent.len(),
            LayerCache::Full { keys, values } => keys.len() + values.len(),
        };
        layers.map(size).collect()
    };
    assert_eq!(sizes(narrow.save()), sizes(base.save()));
}

#[test]
fn memory_outlasts_text() {
    let mut session = session();
    let kernel = include_str!("../../kernels/histogram.ptx");
    let kernel = Kernel::from_ptx(session.gpu().spec(), kernel, None).expect("a kernel");
    let launch = |start| Launch {
        start,
        check: true,
        ..Launch::new(Dim3::linear(1), Dim3::linear(8))
            .argument(Argument::buffer(b"abca"))
            .argument(4_i32)
            .argument(Argument::zeros::<i32>(8))
    };
    let bins = |session: &mut Session, start| {
        let result = session.gpu().launch(&kernel, &launch(start)).expect("a launch");
        result.buffers[1].to_vec::<i32>().expect("a buffer of i32")
    };
    assert_eq!(bins(&mut session, Start::Fresh), [0, 2, 1, 1, 0, 0, 0, 0]);
    let options = ReplyOptions { modes: qwengpu::generate::Modes::NONE, ..ReplyOptions::default() };
    session.reply("Some text between.", &options, &mut |_| ()).expect("a reply");
    assert_eq!(bins(&mut session, Start::Keep), [0, 4, 2, 2, 0, 0, 0, 0]);
}

#[test]
fn a_session_is_saved_restored_and_forked() {
    let mut first = session();
    ask(&mut first, "What is 12 + 34?");
    let saved = first.save();
    let question = "How much is 987 - 654?";
    let goes_on = |session: &mut Session| {
        let prompt = format!("{}\n<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n", session.text());
        session.reply(&prompt, &ReplyOptions::default(), &mut |_| ()).expect("a reply").transcript
    };
    let direct = goes_on(&mut first);
    let (mut second, mut third) = (session(), session());
    second.restore(&saved).expect("restored");
    third.restore(&saved).expect("restored");
    assert_eq!((goes_on(&mut second), goes_on(&mut third)), (direct.clone(), direct.clone()));
    assert!(direct.pieces[0].tokens.len() < 60, "what was heard is not heard again");
    first.reset();
    assert!(first.context().is_empty() && first.logits().is_empty());
}
