//! Bad input: exit status 2, a message that says what to do, no panic, no partial file.

use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

use crate::tool::{command, copy_of_checkpoint, file, kernel, qwengpu, run_interp};

const ADD: &str = "--grid 1 --block 4 --arg buf:i32:1,2 --arg buf:i32:3,4";

#[test]
fn arguments_of_the_kernel() {
    let add = kernel("vector_add.ptx");
    let cases = [
        ("--arg zeros:i32:2", "takes 4 arguments, got 3"),
        ("--arg zeros:i32:2 --arg i32:2 --arg i32:2", "takes 4 arguments, got 5"),
        ("--arg i32:2 --arg i32:2", "argument 3 (vector_add_param_2) is a scalar i32, expected buf:TYPE:VALUES"),
        ("--arg zeros:i32:2 --arg zeros:i32:2", "argument 4 (vector_add_param_3) is a buffer of i32"),
        ("--arg zeros:i32:2 --arg i64:2", "argument 4 (vector_add_param_3) is a scalar i64"),
        ("--arg zeros:i32:2 --arg i32:2147483648", "out of range"),
        ("--arg zeros:i32:2 --arg i32:two", "is no number"),
        ("--arg zeros:f32:2 --arg i32:2", "the types are i8 u8 i16 u16 i32 u32 i64 u64"),
        ("--arg zeros:i32:123 --arg i32:2", "need 127 words of global memory, 126 are free"),
        ("--arg zeros:i32:99999999999 --arg i32:2", "cannot have"),
    ];
    for (rest, message) in cases {
        run_interp(&add, &format!("{ADD} {rest}")).failure(2, &[message]);
    }
}

#[test]
fn sizes_of_the_launch() {
    let add = kernel("vector_add.ptx");
    let rest = "--arg buf:i32:1 --arg buf:i32:3 --arg zeros:i32:1 --arg i32:1";
    run_interp(&add, &format!("--grid 1 --block 33 {rest}")).failure(2, &["33 threads", "32"]);
    run_interp(&add, &format!("--grid 256 --block 1 {rest}")).failure(2, &["256", "255"]);
    run_interp(&add, &format!("--grid 0 --block 1 {rest}")).failure(2, &["0 CTAs"]);
    run_interp(&add, &format!("--grid 1,1,1,1 --block 1 {rest}")).failure(2, &["at most three sizes"]);
    run_interp(&add, &format!("--grid 99999 --block 1 {rest}")).failure(2, &["is no size"]);
}

#[test]
fn files_that_are_no_kernels() {
    run_interp("missing.ptx", "--grid 1 --block 1").failure(2, &["reading missing.ptx", "No such file"]);
    run_interp("kernel.txt", "--grid 1 --block 1").failure(2, &[".cu (CUDA), .ptx (PTX) or .asm"]);
    let (_folder, path) = file("poem.ptx", "The quick brown fox\njumps.\n");
    run_interp(&path.to_string_lossy(), "--grid 1 --block 1").failure(2, &["line 1", "poem.ptx"]);
    let (_folder, path) = file("bytes.ptx", "");
    std::fs::write(&path, [0xff, 0xfe, 0x00]).expect("written");
    run_interp(&path.to_string_lossy(), "--grid 1 --block 1").failure(2, &["the file is no text"]);
    let (_folder, path) = file("empty.ptx", "");
    run_interp(&path.to_string_lossy(), "--grid 1 --block 1").failure(2, &[]);
    let (_folder, path) = file("bad.asm", "    iadd r1, r2\n    frob r1\n    exit\n");
    run_interp(&path.to_string_lossy(), "--grid 1 --block 1").failure(2, &["frob"]);
}

#[test]
fn ptx_errors_show_the_line() {
    let text = std::fs::read_to_string(kernel("vector_add.ptx")).expect("the kernel");
    let (_folder, path) = file("float.ptx", &text.replace("add.s32 \t%r8, %r7, %r6", "add.f32 \t%r8, %r7, %r6"));
    let rest = format!("{ADD} --arg zeros:i32:2 --arg i32:2");
    let parts = ["`add.f32` is floating point", "float.ptx:43:2", "43 add.f32 %r8, %r7, %r6;"];
    let shown = run_interp(&path.to_string_lossy(), &rest).failure(2, &parts);
    assert!(!shown.stderr.contains('\x1b'), "{}", shown.stderr);
}

#[test]
fn kernels_by_name() {
    let rest = format!("{ADD} --arg zeros:i32:2 --arg i32:2 --kernel other");
    run_interp(&kernel("vector_add.ptx"), &rest).failure(2, &["other", "vector_add"]);
}

#[test]
fn programs_larger_than_the_machine() {
    let mut text = ".version 6.4\n.target sm_75\n.address_size 64\n.visible .entry big(.param .u64 big_param_0)\n{\n\
                    .reg .b32 %r<4>;\n.reg .b64 %rd<3>;\nld.param.u64 %rd1, [big_param_0];\n\
                    cvta.to.global.u64 %rd2, %rd1;\n"
        .to_owned();
    for _ in 0..300 {
        text += "ld.volatile.global.u32 %r1, [%rd2];\nst.volatile.global.u32 [%rd2+4], %r1;\n";
    }
    text += "ret;\n}\n";
    let (_folder, path) = file("big.ptx", &text);
    run_interp(&path.to_string_lossy(), "--grid 1 --block 1 --arg zeros:i32:2").failure(2, &["512"]);
}

#[test]
fn engines_and_types_by_name() {
    let add = kernel("vector_add.ptx");
    run_interp(&add, "--grid 1 --block 1 --dtype f16").failure(2, &["f16", "bf16"]);
    run_interp(&add, "--grid 1 --block 1 --threads 0").failure(2, &["--threads"]);
    run_interp(&add, &format!("{ADD} --draft interp")).failure(2, &["--draft", "--engine dense"]);
    qwengpu(["suite", "--engine", "netlist", "--draft", "interp"]).failure(2, &["--draft", "--engine dense"]);
    qwengpu(["run", &add, "--grid", "1", "--block", "1", "--engine", "quantum"]).failure(2, &["quantum", "sparse"]);
    let rest = format!("{ADD} --arg zeros:i32:2 --arg i32:2 --model somewhere");
    run_interp(&add, &rest).failure(2, &["--engine sparse or dense"]);
}

#[test]
fn checkpoints_that_are_none() {
    let run = |directory: &str| {
        let mut arguments = vec!["run".to_owned(), kernel("vector_add.ptx")];
        let rest = format!("{ADD} --arg zeros:i32:2 --arg i32:2 --engine sparse --model {directory}");
        arguments.extend(rest.split_whitespace().map(str::to_owned));
        qwengpu(arguments)
    };
    run("/nonexistent").failure(2, &["holds no checkpoint", "qwengpu emit"]);
    qwengpu(["info", "/nonexistent"]).failure(2, &["holds no checkpoint"]);

    let (foreign, path) = file("config.json", "{\"model_type\": \"qwen3_5_text\"}");
    run(&foreign.path().to_string_lossy()).failure(2, &["no machine"]);
    std::fs::write(path.with_file_name("qwengpu.json"), "{\"format\": \"other\"}").expect("written");
    run(&foreign.path().to_string_lossy()).failure(2, &["no manifest of qwengpu"]);
    std::fs::write(path.with_file_name("qwengpu.json"), "{\"format\": ").expect("written");
    run(&foreign.path().to_string_lossy()).failure(2, &["truncated"]);

    let cut = copy_of_checkpoint();
    let weights = cut.path().join("model.safetensors");
    let length = std::fs::metadata(&weights).expect("weights").len();
    let open = std::fs::OpenOptions::new().write(true).open(&weights).expect("opened");
    open.set_len(length / 2).expect("cut");
    run(&cut.path().to_string_lossy()).failure(2, &["model.safetensors"]);
    open.set_len(100).expect("cut");
    run(&cut.path().to_string_lossy()).failure(2, &["model.safetensors"]);
    std::fs::remove_file(&weights).expect("removed");
    run(&cut.path().to_string_lossy()).failure(2, &[]);
}

#[test]
fn output_that_cannot_be_written() {
    let folder = TempDir::new().expect("a folder");
    let out = folder.path().join("missing/stream.json");
    let mut arguments = vec!["tokens".to_owned(), kernel("vector_add.ptx"), format!("--out={}", out.display())];
    arguments.extend(format!("{ADD} --arg zeros:i32:2 --arg i32:2").split_whitespace().map(str::to_owned));
    qwengpu(&arguments).failure(2, &["writing"]);

    let occupied = TempDir::new().expect("a folder");
    std::fs::write(occupied.path().join("mine.txt"), "precious").expect("written");
    for extra in [&[][..], &["--force"]] {
        let out = occupied.path().to_string_lossy().into_owned();
        let mut arguments = vec!["emit".to_owned(), "--out".to_owned(), out];
        arguments.extend(extra.iter().map(|&flag| flag.to_owned()));
        qwengpu(arguments).failure(2, &[]);
        assert_eq!(std::fs::read_dir(occupied.path()).expect("still there").count(), 1);
    }

    let locked = TempDir::new().expect("a folder");
    std::fs::set_permissions(locked.path(), std::fs::Permissions::from_mode(0o555)).expect("locked");
    let out = locked.path().join("checkpoint");
    // The superuser may write anywhere.
    if std::fs::create_dir(&out).is_err() {
        qwengpu(["emit".as_ref(), "--out".as_ref(), out.as_os_str()]).failure(2, &["no permission", "--out"]);
        assert!(!out.exists());
    }
    std::fs::set_permissions(locked.path(), std::fs::Permissions::from_mode(0o755)).expect("unlocked");
}

#[test]
fn words_that_are_none() {
    let (_folder, path) = file("words.hex", "00000000000001c1\nzz\n");
    qwengpu(["disasm".as_ref(), path.as_os_str()]).failure(2, &["line 2"]);
    let (_folder, path) = file("words.hex", "ffffffffffffffff\n");
    qwengpu(["disasm".as_ref(), path.as_os_str()]).failure(2, &["word 0"]);
    let (_folder, path) = file("words.hex", "// nothing\n");
    qwengpu(["disasm".as_ref(), path.as_os_str()]).failure(2, &["no words"]);
}

#[test]
fn suites_that_are_none() {
    qwengpu(["suite", "--engine", "interp", "--kernels", "/nonexistent"]).failure(2, &["--kernels"]);
    let (folder, _) = file("broken.json", "{\"file\": \"x.cu\"}");
    let kernels = folder.path().to_string_lossy().into_owned();
    qwengpu(["suite", "--engine", "interp", "--kernels", &kernels]).failure(2, &["broken.json", "kernel"]);
    qwengpu(["suite", "--engine", "interp", "--kernels", &kernel(""), "--filter", "nonsense"])
        .failure(2, &["nonsense"]);
}

#[test]
fn a_closed_pipe_is_no_panic() {
    let mut child = command(["ptx", &kernel("saxpy.ptx")])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
