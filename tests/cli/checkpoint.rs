//! Checkpoints: emitted, looked into, run, and caught when a weight is wrong.

use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde_json::Value;

use crate::tool::{checkpoint, copy_of_checkpoint, file, kernel, qwengpu};

const LAUNCH: &str =
    "--grid 2 --block 4 --arg buf:i32:1,-2,3,400,5 --arg buf:i32:10,20,30,40,50 --arg zeros:i32:5 --arg i32:5";

fn run_on(directory: &Path, rest: &str) -> crate::tool::Finished {
    let mut arguments = vec!["run".to_owned(), kernel("vector_add.ptx"), "--model".to_owned()];
    arguments.push(directory.to_string_lossy().into_owned());
    arguments.extend(format!("{LAUNCH} {rest}").split_whitespace().map(str::to_owned));
    qwengpu(arguments)
}

#[test]
fn a_checkpoint_runs_in_both_number_formats() {
    for dtype in ["bf16", "f32"] {
        let text = run_on(checkpoint(), &format!("--engine sparse --dtype {dtype} --check")).success();
        assert!(text.contains("buffer 2 (i32): 11 18 33 440 55"), "{text}");
        assert!(text.contains("every record is the interpreter's"), "{text}");
    }
}

#[test]
fn the_dense_engine_runs_it_too() {
    let source = ".kernel k\n.param pointer offset 0 size 8 align 8 data\n\
                  s2r r1, tid\niadd r1, r1, 5\nst.b32 [c[0]], r1\nexit\n";
    let (_folder, path) = file("k.asm", source);
    for options in ["", "--threads 1 --draft interp"] {
        let mut arguments = vec!["run".to_owned(), path.to_string_lossy().into_owned(), "--model".to_owned()];
        arguments.push(checkpoint().to_string_lossy().into_owned());
        let rest = format!("--grid 1 --block 2 --arg zeros:i32:1 --engine dense --dtype bf16 --check {options}");
        arguments.extend(rest.split_whitespace().map(str::to_owned));
        let text = qwengpu(arguments).success();
        assert!(text.contains("buffer 0 (i32): 6") && text.contains("every record is the interpreter's"), "{text}");
    }
}

#[test]
fn info_says_what_a_checkpoint_holds() {
    let text = qwengpu(["info".as_ref(), checkpoint().as_os_str()]).success();
    for part in ["compiled layers in bf16", "global_words 126", "16 heads of 128 x 128", "memory/global/byte0", "halt"]
    {
        assert!(text.contains(part), "{part:?} is missing in: {text}");
    }
}

#[test]
fn tokens_take_the_ids_of_the_checkpoint() {
    let stream = |extra: &[&str]| {
        let mut arguments = vec!["tokens".to_owned(), kernel("vector_add.ptx")];
        arguments.extend(LAUNCH.split_whitespace().chain(extra.iter().copied()).map(str::to_owned));
        qwengpu(arguments).success()
    };
    let directory = checkpoint().to_string_lossy();
    let own = stream(&["--model", &directory, "--engine", "sparse"]);
    assert_eq!(stream(&[]), own);
}

#[test]
fn emitting_over_a_checkpoint_needs_force() {
    let copy = copy_of_checkpoint();
    let out = copy.path().to_string_lossy().into_owned();
    qwengpu(["emit", "--out", &out]).failure(2, &["exists already", "--force"]);
    std::fs::write(copy.path().join("model.safetensors"), "damaged").expect("written");
    let text = qwengpu(["emit", "--out", &out, "--force"]).success();
    assert!(text.contains("layers"), "{text}");
    run_on(copy.path(), "--engine sparse --check").success();
}

#[test]
fn one_wrong_weight_is_caught() {
    let copy = copy_of_checkpoint();
    let weights = copy.path().join("model.safetensors");
    let run = || run_on(copy.path(), "--engine sparse --check --json");
    let sound: Value = serde_json::from_str(&run().success()).expect("JSON");
    let before_halt = sound["tokens"].as_u64().expect("a number") - 1;
    // What tells HALT from other records.
    let manifest: Value = read_json(&copy.path().join("qwengpu.json"));
    let halt = manifest["halt_token_id"].as_u64().expect("an id");
    flip_sign(&weights, "lm_head.weight", halt);
    let caught = run().failure(1, &[&format!("after {before_halt} records")]);
    let object: Value = serde_json::from_str(&caught.stdout).expect("JSON");
    assert_eq!(object["check"], false);
    flip_sign(&weights, "lm_head.weight", halt);
    run().success();
    // What a state that is read adds to the residual stream, in the first layers where this kernel depends on it.
    let layers = manifest["num_layers"].as_u64().expect("a number");
    let caught = (0..layers).filter(|layer| {
        let tensor = format!("model.layers.{layer}.linear_attn.out_proj.weight");
        let Some(row) = first_row(&weights, &tensor) else { return false };
        flip_sign(&weights, &tensor, row);
        let status = run().status;
        flip_sign(&weights, &tensor, row);
        assert!(matches!(status, Some(0 | 1)), "layer {layer}: {status:?}");
        status == Some(1)
    });
    assert_eq!(caught.take(2).count(), 2, "no layer's first read matters to this kernel");
}

fn read_json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).expect("the file")).expect("JSON")
}

/// Offset of a bf16 matrix in a safetensors file, and its shape.
fn find_tensor(file: &mut std::fs::File, name: &str) -> (u64, u64, u64) {
    let mut length = [0; 8];
    file.seek(SeekFrom::Start(0)).expect("sought");
    file.read_exact(&mut length).expect("a length");
    let length = u64::from_le_bytes(length);
    let mut header = vec![0; usize::try_from(length).expect("fits")];
    file.read_exact(&mut header).expect("a header");
    let header: Value = serde_json::from_slice(&header).expect("JSON");
    let tensor = &header[name];
    assert_eq!(tensor["dtype"], "BF16", "{name}: {tensor}");
    let number = |value: &Value| value.as_u64().expect("a number");
    (8 + length + number(&tensor["data_offsets"][0]), number(&tensor["shape"][0]), number(&tensor["shape"][1]))
}

/// One row of a bf16 matrix, and where it begins.
fn read_row(file: &mut std::fs::File, name: &str, row: u64) -> (u64, Vec<u8>) {
    let (start, _, cols) = find_tensor(file, name);
    let start = start + 2 * row * cols;
    let mut bytes = vec![0; usize::try_from(2 * cols).expect("fits")];
    file.seek(SeekFrom::Start(start)).expect("sought");
    file.read_exact(&mut bytes).expect("a row");
    (start, bytes)
}

/// The first row that is not zero.
fn first_row(path: &Path, name: &str) -> Option<u64> {
    let mut file = OpenOptions::new().read(true).open(path).expect("opened");
    let rows = find_tensor(&mut file, name).1;
    (0..rows).find(|&row| read_row(&mut file, name, row).1.iter().any(|&byte| byte != 0))
}

/// Negates the first weight of a row that is not zero.
fn flip_sign(path: &Path, name: &str, row: u64) {
    let mut file = OpenOptions::new().read(true).write(true).open(path).expect("opened");
    let (start, bytes) = read_row(&mut file, name, row);
    let place = bytes.chunks(2).position(|weight| weight != [0, 0]).expect("a weight");
    file.seek(SeekFrom::Start(start + 2 * place as u64 + 1)).expect("sought");
    file.write_all(&[bytes[2 * place + 1] ^ 0x80]).expect("written");
}
